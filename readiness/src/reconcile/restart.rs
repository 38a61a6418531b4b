//! Reboots, restarts of kubelet, and the start of gates' timeouts (KEP-5233, Handling Ready to Not Ready Transitions).

use k8s_openapi::jiff::Timestamp;

use super::gate_state::{GatePhase, GateState};
use super::node_state::NodeState;
use super::recorded_condition::RecordedCondition;
use crate::condition::READY;
use crate::node::GatedNodeView;
use crate::policy::Policy;

/// Restart since the previous step: of the node, of the kubelet, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    /// Neither the node nor kubelet has restarted.
    No,
    /// kubelet has restarted: the timeouts of waiting gates start again.
    Kubelet,
    /// The node has booted: every stored condition is from before the boot.
    Node,
}

/// Detects a reboot or a restart of kubelet since the last step, and records the new IDs in `state`. A new UID of the
/// node discards the state.
pub(super) fn recognise(state: &mut NodeState, view: &GatedNodeView<'_>) -> Restart {
    if state.is_warm && state.uid != view.uid() {
        *state = NodeState::default();
    }
    // As in kubelet: if one of the IDs is missing, no reboot is assumed.
    let is_reboot = !state.boot_id.is_empty() && !view.boot_id().is_empty() && state.boot_id != view.boot_id();
    let is_restart = match (&state.kubelet_instance, view.kubelet_instance) {
        (Some(before), Some(now)) => before != now,
        _ => false,
    };
    set(&mut state.uid, view.uid());
    if !view.boot_id().is_empty() {
        set(&mut state.boot_id, view.boot_id());
    }
    if let Some(instance) = view.kubelet_instance {
        set(state.kubelet_instance.get_or_insert_default(), instance);
    }
    match (is_reboot, is_restart) {
        (true, _) => Restart::Node,
        (false, true) => Restart::Kubelet,
        (false, false) => Restart::No,
    }
}

fn set(text: &mut String, new: &str) {
    if text != new {
        new.clone_into(text);
    }
}

/// Resets the state of a gate after a restart: the running timeout if kubelet restarted, everything but `regressions`
/// if the node booted.
pub(super) fn reset(state: &mut GateState, restart: Restart) {
    match restart {
        Restart::Kubelet if state.phase == GatePhase::Waiting => state.timer_started_at = None,
        Restart::No | Restart::Kubelet => {}
        Restart::Node => {
            *state = GateState { regressions: std::mem::take(&mut state.regressions), ..GateState::default() };
        }
    }
}

/// Applies a restart and the node's Ready to the gates in `state` that an unsynced cache does not show.
pub(super) fn reset_hidden_gates(
    state: &mut NodeState,
    view: &GatedNodeView<'_>,
    restart: Restart,
    timers_from: Option<Timestamp>,
) {
    for (name, gate) in state.gates.iter_mut().filter(|(name, _)| view.gate(name).is_none()) {
        reset(gate, restart);
        if restart == Restart::Node {
            record_before_boot(gate, view, name);
            gate.reset_is_due = true;
        }
        start_or_stop_timer(gate, timers_from);
    }
}

/// Returns true if a gate that was blocking pods is missing from the cache, which is not synced yet.
pub(super) fn hides_unmet_gate(state: &NodeState, view: &GatedNodeView<'_>) -> bool {
    let is_unmet = |gate: &GateState| matches!(gate.phase, GatePhase::Waiting | GatePhase::Regressed);
    state.gates.iter().any(|(name, gate)| is_unmet(gate) && view.gate(name).is_none())
}

/// Records the stored condition of a gate as one from before the boot.
pub(super) fn record_before_boot(state: &mut GateState, view: &GatedNodeView<'_>, condition_type: &str) {
    state.before_boot = view.condition(condition_type).and_then(RecordedCondition::from_condition);
}

/// Starts the timeout of a waiting gate, unless it runs; stops it if there is no start time: the node is not ready.
pub(super) fn start_or_stop_timer(state: &mut GateState, from: Option<Timestamp>) {
    if state.phase != GatePhase::Waiting {
        return;
    }
    match (from, state.timer_started_at) {
        (None, _) => state.timer_started_at = None,
        (Some(from), None) => {
            state.timer_started_at = Some(from);
            state.first_timer_started_at.get_or_insert(from);
        }
        (Some(_), Some(_)) => {}
    }
}

/// Returns the start time of timeouts that begin in the first step of a reconciler: now, or the last transition of Ready.
pub(super) fn cold_timer_start(policy: &Policy, view: &GatedNodeView<'_>, now: Timestamp) -> Timestamp {
    let became_ready = || view.condition(READY)?.last_transition_time.as_ref().map(|time| time.0);
    if policy.starts_from_ready { became_ready().map_or(now, |instant| instant.min(now)) } else { now }
}
