//! Attribute values as a strict union, and the limits of a device.

use std::collections::BTreeMap;

use dra_attrs::internal::{AttributeValue, NumaNodeValue};
use dra_attrs::numa::NumaValueError;
use dra_attrs::{DeviceAttributesError, Index, Scalar, ValueError, Version, check_device_attributes};
use k8s_openapi::api::resource::v1::DeviceAttribute;

use super::{int, ints, string, version};

#[test]
fn every_field_is_read() {
    let none = DeviceAttribute::default;
    let texts = || Some(vec!["1.0.0".to_owned(), "2.0.0".to_owned()]);
    let rows = [
        (DeviceAttribute { bool: Some(false), ..none() }, "bool", 1, false),
        (int(0), "int", 1, false),
        (string(""), "string", 1, false),
        (version("1.2.3-rc.1+b"), "version", 1, false),
        (DeviceAttribute { bools: Some(vec![true, true]), ..none() }, "bools", 2, true),
        (ints(&[3, 1, 3]), "ints", 3, true),
        (DeviceAttribute { strings: texts(), ..none() }, "strings", 2, true),
        (DeviceAttribute { versions: texts(), ..none() }, "versions", 2, true),
    ];
    for (attribute, field, len, list) in rows {
        let value = AttributeValue::parse(&attribute).unwrap();
        assert_eq!((value.field(), value.len(), value.is_list()), (field, len, list));
        assert_eq!(value.elements().count(), len);
        for scalar in value.elements() {
            let alone = scalar.to_attribute();
            assert_eq!(AttributeValue::parse(&alone).unwrap().elements().next(), Some(scalar));
        }
    }
}

#[test]
fn not_exactly_one_value() {
    assert_eq!(AttributeValue::parse(&DeviceAttribute::default()), Err(ValueError::NoValue));
    let both = DeviceAttribute { string: Some("a".to_owned()), ..int(1) };
    assert_eq!(AttributeValue::parse(&both), Err(ValueError::SeveralValues { fields: vec!["int", "string"] }));
    assert_eq!(AttributeValue::parse(&ints(&[])), Err(ValueError::EmptyList { field: "ints" }));
}

#[test]
fn texts_have_64_bytes_and_versions_are_semantic() {
    let fits = "ä".repeat(32);
    assert!(AttributeValue::parse(&string(&fits)).is_ok());
    let long = DeviceAttribute { strings: Some(vec![String::new(), format!("{fits}a")]), ..DeviceAttribute::default() };
    assert_eq!(
        AttributeValue::parse(&long),
        Err(ValueError::TooLong { field: "strings", index: Index::from(1), len: 65 })
    );
    for text in ["v1.2.3", "1.2", "01.2.3", "1.2.3-01", "", "1.2.3 ", "18446744073709551616.0.0"] {
        let error = AttributeValue::parse(&version(text)).map(|_| ()).unwrap_err();
        assert!(
            matches!(error, ValueError::InvalidVersion { field: "version", index, .. } if index == Index::FIRST),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_number_in_the_pre_release_that_does_not_fit_in_64_bits_can_be_stored_but_not_compared() {
    for (text, comparable) in [
        ("1.0.0-18446744073709551615", true),
        ("1.0.0-18446744073709551616", false),
        ("1.0.0-rc.20240101123456789012345.1", false),
        ("1.0.0-20240101123456789012345a", true),
        ("1.0.0+20240101123456789012345", true),
    ] {
        assert!(AttributeValue::parse(&version(text)).is_ok(), "{text}");
        assert_eq!(text.parse::<Version>().is_ok(), comparable, "{text}");
    }
}

#[test]
fn a_device_has_48_values_and_32_entries() {
    let device = |attributes: Vec<DeviceAttribute>| -> BTreeMap<String, DeviceAttribute> {
        attributes.into_iter().enumerate().map(|(index, value)| (format!("a{index:02}"), value)).collect()
    };
    let list: Vec<i64> = (0..47).collect();
    assert_eq!(check_device_attributes(&device(vec![ints(&list), int(1)]), 30), Ok(()));
    assert_eq!(
        check_device_attributes(&device(vec![ints(&list), int(1), DeviceAttribute::default()]), 30),
        Err(vec![
            DeviceAttributesError::Value { name: "a02".to_owned(), source: ValueError::NoValue },
            DeviceAttributesError::TooManyValues { count: 49 },
            DeviceAttributesError::TooManyEntries { count: 33 },
        ])
    );
    let bad_name = BTreeMap::from([("a-b".to_owned(), int(1))]);
    let errors = check_device_attributes(&bad_name, 0).unwrap_err();
    assert!(matches!(errors.as_slice(), [DeviceAttributesError::Name(_)]));
}

#[test]
fn a_numa_node_is_int_or_ints() {
    // req: 6072-NAME-2
    assert_eq!(NumaNodeValue::parse(&int(4)), Ok(NumaNodeValue::Scalar(4)));
    assert_eq!(NumaNodeValue::parse(&ints(&[4, 5])), Ok(NumaNodeValue::List(&[4, 5])));
    let both = DeviceAttribute { int: Some(4), ..ints(&[4]) };
    let fields = vec!["int", "ints"];
    assert_eq!(NumaNodeValue::parse(&both), Err(NumaValueError::Value(ValueError::SeveralValues { fields })));
    assert_eq!(NumaNodeValue::parse(&DeviceAttribute::default()), Err(NumaValueError::Value(ValueError::NoValue)));
    let flag = DeviceAttribute { bool: Some(true), ..DeviceAttribute::default() };
    for (attribute, field) in [(string("4"), "string"), (flag, "bool"), (version("4.0.0"), "version")] {
        assert_eq!(NumaNodeValue::parse(&attribute), Err(NumaValueError::Type { field }));
    }
}

#[test]
fn scalars_are_ordered_by_type_then_value() {
    let ordered = [
        Scalar::Bool(false),
        Scalar::Bool(true),
        Scalar::Int(-1),
        Scalar::Int(2),
        Scalar::String("a"),
        Scalar::Version("0.1.0"),
    ];
    assert!(ordered.is_sorted());
    assert_ne!(Scalar::String("1.0.0"), Scalar::Version("1.0.0"));
}
