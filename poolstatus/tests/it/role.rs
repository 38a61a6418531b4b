//! Permission to send and read requests.

use k8s_openapi::api::rbac::v1::ClusterRole;
use poolstatus::StatusRequest;
use serde_json::{Value, from_value, json};

#[test]
fn the_role_of_the_kep() {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "pool-status-reader"},
        "rules": [{
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourcepoolstatusrequests"],
            "verbs": ["create", "get", "list", "delete"],
        }],
    });
    assert_eq!(serde_json::to_value(StatusRequest::reader_role()).unwrap(), role);
}

#[test]
fn which_rules_grant_what() {
    let grants = |groups: &[&str], resources: &[&str], verbs: &[&str], names: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs, "resourceNames": names});
    let (group, resource) = ("resource.k8s.io", "resourcepoolstatusrequests");
    let rows: [(Value, [bool; 3]); 9] = [
        (grants(&[group], &[resource], &["create", "get"], &[]), [true, true, false]),
        (grants(&["*"], &["*"], &["*"], &[]), [true, true, true]),
        (grants(&[group], &[resource], &["*"], &["mine"]), [false, true, false]),
        (grants(&[group], &[resource], &["*"], &["yours"]), [false, false, false]),
        (grants(&[""], &[resource], &["*"], &[]), [false, false, false]),
        (grants(&[group], &["resourceclaims"], &["*"], &[]), [false, false, false]),
        // A subresource is another resource.
        (grants(&[group], &["resourcepoolstatusrequests/status"], &["*"], &[]), [false, false, false]),
        (grants(&[group], &[resource], &[], &[]), [false, false, false]),
        (json!({"nonResourceURLs": ["*"], "verbs": ["*"]}), [false, false, false]),
    ];
    for (rule, expected) in rows {
        let role: ClusterRole = from_value(json!({"metadata": {"name": "r"}, "rules": [rule]})).unwrap();
        let allows = [("create", ""), ("get", "mine"), ("list", "")]
            .map(|(verb, name)| StatusRequest::is_granted_by(&role, verb, name));
        assert_eq!(allows, expected, "{role:?}");
    }
    // One rule must grant all of it, and any may.
    let halves = json!([grants(&[group], &[], &["get"], &[]), grants(&[], &[resource], &["get"], &[])]);
    let role: ClusterRole = from_value(json!({"metadata": {}, "rules": halves})).unwrap();
    assert!(!StatusRequest::is_granted_by(&role, "get", "mine"));
    let two = json!([grants(&[group], &[resource], &["list"], &[]), grants(&[group], &[resource], &["get"], &[])]);
    let role: ClusterRole = from_value(json!({"metadata": {}, "rules": two})).unwrap();
    assert!(StatusRequest::is_granted_by(&role, "get", "mine") && StatusRequest::is_granted_by(&role, "list", ""));
    assert!(!StatusRequest::is_granted_by(&ClusterRole::default(), "get", "mine"));
}
