//! Timeouts and taints that were on a node before a gate asked for them, recorded as observed and not by timestamps.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::evaluator_role::EvaluatorRole;
use super::node_state::NodeState;
use super::node_write::WriteActor;
use super::recorded_condition::RecordedCondition;
use crate::condition::ConditionStatus;
use crate::gate::NodeReadinessGate;
use crate::node::GatedNodeView;
use crate::taint::{TaintId, is_same};

/// Timeouts and taints that were observed while no gate asked for them. A gate that is added later did not cause them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Ungated {
    /// Conditions with a timeout that no gate names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) timeouts: BTreeMap<String, RecordedCondition>,
    /// Taints of other writers that no gate names, as long as they are on the node.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) taints: BTreeSet<TaintId>,
}

impl Ungated {
    /// Returns true if nothing is recorded.
    pub(super) fn is_empty(&self) -> bool {
        self.timeouts.is_empty() && self.taints.is_empty()
    }
}

/// Records the timeouts and taints that no gate asks for now. Not called for partial views, which may hide the gate.
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
