//! resource.Quantity: parsing, canonical form, arithmetic.

use std::cmp::Ordering;

use dra_attrs::{Quantity, QuantityError, QuantityFormat};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

use super::hash;

const SI: QuantityFormat = QuantityFormat::DecimalSi;
const BIN: QuantityFormat = QuantityFormat::BinarySi;
const EXP: QuantityFormat = QuantityFormat::DecimalExponent;

#[test]
fn canonical_forms() {
    let rows = [
        ("0", "0", SI),
        ("0n", "0", SI),
        ("0Ki", "0", BIN),
        ("0e9", "0", EXP),
        ("1", "1", SI),
        ("+5", "5", SI),
        ("-5k", "-5k", SI),
        ("1000", "1k", SI),
        ("1000m", "1", SI),
        ("1200m", "1200m", SI),
        ("0.5", "500m", SI),
        ("1.", "1", SI),
        (".5", "500m", SI),
        ("100.035k", "100035", SI),
        ("1E", "1E", SI),
        ("1000E", "1e21", SI),
        ("12E", "12E", SI),
        ("1e3", "1e3", EXP),
        ("12e4", "120e3", EXP),
        ("1E-6", "1e-6", EXP),
        ("1e0", "1", EXP),
        ("1Ki", "1Ki", BIN),
        ("1024", "1024", SI),
        ("1024Ki", "1Mi", BIN),
        ("1.5Gi", "1536Mi", BIN),
        ("0.5Ki", "512", BIN),
        ("1.0009765625Ki", "1025", BIN),
        ("1.1Ki", "1126400m", BIN),
        ("0.0001Ki", "102400u", SI),
        ("-0.0001Ki", "-102400u", SI),
        ("8Ei", "9223372036854775807", BIN),
        ("100Ei", "9223372036854775807", BIN),
        ("-100Ei", "-9223372036854775807", BIN),
        ("7Ei", "7Ei", BIN),
        // Rounding to nano-units goes away from zero.
        ("0.1n", "1n", SI),
        ("-0.1n", "-1n", SI),
        ("1.0000000001", "1000000001n", SI),
        ("1e-100", "1e-9", EXP),
        ("0.00000000000000000000000000000000000000001Ei", "1n", SI),
        // Missing digits count as zero.
        ("+", "0", SI),
        ("-", "0", SI),
        (".", "0", SI),
        ("m", "0", SI),
        ("Gi", "0", BIN),
        ("0000000000000000000000000000000000000000001", "1", SI),
        // Zero has any exponent.
        ("0e9223372036854775807", "0", EXP),
        // One is whole, so that it keeps its format.
        ("0.0009765625Ki", "1", BIN),
    ];
    for (text, canonical, format) in rows {
        let quantity: Quantity = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!((quantity.to_string().as_str(), quantity.format()), (canonical, format), "{text}");
    }
}

#[test]
fn not_quantities() {
    let suffixes = ["1i", ".5i", "0.1mi", "0.1am", "aoeu", "-3.01i", "1K", "1ki", "1.1.M", "1e", "1e+", "1mm", "--1"];
    for text in suffixes.into_iter().chain(["", " 1", "1 ", "1+1.0M", "1e3.5", "-3.01e-", "1,5", "１"]) {
        let error = text.parse::<Quantity>().unwrap_err();
        assert!(matches!(error, QuantityError::Format { .. } | QuantityError::Suffix { .. }), "{text}: {error}");
    }
    for text in ["1e30", "1e9223372036854775807", "1e21E", "999999999999999999999999999999999999999999"] {
        assert!(text.parse::<Quantity>().is_err(), "{text}");
    }
    assert_eq!("1e30".parse::<Quantity>(), Err(QuantityError::OutOfRange { text: "1e30".to_owned() }));
}

#[test]
fn arithmetic_is_exact_and_checked() {
    let quantity = |text: &str| text.parse::<Quantity>().unwrap();
    assert_eq!(quantity("1k").checked_add(quantity("1Ki")).unwrap().to_string(), "2024");
    assert_eq!(quantity("1Ki").checked_add(quantity("1k")).unwrap().to_string(), "2024");
    assert_eq!(quantity("3Gi").checked_sub(quantity("1Gi")).unwrap().to_string(), "2Gi");
    assert_eq!(quantity("0").checked_add(quantity("1Gi")).unwrap().format(), BIN);
    assert_eq!(quantity("0").checked_sub(quantity("1Gi")).unwrap().to_string(), "-1Gi");
    assert_eq!(quantity("250m").checked_mul(4).unwrap(), quantity("1"));
    let most = Quantity::from_nanos(i128::MAX, SI);
    assert_eq!(most.checked_add(quantity("1n")), None);
    assert_eq!(Quantity::from_nanos(i128::MIN, SI).checked_sub(quantity("1n")), None);
    assert_eq!(most.checked_mul(2), None);
    for (left, right, product) in [
        ("1500m", "2", "3"),
        ("1.5", "1500m", "2250m"),
        ("1n", "500m", "1n"),
        ("-1500m", "1n", "-2n"),
        ("0.2", "5", "1"),
    ] {
        assert_eq!(quantity(left).saturating_mul(quantity(right)), quantity(product), "{left} x {right}");
    }
    assert!(quantity("0.1n") == quantity("1n") && quantity("100Ei") == quantity("9223372036854775807"));
    assert!(quantity("1023Mi") < quantity("1Gi"));
    assert_eq!(Quantity::from_units(i64::MIN, SI).to_string(), "-9223372036854775808");
    // There is no suffix above Ei.
    assert_eq!(Quantity::from_nanos(1_000_000_000 << 70, BIN).to_string(), "1024Ei");
}

#[test]
fn quantities_are_equal_ordered_and_hashed_by_value() {
    let quantity = |text: &str| text.parse::<Quantity>().unwrap();
    assert!(quantity("1Ki") == quantity("1024") && quantity("1") != quantity("2"));
    assert_eq!(quantity("1").partial_cmp(&quantity("2")), Some(Ordering::Less));
    assert_eq!(quantity("2").partial_cmp(&quantity("1")), Some(Ordering::Greater));
    assert!(hash(&quantity("1Ki")) == hash(&quantity("1024")) && hash(&quantity("1")) != hash(&quantity("2")));
    assert_eq!((Quantity::default(), Quantity::default().format()), (Quantity::ZERO, SI));
}

#[test]
fn whole_units_are_rounded_up_and_limited() {
    let units = |text: &str| text.parse::<Quantity>().unwrap().units_rounded_up();
    let rows = [
        ("0", 0),
        ("1", 1),
        ("1001m", 2),
        ("1n", 1),
        ("-1", -1),
        ("-1500m", -1),
        ("-1n", 0),
        ("2500m", 3),
        ("7k", 7000),
    ];
    for (text, expected) in rows {
        assert_eq!(units(text), expected, "{text}");
    }
    assert_eq!(Quantity::from_nanos(i128::MAX, SI).units_rounded_up(), i64::MAX);
    assert_eq!(Quantity::from_nanos(i128::MIN, SI).units_rounded_up(), i64::MIN);
}

#[test]
fn the_apis_quantity_is_read_and_written() {
    let kube = |text: &str| KubeQuantity(text.to_owned());
    assert_eq!(Quantity::from_kube(&kube(" 2048Ki\n")).unwrap().to_kube(), kube("2Mi"));
    assert!(Quantity::from_kube(&kube("")).is_err());
}

#[test]
fn serde_uses_the_canonical_text() {
    let read: Quantity = serde_json::from_str("\" 2048Ki \"").unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), "\"2Mi\"");
    assert!(serde_json::from_str::<Quantity>("\"1i\"").is_err());
}
