use k8s_openapi::api::core::v1::PodSpec;
use nnn::amount::{Amount, AmountError, Resources};
use serde_json::{from_value, json};

#[test]
fn quantities_are_exact_and_round_away_from_zero() {
    let same = [
        ("1", "1000m"),
        ("1k", "1000"),
        ("1Ki", "1024"),
        ("0.5Gi", "512Mi"),
        ("1e3", "1k"),
        ("1E", "1e18"),
        ("+1.50", "1500m"),
        ("0.1n", "1n"),
        ("-1.5", "-1500m"),
    ];
    for (left, right) in same {
        assert_eq!(Amount::parse(left), Amount::parse(right), "{left} and {right}");
    }
    for text in ["", ".", "1i", "1.2.3", "one", "1 ", "--1", "0x1", "1e"] {
        assert_eq!(Amount::parse(text), Err(AmountError::Format { text: text.to_owned() }));
    }
    for text in ["1e99", "340282366920938463463374607431768211456", "99999999999999999999999Ei"] {
        assert_eq!(Amount::parse(text), Err(AmountError::OutOfRange { text: text.to_owned() }), "{text}");
    }
    assert_eq!(Amount::parse("1e-99"), Amount::parse("1n"));
    assert_eq!(Amount::parse("0e99"), Ok(Amount::ZERO));
    assert_eq!(Amount::parse("2500m").unwrap().to_string(), "2500m");
}

#[test]
fn sums_saturate() {
    let huge = Amount::parse("100000000000E").unwrap();
    let mut sum = huge;
    (0..100).for_each(|_| sum = sum.plus(sum));
    assert!(sum.plus(huge) == sum && Amount::ZERO.minus(sum).minus(sum) < Amount::ZERO);
    assert_eq!(sum.permille_of(Amount::from_units(1)), u32::MAX);
}

#[test]
fn requests_of_a_pod() {
    let requests = |cpu: &str| json!({"requests": {"cpu": cpu}});
    let of = |spec: serde_json::Value| {
        Resources::requested_by(&from_value::<PodSpec>(spec).unwrap()).unwrap().of("cpu").to_string()
    };
    let containers =
        json!([{"name": "a", "resources": requests("1")}, {"name": "b", "resources": requests("500m")}, {"name": "c"}]);
    assert_eq!(of(json!({"containers": containers})), "1500m");
    let init = json!([{"name": "i", "resources": requests("4")}]);
    assert_eq!(of(json!({"containers": containers, "initContainers": init})), "4");
    let sidecar_first = json!([
        {"name": "s", "restartPolicy": "Always", "resources": requests("2")}, {"name": "i", "resources": requests("3")}]);
    assert_eq!(of(json!({"containers": containers, "initContainers": sidecar_first})), "5");
    let sidecar_last = json!([
        {"name": "i", "resources": requests("3")}, {"name": "s", "restartPolicy": "Always", "resources": requests("2")}]);
    assert_eq!(
        of(json!({"containers": containers, "initContainers": sidecar_last, "overhead": {"cpu": "250m"}})),
        "3750m"
    );
    assert_eq!(of(json!({"containers": containers, "resources": requests("8")})), "8");
}
