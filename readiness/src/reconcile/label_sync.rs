//! Labels of gates on the node (KEP-5233, Labels for Readiness Gates).

use super::node_state::NodeState;
use super::node_write::{NodeChange, WriteActor, WriteList};
use crate::gate::NodeReadinessGate;
use crate::gate_label::{GATE_LABEL_PREFIX, is_writable_by_kubelet, key_problem};
use crate::node::{CacheSync, GatedNodeView};
use crate::policy::Policy;

/// Sets a label for each gate, and removes labels that the reconciler set for gates that are gone. A label that already
/// had the right value is not recorded as set: an administrator may have set it.
pub(super) fn sync_labels(
    policy: &Policy,
    view: &GatedNodeView<'_>,
    may_write: impl Fn(WriteActor) -> bool,
    state: &mut NodeState,
    writes: &mut WriteList,
) {
    let mut key = String::new();
    for gate in view.distinct_gates() {
        let condition_type = &gate.condition_type;
        let actor = label_writer(condition_type);
        if !may_write(actor) || key_problem(condition_type).is_some() {
            continue;
        }
        key.clear();
        key.extend([GATE_LABEL_PREFIX, condition_type]);
        if view.label(&key) != Some(NodeReadinessGate::LABEL_VALUE) {
            writes.push(
                actor,
                NodeChange::SetLabel { key: key.clone(), value: NodeReadinessGate::LABEL_VALUE.to_owned() },
            );
            state.owned_labels.insert(key.clone());
        }
        if !state.leaving_labels.is_empty() && state.leaving_labels.remove(&key) {
            state.owned_labels.insert(key.clone());
        }
    }
    if view.cache_sync == CacheSync::Synced {
        release(policy, view, may_write, state, writes);
    }
}

/// Returns the component that writes the label of a gate: kubelet if `NodeRestriction` lets it, else the node lifecycle
/// controller.
fn label_writer(condition_type: &str) -> WriteActor {
    if is_writable_by_kubelet(condition_type) { WriteActor::Kubelet } else { WriteActor::Nlc }
}

/// Returns the component that sets and removes the gate label `key`.
pub(super) fn key_writer(key: &str) -> WriteActor {
    label_writer(key.strip_prefix(GATE_LABEL_PREFIX).unwrap_or(key))
}

fn release(
    policy: &Policy,
    view: &GatedNodeView<'_>,
    may_write: impl Fn(WriteActor) -> bool,
    state: &mut NodeState,
    writes: &mut WriteList,
) {
    let has_gate = |key: &str| key.strip_prefix(GATE_LABEL_PREFIX).is_some_and(|name| view.gate(name).is_some());
    let may_remove = |key: &str| may_write(key_writer(key));
    let mut leaving = Vec::new();
    state.owned_labels.retain(|key| {
        let goes = !has_gate(key) && may_remove(key);
        if goes {
            leaving.push(key.clone());
        }
        !goes
    });
    if policy.removes_foreign_labels {
        let keys = view.node().metadata.labels.iter().flatten().map(|(key, _)| key);
        let orphans = keys.filter(|key| key.starts_with(GATE_LABEL_PREFIX) && !has_gate(key) && may_remove(key));
        leaving.extend(orphans.cloned());
    }
    state.leaving_labels.extend(leaving);
    state.leaving_labels.retain(|key| {
        let is_present = view.label(key).is_some();
        if is_present && may_remove(key) {
            writes.push(key_writer(key), NodeChange::RemoveLabel { key: key.clone() });
        }
        is_present
    });
}
