//! What was on a node before a gate asked for it: told by having been seen, not by clocks.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::output::Actor;
use super::state::{Report, State};
use super::{NodeView, Role};
use crate::condition::Observation;
use crate::gate::NodeReadinessGate;
use crate::taint::{TaintId, is_same};

/// What was seen while no gate asked for it. A gate that comes later has not done it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Before {
    /// Timeouts on conditions that are no gate's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) timeouts: BTreeMap<String, Report>,
    /// Taints of others that were no gate's, as long as they are there.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) taints: BTreeSet<TaintId>,
}

impl Before {
    pub(crate) fn is_empty(&self) -> bool {
        self.timeouts.is_empty() && self.taints.is_empty()
    }
}

/// Notes what is there now without a gate. Not for partial views, which may hide the gate.
pub(crate) fn note(role: Role, view: &NodeView<'_>, state: &mut State) {
    state.before.timeouts = timeouts(view);
    if role.plays(Actor::Nlc) {
        note_taints(view, state);
    }
}

fn timeouts(view: &NodeView<'_>) -> BTreeMap<String, Report> {
    let is_timeout = |name: &str| Observation::of(view.condition(name)) == Observation::TimeoutExceeded;
    let names = view.conditions().iter().map(|condition| condition.type_.as_str());
    let orphans = names.filter(|name| is_timeout(name) && view.gate(name).is_none());
    orphans.filter_map(|name| Some((name.to_owned(), Report::of(view.condition(name)?)?))).collect()
}

fn note_taints(view: &NodeView<'_>, state: &mut State) {
    let State { before, owned_taints, leaving_taints, .. } = state;
    before.taints.retain(|id| view.taint(&id.key, &id.effect).is_some());
    for taint in view.taints() {
        let is_noted = |ids: &BTreeSet<TaintId>| ids.iter().any(|id| id.is_of(taint));
        let is_of_gate = |gate: &NodeReadinessGate| gate.taint().is_some_and(|other| is_same(other, taint));
        let is_known = [&before.taints, owned_taints, leaving_taints].into_iter().any(is_noted);
        if !is_known && !view.distinct_gates().any(is_of_gate) {
            before.taints.insert(TaintId::of(taint));
        }
    }
}
