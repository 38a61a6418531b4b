//! Large cluster on the stand-in, and changes of it.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

use super::stand_in::{StandIn, listed};

const POST: PostParams = PostParams { dry_run: false, field_manager: None };
/// Drivers with a slice on each node.
pub(crate) const DRIVERS: [&str; 2] = ["gpu.example.com", "nic.example.com"];
/// Driver whose slice comes later.
const LATE: &str = "late.example.com";
/// Condition that the gate of each node waits for.
const GATE: &str = "a.example/Ready";
/// Node of the kubelet.
pub(crate) const VIRTUAL: &str = "virtual-1";
const DEVICES: usize = 8;
const PODS_OF_A_NODE: usize = 10;
/// Calls at a time while the cluster is filled.
const AT_A_TIME: usize = 16;

pub(crate) struct LargeCluster {
    pub(crate) nodes: usize,
    node: Api<Node>,
    slices: Api<ResourceSlice>,
    claims: Api<ResourceClaim>,
    pods: Api<Pod>,
    requests: Api<ResourcePoolStatusRequest>,
}

/// Creates objects, several at a time.
async fn fill<K>(api: &Api<K>, objects: impl Iterator<Item = Value>)
where
    K: Clone + DeserializeOwned + Serialize + Debug,
{
    let objects = objects.map(|object| from_value::<K>(object).unwrap());
    let created = stream::iter(objects).map(|object| async move { api.create(&POST, &object).await.unwrap() });
    created.buffer_unordered(AT_A_TIME).for_each(async |_| ()).await;
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: Clone + DeserializeOwned + Serialize + Debug,
{
    fill(api, [object].into_iter()).await;
}

async fn until(holds: impl AsyncFn() -> bool) {
    while !holds().await {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Returns the slice of a driver on a node.
pub(crate) fn slice(driver: &str, node: &str, devices: usize) -> Value {
    let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
    let devices: Vec<Value> = (0..devices).map(|device| json!({"name": format!("dev-{device}")})).collect();
    let spec = json!({"driver": driver, "nodeName": node, "pool": pool, "devices": devices});
    json!({"metadata": {"name": format!("{driver}-{node}")}, "spec": spec})
}

/// Returns a node with a gate that is open.
fn node(number: usize) -> Value {
    let gate = json!([{"conditionType": GATE, "timeoutSeconds": 3600, "failureAction": "BypassWithWarning"}]);
    let annotations = json!({"dra-sdk.example.com/readiness-gates": gate.to_string()});
    let conditions = ["Ready", GATE]
        .map(|name| json!({"type": name, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}));
    let metadata = json!({"name": format!("node-{number}"), "annotations": annotations});
    json!({"metadata": metadata, "status": {"conditions": conditions}})
}

fn bound_pod(name: &str, node: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "none"}]}})
}

impl LargeCluster {
    /// Creates nodes, a slice of each driver on each, pods on each, and classes.
    pub(crate) async fn fill(server: &StandIn, nodes: usize) -> Self {
        let client = server.client();
        let cluster = Self {
            nodes,
            node: Api::all(client.clone()),
            slices: Api::all(client.clone()),
            claims: Api::default_namespaced(client.clone()),
            pods: Api::default_namespaced(client.clone()),
            requests: Api::all(client.clone()),
        };
        fill(&cluster.node, (0..nodes).map(node)).await;
        let of_driver =
            |driver: &'static str| (0..nodes).map(move |node| slice(driver, &format!("node-{node}"), DEVICES));
        fill(&cluster.slices, DRIVERS.into_iter().flat_map(of_driver)).await;
        let bound = |number: usize| bound_pod(&format!("bound-{number}"), &format!("node-{}", number % nodes));
        fill(&cluster.pods, (0..nodes * PODS_OF_A_NODE).map(bound)).await;
        let classes = [("gpu", DRIVERS[0]), ("late", LATE), ("own", "own.example.com")].map(|(name, driver)| {
            let expression = format!("device.driver == '{driver}'");
            json!({"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}})
        });
        fill(&Api::<DeviceClass>::all(client), classes.into_iter()).await;
        cluster
    }

    /// Leaves some devices of the first node's slice.
    pub(crate) async fn shrink(&self, devices: usize) {
        let name = format!("{}-node-0", DRIVERS[0]);
        let stored = self.slices.get(&name).await.unwrap();
        let mut changed: ResourceSlice = from_value(slice(DRIVERS[0], "node-0", devices)).unwrap();
        changed.metadata = stored.metadata;
        self.slices.replace(&name, &POST, &changed).await.unwrap();
    }

    /// Requests the status of the first node's pool.
    pub(crate) async fn ask(&self, name: &str) {
        let spec = json!({"driver": DRIVERS[0], "poolName": "node-0"});
        create(&self.requests, json!({"metadata": {"name": name}, "spec": spec})).await;
    }

    async fn claim(&self, name: &str, class: &str) {
        let request = json!({"name": "r", "exactly": {"deviceClassName": class}});
        create(&self.claims, json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}})).await;
    }

    /// Creates a pod that waits for a device of a class.
    pub(crate) async fn want(&self, name: &str, class: &str) {
        self.claim(name, class).await;
        let spec = json!({"schedulerName": "dra-sdk", "containers": [{"name": "c", "image": "none"}],
            "resourceClaims": [{"name": "r", "resourceClaimName": name}]});
        create(&self.pods, json!({"metadata": {"name": name}, "spec": spec})).await;
    }

    /// Waits until a scheduler has said that no node fits a pod.
    pub(crate) async fn is_refused(&self, pod: &str) {
        until(async || {
            let status = self.pods.get(pod).await.unwrap().status.unwrap_or_default();
            status.conditions.unwrap_or_default().iter().any(|condition| condition.status == "False")
        })
        .await;
    }

    /// Creates a slice with one device that pods wait for, on a node in the middle.
    pub(crate) async fn add_late_slice(&self, number: usize) {
        create(&self.slices, slice(LATE, &format!("node-{}", self.nodes / 2 + number), 1)).await;
    }

    /// Creates a pod without claims that is bound.
    pub(crate) async fn run_pod(&self, name: &str, node: &str) {
        create(&self.pods, bound_pod(name, node)).await;
    }

    /// Creates a pod whose claim has a device of the driver on the kubelet's node, to be bound.
    pub(crate) async fn with_device(&self, name: &str, device: &str) {
        self.claim(name, "own").await;
        let spec = json!({"containers": [{"name": "c", "image": "none"}],
            "resourceClaims": [{"name": "r", "resourceClaimName": name}]});
        let pod = from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
        let pod: Pod = self.pods.create(&POST, &pod).await.unwrap();
        let mut claim = self.claims.get(name).await.unwrap();
        let result = json!({"request": "r", "driver": "own.example.com", "pool": VIRTUAL, "device": device});
        let user = json!({"resource": "pods", "name": name, "uid": pod.metadata.uid});
        let status = json!({"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]});
        claim.status = Some(from_value(status).unwrap());
        self.claims.replace_status(name, &POST, &claim).await.unwrap();
    }

    /// Binds a pod to the kubelet's node.
    pub(crate) async fn bind(&self, pod: &str) {
        let target = json!({"apiVersion": "v1", "kind": "Node", "name": VIRTUAL});
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target});
        let _: Value = self.pods.create_subresource("binding", pod, &POST, &binding).await.unwrap();
    }

    /// Sets the condition of a node that its gate waits for.
    pub(crate) async fn report(&self, node: &str, is_true: bool) {
        let status = if is_true { "True" } else { "False" };
        let condition = json!({"type": GATE, "status": status, "lastTransitionTime": "2026-01-02T00:00:00Z"});
        let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
        self.node.patch_status(node, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits until the last node by name has the label of its gate.
    pub(crate) async fn is_labelled(&self) {
        let last = (0..self.nodes).map(|node| format!("node-{node}")).max().unwrap();
        let label = format!("readiness-gate.{GATE}");
        until(async || {
            let labels = self.node.get(&last).await.unwrap().metadata.labels;
            labels.is_some_and(|labels| labels.contains_key(&label))
        })
        .await;
    }

    /// Waits until a driver has published a slice.
    pub(crate) async fn is_published(&self, driver: &str) {
        let own = ListParams::default().fields(&format!("spec.driver={driver}"));
        until(async || !self.slices.list(&own).await.unwrap().items.is_empty()).await;
    }

    pub(crate) async fn delete_slices(&self, driver: &str) {
        let own = ListParams::default().fields(&format!("spec.driver={driver}"));
        for slice in listed(&self.slices, &own).await.unwrap() {
            self.slices.delete(&slice.metadata.name.unwrap(), &DeleteParams::default()).await.unwrap();
        }
    }
}
