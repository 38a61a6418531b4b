//! `autoscaler --live --consolidate`: the plan of moves for a cluster, and another one when pods or disruption budgets change.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod stand_in;

use std::process::Command;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use kube::Api;
use kube::api::PostParams;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

use stand_in::StandIn;
use stand_in::background::Background;

const AUTOSCALER: &str = env!("CARGO_BIN_EXE_autoscaler");
const POST: PostParams = PostParams { dry_run: false, field_manager: None };

fn read<T: DeserializeOwned>(object: Value) -> T {
    from_value(object).unwrap()
}

async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    api.create(&POST, &read(object)).await.unwrap()
}

/// Creates two nodes with two GPUs each.
async fn nodes(server: &StandIn) {
    let client = server.client();
    create(&Api::<DeviceClass>::all(client.clone()), json!({"metadata": {"name": "gpu"}, "spec": {}})).await;
    for node in ["a", "b"] {
        create(&Api::<Node>::all(client.clone()), json!({"metadata": {"name": node}})).await;
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
        let devices = json!([{"name": "gpu-0"}, {"name": "gpu-1"}]);
        let spec = json!({"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": devices});
        create(&Api::<ResourceSlice>::all(client.clone()), json!({"metadata": {"name": node}, "spec": spec})).await;
    }
}

/// Creates a pod of a replica set that runs on a node and has a GPU of it.
async fn run_pod(server: &StandIn, name: &str, node: &str) {
    let (claims, pods): (Api<ResourceClaim>, Api<Pod>) =
        (Api::default_namespaced(server.client()), Api::default_namespaced(server.client()));
    let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu"}});
    create(&claims, json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}})).await;
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": true});
    let spec = json!({"nodeName": node, "containers": [{"name": "c", "image": "none"}],
        "resourceClaims": [{"name": "r", "resourceClaimName": name}]});
    let metadata = json!({"name": name, "labels": {"app": name}, "ownerReferences": [owner]});
    let pod = create(&pods, json!({"metadata": metadata, "spec": spec})).await;
    let mut claim = claims.get(name).await.unwrap();
    let finalizer = "resource.kubernetes.io/delete-protection".to_owned();
    claim.metadata.finalizers = Some(vec![finalizer]);
    let mut claim = claims.replace(name, &POST, &claim).await.unwrap();
    let here = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
    let result = json!({"request": "r", "driver": "gpu.example.com", "pool": node, "device": "gpu-0"});
    let allocation = json!({"nodeSelector": {"nodeSelectorTerms": [here]}, "devices": {"results": [result]}});
    let user = json!({"resource": "pods", "name": name, "uid": pod.metadata.uid});
    claim.status = Some(read(json!({"allocation": allocation, "reservedFor": [user]})));
    claims.replace_status(name, &POST, &claim).await.unwrap();
}

/// Says how many pods of a name may be evicted.
async fn allow(budgets: &Api<PodDisruptionBudget>, name: &str, evictions: i32) {
    let mut budget = budgets.get(name).await.unwrap();
    budget.status = Some(read(json!({"disruptionsAllowed": evictions, "currentHealthy": 1,
        "desiredHealthy": 1 - evictions, "expectedPods": 1})));
    budgets.replace_status(name, &POST, &budget).await.unwrap();
}

/// Runs the program once.
fn once(server: &StandIn, args: &[&str]) -> String {
    let output =
        Command::new(AUTOSCALER).args(["--live", "--server", &server.url, "--consolidate"]).args(args).output();
    let output = output.unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_plan_follows_pods_and_disruption_budgets() {
    let server = StandIn::start(&[]);
    nodes(&server).await;
    run_pod(&server, "x", "a").await;
    run_pod(&server, "y", "b").await;
    let of_a = "\
cordon: a
wave 1:
  default/x from a to b: gpu.example.com/b/gpu-1
remove: a
";
    let plan = once(&server, &[]);
    assert!(plan.starts_with(of_a) && plan.contains("\nb stays: "), "{plan}");
    let mut kept = Background::start(AUTOSCALER, &["--live", "--server", &server.url, "--watch", "--consolidate"]);
    kept.says("cordon: a");

    // A budget that protects x: the other node goes in place of its own.
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(server.client());
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}});
    create(&budgets, json!({"metadata": {"name": "x"}, "spec": spec})).await;
    allow(&budgets, "x", 0).await;
    kept.says("cordon: b");
    kept.says("  default/y from b to a: gpu.example.com/a/gpu-1");
    kept.says("a stays: disruption budget default/x allows no eviction");
    assert!(once(&server, &[]).starts_with("cordon: b\n"));

    // One more for y: nobody moves.
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "y"}}});
    create(&budgets, json!({"metadata": {"name": "y"}, "spec": spec})).await;
    kept.says("no node can be emptied");
    let answer: Value = serde_json::from_str(&once(&server, &["-o", "json"])).unwrap();
    let kept_nodes = json!([
        {"name": "a", "reason": "disruption budget default/x allows no eviction"},
        {"name": "b", "reason": "disruption budget default/y allows no eviction"}]);
    assert_eq!((&answer["removable"], &answer["kept"]), (&json!([]), &kept_nodes));

    // Another pod of the set is ready again, so that x may be evicted.
    allow(&budgets, "x", 1).await;
    kept.says("cordon: a");
    kept.says("b stays: disruption budget default/y allows no eviction");
    assert_eq!(kept.terminate(), Some(0));
}
