//! Work of the programs that stay, counted on clusters of two sizes: what a change costs does not grow with the nodes.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod stand_in;

use std::fmt::Debug;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};
use tempfile::TempDir;

use stand_in::StandIn;
use stand_in::background::{Background, get, until};

const SIZES: [usize; 2] = [8, 40];
const POST: PostParams = PostParams { dry_run: false, field_manager: None };
const AUTOSCALER: &str = env!("CARGO_BIN_EXE_autoscaler");
const NODE_AGENT: &str = env!("CARGO_BIN_EXE_node-agent");
const SCHEDULER: &str = env!("CARGO_BIN_EXE_scheduler");

struct Cluster {
    server: StandIn,
    nodes: Api<Node>,
    slices: Api<ResourceSlice>,
    pods: Api<Pod>,
    claims: Api<ResourceClaim>,
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: Clone + DeserializeOwned + Serialize + Debug,
{
    api.create(&POST, &from_value::<K>(object).unwrap()).await.unwrap();
}

fn node(number: usize) -> String {
    format!("node-{number:03}")
}

async fn label<K>(api: &Api<K>, name: &str)
where
    K: Clone + DeserializeOwned + Debug,
{
    label_with(api, name, "b").await;
}

async fn label_with<K>(api: &Api<K>, name: &str, value: &str)
where
    K: Clone + DeserializeOwned + Debug,
{
    let patch = Patch::Merge(json!({"metadata": {"labels": {"a": value}}}));
    api.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

impl Cluster {
    /// Starts a cluster with a device and a bound pod on each node.
    async fn start(size: usize) -> Self {
        let server = StandIn::start(&[]);
        let client = server.client();
        let cluster = Self {
            nodes: Api::all(client.clone()),
            slices: Api::all(client.clone()),
            pods: Api::default_namespaced(client.clone()),
            claims: Api::default_namespaced(client.clone()),
            server,
        };
        create(&Api::<DeviceClass>::all(client), json!({"metadata": {"name": "gpu"}, "spec": {}})).await;
        for number in 0..size {
            create(&cluster.nodes, json!({"metadata": {"name": node(number)}})).await;
            let pool = json!({"name": node(number), "generation": 1, "resourceSliceCount": 1});
            let devices = json!([{"name": "gpu-0"}]);
            let spec = json!({"driver": "gpu.example.com", "nodeName": node(number), "pool": pool, "devices": devices});
            create(&cluster.slices, json!({"metadata": {"name": node(number)}, "spec": spec})).await;
            let spec = json!({"nodeName": node(number), "containers": [{"name": "c", "image": "none"}]});
            create(&cluster.pods, json!({"metadata": {"name": format!("old-{number}")}, "spec": spec})).await;
        }
        cluster
    }

    /// Creates a pod that wants a device.
    async fn want(&self, name: &str) {
        self.claim(name).await;
        self.use_claim(name).await;
    }

    async fn claim(&self, name: &str) {
        let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu"}});
        let spec = json!({"devices": {"requests": [request]}});
        create(&self.claims, json!({"metadata": {"name": name}, "spec": spec})).await;
    }

    /// Creates a pod with a claim of its name.
    async fn use_claim(&self, name: &str) {
        let spec = json!({"schedulerName": "dra-sdk", "containers": [{"name": "c", "image": "none"}],
            "resourceClaims": [{"name": "r", "resourceClaimName": name}]});
        create(&self.pods, json!({"metadata": {"name": name}, "spec": spec})).await;
    }

    /// Adds a device to a node.
    async fn add_device(&self, number: usize) {
        let mut slice = self.slices.get(&node(number)).await.unwrap();
        slice.spec.devices = from_value(json!([{"name": "gpu-0"}, {"name": "gpu-1"}])).unwrap();
        self.slices.replace(&node(number), &POST, &slice).await.unwrap();
    }

    async fn label(&self, pod: &str) {
        label(&self.pods, pod).await;
    }

    async fn cordon(&self, number: usize, is_cordoned: bool) {
        let patch = Patch::Merge(json!({"spec": {"unschedulable": is_cordoned}}));
        self.nodes.patch(&node(number), &PatchParams::default(), &patch).await.unwrap();
    }

    /// Gives the device of a node to a claim, which two other pods use.
    async fn allocate(&self, claim: &str, number: usize) {
        let result = json!({"request": "r", "driver": "gpu.example.com", "pool": node(number), "device": "gpu-0"});
        let field = json!({"key": "metadata.name", "operator": "In", "values": [node(number)]});
        let selector = json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
        let users = ["a", "b"].map(|name| json!({"resource": "pods", "name": name, "uid": name}));
        let mut taken = self.claims.get(claim).await.unwrap();
        let allocation = json!({"devices": {"results": [result]}, "nodeSelector": selector});
        taken.status = Some(from_value(json!({"allocation": allocation, "reservedFor": users})).unwrap());
        self.claims.replace_status(claim, &POST, &taken).await.unwrap();
    }
}

/// Returns the value of a counter.
fn count(vitals: &str, name: &str) -> usize {
    let text = get(vitals, "/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0, |value| value.parse().unwrap())
}

#[tokio::test]
async fn a_scheduler_looks_at_what_has_changed() {
    for size in SIZES {
        let cluster = Cluster::start(size).await;
        let args = ["--live", "--bind", "--server", &cluster.server.url, "--metrics-address", "127.0.0.1:0"];
        let mut scheduler = Background::start(SCHEDULER, &args);
        let vitals = scheduler.vitals();
        let judged = || count(&vitals, "dra_scheduler_nodes_judged_total");
        let looked_at = || count(&vitals, "dra_scheduler_pods_looked_at_total");

        // A pod that fits takes the first node with room. Those before it are known to be full.
        for number in 0..size {
            let before = judged();
            let name = format!("new-{number}");
            cluster.want(&name).await;
            scheduler.says(&format!("default/{name}: {}", node(number)));
            let more = judged() - before;
            assert!(more <= 3, "{more} nodes of {size} were judged");
        }

        // A pod that waits is judged where something has changed.
        let before = judged();
        cluster.want("waits").await;
        scheduler.warns(&format!("default/waits: 0/{size} nodes are available: {size} no free device of class gpu"));
        let more = judged() - before;
        assert!(more <= 3, "{more} nodes of {size} were judged");
        let (before, pods_before) = (judged(), looked_at());
        cluster.add_device(5).await;
        scheduler.says(&format!("default/waits: {}", node(5)));
        let (more, pods) = (judged() - before, looked_at() - pods_before);
        assert!(more <= 3, "{more} nodes of {size} were judged");
        // It is tried again after each pause, and what is written about it is a change of it too.
        assert!(pods < 30, "{pods} pods were looked at");

        // The change of a pod is looked at, and nothing else; what was written last may still come.
        let (before, pods_before) = (judged(), looked_at());
        cluster.label("old-1").await;
        until("the change is taken", async || looked_at() > pods_before).await;
        let (more, pods) = (judged() - before, looked_at() - pods_before);
        assert!(more == 0 && pods <= 4, "{more} nodes of {size} were judged, {pods} pods were looked at");
    }
}

#[tokio::test]
async fn a_scheduler_judges_all_nodes_once_for_a_claim_that_another_node_has() {
    for size in SIZES {
        let cluster = Cluster::start(size).await;
        cluster.claim("taken").await;
        cluster.allocate("taken", 3).await;
        cluster.cordon(3, true).await;
        cluster.use_claim("taken").await;
        let args = ["--live", "--bind", "--server", &cluster.server.url, "--metrics-address", "127.0.0.1:0"];
        let mut scheduler = Background::start(SCHEDULER, &args);
        let vitals = scheduler.vitals();
        let judged = || count(&vitals, "dra_scheduler_nodes_judged_total");
        let attempts =
            || count(&vitals, "scheduler_schedule_attempts_total{profile=\"dra-sdk\",result=\"unschedulable\"}");
        let others = size - 1;
        scheduler.warns(&format!(
            "0/{size} nodes are available: {others} claim allocated for other nodes, 1 node(s) were unschedulable"
        ));
        let (nodes, first) = (judged(), attempts());
        assert!(nodes <= size + 1, "{nodes} nodes of {size} were judged");
        // The next attempts look at the node that the claim names, as such and since it has changed, and at no other.
        for number in 1..=3 {
            label_with(&cluster.nodes, &node(3), &number.to_string()).await;
            until("it is tried again", async || attempts() >= first + number).await;
        }
        let (more, times) = (judged() - nodes, attempts() - first);
        assert!(more <= 2 * times, "{more} nodes of {size} were judged in {times} attempts");
        cluster.cordon(3, false).await;
        scheduler.says(&format!("default/taken: {}", node(3)));
    }
}

#[tokio::test]
async fn an_autoscaler_answers_anew_when_its_answer_may_be_another_one() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("big.json");
    let pool = json!({"name": "big", "generation": 1, "resourceSliceCount": 1});
    let spec = json!({"driver": "gpu.example.com", "nodeName": "big", "pool": pool, "devices": [{"name": "gpu-0"}]});
    let (api, kind) = ("resource.k8s.io/v1", "ResourceSlice");
    let slice = json!({"apiVersion": api, "kind": kind, "metadata": {"name": "big"}, "spec": spec});
    let template = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "big"}});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [template, slice]});
    std::fs::write(&file, list.to_string()).unwrap();
    let cluster = Cluster::start(SIZES[0]).await;
    let ask = |question: &[&str]| {
        let args = ["--live", "--watch", "--server", &cluster.server.url, "--metrics-address", "127.0.0.1:0"];
        let mut autoscaler = Background::start(AUTOSCALER, &[&args[..], question].concat());
        let vitals = autoscaler.vitals();
        (autoscaler, move || count(&vitals, "dra_autoscaler_answers_total"))
    };
    let (mut group, of_group) = ask(&["--simulate-group", &file.display().to_string()]);
    group.says("takes 0 of 0 pods");
    let (mut removal, of_removal) = ask(&["--remove-pod", "default/old-1"]);
    removal.says("no claim changes");
    let (mut down, of_down) = ask(&["--scale-down"]);
    down.says("nodes that can go together");
    assert_eq!((of_group(), of_removal()), (1, 1));

    // Another pod, devices of a node, a node: all the same to the first two.
    cluster.label("old-2").await;
    cluster.add_device(5).await;
    label(&cluster.nodes, &node(6)).await;
    until("the changes are taken", async || of_down() >= 2).await;
    cluster.claim("wanted").await;
    cluster.use_claim("wanted").await;
    group.says("takes 1 of 1 pods");
    assert_eq!((of_group(), of_removal()), (2, 1));
    label(&cluster.claims, "wanted").await;
    until("its claim is looked at", async || of_group() == 3).await;
    label(&cluster.pods, "old-1").await;
    until("the pod is looked at", async || of_removal() == 2).await;
    assert_eq!(of_group(), 3);
    label(&Api::<DeviceClass>::all(cluster.server.client()), "gpu").await;
    until("classes are looked at", async || of_group() == 4).await;
}

#[tokio::test]
async fn an_autoscaler_lists_what_has_changed() {
    for size in SIZES {
        let cluster = Cluster::start(size).await;
        let args = ["--live", "--watch", "--server", &cluster.server.url, "--metrics-address", "127.0.0.1:0"];
        let mut autoscaler = Background::start(AUTOSCALER, &args);
        let vitals = autoscaler.vitals();
        autoscaler.says(&node(size - 1));
        let nodes = || count(&vitals, "dra_autoscaler_nodes_looked_at_total");
        let pods = || count(&vitals, "dra_autoscaler_pods_looked_at_total");
        assert_eq!((nodes(), pods()), (size, size));
        assert!(get(&vitals, "/healthz").ends_with("\r\n\r\nok"));

        // Another device, a label of a pod, and a pod more: each is one node with its pods.
        cluster.add_device(5).await;
        until("the slice is taken", async || nodes() == size + 1 && pods() == size + 1).await;
        cluster.label("old-1").await;
        until("the label is taken", async || nodes() == size + 2 && pods() == size + 2).await;
        let spec = json!({"nodeName": node(3), "containers": [{"name": "c", "image": "none"}]});
        create(&cluster.pods, json!({"metadata": {"name": "more"}, "spec": spec})).await;
        autoscaler.says("default/more");
        assert_eq!((nodes(), pods()), (size + 3, size + 4));
    }
}

#[tokio::test]
async fn a_node_agent_evaluates_and_stores_what_has_changed() {
    let folder = TempDir::new().unwrap();
    for size in SIZES {
        let cluster = Cluster::start(size).await;
        let gate =
            json!([{"conditionType": "a.example/Ready", "timeoutSeconds": 3600, "failureAction": "BypassWithWarning"}]);
        let annotations = json!({"dra-sdk.example.com/readiness-gates": gate.to_string()});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        for number in 0..size {
            cluster.nodes.patch(&node(number), &PatchParams::default(), &patch).await.unwrap();
        }
        let state = folder.path().join(format!("state-{size}")).display().to_string();
        let args = ["--live", "--server", &cluster.server.url, "--state", &state, "--metrics-address", "127.0.0.1:0"];
        let mut agent = Background::start(NODE_AGENT, &args);
        let vitals = agent.vitals();
        let evaluated = || count(&vitals, "dra_node_agent_nodes_evaluated_total");
        let stored = || count(&vitals, "dra_node_agent_states_stored_total");
        // What it writes to the nodes are changes too, which change no state.
        agent.says(&format!("{}: blocked", node(size - 1)));
        until("all is evaluated again", async || evaluated() >= 2 * size).await;
        assert_eq!(stored(), size);

        for (status, verdict) in [("True", "open"), ("False", "blocked")] {
            let (before, stored_before) = (evaluated(), stored());
            let conditions = [("Ready", "True"), ("a.example/Ready", status)];
            let conditions = conditions.map(|(name, status)| json!({"type": name, "status": status}));
            let patch = Patch::Strategic(json!({"status": {"conditions": conditions}}));
            cluster.nodes.patch_status(&node(5), &PatchParams::default(), &patch).await.unwrap();
            agent.says(&format!("{}: {verdict}", node(5)));
            let (more, written) = (evaluated() - before, stored() - stored_before);
            assert!((1..=4).contains(&more), "{more} nodes of {size} were evaluated");
            assert!((1..=2).contains(&written), "{written} states of {size} were written");
        }
    }
}
