//! Keeping the labels of gates up to date (KEP-5233, Labels for Readiness Gates).

use super::output::{Actor, Change, Outputs};
use super::state::State;
use crate::label::{LABEL_PREFIX, LABEL_VALUE, key_problem, writer};
use crate::node::{Knowledge, NodeView};
use crate::policy::{LabelPolicy, Policy};

/// Sets one label for each gate and removes ours that have no gate. A label that was right before is not ours: an
/// administrator may have set it.
pub(crate) fn labels(
    policy: &Policy,
    view: &NodeView<'_>,
    writes: impl Fn(Actor) -> bool,
    state: &mut State,
    outputs: &mut Outputs,
) {
    let mut key = String::new();
    for gate in view.distinct_gates() {
        let condition_type = &gate.condition_type;
        let actor = writer(condition_type);
        if !writes(actor) || key_problem(condition_type).is_some() {
            continue;
        }
        key.clear();
        key.extend([LABEL_PREFIX, condition_type]);
        if view.label(&key) != Some(LABEL_VALUE) {
            outputs.push(actor, Change::SetLabel { key: key.clone(), value: LABEL_VALUE.to_owned() });
            state.owned_labels.insert(key.clone());
        }
        if !state.leaving_labels.is_empty() && state.leaving_labels.remove(&key) {
            state.owned_labels.insert(key.clone());
        }
    }
    if view.knowledge == Knowledge::Synced {
        release(policy, view, writes, state, outputs);
    }
}

/// Who writes a label of ours.
pub(crate) fn writer_of(key: &str) -> Actor {
    writer(key.strip_prefix(LABEL_PREFIX).unwrap_or(key))
}

fn release(
    policy: &Policy,
    view: &NodeView<'_>,
    writes: impl Fn(Actor) -> bool,
    state: &mut State,
    outputs: &mut Outputs,
) {
    let has_gate = |key: &str| key.strip_prefix(LABEL_PREFIX).is_some_and(|name| view.gate(name).is_some());
    let may_remove = |key: &str| writes(writer_of(key));
    let mut leaving = Vec::new();
    state.owned_labels.retain(|key| {
        let goes = !has_gate(key) && may_remove(key);
        if goes {
            leaving.push(key.clone());
        }
        !goes
    });
    if policy.label_policy == LabelPolicy::Authoritative {
        let keys = view.node().metadata.labels.iter().flatten().map(|(key, _)| key);
        let orphans = keys.filter(|key| key.starts_with(LABEL_PREFIX) && !has_gate(key) && may_remove(key));
        leaving.extend(orphans.cloned());
    }
    state.leaving_labels.extend(leaving);
    state.leaving_labels.retain(|key| {
        let is_present = view.label(key).is_some();
        if is_present && may_remove(key) {
            outputs.push(writer_of(key), Change::RemoveLabel { key: key.clone() });
        }
        is_present
    });
}
