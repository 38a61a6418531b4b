//! Taints of failure actions (KEP-5233, Node Readiness Timeout).

use k8s_openapi::api::core::v1::Taint;

use super::gate_state::GatePhase;
use super::node_state::NodeState;
use super::node_write::{NodeChange, WriteActor, WriteList, taint_text};
use crate::gate::NodeReadinessGate;
use crate::node::{CacheSync, GatedNodeView};
use crate::policy::Policy;
use crate::taint::{NO_EXECUTE, TaintId, is_usable};

/// Synchronization of a node's taints with the phases of its gates, in one step.
pub(super) struct TaintSync<'s, 'v> {
    pub(super) policy: &'s Policy,
    pub(super) view: &'s GatedNodeView<'v>,
    /// True if the mode of the policy and the role let the step write taints.
    pub(super) may_write: bool,
    pub(super) state: &'s mut NodeState,
    pub(super) writes: &'s mut WriteList,
}

impl TaintSync<'_, '_> {
    /// Adds the taints of gates that have timed out, and removes taints that the reconciler added and no gate needs any
    /// more.
    ///
    /// A gate that has timed out needs its taint; a gate that is not True needs it if the reconciler added it. So such a
    /// taint is removed when each of its gates is True, is gone, or has another taint or action.
    pub(super) fn sync(mut self) {
        for gate in self.view.distinct_gates() {
            if let Some(taint) = gate.taint() {
                self.sync_taint(&gate.condition_type, taint);
            }
        }
        let has_taints = !self.state.owned_taints.is_empty() || !self.state.leaving_taints.is_empty();
        if has_taints && self.view.cache_sync == CacheSync::Synced {
            self.release();
        }
    }

    /// Adds or adopts the taint of a gate if the gate's phase asks for it.
    fn sync_taint(&mut self, condition_type: &str, taint: &Taint) {
        let Self { policy, view, may_write, state, writes } = self;
        let may_write = *may_write;
        let phase = state.gates.get(condition_type).map_or(GatePhase::Waiting, |gate| gate.phase);
        let is_present = view.taint(&taint.key, &taint.effect).is_some();
        let is_leaving = state.leaving_taints.iter().any(|id| id.matches(taint));
        if is_leaving && is_present && phase != GatePhase::Established {
            // Its removal was requested and not made, and now a gate wants it again.
            let id = TaintId::from(taint);
            state.leaving_taints.remove(&id);
            state.owned_taints.insert(id);
        }
        let is_owned = state.owned_taints.iter().any(|id| id.matches(taint));
        let is_wanted = phase == GatePhase::TimedOut || (is_owned && phase != GatePhase::Established);
        if is_wanted && !is_present && may_write && !writes.adds(taint) && is_usable(taint) {
            add(taint, view, state, writes);
        }
        let is_settled = matches!(phase, GatePhase::TimedOut | GatePhase::Established);
        let is_known = is_owned || is_leaving || state.ungated.taints.iter().any(|id| id.matches(taint));
        if policy.adopt_existing_taints && may_write && is_present && is_settled && !is_known && is_usable(taint) {
            state.owned_taints.insert(TaintId::from(taint));
            let message = format!("taint {} is managed now", taint_text(taint));
            writes.normal_event("TaintAdopted", message);
        }
    }

    /// Removes taints that the reconciler added and no gate needs any more. A taint stays in `leaving_taints` until it is
    /// gone from the node, so that a lost write is requested again.
    fn release(self) {
        let Self { view, may_write, state, writes, .. } = self;
        let gates = &state.gates;
        let is_wanted = |id: &TaintId| {
            let holds = |gate: &&NodeReadinessGate| {
                let phase = gates.get(&gate.condition_type).map_or(GatePhase::Waiting, |gate| gate.phase);
                phase != GatePhase::Established && gate.taint().is_some_and(|taint| id.matches(taint))
            };
            view.distinct_gates().any(|gate| holds(&gate))
        };
        let mut leaving = Vec::new();
        state.owned_taints.retain(|id| {
            if is_wanted(id) {
                return true;
            }
            let Some(present) = view.taint(&id.key, &id.effect) else { return false };
            if may_write {
                writes.normal_event("TaintRemoved", format!("taint {} removed", taint_text(present)));
                leaving.push(id.clone());
            }
            !may_write
        });
        state.leaving_taints.extend(leaving);
        state.leaving_taints.retain(|id| {
            let present = view.taint(&id.key, &id.effect);
            if let (Some(taint), true) = (present, may_write) {
                let resource_version = view.resource_version().map(str::to_owned);
                let taint = Taint { time_added: None, ..taint.clone() };
                writes.push(WriteActor::Nlc, NodeChange::RemoveTaint { taint, resource_version });
            }
            present.is_some()
        });
    }
}

fn add(taint: &Taint, view: &GatedNodeView<'_>, state: &mut NodeState, writes: &mut WriteList) {
    let id = TaintId::from(taint);
    state.leaving_taints.remove(&id);
    state.owned_taints.insert(id);
    let taint = Taint { time_added: None, ..taint.clone() };
    writes.normal_event("TaintAdded", format!("taint {} added", taint_text(&taint)));
    let evicting = taint.effect == NO_EXECUTE;
    let resource_version = view.resource_version().map(str::to_owned);
    writes.push(WriteActor::Nlc, NodeChange::AddTaint { taint, resource_version, evicting });
}
