//! Calls about nodes that `readiness::step` asks for.

use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Error};
use readiness::{NodeChange, NodeWrite};
use serde_json::{Value, json};

use super::events::Events;
use super::failure::{Trouble, trouble};
use super::now;
use super::retry::answered;

/// Number of times that a condition is written, if others change the node meanwhile.
const ATTEMPTS: usize = 5;

/// Carries out the writes of one step, in their order, on the node that the step has seen. Returns false if the node is
/// another one now, or has changed so that a write is no longer meant: the next step decides anew.
///
/// # Errors
/// The server has refused a write, or does not answer. The writes before it are made.
pub async fn carry_out(client: &Client, events: &Events, seen: &Node, writes: &[NodeWrite]) -> Result<bool, Error> {
    let mut stored = seen.clone();
    for write in writes {
        match &write.change {
            NodeChange::Event { is_warning: false, reason, message } => {
                events.normal(client, seen, reason, message).await;
            }
            NodeChange::Event { is_warning: true, reason, message } => {
                events.warning(client, seen, reason, message).await;
            }
            _ => match written(client, &stored, write).await? {
                Some(node) => stored = node,
                None => return Ok(false),
            },
        }
    }
    Ok(true)
}

/// Makes a write, and returns the stored node; `None` if it is not meant any more. Taints are written under the version that
/// the step has seen. A condition is read again after a conflict, and written if it is still the expected one.
async fn written(client: &Client, known: &Node, write: &NodeWrite) -> Result<Option<Node>, Error> {
    let api: Api<Node> = Api::all(client.clone());
    let name = known.metadata.name.as_deref().unwrap_or_default();
    let params = PatchParams::default();
    let mut stored = known.clone();
    for _ in 0..ATTEMPTS {
        let Some(patch) = patch(&stored, write) else { return Ok(None) };
        let (patch, is_condition) = (Patch::Merge(patch), matches!(write.change, NodeChange::PatchCondition { .. }));
        let sent = if is_condition {
            answered(|| api.patch_status(name, &params, &patch)).await
        } else {
            answered(|| api.patch(name, &params, &patch)).await
        };
        match sent.outcome {
            Err(error) if trouble(&error) == Trouble::Conflict => {}
            Err(error) if trouble(&error) == Trouble::Missing => return Ok(None),
            outcome => return outcome.map(Some),
        }
        match answered(|| api.get_opt(name)).await.outcome? {
            // The answer to the own write was lost.
            Some(node) if is_made(&node, write) => return Ok(Some(node)),
            Some(node) if is_condition && node.metadata.uid == known.metadata.uid => stored = node,
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Returns true if a node has what is to be written.
fn is_made(node: &Node, write: &NodeWrite) -> bool {
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let mut has = |taint: &Taint| taints.any(|other| (&other.key, &other.effect) == (&taint.key, &taint.effect));
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    match &write.change {
        NodeChange::AddTaint { taint, .. } => has(taint),
        NodeChange::RemoveTaint { taint, .. } => !has(taint),
        NodeChange::PatchCondition { condition_type, status, reason, message, .. } => conditions.any(|condition| {
            (&condition.type_, &condition.status) == (condition_type, status)
                && (condition.reason.as_ref(), condition.message.as_ref()) == (Some(reason), Some(message))
        }),
        _ => false,
    }
}

/// Returns the merge patch of a write, with lists as a whole; `None` if the condition is not the expected one.
fn patch(stored: &Node, write: &NodeWrite) -> Option<Value> {
    let (uid, version) = (&stored.metadata.uid, &stored.metadata.resource_version);
    let versioned = json!({"uid": uid, "resourceVersion": version});
    Some(match &write.change {
        NodeChange::SetLabel { key, value } => json!({"metadata": {"uid": uid, "labels": {key: value}}}),
        NodeChange::RemoveLabel { key } => json!({"metadata": {"uid": uid, "labels": {key: null}}}),
        NodeChange::PatchCondition { .. } => {
            let wanted = changed(stored, write)?.status.unwrap_or_default();
            json!({"metadata": versioned, "status": {"conditions": wanted.conditions}})
        }
        _ => {
            let wanted = changed(stored, write)?.spec.unwrap_or_default();
            json!({"metadata": versioned, "spec": {"taints": wanted.taints}})
        }
    })
}

/// Returns the node with a change; `None` if the condition that the change is about is another one now.
fn changed(stored: &Node, write: &NodeWrite) -> Option<Node> {
    let mut write = write.clone();
    // The patch names the version itself, which is that of the write before.
    if let NodeChange::AddTaint { resource_version, .. } | NodeChange::RemoveTaint { resource_version, .. } =
        &mut write.change
    {
        *resource_version = None;
    }
    let mut wanted = stored.clone();
    write.apply(&mut wanted, now()).then_some(wanted)
}
