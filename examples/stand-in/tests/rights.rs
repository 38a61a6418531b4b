//! Rights by the roles of examples/deploy, refused with the words of a real server.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod client;

use std::fs;

use serde_json::{Value, json};
use stand_in::Server;

use client::{Answer, CLAIMS, PODS, ask, claim, send, started};

const SCHEDULER: &str = "system:serviceaccount:dra-sdk:scheduler";
const DRIVER: &str = "system:serviceaccount:dra-sdk:driver";

fn with_rights(folder: &str) -> Vec<String> {
    let folder = format!("{}/../{folder}", env!("CARGO_MANIFEST_DIR"));
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.is_file()).map(|path| path.display().to_string()).collect()
}

fn server() -> Server {
    let files = with_rights("deploy");
    let mut args = vec!["--release", "1.36", "--rbac"];
    args.extend(files.iter().map(String::as_str));
    started(&args)
}

fn ask_as(server: &Server, user: &str, method: &str, path: &str, body: &Value) -> Answer {
    let form = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let headers = [format!("Authorization: Bearer {user}"), format!("Content-Type: {form}")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    send(server, method, path, &headers.each_ref().map(String::as_str), &body)
}

#[test]
fn what_is_not_granted_is_refused() {
    let server = server();
    assert_eq!(ask_as(&server, SCHEDULER, "GET", PODS, &Value::Null).code, 200);
    assert_eq!(ask_as(&server, SCHEDULER, "GET", "/apis/resource.k8s.io/v1", &Value::Null).code, 200);
    for (method, path, message) in [
        (
            "DELETE",
            format!("{PODS}/a"),
            format!(
                "pods \"a\" is forbidden: User \"{DRIVER}\" cannot delete resource \"pods\" in API group \"\" in the namespace \"default\""
            ),
        ),
        (
            "GET",
            "/api/v1/pods".to_owned(),
            format!(
                "pods is forbidden: User \"{DRIVER}\" cannot list resource \"pods\" in API group \"\" at the cluster scope"
            ),
        ),
        (
            "GET",
            format!("{CLAIMS}?watch=1"),
            format!(
                "resourceclaims.resource.k8s.io is forbidden: User \"{DRIVER}\" cannot watch resource \"resourceclaims\" in API group \"resource.k8s.io\" in the namespace \"default\""
            ),
        ),
        ("GET", "/metrics".to_owned(), format!("forbidden: User \"{DRIVER}\" cannot get path \"/metrics\"")),
    ] {
        assert_eq!(ask_as(&server, DRIVER, method, &path, &Value::Null).said(), (403, "Forbidden", message.as_str()));
    }
    assert_eq!(ask_as(&server, "nobody", "GET", PODS, &Value::Null).said(), (401, "Unauthorized", "Unauthorized"));
}

#[test]
fn each_part_of_the_status_of_a_claim_has_a_right_of_its_own() {
    let server = server();
    assert_eq!(ask(&server, "POST", CLAIMS, &claim("c")).code, 201);
    let status = format!("{CLAIMS}/c/status");
    let node =
        json!({"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]});
    let results = json!([{"request": "r", "driver": "pci.example.com", "pool": "p", "device": "x"}]);
    let allocation = json!({"status": {"allocation": {"devices": {"results": results}, "nodeSelector": node}}});
    let refused = ask_as(&server, DRIVER, "PATCH", &status, &allocation);
    let message = format!(
        "ResourceClaim.resource.k8s.io \"c\" is invalid: status: Forbidden: changing status.allocation or status.reservedFor requires \
         resource=\"resourceclaims/binding\", verb=\"patch\" permission: resourceclaims.resource.k8s.io is forbidden: User \
         \"{DRIVER}\" cannot patch resource \"resourceclaims/binding\" in API group \"resource.k8s.io\" at the cluster scope"
    );
    assert_eq!(refused.said(), (422, "Invalid", message.as_str()));
    assert_eq!(ask_as(&server, SCHEDULER, "PATCH", &status, &allocation).code, 200);

    let devices = json!({"status": {"devices": [{"driver": "pci.example.com", "pool": "p", "device": "x"}]}});
    let elsewhere = ask_as(&server, &format!("{DRIVER}@n2"), "PATCH", &status, &devices);
    let message = format!(
        "ResourceClaim.resource.k8s.io \"c\" is invalid: status: Forbidden: changing status.devices requires \
         resource=\"resourceclaims/driver\", verb=\"[arbitrary-node:patch]\" permission: resourceclaims.resource.k8s.io \
         \"pci.example.com\" is forbidden: User \"{DRIVER}\" cannot arbitrary-node:patch resource \"resourceclaims/driver\" in API \
         group \"resource.k8s.io\" in the namespace \"default\""
    );
    assert_eq!(elsewhere.said(), (422, "Invalid", message.as_str()));
    assert_eq!(ask_as(&server, &format!("{DRIVER}@n1"), "PATCH", &status, &devices).code, 200);
}
