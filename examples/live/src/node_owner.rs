//! The node of a driver, which owns its slices: they go with it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Api;

use super::connect::Cluster;
use super::failure::{LiveError, Trouble, text, trouble};
use super::retry::{Pauses, answered};
use super::say::say;

/// Longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Waits until the node is there, which the kubelet may register after its drivers have started, and returns it as an owner.
/// A line for people says once that it is waited for.
///
/// # Errors
/// The server does not let the driver read nodes.
pub async fn node_owner(cluster: &Cluster, driver: &str, name: &str) -> Result<OwnerReference, LiveError> {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let (mut pauses, mut is_said) = (Pauses::up_to(LONGEST_PAUSE), false);
    loop {
        let reason = match answered(|| nodes.get(name)).await.outcome {
            Ok(node) => match node.metadata.uid {
                Some(uid) => return Ok(owner(name, uid)),
                None => "it has no UID".to_owned(),
            },
            Err(error) if matches!(trouble(&error), Trouble::Unauthenticated | Trouble::Forbidden) => {
                return Err(LiveError::from_call("get", "nodes", &error));
            }
            Err(error) => text(&error),
        };
        if !std::mem::replace(&mut is_said, true) {
            say(&format_args!("{driver}: waits for node {name}, which will own the slices: {reason}"));
        }
        tokio::time::sleep(pauses.next().unwrap_or(LONGEST_PAUSE)).await;
    }
}

fn owner(name: &str, uid: String) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: name.to_owned(),
        uid,
        controller: Some(true),
        block_owner_deletion: None,
    }
}
