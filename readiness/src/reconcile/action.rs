//! Failure actions: which taints a node is to have (KEP-5233, Node Readiness Timeout).

use k8s_openapi::api::core::v1::Taint;

use super::output::{Actor, Change, EventType, Outputs, in_words};
use super::state::{Phase, State};
use crate::gate::NodeReadinessGate;
use crate::node::{Knowledge, NodeView};
use crate::policy::Policy;
use crate::taint::{NO_EXECUTE, TaintId, is_usable};

/// Adds the taints of gates that have timed out, and removes ours that no gate wants any more.
///
/// A taint is wanted by a gate that has timed out; one that is ours also by a gate that is not True. So it leaves only when
/// each of its gates is True, is gone, or has another taint or action.
pub(crate) fn taints(policy: &Policy, view: &NodeView<'_>, writes: bool, state: &mut State, outputs: &mut Outputs) {
    for gate in view.distinct_gates() {
        let Some(taint) = gate.taint() else { continue };
        let phase = state.gates.get(&gate.condition_type).map_or(Phase::Waiting, |gate| gate.phase);
        let is_present = view.taint(&taint.key, &taint.effect).is_some();
        let is_leaving = state.leaving_taints.iter().any(|id| id.is_of(taint));
        if is_leaving && is_present && phase != Phase::Established {
            // Its removal was asked for and not made, and now it is wanted again.
            let id = TaintId::of(taint);
            state.leaving_taints.remove(&id);
            state.owned_taints.insert(id);
        }
        let is_owned = state.owned_taints.iter().any(|id| id.is_of(taint));
        let is_wanted = phase == Phase::TimedOut || (is_owned && phase != Phase::Established);
        if is_wanted && !is_present && writes && !outputs.adds(taint) && is_usable(taint) {
            add(taint, view, state, outputs);
        }
        let is_settled = matches!(phase, Phase::TimedOut | Phase::Established);
        let is_known = is_owned || is_leaving || state.before.taints.iter().any(|id| id.is_of(taint));
        if policy.adopt && writes && is_present && is_settled && !is_known && is_usable(taint) {
            state.owned_taints.insert(TaintId::of(taint));
            outputs.event(EventType::Normal, "TaintAdopted", format!("taint {} is managed now", in_words(taint)));
        }
    }
    let has_taints = !state.owned_taints.is_empty() || !state.leaving_taints.is_empty();
    if has_taints && view.knowledge == Knowledge::Synced {
        release(view, writes, state, outputs);
    }
}

fn add(taint: &Taint, view: &NodeView<'_>, state: &mut State, outputs: &mut Outputs) {
    let id = TaintId::of(taint);
    state.leaving_taints.remove(&id);
    state.owned_taints.insert(id);
    let taint = Taint { time_added: None, ..taint.clone() };
    outputs.event(EventType::Normal, "TaintAdded", format!("taint {} added", in_words(&taint)));
    let evicting = taint.effect == NO_EXECUTE;
    let resource_version = view.resource_version().map(str::to_owned);
    outputs.push(Actor::Nlc, Change::AddTaint { taint, resource_version, evicting });
}

/// Removes what is ours and not wanted. It is remembered until it is seen gone, so that a write that was lost is made again.
fn release(view: &NodeView<'_>, writes: bool, state: &mut State, outputs: &mut Outputs) {
    let gates = &state.gates;
    let is_wanted = |id: &TaintId| {
        let holds = |gate: &&NodeReadinessGate| {
            let phase = gates.get(&gate.condition_type).map_or(Phase::Waiting, |gate| gate.phase);
            phase != Phase::Established && gate.taint().is_some_and(|taint| id.is_of(taint))
        };
        view.distinct_gates().any(|gate| holds(&gate))
    };
    let mut leaving = Vec::new();
    state.owned_taints.retain(|id| {
        if is_wanted(id) {
            return true;
        }
        let Some(present) = view.taint(&id.key, &id.effect) else { return false };
        if writes {
            outputs.event(EventType::Normal, "TaintRemoved", format!("taint {} removed", in_words(present)));
            leaving.push(id.clone());
        }
        !writes
    });
    state.leaving_taints.extend(leaving);
    state.leaving_taints.retain(|id| {
        let present = view.taint(&id.key, &id.effect);
        if let (Some(taint), true) = (present, writes) {
            let resource_version = view.resource_version().map(str::to_owned);
            let taint = Taint { time_added: None, ..taint.clone() };
            outputs.push(Actor::Nlc, Change::RemoveTaint { taint, resource_version });
        }
        present.is_some()
    });
}
