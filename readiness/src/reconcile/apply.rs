//! Making the changes to a node object, and taking everything back.

use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::label_sync::writer_of;
use super::output::{Actor, Change, Output};
use super::state::State;
use super::{Knowledge, NodeVerdict, NodeView, Role, Step};
use crate::taint::{NO_EXECUTE, TaintId};

/// Makes the changes to a node object as an API server would, for simulators and tests. Events leave no trace.
///
/// Returns the changes that were not made since their precondition failed: the condition was not as expected, or the version
/// of the object was another one.
///
/// ```
/// use k8s_openapi::api::core::v1::Node;
/// use readiness::reconcile::output::{Actor, Change, Output};
/// use readiness::reconcile::{State, apply, shutdown};
/// let mut node: Node = serde_json::from_str(r#"{"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}"#)?;
/// let state: State = serde_json::from_str(r#"{"owned_taints": [{"key": "a", "effect": "NoSchedule"}]}"#)?;
/// let outputs = shutdown(&state);
/// let refused = apply(&mut node, &outputs, "2026-01-01T00:00:00Z".parse().unwrap());
/// assert!(refused.is_empty());
/// assert_eq!(node.spec.unwrap().taints, Some(vec![]));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn apply<'o>(node: &mut Node, outputs: &'o [Output], now: Timestamp) -> Vec<&'o Output> {
    let mut refused = Vec::new();
    for output in outputs {
        if !make(node, &output.change, now) {
            refused.push(output);
        }
    }
    refused
}

fn make(node: &mut Node, change: &Change, now: Timestamp) -> bool {
    match change {
        Change::AddTaint { taint, resource_version, .. } => {
            let is_current = is_current(node, resource_version.as_deref());
            if is_current {
                add_taint(node, taint, now);
            }
            is_current
        }
        Change::RemoveTaint { taint, resource_version } => {
            let is_current = is_current(node, resource_version.as_deref());
            if let (true, Some(taints)) = (is_current, node.spec.as_mut().and_then(|spec| spec.taints.as_mut())) {
                taints.retain(|other| other.key != taint.key || other.effect != taint.effect);
            }
            is_current
        }
        Change::PatchCondition { .. } => patch_condition(node, change, now),
        Change::SetLabel { key, value } => {
            node.metadata.labels.get_or_insert_default().insert(key.clone(), value.clone());
            true
        }
        Change::RemoveLabel { key } => {
            node.metadata.labels.as_mut().map(|labels| labels.remove(key));
            true
        }
        Change::Event { .. } => true,
    }
}

fn is_current(node: &Node, version: Option<&str>) -> bool {
    version.is_none() || node.metadata.resource_version.as_deref() == version
}

fn add_taint(node: &mut Node, taint: &Taint, now: Timestamp) {
    let taints = node.spec.get_or_insert_default().taints.get_or_insert_default();
    if !taints.iter().any(|other| TaintId::of(taint).is_of(other)) {
        let time_added = (taint.effect == NO_EXECUTE).then_some(Time(now));
        taints.push(Taint { time_added, ..taint.clone() });
    }
}

fn patch_condition(node: &mut Node, change: &Change, now: Timestamp) -> bool {
    let Change::PatchCondition { condition_type, status, reason, message, expect } = change else { return false };
    let conditions = node.status.get_or_insert_default().conditions.get_or_insert_default();
    let place = conditions.iter().position(|condition| condition.type_ == *condition_type);
    let old = place.and_then(|index| conditions.get(index));
    let holds = match (expect, old) {
        (Some(expected), Some(old)) => expected.holds(old),
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

/// Everything of ours that is to go when gates are given up for good (a downgrade): taints and labels. Conditions stay, they
/// belong to their owners.
#[must_use]
pub fn shutdown(state: &State) -> Vec<Output> {
    let taints = state.owned_taints.union(&state.leaving_taints).map(|id| {
        let taint = Taint { key: id.key.clone(), effect: id.effect.clone(), ..Taint::default() };
        Output { actor: Actor::Nlc, change: Change::RemoveTaint { taint, resource_version: None } }
    });
    let labels = state.owned_labels.union(&state.leaving_labels);
    let labels = labels.map(|key| Output { actor: writer_of(key), change: Change::RemoveLabel { key: key.clone() } });
    taints.chain(labels).collect()
}

/// A step with the feature off: what is ours goes, once.
pub(super) fn switched_off<'a>(role: Role, view: &NodeView<'a>, mut state: State) -> Step<'a> {
    state.ready = view.is_ready();
    let mut outputs = Vec::new();
    if view.knowledge == Knowledge::Synced {
        outputs = shutdown(&state);
        outputs.retain(|output| role.plays(output.actor));
        let kept = State {
            uid: state.uid,
            boot_id: state.boot_id,
            kubelet_instance: state.kubelet_instance,
            ready: state.ready,
            counters: state.counters,
            is_warm: true,
            ..State::default()
        };
        state = kept;
    }
    let verdict = NodeVerdict { schedulable: state.ready, gates: Vec::new() };
    state.open = verdict.schedulable;
    Step { outputs, verdict, wake_up: None, state }
}
