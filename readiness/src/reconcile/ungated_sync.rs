//! Record of the timeouts and taints on a node that no gate asks for.

use std::collections::{BTreeMap, BTreeSet};

use super::evaluator_role::EvaluatorRole;
use super::node_state::NodeState;
use super::node_write::WriteActor;
use super::recorded_condition::RecordedCondition;
use crate::condition::ConditionStatus;
use crate::gate::NodeReadinessGate;
use crate::node::GatedNodeView;
use crate::taint::{TaintId, is_same};

/// Records the `TimeoutExceeded` conditions and taints for which the node has no gate. Not called for an unsynced
/// cache, which may lack the gate.
pub(super) fn record(role: EvaluatorRole, view: &GatedNodeView<'_>, state: &mut NodeState) {
    state.ungated.timeouts = ungated_timeouts(view);
    if role.plays(WriteActor::Nlc) {
        record_taints(view, state);
    }
}

fn ungated_timeouts(view: &GatedNodeView<'_>) -> BTreeMap<String, RecordedCondition> {
    let is_timeout =
        |name: &str| ConditionStatus::from_condition(view.condition(name)) == ConditionStatus::TimeoutExceeded;
    let names = view.conditions().iter().map(|condition| condition.type_.as_str());
    let orphans = names.filter(|name| is_timeout(name) && view.gate(name).is_none());
    orphans
        .filter_map(|name| Some((name.to_owned(), RecordedCondition::from_condition(view.condition(name)?)?)))
        .collect()
}

fn record_taints(view: &GatedNodeView<'_>, state: &mut NodeState) {
    let NodeState { ungated, owned_taints, leaving_taints, .. } = state;
    ungated.taints.retain(|id| view.taint(&id.key, &id.effect).is_some());
    for taint in view.taints() {
        let is_noted = |ids: &BTreeSet<TaintId>| ids.iter().any(|id| id.matches(taint));
        let is_of_gate = |gate: &NodeReadinessGate| gate.taint().is_some_and(|other| is_same(other, taint));
        let is_known = [&ungated.taints, owned_taints, leaving_taints].into_iter().any(is_noted);
        if !is_known && !view.distinct_gates().any(is_of_gate) {
            ungated.taints.insert(TaintId::from(taint));
        }
    }
}
