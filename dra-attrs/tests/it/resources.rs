//! Lists of resources, and what a pod requests.

use dra_attrs::{Quantity, QuantityError, QuantityFormat, Resources};
use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;
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

#[test]
fn pod_level_requests_replace_those_of_containers_and_claims() {
    let spec: PodSpec = from_value(json!({
        "containers": [{"name": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi", "example.com/gpu": "1"}}}],
        "resources": {"requests": {"memory": "4Gi", "hugepages-2Mi": "2Mi", "example.com/gpu": "7"}},
        "overhead": {"memory": "1Gi"},
    }))
    .unwrap();
    let claims = Resources::new([("cpu", Quantity::from_units(2, QuantityFormat::DecimalSi))]);
    let requests = Resources::requested_with_claims(&spec, &claims).unwrap();
    let listed: Vec<_> = requests.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    assert_eq!(listed, ["cpu=3", "example.com/gpu=1", "hugepages-2Mi=2Mi", "memory=5Gi"]);
    assert!(["cpu", "memory", "hugepages-1Gi"].into_iter().all(Resources::is_pod_level));
    assert!(!Resources::is_pod_level("ephemeral-storage"));
}

#[test]
fn the_largest_need_counts_for_each_resource() {
    let of = |init: serde_json::Value| {
        let requests = json!({"requests": {"cpu": "2", "memory": "2"}});
        let spec = json!({"containers": [{"name": "a", "resources": requests}], "initContainers": init});
        let requests = Resources::of_containers(&from_value::<PodSpec>(spec).unwrap()).unwrap();
        (requests.quantity("cpu").to_string(), requests.quantity("memory").to_string())
    };
    let pair = |cpu: &str, memory: &str| (cpu.to_owned(), memory.to_owned());
    let init = |name: &str, cpu: &str, memory: &str| json!({"name": name, "resources": {"requests": {"cpu": cpu, "memory": memory}}});
    assert_eq!(of(json!([init("i", "3", "1")])), pair("3", "2"));
    assert_eq!(of(json!([init("i", "3", "1"), init("j", "1", "5")])), pair("3", "5"));
    // Two sidecars start one after the other, and then run together with what follows.
    let sidecar =
        |name: &str| json!({"name": name, "restartPolicy": "Always", "resources": {"requests": {"cpu": "3"}}});
    assert_eq!(of(json!([sidecar("s"), sidecar("t"), init("i", "1", "1")])), pair("8", "2"));
    assert_eq!(of(json!([sidecar("s"), sidecar("t"), init("i", "3", "1")])), pair("9", "2"));
}

#[test]
fn a_list_fits_if_each_of_its_requests_does() {
    let list =
        |cpu: &str, memory: &str| Resources::new([("cpu", cpu.parse().unwrap()), ("memory", memory.parse().unwrap())]);
    let free = list("2", "1Gi");
    assert!(list("2", "1Gi").fits_into(&free) && list("1", "0").fits_into(&free));
    assert!(!list("2001m", "0").fits_into(&free) && !list("0", "2Gi").fits_into(&free));
    assert!(
        list("0", "-1").fits_into(&list("-1", "-2")),
        "what is not requested fits even where less than nothing is free"
    );
    assert!(!list("1", "0").fits_into(&Resources::default()));
    assert_eq!(list("3", "1").minus(&list("1", "2")), list("2", "-1"));
}
