//! Record of the timeouts and taints on a node that no gate asks for.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;

use super::evaluator_role::EvaluatorRole;
use super::node_state::NodeState;
use super::node_write::WriteActor;
use super::recorded_condition::RecordedCondition;
use crate::condition::ConditionStatus;
use crate::node::GatedNodeView;
use crate::taint::TaintId;

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
    let present = TaintIds::new(view.taints().len(), view.taints().iter().map(id_of));
    ungated.taints.retain(|id| present.contains(id.pair()));
    let noted = || [&ungated.taints, &*owned_taints, &*leaving_taints].into_iter().flatten().map(TaintId::pair);
    let of_gates = view.distinct_gates().filter_map(|gate| gate.taint().map(id_of));
    let known = TaintIds::new(noted().count().saturating_add(view.gates().len()), noted().chain(of_gates));
    let new: Vec<TaintId> =
        view.taints().iter().filter(|taint| !known.contains(id_of(taint))).map(TaintId::from).collect();
    ungated.taints.extend(new);
}

fn id_of(taint: &Taint) -> (&str, &str) {
    (&taint.key, &taint.effect)
}

/// Keys and effects of many taints, sorted: a node may have thousands.
struct TaintIds<'a>(Vec<(&'a str, &'a str)>);

impl<'a> TaintIds<'a> {
    /// Collects taints with one allocation. `most` is at least their number.
    fn new(most: usize, taints: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut sorted = Vec::with_capacity(most);
        sorted.extend(taints);
        sorted.sort_unstable();
        Self(sorted)
    }

    fn contains(&self, id: (&str, &str)) -> bool {
        self.0.binary_search(&id).is_ok()
    }
}
