//! The node itself: its object, and its lease.

use std::time::Duration;

use examples::live::connect::Cluster;
use examples::live::failure::{LiveError, Trouble, trouble};
use examples::live::now;
use examples::live::retry::answered;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Node, NodeSpec, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

/// Time between two renewals of the node's lease.
const BEAT: Duration = Duration::from_secs(10);

/// Namespace of the leases of nodes.
const LEASES: &str = "kube-node-lease";

/// Label and taint of a virtual node. The taint keeps pods away that would wait for ever to be run.
const VIRTUAL: &str = "dra-sdk.example.com/virtual-node";

/// Reason that the node can't be used.
#[derive(Debug, thiserror::Error)]
#[error("node {_0} is there, and no virtual one: its own kubelet works for it; --node-name names another one")]
pub(crate) struct RealNode(String);

/// Creates the node unless it is there, and says that it is ready.
///
/// # Errors
/// The node can't be written, or is a real one.
pub(super) async fn register(cluster: &Cluster, name: &str) -> Result<(), super::LiveError> {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let labels = [("kubernetes.io/hostname".to_owned(), name.to_owned()), (VIRTUAL.to_owned(), "true".to_owned())];
    let metadata = ObjectMeta { name: Some(name.to_owned()), labels: Some(labels.into()), ..ObjectMeta::default() };
    let taint = Taint { key: VIRTUAL.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() };
    let spec = NodeSpec { taints: Some(vec![taint]), ..NodeSpec::default() };
    let (node, post) = (Node { metadata, spec: Some(spec), status: None }, PostParams::default());
    let found = match answered(|| nodes.create(&post, &node)).await.outcome {
        Err(error) if trouble(&error) == Trouble::Exists => answered(|| nodes.get(name)).await.outcome,
        outcome => outcome,
    };
    let found = found.map_err(|error| LiveError::from_call("create", "nodes", &error))?;
    if !found.metadata.labels.is_some_and(|labels| labels.contains_key(VIRTUAL)) {
        return Err(RealNode(name.to_owned()).into());
    }
    let time = now().to_string();
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "AgentReady", "message": "the agent prepares claims",
        "lastHeartbeatTime": time, "lastTransitionTime": time,
    });
    let status =
        json!({"status": {"conditions": [condition], "capacity": {"pods": "110"}, "allocatable": {"pods": "110"}}});
    let (patch, params) = (Patch::Strategic(status), PatchParams::default());
    let written = answered(|| nodes.patch_status(name, &params, &patch)).await.outcome;
    Ok(written.map(drop).map_err(|error| LiveError::from_call("patch", "nodes/status", &error))?)
}

/// Renews the lease of the node for ever. A renewal that fails is followed by the next one.
pub(super) async fn beat(cluster: Cluster, name: String) {
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), LEASES);
    loop {
        let spec = LeaseSpec {
            holder_identity: Some(name.clone()),
            lease_duration_seconds: Some(40),
            renew_time: Some(MicroTime(now())),
            ..LeaseSpec::default()
        };
        match leases.get_opt(&name).await {
            Ok(Some(mut lease)) => {
                lease.spec = Some(spec);
                let _ = leases.replace(&name, &PostParams::default(), &lease).await;
            }
            Ok(None) => {
                let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
                let _ = leases.create(&PostParams::default(), &Lease { metadata, spec: Some(spec) }).await;
            }
            Err(_) => {}
        }
        tokio::time::sleep(BEAT).await;
    }
}
