//! The node itself: its object, and its lease.

use std::time::Duration;

use examples::live::connect::Cluster;
use examples::live::failure::{LiveError, Trouble, trouble};
use examples::live::now;
use examples::live::retry::answered;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

/// Time between two renewals of the node's lease.
const BEAT: Duration = Duration::from_secs(10);

/// Namespace of the leases of nodes.
const LEASES: &str = "kube-node-lease";

/// Creates the node unless it is there, and says that it is ready.
///
/// # Errors
/// The node can't be written.
pub(super) async fn register(cluster: &Cluster, name: &str) -> Result<(), LiveError> {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let labels = [("kubernetes.io/hostname".to_owned(), name.to_owned()), ("type".to_owned(), "virtual".to_owned())];
    let metadata = ObjectMeta { name: Some(name.to_owned()), labels: Some(labels.into()), ..ObjectMeta::default() };
    let (node, post) = (Node { metadata, ..Node::default() }, PostParams::default());
    match answered(|| nodes.create(&post, &node)).await.outcome {
        Err(error) if trouble(&error) != Trouble::Exists => {
            return Err(LiveError::from_call("create", "nodes", &error));
        }
        _ => {}
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
    written.map(drop).map_err(|error| LiveError::from_call("patch", "nodes/status", &error))
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
