//! Controllers of the server: claims of pods, service accounts, nodes that are ready, garbage.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod client;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stand_in::Server;

use client::{CLAIMS, PODS, ask, claim, pod};

/// Reads until something holds of the answer.
fn until(server: &Server, path: &str, holds: impl Fn(u16, &Value) -> bool) -> Value {
    let begin = Instant::now();
    loop {
        let answer = ask(server, "GET", path, &Value::Null);
        if holds(answer.code, &answer.body) {
            return answer.body;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{path} never is as it shall be: {}", answer.body);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_pod_has_its_claims_made_reserved_and_removed() {
    let server = Server::start_with(&["--controllers", "--release", "1.36"]).unwrap();
    until(&server, "/api/v1/namespaces/default/serviceaccounts/default", |code, _| code == 200);
    let templates = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates";
    let template = json!({"metadata": {"name": "t"}, "spec": {"spec": claim("c")["spec"]}});
    assert_eq!(ask(&server, "POST", templates, &template).code, 201);
    let mut body = pod("a");
    body["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimTemplateName": "t"}]);
    assert_eq!(ask(&server, "POST", PODS, &body).code, 201);

    let recorded = until(&server, &format!("{PODS}/a"), |_, pod| pod["status"].get("resourceClaimStatuses").is_some());
    let name = recorded["status"]["resourceClaimStatuses"][0]["resourceClaimName"].as_str().unwrap();
    assert!(name.starts_with("a-gpu-"), "{name}");
    let path = format!("{CLAIMS}/{name}");
    let made = ask(&server, "GET", &path, &Value::Null).body;
    assert_eq!(made["metadata"]["ownerReferences"][0]["name"], json!("a"));
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], json!("kube-controller-manager"));

    assert_eq!(ask(&server, "DELETE", &format!("{PODS}/a"), &Value::Null).code, 200);
    until(&server, &path, |code, _| code == 404);
}

#[test]
fn reservations_end_with_their_pods() {
    let server = Server::start_with(&["--controllers"]).unwrap();
    until(&server, "/api/v1/namespaces/default/serviceaccounts/default", |code, _| code == 200);
    // As a scheduler marks what it has allocated.
    let mut allocated = claim("c");
    allocated["metadata"]["finalizers"] = json!(["resource.kubernetes.io/delete-protection"]);
    assert_eq!(ask(&server, "POST", CLAIMS, &allocated).code, 201);
    let mut body = pod("a");
    body["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "c"}]);
    let uid = ask(&server, "POST", PODS, &body).text("/metadata/uid").to_owned();
    let results = json!([{"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}]);
    let reserved = json!([{"resource": "pods", "name": "a", "uid": uid}]);
    let status = json!({"status": {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}});
    assert_eq!(ask(&server, "PATCH", &format!("{CLAIMS}/c/status"), &status).code, 200);
    assert_eq!(ask(&server, "DELETE", &format!("{PODS}/a"), &Value::Null).code, 200);
    until(&server, &format!("{CLAIMS}/c"), |_, claim| {
        (&claim["status"], claim["metadata"].get("finalizers")) == (&json!({}), None)
    });
}

#[test]
fn nodes_become_ready_and_namespaces_empty() {
    let server = Server::start_with(&["--controllers"]).unwrap();
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let kept = json!([{"key": "a.example/b", "effect": "NoSchedule"}]);
    let node = json!({"metadata": {"name": "n1"}, "spec": {"taints": kept}, "status": ready});
    assert_eq!(ask(&server, "POST", "/api/v1/nodes", &node).code, 201);
    until(&server, "/api/v1/nodes/n1", |_, node| node["spec"]["taints"] == kept);
    assert_eq!(ask(&server, "POST", "/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).code, 201);
    assert_eq!(ask(&server, "POST", &CLAIMS.replace("default", "n"), &claim("c")).code, 201);
    until(&server, "/api/v1/namespaces/n/serviceaccounts/default", |code, _| code == 200);
    assert_eq!(ask(&server, "DELETE", "/api/v1/namespaces/n", &Value::Null).code, 200);
    until(&server, "/api/v1/namespaces/n", |code, _| code == 404);
}

#[test]
fn pods_of_tainted_devices_are_evicted() {
    let server = Server::start_with(&["--controllers", "--feature-gates", "DRADeviceTaintRules=true"]).unwrap();
    until(&server, "/api/v1/namespaces/default/serviceaccounts/default", |code, _| code == 200);
    assert_eq!(ask(&server, "POST", CLAIMS, &claim("c")).code, 201);
    for name in ["a", "b"] {
        let mut body = pod(name);
        if name == "a" {
            body["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "c"}]);
        }
        body["spec"]["nodeName"] = json!("n1");
        assert_eq!(ask(&server, "POST", PODS, &body).code, 201);
    }
    let uid = ask(&server, "GET", &format!("{PODS}/a"), &Value::Null).text("/metadata/uid").to_owned();
    let results = json!([{"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}]);
    let reserved = json!([{"resource": "pods", "name": "a", "uid": uid}]);
    let status = json!({"status": {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}});
    assert_eq!(ask(&server, "PATCH", &format!("{CLAIMS}/c/status"), &status).code, 200);
    let taint = json!({"key": "a.example/ill", "effect": "NoExecute"});
    let rule =
        json!({"metadata": {"name": "ill"}, "spec": {"deviceSelector": {"driver": "d.example.com"}, "taint": taint}});
    assert_eq!(ask(&server, "POST", "/apis/resource.k8s.io/v1/devicetaintrules", &rule).code, 201);
    let going = until(&server, &format!("{PODS}/a"), |_, pod| pod["metadata"].get("deletionTimestamp").is_some());
    let condition = |kind: &str| {
        let conditions = going["status"]["conditions"].as_array().unwrap();
        conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
    };
    assert!(condition("DisruptionTarget"), "{}", going["status"]);
    let stays = ask(&server, "GET", &format!("{PODS}/b"), &Value::Null).body;
    assert_eq!(stays["metadata"].get("deletionTimestamp"), None);
}
