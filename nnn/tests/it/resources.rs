use dra_attrs::{Quantity, QuantityError, QuantityFormat};
use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;
use nnn::Resources;
use serde_json::{from_value, json};

fn parsed(cpu: &str) -> Result<Resources, QuantityError> {
    Resources::parse(&[("cpu".to_owned(), KubeQuantity(cpu.to_owned()))].into())
}

#[test]
fn lists_are_read_as_quantities() {
    for (left, right) in [("1", "1000m"), ("0.5Gi", "512Mi"), ("1e3", "1k"), ("0.1n", "1n"), ("-1.5", " -1500m ")] {
        assert_eq!(parsed(left), parsed(right), "{left} and {right}");
    }
    for text in ["", "1.2.3", "one"] {
        assert_eq!(parsed(text), Err(QuantityError::Format { text: text.to_owned() }));
    }
    for (text, suffix) in [("1i", "i"), ("1e", "e"), ("--1", "-1")] {
        let error = QuantityError::Suffix { text: text.to_owned(), suffix: suffix.to_owned() };
        assert_eq!(parsed(text), Err(error));
    }
    assert_eq!(parsed("1e99"), Err(QuantityError::OutOfRange { text: "1e99".to_owned() }));
    assert_eq!(serde_json::to_value(parsed("2500m").unwrap()).unwrap(), json!({"cpu": "2500m"}));
}

#[test]
fn sums_saturate() {
    let huge = Resources::new([("cpu", Quantity::from_nanos(i128::MAX, QuantityFormat::DecimalSi))]);
    let one = Resources::new([("cpu", Quantity::from_units(1, QuantityFormat::DecimalSi))]);
    let mut sum = huge.clone();
    sum.add(&one);
    assert_eq!(sum, huge);
    assert!(Resources::default().minus(&huge).minus(&huge).quantity("cpu") < Quantity::ZERO);
}

#[test]
fn requests_of_a_pod() {
    let requests = |cpu: &str| json!({"requests": {"cpu": cpu}});
    let of = |spec: serde_json::Value| {
        Resources::requested_by(&from_value::<PodSpec>(spec).unwrap()).unwrap().quantity("cpu").to_string()
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
