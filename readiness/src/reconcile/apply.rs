//! Application of writes to a node object in memory, and the writes that remove the reconciler's taints and labels.

use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::evaluator_role::EvaluatorRole;
use super::label_sync::key_writer;
use super::node_state::NodeState;
use super::node_write::{NodeChange, NodeWrite, WriteActor};
use super::step_result::StepResult;
use super::verdict::NodeVerdict;
use crate::node::{CacheSync, GatedNodeView};
use crate::taint::{NO_EXECUTE, TaintId};

/// Applies writes to a node object as an API server would, for simulators and tests. Events change nothing.
///
/// Returns the writes that were refused because their precondition failed: the stored condition or the `resourceVersion`
/// was another one.
///
/// ```
/// use k8s_openapi::api::core::v1::Node;
/// use readiness::{NodeState, apply_writes, shutdown_writes};
/// let mut node: Node = serde_json::from_str(r#"{"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}"#)?;
/// let state: NodeState =
///     serde_json::from_str(r#"{"version": 1, "ownedTaints": [{"key": "a", "effect": "NoSchedule"}]}"#)?;
/// let writes = shutdown_writes(&state);
/// let refused = apply_writes(&mut node, &writes, "2026-01-01T00:00:00Z".parse().unwrap());
/// assert!(refused.is_empty());
/// assert_eq!(node.spec.unwrap().taints, Some(vec![]));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn apply_writes<'w>(node: &mut Node, writes: &'w [NodeWrite], now: Timestamp) -> Vec<&'w NodeWrite> {
    let mut refused = Vec::new();
    for write in writes {
        if !apply_change(node, &write.change, now) {
            refused.push(write);
        }
    }
    refused
}

fn apply_change(node: &mut Node, change: &NodeChange, now: Timestamp) -> bool {
    match change {
        NodeChange::AddTaint { taint, resource_version, .. } => {
            let is_current = is_current(node, resource_version.as_deref());
            if is_current {
                add_taint(node, taint, now);
            }
            is_current
        }
        NodeChange::RemoveTaint { taint, resource_version } => {
            let is_current = is_current(node, resource_version.as_deref());
            if let (true, Some(taints)) = (is_current, node.spec.as_mut().and_then(|spec| spec.taints.as_mut())) {
                taints.retain(|other| other.key != taint.key || other.effect != taint.effect);
            }
            is_current
        }
        NodeChange::PatchCondition { .. } => patch_condition(node, change, now),
        NodeChange::SetLabel { key, value } => {
            node.metadata.labels.get_or_insert_default().insert(key.clone(), value.clone());
            true
        }
        NodeChange::RemoveLabel { key } => {
            node.metadata.labels.as_mut().map(|labels| labels.remove(key));
            true
        }
        NodeChange::Event { .. } => true,
    }
}

fn is_current(node: &Node, version: Option<&str>) -> bool {
    version.is_none() || node.metadata.resource_version.as_deref() == version
}

fn add_taint(node: &mut Node, taint: &Taint, now: Timestamp) {
    let taints = node.spec.get_or_insert_default().taints.get_or_insert_default();
    if !taints.iter().any(|other| TaintId::from(taint).matches(other)) {
        let time_added = (taint.effect == NO_EXECUTE).then_some(Time(now));
        taints.push(Taint { time_added, ..taint.clone() });
    }
}

fn patch_condition(node: &mut Node, change: &NodeChange, now: Timestamp) -> bool {
    let NodeChange::PatchCondition { condition_type, status, reason, message, expected } = change else {
        return false;
    };
    let conditions = node.status.get_or_insert_default().conditions.get_or_insert_default();
    let place = conditions.iter().position(|condition| condition.type_ == *condition_type);
    let old = place.and_then(|index| conditions.get(index));
    let holds = match (expected, old) {
        (Some(expected), Some(old)) => expected.matches(old),
        (None, None) => true,
        _ => false,
    };
    if !holds {
        return false;
    }
    let kept = old.filter(|old| old.status == *status).and_then(|old| old.last_transition_time.clone());
    let new = NodeCondition {
        type_: condition_type.clone(),
        status: status.clone(),
        reason: Some(reason.clone()),
        message: Some(message.clone()),
        last_heartbeat_time: Some(Time(now)),
        last_transition_time: kept.or(Some(Time(now))),
    };
    match place.and_then(|index| conditions.get_mut(index)) {
        Some(old) => *old = new,
        None => conditions.push(new),
    }
    true
}

/// Returns the writes that remove all taints and labels that the reconciler set, for a cluster that stops using gates
/// (a downgrade). Conditions stay: they belong to their agents.
#[must_use]
pub fn shutdown_writes(state: &NodeState) -> Vec<NodeWrite> {
    let taints = state.owned_taints.union(&state.leaving_taints).map(|id| {
        let taint = Taint { key: id.key.clone(), effect: id.effect.clone(), ..Taint::default() };
        NodeWrite { actor: WriteActor::Nlc, change: NodeChange::RemoveTaint { taint, resource_version: None } }
    });
    let labels = state.owned_labels.union(&state.leaving_labels);
    let labels =
        labels.map(|key| NodeWrite { actor: key_writer(key), change: NodeChange::RemoveLabel { key: key.clone() } });
    taints.chain(labels).collect()
}

/// Computes a step in [`PolicyMode::Off`](crate::PolicyMode::Off): removes the taints and labels that the reconciler
/// set, once.
pub(super) fn switched_off<'a>(role: EvaluatorRole, view: &GatedNodeView<'a>, mut state: NodeState) -> StepResult<'a> {
    state.ready = view.is_ready();
    let mut writes = Vec::new();
    if view.cache_sync == CacheSync::Synced {
        writes = shutdown_writes(&state);
        writes.retain(|write| role.plays(write.actor));
        let kept = NodeState {
            uid: state.uid,
            boot_id: state.boot_id,
            kubelet_instance: state.kubelet_instance,
            ready: state.ready,
            counters: state.counters,
            is_warm: true,
            ..NodeState::default()
        };
        state = kept;
    }
    let verdict = NodeVerdict { schedulable: state.ready, gates: Vec::new() };
    state.open = verdict.schedulable;
    StepResult { writes, verdict, requeue_at: None, state }
}
