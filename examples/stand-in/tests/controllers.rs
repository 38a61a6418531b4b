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

const APPS: &str = "/apis/apps/v1/namespaces/default";

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "m", "image": image}]}})
}

fn workload(name: &str, replicas: u32) -> Value {
    let selector = json!({"matchLabels": {"app": "web"}});
    json!({"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": selector, "template": template("web:1")}})
}

/// Starts a server whose namespace has its account.
fn controlled() -> Server {
    let server = Server::start_with(&["--controllers"]).unwrap();
    until(&server, "/api/v1/namespaces/default/serviceaccounts/default", |code, _| code == 200);
    server
}

fn made(server: &Server, path: &str, object: &Value) -> Value {
    let answer = ask(server, "POST", path, object);
    assert_eq!(answer.code, 201, "{}", answer.body);
    answer.body
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

/// Waits until there are so many pods.
fn pods(server: &Server, count: usize) -> Value {
    until(server, PODS, |_, list| names(list).len() == count)
}

/// Says that a pod runs, as a kubelet does.
fn run(server: &Server, name: &str) {
    let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    assert_eq!(ask(server, "PATCH", &format!("{PODS}/{name}/status"), &ready).code, 200);
}

#[test]
fn a_deployment_has_pods_by_a_replica_set_of_each_template() {
    let server = controlled();
    let path = format!("{APPS}/deployments/web");
    let stored = made(&server, &format!("{APPS}/deployments"), &workload("web", 3));
    assert_eq!(stored["spec"]["template"]["spec"]["restartPolicy"], "Always");
    let list = pods(&server, 3);
    let sets = until(&server, &format!("{APPS}/replicasets"), |_, list| names(list).len() == 1);
    let set = names(&sets)[0];
    assert!(set.starts_with("web-") && names(&list).iter().all(|name| name.starts_with(&format!("{set}-"))), "{list}");
    for name in names(&list) {
        run(&server, name);
    }
    let ready = until(&server, &path, |_, web| web["status"]["availableReplicas"] == 3);
    let available = &ready["status"]["conditions"][0];
    assert_eq!((&available["type"], &available["status"]), (&json!("Available"), &json!("True")));
    assert_eq!(ready["status"]["observedGeneration"], ready["metadata"]["generation"]);

    let scale = ask(&server, "GET", &format!("{path}/scale"), &Value::Null).body;
    assert_eq!((&scale["spec"]["replicas"], &scale["status"]["selector"]), (&json!(3), &json!("app=web")));
    let scaled = ask(&server, "PATCH", &format!("{path}/scale"), &json!({"spec": {"replicas": 1}}));
    assert_eq!((scaled.code, &scaled.body["spec"]["replicas"]), (200, &json!(1)));
    pods(&server, 1);

    let other = json!({"spec": {"template": template("web:2")}});
    assert_eq!(ask(&server, "PATCH", &path, &other).code, 200);
    until(&server, PODS, |_, list| {
        names(list).len() == 1 && list["items"][0]["spec"]["containers"][0]["image"] == "web:2"
    });
    let sets = ask(&server, "GET", &format!("{APPS}/replicasets"), &Value::Null).body;
    let mut replicas: Vec<&Value> =
        sets["items"].as_array().unwrap().iter().map(|set| &set["spec"]["replicas"]).collect();
    replicas.sort_by_key(|number| number.as_i64());
    assert_eq!(replicas, [0, 1]);
    assert_eq!(ask(&server, "DELETE", &format!("{path}?propagationPolicy=Orphan"), &Value::Null).code, 422);
    assert_eq!(ask(&server, "DELETE", &path, &Value::Null).code, 200);
    pods(&server, 0);
    until(&server, &format!("{APPS}/replicasets"), |_, list| names(list).is_empty());
}

#[test]
fn a_stateful_set_has_one_pod_after_the_other() {
    let server = controlled();
    made(&server, &format!("{APPS}/statefulsets"), &workload("db", 2));
    assert_eq!(names(&pods(&server, 1)), ["db-0"]);
    run(&server, "db-0");
    assert_eq!(names(&pods(&server, 2)), ["db-0", "db-1"]);
    run(&server, "db-1");
    let path = format!("{APPS}/statefulsets/db");
    let ready = until(&server, &path, |_, set| set["status"]["readyReplicas"] == 2);
    assert_eq!(ready["status"]["currentRevision"], ready["status"]["updateRevision"]);
    assert_eq!(ask(&server, "PATCH", &path, &json!({"spec": {"replicas": 1}})).code, 200);
    assert_eq!(names(&pods(&server, 1)), ["db-0"]);
}

#[test]
fn a_daemon_set_follows_the_nodes() {
    let server = controlled();
    let node = |name: &str| {
        let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        made(&server, "/api/v1/nodes", &json!({"metadata": {"name": name}, "status": ready}));
    };
    node("n1");
    made(&server, &format!("{APPS}/daemonsets"), &workload("agent", 0));
    pods(&server, 1);
    node("n2");
    pods(&server, 2);
    assert_eq!(ask(&server, "DELETE", "/api/v1/nodes/n1", &Value::Null).code, 200);
    pods(&server, 1);
    until(&server, &format!("{APPS}/daemonsets/agent"), |_, set| set["status"]["desiredNumberScheduled"] == 1);
}

#[test]
fn a_job_ends_with_its_pods_and_starts_none_while_suspended() {
    let server = controlled();
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let mut spec = json!({"completions": 1, "suspend": true, "template": template("train:1")});
    let wrong = ask(&server, "POST", jobs, &json!({"metadata": {"name": "train"}, "spec": spec}));
    assert_eq!(wrong.causes(), [("spec.template.spec.restartPolicy", "FieldValueRequired")]);
    spec["template"]["spec"]["restartPolicy"] = json!("Never");
    made(&server, jobs, &json!({"metadata": {"name": "train"}, "spec": spec}));
    let path = format!("{jobs}/train");
    until(&server, &path, |_, job| job["status"].get("active") == Some(&json!(0)));
    assert_eq!(names(&pods(&server, 0)), [""; 0]);
    assert_eq!(ask(&server, "PATCH", &path, &json!({"spec": {"suspend": false}})).code, 200);
    let list = pods(&server, 1);
    let name = names(&list)[0];
    assert_eq!(list["items"][0]["metadata"]["labels"]["job-name"], "train");
    let ended = json!({"status": {"phase": "Succeeded"}});
    assert_eq!(ask(&server, "PATCH", &format!("{PODS}/{name}/status"), &ended).code, 200);
    let job = until(&server, &path, |_, job| job["status"].get("completionTime").is_some());
    assert_eq!((&job["status"]["conditions"][0]["type"], &job["status"]["succeeded"]), (&json!("Complete"), &json!(1)));
    assert_eq!(names(&ask(&server, "GET", PODS, &Value::Null).body), [name], "what has ended stays");
}

#[test]
fn workloads_without_a_fitting_selector_are_refused() {
    let server = controlled();
    let mut web = workload("web", 1);
    web["spec"]["selector"]["matchLabels"]["app"] = json!("other");
    web["spec"]["template"]["spec"]["resourceClaims"] = json!([{"name": "gpu"}]);
    let refused = ask(&server, "POST", &format!("{APPS}/deployments"), &web);
    let causes = [
        ("spec.template.metadata.labels", "FieldValueInvalid"),
        ("spec.template.spec.resourceClaims[0]", "FieldValueInvalid"),
    ];
    assert_eq!((refused.code, refused.causes()), (422, causes.into()));
}
