//! Values: any combination of the eight fields is read without a panic, and equally by every reader.
#![no_main]

use dra_attrs::check_device_attributes;
use dra_attrs::internal::{AttributeValue, NumaNodeValue};
use k8s_openapi::api::resource::v1::DeviceAttribute;
use libfuzzer_sys::fuzz_target;

type Scalars = (Option<bool>, Option<i64>, Option<String>, Option<String>);
type Lists = (Option<Vec<bool>>, Option<Vec<i64>>, Option<Vec<String>>, Option<Vec<String>>);

fuzz_target!(|input: (Vec<(String, Scalars, Lists)>, usize)| {
    let (attributes, capacities) = input;
    let attribute = |(name, (bool, int, string, version), (bools, ints, strings, versions))| {
        (name, DeviceAttribute { bool, bools, int, ints, string, strings, version, versions })
    };
    let attributes = attributes.into_iter().map(attribute).collect();
    let accepted = check_device_attributes(&attributes, capacities).is_ok();
    for attribute in attributes.values() {
        let value = AttributeValue::parse(attribute);
        assert!(value.is_ok() || !accepted);
        assert!(value.as_ref().map_or(true, |value| value.elements().count() == value.len()));
        match NumaNodeValue::parse(attribute) {
            Ok(NumaNodeValue::Scalar(node)) => assert_eq!(NumaNodeValue::physical(attribute), Some(node)),
            Ok(NumaNodeValue::List(nodes)) => assert_eq!(NumaNodeValue::physical(attribute), nodes.first().copied()),
            Err(_) => assert!(value.is_err() || NumaNodeValue::physical(attribute).is_none()),
        }
    }
});
