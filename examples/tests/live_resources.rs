//! `scheduler --bind` over the stand-in with pods as they are: requests, limits, taints, affinity, ports, gates, volumes.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod stand_in;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, from_value, json};

use stand_in::StandIn;
use stand_in::background::{Background, until};

const POST: PostParams = PostParams { dry_run: false, field_manager: None };
const SCHEDULER: &str = env!("CARGO_BIN_EXE_scheduler");

struct Cluster {
    server: StandIn,
    nodes: Api<Node>,
    pods: Api<Pod>,
}

impl Cluster {
    /// Starts a cluster with a small node, and a large one that is tainted.
    async fn start() -> Self {
        let server = StandIn::start(&[]);
        let client = server.client();
        let cluster = Self { nodes: Api::all(client.clone()), pods: Api::default_namespaced(client), server };
        cluster.add("small", "a", json!([]), json!({"cpu": "2", "memory": "4Gi", "pods": "10"})).await;
        let taint = json!([{"key": "team", "value": "ml", "effect": "NoSchedule"}]);
        cluster.add("large", "b", taint, json!({"cpu": "8", "memory": "16Gi", "pods": "10"})).await;
        cluster
    }

    async fn add(&self, name: &str, zone: &str, taints: Value, has: Value) {
        let metadata = json!({"name": name, "labels": {"zone": zone}});
        let node = json!({"metadata": metadata, "spec": {"taints": taints}});
        self.nodes.create(&POST, &from_value(node).unwrap()).await.unwrap();
        let patch = Patch::Merge(json!({"status": {"allocatable": has, "capacity": has}}));
        self.nodes.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Creates a pod with requests of its container, and with more in its spec.
    async fn create(&self, name: &str, requests: Value, more: Value) {
        let limits: Value = requests
            .as_object()
            .unwrap()
            .keys()
            .map(|name| (name.clone(), json!("64Gi")))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let resources = json!({"requests": requests, "limits": limits});
        let mut spec =
            json!({"schedulerName": "dra-sdk", "containers": [{"name": "c", "image": "none", "resources": resources}]});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        self.pods.create(&POST, &from_value(pod).unwrap()).await.unwrap();
    }

    /// Returns the node of a pod, or else the reason that it waits.
    async fn outcome(&self, name: &str) -> String {
        let pod = self.pods.get(name).await.unwrap();
        let node = pod.spec.and_then(|spec| spec.node_name);
        let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
        let scheduled = conditions.into_iter().find(|condition| condition.type_ == "PodScheduled");
        node.or_else(|| scheduled?.message).unwrap_or_default()
    }

    async fn expect(&self, name: &str, outcome: &str) {
        until(&format!("{name}: {outcome}"), async || self.outcome(name).await == outcome).await;
    }
}

fn toleration() -> Value {
    json!([{"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}])
}

#[tokio::test]
async fn pods_with_requests_taints_and_affinity() {
    let cluster = Cluster::start().await;
    let other = json!({"metadata": {"name": "other"}, "spec": {"nodeName": "small", "containers": [
        {"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}]}});
    cluster.pods.create(&POST, &from_value(other).unwrap()).await.unwrap();
    let _scheduler = Background::start(SCHEDULER, &["--live", "--bind", "--server", &cluster.server.url]);

    cluster.create("first", json!({"cpu": "1", "memory": "1Gi"}), json!({})).await;
    cluster.expect("first", "small").await;
    cluster.create("third", json!({"cpu": "500m"}), json!({})).await;
    let short = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)";
    cluster.expect("third", short).await;
    cluster.create("huge", json!({"cpu": "3", "memory": "5Gi"}), json!({})).await;
    cluster
        .expect(
            "huge",
            "0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 node(s) had untolerated taint(s)",
        )
        .await;
    cluster.create("tolerant", json!({"cpu": "3"}), json!({"tolerations": toleration()})).await;
    cluster.expect("tolerant", "large").await;
    let zone = json!({"key": "zone", "operator": "In", "values": ["a"]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}});
    cluster
        .create("bound-to-a", json!({"memory": "1Gi"}), json!({"affinity": affinity, "tolerations": toleration()}))
        .await;
    cluster.expect("bound-to-a", "small").await;

    // What others had becomes free: the pod that waits gets it.
    cluster
        .pods
        .delete("other", &DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() })
        .await
        .unwrap();
    cluster.expect("third", "small").await;
}

#[tokio::test]
async fn ports_gates_and_rules_of_other_schedulers() {
    let cluster = Cluster::start().await;
    let _scheduler = Background::start(SCHEDULER, &["--live", "--bind", "--server", &cluster.server.url]);
    let port =
        json!({"containers": [{"name": "c", "image": "none", "ports": [{"containerPort": 80, "hostPort": 8080}]}]});
    cluster.create("one", json!({}), port.clone()).await;
    cluster.expect("one", "small").await;
    cluster.create("two", json!({}), port).await;
    let taken = "node(s) didn't have free ports for the requested pod ports";
    let reason = format!("0/2 nodes are available: 1 {taken}, 1 node(s) had untolerated taint(s)");
    cluster.expect("two", &reason).await;

    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    cluster.create("stateful", json!({}), json!({"volumes": volumes})).await;
    let told = "spec.volumes: \"data\": this scheduler knows no volumes, other pods, spread and groups";
    cluster.expect("stateful", told).await;

    cluster.create("gated", json!({}), json!({"schedulingGates": [{"name": "example.com/later"}]})).await;
    cluster.create("after", json!({}), json!({})).await;
    cluster.expect("after", "small").await;
    assert!(cluster.pods.get("gated").await.unwrap().spec.unwrap().node_name.is_none());
    let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    cluster.pods.patch("gated", &PatchParams::default(), &open).await.unwrap();
    cluster.expect("gated", "small").await;
}
