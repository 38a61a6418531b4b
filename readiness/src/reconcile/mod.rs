//! Reconciler of one node: timers, failure actions, reboots and labels, as a state machine without IO.
//!
//! [`step`] takes the node as the API server shows it and the state of the previous step. It returns the writes, the
//! verdict, the next state, and the instant of the next step. A step that finds nothing new returns no writes.
//!
//! Tests: `tests/it/actions.rs`, `tests/it/timers.rs`, `tests/it/restarts.rs`, `tests/it/laws.rs`.

mod apply;
mod clock;
mod effective_status;
mod evaluator_role;
mod gate_state;
mod label_sync;
mod node_state;
mod node_write;
mod observation;
mod pass;
mod readiness_counters;
mod recorded_condition;
mod restart;
mod shutdown;
mod step_result;
mod stored_state_error;
mod taint_sync;
mod timeout;
mod ungated;
mod ungated_sync;
mod verdict;

use k8s_openapi::jiff::Timestamp;

use crate::node::{CacheSync, GatedNodeView};
use crate::policy::{Policy, PolicyMode};
use node_write::WriteList;
use pass::Pass;
use restart::Restart;
use taint_sync::TaintSync;

pub use clock::ClockReading;
pub use effective_status::EffectiveStatus;
pub use evaluator_role::EvaluatorRole;
pub use gate_state::{GatePhase, GateState};
pub use node_state::NodeState;
pub use node_write::{ExpectedCondition, NodeChange, NodeWrite};
pub use readiness_counters::ReadinessCounters;
pub use step_result::StepResult;
pub use stored_state_error::StoredStateError;
pub use verdict::{BlockReason, GateDecision, NodeVerdict};

pub(crate) use node_write::WriteActor;
pub(crate) use stored_state_error::{STATE_VERSION, check_version};

/// Evaluates the gates of one node at the time `now`. Returns the writes to make, the decision on pods, the next state
/// and the time of the next call.
///
/// `state` is the one that the previous step returned, or the default if there is none. `now` is the caller's clock. If
/// the clock is set back, a time that is now in the future becomes `now`: a timer runs for at most its timeout from
/// there, and none fires early. If the clock is set forward, timers end early, unless the caller tells by how much
/// ([`NodeState::shift_clock`]).
///
/// A step runs in this order: another UID discards the state; a reboot or a restart of kubelet resets timers; gates that
/// were removed are forgotten, unless the view is partial ([`GatedNodeView::with_unsynced_cache`]); each gate changes its
/// phase by the decision table of [`GatePhase`]; then taints, labels, verdict and `requeue_at` follow.
///
/// # Contract
///
/// - **One evaluator** for a node and a role. The state belongs to it and should survive its restarts
///   ([`NodeState::from_json`]).
/// - **Triggers.** Call again at `requeue_at`, and when one of these changes: status or reason of a condition, a taint, a
///   label with the prefix `readiness-gate.`, the list of gates, the boot ID, Ready.
/// - **Writes** are made in their order, each under its precondition. If a precondition fails, the node has changed:
///   call again. If a write fails for another reason, retry it. A later step requests a lost write again, except for the
///   reset after a reboot and for a timeout over a condition without any timestamp.
///
/// # Complexity
/// `n log n` in the number of gates, for up to about 10 taints. The number of allocations of a step that finds nothing new does
/// not depend on the number of gates.
///
/// ```
/// use readiness::{EvaluatorRole, GatedNode, NodeState, Policy, step};
/// let node: GatedNode = serde_json::from_str(r#"{
///     "spec": {"readinessGates": [
///         {"conditionType": "a.example/Ready", "timeoutSeconds": 180, "failureAction": "BypassWithWarning"}]},
///     "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#)?;
/// let begin = "2026-01-01T00:00:00Z".parse().unwrap();
/// let first = step(&Policy::kep(), EvaluatorRole::Combined, &node.view(), begin, NodeState::default());
/// assert!(!first.verdict.schedulable);
/// let deadline = first.requeue_at.unwrap();
/// assert_eq!(deadline.to_string(), "2026-01-01T00:03:00Z");
///
/// let second = step(&Policy::kep(), EvaluatorRole::Combined, &node.view(), deadline, first.state);
/// assert!(second.verdict.schedulable);
/// assert!(second.writes.iter().any(|write| write.to_string().starts_with("Warning event GateBypassed")));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn step<'a>(
    policy: &Policy,
    role: EvaluatorRole,
    view: &GatedNodeView<'a>,
    now: Timestamp,
    mut state: NodeState,
) -> StepResult<'a> {
    state.end_at(now);
    let restart = restart::recognise(&mut state, view);
    let is_warm = std::mem::replace(&mut state.is_warm, true);
    let may_write = |actor| policy.mode == PolicyMode::Active && role.plays(actor);
    if policy.mode == PolicyMode::Off {
        return shutdown::switched_off(role, view, state);
    }
    let timer_start = if is_warm { now } else { restart::cold_timer_start(policy, view, now) };
    let mut pass = Pass {
        policy,
        role,
        view,
        now,
        restart,
        is_ready: view.is_ready(),
        timers_from: view.is_ready().then_some(timer_start),
        writes: WriteList::default(),
        requeue_at: None,
    };
    match view.cache_sync {
        CacheSync::Synced => state.gates.retain(|name, _| view.gate(name).is_some()),
        CacheSync::Partial => restart::reset_hidden_gates(&mut state, view, restart, pass.timers_from),
    }
    let mut gates = Vec::with_capacity(view.gates().len());
    for gate in view.distinct_gates() {
        let decision = pass.evaluate_gate(gate, &mut state);
        gates.push((gate.condition_type.as_str(), decision));
    }
    if restart == Restart::Node && may_write(WriteActor::Nlc) && !gates.is_empty() {
        let message = "the node has booted: its agents are to report again".to_owned();
        pass.writes.normal_event("GatesResetByReboot", message);
    }
    let (is_ready, mut writes, requeue_at) = (pass.is_ready, pass.writes, pass.requeue_at);
    // Taints are managed only by the role that writes them.
    if role.plays(WriteActor::Nlc) {
        let may_write = may_write(WriteActor::Nlc);
        TaintSync { policy, view, may_write, state: &mut state, writes: &mut writes }.sync();
    }
    label_sync::sync_labels(policy, view, may_write, &mut state, &mut writes);
    if view.cache_sync == CacheSync::Synced {
        ungated_sync::record(role, view, &mut state);
    }
    // A gate that a partial view hides may be the one that kept the node closed, or that a reboot has reset.
    let may_open = view.cache_sync == CacheSync::Synced || (state.open && !restart::hides_unmet_gate(&state, view));
    let schedulable = is_ready && may_open && !gates.iter().any(|(_, decision)| decision.is_blocking());
    state.ready = is_ready;
    let verdict = NodeVerdict { schedulable, gates };
    if is_warm {
        count_opening(&mut state, &verdict);
    }
    state.open = verdict.schedulable;
    StepResult { writes: writes.into_sorted(), verdict, requeue_at, state }
}

/// Counts a change of the verdict since the previous step.
fn count_opening(state: &mut NodeState, verdict: &NodeVerdict<'_>) {
    match (state.open, verdict.schedulable) {
        (true, false) => readiness_counters::increment(&mut state.counters.held),
        (false, true) => readiness_counters::increment(&mut state.counters.released),
        _ => {}
    }
}
