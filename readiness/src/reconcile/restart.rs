//! Reboots, restarts of kubelet, and the beginning of timers (KEP-5233, Handling Ready to Not Ready Transitions).

use k8s_openapi::jiff::Timestamp;

use super::state::{GateState, Phase, Report, State};
use crate::condition::READY;
use crate::node::NodeView;
use crate::policy::ColdStart;

/// What has happened since the last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    No,
    /// Timers that wait begin anew.
    Kubelet,
    /// Every report is from before the boot.
    Node,
}

/// Compares the node with the state and takes over what identifies it. Another UID is another node.
pub(crate) fn recognise(state: &mut State, view: &NodeView<'_>) -> Restart {
    if state.is_warm && state.uid != view.uid() {
        *state = State::default();
    }
    // As kubelet does: without one of the ids nothing is known.
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

/// What a restart does to a gate.
pub(crate) fn reset(state: &mut GateState, restart: Restart) {
    match restart {
        Restart::Kubelet if state.phase == Phase::Waiting => state.anchor = None,
        Restart::No | Restart::Kubelet => {}
        Restart::Node => {
            *state = GateState { regressions: std::mem::take(&mut state.regressions), ..GateState::default() };
        }
    }
}

/// What a restart, and Ready, do to gates that a partial view does not show.
pub(crate) fn unseen(state: &mut State, view: &NodeView<'_>, restart: Restart, timers_from: Timestamp) {
    for (name, gate) in state.gates.iter_mut().filter(|(name, _)| view.gate(name).is_none()) {
        reset(gate, restart);
        if restart == Restart::Node {
            distrust(gate, view, name);
            gate.reset_is_due = true;
        }
        arm(gate, view.is_ready(), timers_from);
    }
}

/// Whether a partial view does not show a gate that is not met.
pub(crate) fn hides_unmet(state: &State, view: &NodeView<'_>) -> bool {
    let is_unmet = |gate: &GateState| matches!(gate.phase, Phase::Waiting | Phase::Regressed);
    state.gates.iter().any(|(name, gate)| is_unmet(gate) && view.gate(name).is_none())
}

/// Remembers the report of a gate from before a boot.
pub(crate) fn distrust(state: &mut GateState, view: &NodeView<'_>, condition_type: &str) {
    state.before_boot = view.condition(condition_type).and_then(Report::of);
}

/// Begins the timer of a gate that waits, or ends it: timers run while the node is ready.
pub(crate) fn arm(state: &mut GateState, is_ready: bool, from: Timestamp) {
    if state.phase != Phase::Waiting {
        return;
    }
    if !is_ready {
        state.anchor = None;
    } else if state.anchor.is_none() {
        state.anchor = Some(from);
        state.first_anchor.get_or_insert(from);
    }
}

/// Where timers begin in this step.
pub(crate) fn beginning(cold_start: ColdStart, is_warm: bool, view: &NodeView<'_>, now: Timestamp) -> Timestamp {
    let became_ready = || view.condition(READY)?.last_transition_time.as_ref().map(|time| time.0);
    match cold_start {
        ColdStart::FromReadyTransition if !is_warm => became_ready().map_or(now, |instant| instant.min(now)),
        _ => now,
    }
}
