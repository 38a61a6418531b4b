//! Results, configurations and answers of claims.

use dra_node::driver::{ClaimError, ConfigError, claim_responses, device_configs, own_results, request_names};
use dra_node::kubelet::Responses;
use k8s_openapi::api::resource::v1::AllocationResult;
use serde_json::{Value, from_value, json};

const DRIVER: &str = "gpu.example.com";

fn config(source: &str, requests: &[&str], driver: &str) -> Value {
    json!({"source": source, "requests": requests, "opaque": {"driver": driver, "parameters": {}}})
}

fn allocation(configs: Vec<Value>) -> AllocationResult {
    from_value(json!({"devices": {"results": [], "config": configs}})).unwrap()
}

fn order(configs: Vec<Value>, request: &str) -> Vec<(usize, bool)> {
    let allocation = allocation(configs);
    let found = device_configs(&allocation, DRIVER, request).unwrap();
    found.iter().map(|config| (config.index.into(), config.is_from_claim)).collect()
}

#[test]
fn classes_come_before_claims_and_the_list_decides_within() {
    let configs = vec![
        config("FromClaim", &[], DRIVER),
        config("FromClass", &["gpu"], DRIVER),
        config("FromClaim", &["gpu/large"], DRIVER),
        config("FromClass", &["gpu/large", "other"], DRIVER),
        config("FromClass", &["gpu/small"], DRIVER),
        config("FromClass", &["gp"], DRIVER),
    ];
    assert_eq!(order(configs.clone(), "gpu/large"), [(1, false), (3, false), (0, true), (2, true)]);
    assert_eq!(
        order(configs, "gpu"),
        [(1, false), (0, true)],
        "a configuration of a subrequest is not for the request"
    );
}

#[test]
fn what_is_wrong_matters_only_where_it_applies() {
    let no_opaque = json!({"source": "FromClaim", "requests": ["nic"]});
    assert_eq!(order(vec![no_opaque.clone()], "gpu"), []);
    let strange = config("FromSpace", &["gpu"], "nic.example.com");
    assert_eq!(order(vec![strange], "gpu"), [], "another driver's");

    let wrong = |configs| device_configs(&allocation(configs), DRIVER, "nic").unwrap_err();
    let found = wrong(vec![config("FromClass", &[], DRIVER), no_opaque.clone()]);
    assert_eq!(found, ConfigError::NotOpaque { index: 1.into() });
    let found = wrong(vec![config("fromClass", &[], DRIVER), no_opaque]);
    assert_eq!(found, ConfigError::UnknownSource { index: 0.into() });
    assert_eq!(found.to_string(), "status.allocation.devices.config[0].source: neither FromClass nor FromClaim");
}

#[test]
fn results_of_others_are_skipped() {
    assert_eq!(own_results(&AllocationResult::default(), DRIVER).count(), 0);
    let result = |driver| json!({"request": "r", "driver": driver, "pool": "p", "device": "d"});
    let allocation = json!({"devices": {"results": [result("a"), result(DRIVER), result("gpu.example.com.evil")]}});
    assert_eq!(own_results(&from_value(allocation).unwrap(), DRIVER).count(), 1);
}

#[test]
fn base_names_once() {
    assert_eq!(request_names(["b/x", "a", "b/y", "a", "b"]), ["b", "a"]);
    assert_eq!(request_names([]), [""; 0]);
}

#[test]
fn an_answer_for_each_claim_that_was_asked() {
    let outcomes = Responses::from([
        ("u1".to_owned(), Ok(1)),
        ("u3".to_owned(), Err("device lost".to_owned())),
        ("u9".to_owned(), Ok(9)),
    ]);
    let answers = claim_responses(["u3", "u2", "u1", "u2"], outcomes);
    let failed = ClaimError::Failed("device lost".to_owned());
    assert_eq!(
        answers,
        [("u3".to_owned(), Err(failed)), ("u2".to_owned(), Err(ClaimError::NoResult)), ("u1".to_owned(), Ok(1))]
    );
}
