//! The reconciler: timers, failure actions, reboots and labels of one node, as a pure state machine.
//!
//! [`step`] takes what the API server shows now and what was remembered, and says what to write, whether the node is open
//! for pods, what to remember, and when to look again. A step without news writes nothing.
//!
//! What a caller has to keep to:
//!
//! - One evaluator for a node and a role. State belongs to it and should survive its restarts.
//! - Look again at the wake-up time, and when a condition's status **or reason**, a taint, a label with our prefix, the list of
//!   gates, the boot ID or Ready changes.
//! - Make the changes in their order, each under its precondition. When a precondition fails, the node has moved on: look
//!   again. When a write fails for another reason, try it again: what has not been seen written is asked for again, too,
//!   except for the reset after a boot, and for a timeout over a condition without any time.

mod action;
mod apply;
mod before;
mod counters;
mod label_sync;
pub mod output;
mod restart;
mod state;
mod timeout;
mod verdict;

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::condition::{NODE_RESTARTED, Observation, TIMEOUT_EXCEEDED, UNKNOWN, in_words};
use crate::evaluate::is_taken_over;
use crate::gate::{FailureAction, NodeReadinessGate};
use crate::node::{Knowledge, NodeView};
use crate::policy::{Handoff, LateReport, Mode, Policy, TimeoutWrite};
use output::{Actor, Change, EventType, Expected, Output, Outputs};
use restart::Restart;
use state::{Report, is_report};
use timeout::Limit;

pub use apply::{apply, shutdown};
pub use counters::Counters;
pub use state::{GateState, Phase, State};
pub use timeout::Sighting;
pub use verdict::{Decision, GateVerdict, NodeVerdict, Why};

/// Which component runs the evaluator. The KEP has kubelet keep time and write conditions, and the node lifecycle
/// controller (NLC) manage taints and events; a single controller can do both.
///
/// Apart, the two have nothing but the conditions in common. What kubelet can't write, the controller is not told: the
/// timeout of a True from before a boot whose reset was lost, or of a report that is left alone
/// ([`TimeoutWrite::WhenUnreported`]). Nor does it know of a timeout that the owner wrote over before it looked, which
/// matters to [`LateReport::Sticky`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// Everything.
    #[default]
    Combined,
    /// Timers, conditions, and the labels that a kubelet may set. Never taints.
    Kubelet,
    /// Taints, events and the other labels, upon the timeouts that kubelet has written. Never conditions.
    Nlc,
}

impl Role {
    const fn plays(self, actor: Actor) -> bool {
        matches!((self, actor), (Self::Combined, _) | (Self::Kubelet, Actor::Kubelet) | (Self::Nlc, Actor::Nlc))
    }

    const fn keeps_time(self) -> bool {
        !matches!(self, Self::Nlc)
    }
}

/// What a step says.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "the changes are to be made, and the state to be kept"]
#[non_exhaustive]
pub struct Step<'a> {
    /// What to write, in this order: taints to add, conditions, labels to set, taints to remove, labels to remove, events.
    pub outputs: Vec<Output>,
    /// Whether the node is open for pods.
    pub verdict: NodeVerdict<'a>,
    /// When to look again if nothing changes before. Later than `now`.
    pub wake_up: Option<Timestamp>,
    /// What to remember.
    pub state: State,
}

/// Regressions within this time make a gate a flapping one.
const FLAP_WINDOW_SECONDS: i64 = 600;
const FLAPS: usize = 3;

/// Decides about one node at one instant.
///
/// `state` is what the step before has returned, or the default when nothing is known. `now` is the caller's clock; if it
/// goes back, timers last longer, and none fires early.
///
/// The order within a step: another UID discards the state; a reboot and a restart of kubelet reset timers; gates that are
/// gone are forgotten, unless the view is a partial one ([`NodeView::unsynced`]); each gate moves by the table of phases; then
/// taints, labels, verdict and wake-up time.
///
/// # Complexity
/// `n log n` in gates, for a handful of taints. A step without news allocates as often for one gate as for many.
///
/// ```
/// use readiness::node::GatedNode;
/// use readiness::policy::Policy;
/// use readiness::reconcile::{Role, State, step};
/// let node: GatedNode = serde_json::from_str(r#"{
///     "spec": {"readinessGates": [
///         {"conditionType": "a.example/Ready", "timeoutSeconds": 180, "failureAction": "BypassWithWarning"}]},
///     "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#)?;
/// let begin = "2026-01-01T00:00:00Z".parse().unwrap();
/// let first = step(&Policy::kep(), Role::Combined, &node.view(), begin, State::default());
/// assert!(!first.verdict.schedulable);
/// let deadline = first.wake_up.unwrap();
/// assert_eq!(deadline.to_string(), "2026-01-01T00:03:00Z");
///
/// let second = step(&Policy::kep(), Role::Combined, &node.view(), deadline, first.state);
/// assert!(second.verdict.schedulable);
/// assert!(second.outputs.iter().any(|output| output.to_string().starts_with("Warning event GateBypassed")));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn step<'a>(policy: &Policy, role: Role, view: &NodeView<'a>, now: Timestamp, mut state: State) -> Step<'a> {
    let restart = restart::recognise(&mut state, view);
    let is_warm = std::mem::replace(&mut state.is_warm, true);
    let writes = |actor| policy.mode == Mode::Active && role.plays(actor);
    if policy.mode == Mode::Off {
        return apply::switched_off(role, view, state);
    }
    let mut round = Round {
        policy,
        role,
        view,
        now,
        restart,
        is_ready: view.is_ready(),
        timers_from: restart::beginning(policy.cold_start, is_warm, view, now),
        outputs: Outputs::default(),
        wake_up: None,
    };
    match view.knowledge {
        Knowledge::Synced => state.gates.retain(|name, _| view.gate(name).is_some()),
        Knowledge::Partial => restart::unseen(&mut state, view, restart, round.timers_from),
    }
    let mut gates = Vec::with_capacity(view.gates().len());
    for gate in view.distinct_gates() {
        let decision = round.of_gate(gate, &mut state);
        gates.push(GateVerdict { condition_type: &gate.condition_type, decision });
    }
    if restart == Restart::Node && writes(Actor::Nlc) && !gates.is_empty() {
        let message = "the node has booted: its agents are to report again".to_owned();
        round.outputs.event(EventType::Normal, "GatesResetByReboot", message);
    }
    let (is_ready, mut outputs, wake_up) = (round.is_ready, round.outputs, round.wake_up);
    // Only who writes taints has any to manage.
    if role.plays(Actor::Nlc) {
        action::taints(policy, view, writes(Actor::Nlc), &mut state, &mut outputs);
    }
    label_sync::labels(policy, view, writes, &mut state, &mut outputs);
    if view.knowledge == Knowledge::Synced {
        before::note(role, view, &mut state);
    }
    // A gate that has not been seen yet may be what has kept the node closed, or what a boot has reset.
    let may_open = view.knowledge == Knowledge::Synced || (state.open && !restart::hides_unmet(&state, view));
    let schedulable = is_ready && may_open && !gates.iter().any(|gate| gate.decision.is_blocking());
    state.ready = is_ready;
    count_opening(&mut state, is_warm, schedulable);
    Step { outputs: outputs.sorted(), verdict: NodeVerdict { schedulable, gates }, wake_up, state }
}

fn count_opening(state: &mut State, is_warm: bool, schedulable: bool) {
    let was_open = std::mem::replace(&mut state.open, schedulable);
    match (was_open, schedulable) {
        (true, false) if is_warm => counters::count(&mut state.counters.held),
        (false, true) if is_warm => counters::count(&mut state.counters.released),
        _ => {}
    }
}

/// A gate, and what there is of it.
#[derive(Clone, Copy)]
struct Case<'c> {
    gate: &'c NodeReadinessGate,
    condition: Option<&'c NodeCondition>,
}

/// One step, gate by gate.
struct Round<'p, 'v, 'a> {
    policy: &'p Policy,
    role: Role,
    view: &'v NodeView<'a>,
    now: Timestamp,
    restart: Restart,
    is_ready: bool,
    timers_from: Timestamp,
    outputs: Outputs,
    wake_up: Option<Timestamp>,
}

impl Round<'_, '_, '_> {
    fn writes(&self, actor: Actor) -> bool {
        self.policy.mode == Mode::Active && self.role.plays(actor)
    }

    fn of_gate(&mut self, gate: &NodeReadinessGate, all: &mut State) -> Decision {
        let name = gate.condition_type.as_str();
        if !all.gates.contains_key(name) {
            let leftover = all.before.timeouts.remove(name);
            all.gates.insert(name.to_owned(), GateState { leftover, ..GateState::default() });
        }
        let State { gates, counters, .. } = all;
        let Some(state) = gates.get_mut(name) else {
            return Decision::Blocked { why: Why::Condition(Sighting::Observed(Observation::Missing)), deadline: None };
        };
        let case = Case { gate, condition: self.view.condition(name) };
        let mut sighting = self.sight(case, state);
        if state.phase == Phase::Established && self.is_latched(name, sighting) {
            sighting = Sighting::Observed(Observation::True);
        }
        restart::arm(state, self.is_ready, self.timers_from);
        self.move_on(case, state, sighting, counters);
        let is_written = state.phase == Phase::TimedOut && self.write_timeout(case, state, sighting);
        self.remember_to_wake(case, state, sighting);
        self.decide(case, state, sighting, is_written)
    }

    /// The condition as it counts, after what a restart has reset.
    fn sight(&mut self, case: Case<'_>, state: &mut GateState) -> Sighting {
        restart::reset(state, self.restart);
        if self.restart == Restart::Node {
            return self.after_boot(case, state);
        }
        let sighting = timeout::look(self.policy, state, case.condition, self.now);
        if std::mem::take(&mut state.reset_is_due) && sighting == Sighting::BeforeBoot {
            restart::reset(state, Restart::Node);
            return self.after_boot(case, state);
        }
        sighting
    }

    /// When the failure action comes, if a timer runs.
    fn deadline(&self, case: Case<'_>, state: &GateState) -> Option<Timestamp> {
        let runs = self.role.keeps_time() && self.is_ready;
        timeout::deadline(self.policy, case.gate, state).filter(|_| runs)
    }

    /// A gate that needs to be met once in a boot stays satisfied.
    fn is_latched(&self, name: &str, sighting: Sighting) -> bool {
        !sighting.is_reset() && self.view.bootstrap_only.iter().any(|latched| latched == name)
    }

    /// Sets a condition from before the boot to Unknown: in the step that sees the reboot, or the gate for the first time
    /// since.
    fn after_boot(&mut self, case: Case<'_>, state: &mut GateState) -> Sighting {
        if case.condition.is_none() {
            return Sighting::Observed(Observation::Missing);
        }
        restart::distrust(state, self.view, &case.gate.condition_type);
        let is_reset = Observation::of(case.condition) == Observation::NodeRestarted;
        // kubelet's own conditions are no gates, whatever is stored.
        if !is_reset && self.writes(Actor::Kubelet) && case.gate.has_valid_type() {
            let message = format!("the node has booted; before: {}", in_words(case.condition));
            self.patch(case, NODE_RESTARTED, message);
        }
        Sighting::Observed(Observation::NodeRestarted)
    }

    fn move_on(&mut self, case: Case<'_>, state: &mut GateState, sighting: Sighting, counters: &mut Counters) {
        let gate = case.gate;
        let expired = self.deadline(case, state).is_some_and(|deadline| deadline <= self.now);
        let before = state.phase;
        state.phase = timeout::next(before, sighting, expired);
        if state.phase == before {
            return;
        }
        counters::count(&mut counters.transitions);
        match state.phase {
            Phase::Established => self.establish(gate, state, before, counters),
            Phase::Regressed => self.regress(gate, state, sighting, counters),
            Phase::TimedOut => self.time_out(gate, state, sighting, counters),
            Phase::Waiting => {
                // A wait of its own: the one before has ended.
                state.anchor = self.is_ready.then_some(self.now);
                state.first_anchor = state.anchor;
                state.timeout_written = false;
            }
        }
    }

    fn establish(&mut self, gate: &NodeReadinessGate, state: &mut GateState, before: Phase, counters: &mut Counters) {
        (state.timeout_written, state.asked_over, state.first_anchor) = (false, None, None);
        let waited = state.anchor.take().filter(|_| before != Phase::Regressed);
        if let Some(anchor) = waited {
            let seconds = self.now.duration_since(anchor).as_secs();
            let seconds = u64::try_from(seconds).unwrap_or_default();
            counters::count(&mut counters.established);
            counters.seconds_to_established = counters.seconds_to_established.saturating_add(seconds);
        }
        self.event(EventType::Normal, "GateSatisfied", || {
            format!("readiness gate {} is satisfied", gate.condition_type)
        });
    }

    fn regress(
        &mut self,
        gate: &NodeReadinessGate,
        state: &mut GateState,
        sighting: Sighting,
        counters: &mut Counters,
    ) {
        let name = &gate.condition_type;
        state.anchor = self.policy.rearm_on_regression.then_some(self.now);
        counters::count(&mut counters.flaps);
        self.event(EventType::Warning, "GateRegressed", || {
            format!("readiness gate {name} is not satisfied any more: {sighting}")
        });
        let now = self.now;
        state.regressions.retain(|at| now.duration_since(*at).as_secs() < FLAP_WINDOW_SECONDS);
        state.regressions.push(now);
        if state.regressions.len() >= FLAPS {
            state.regressions.clear();
            self.event(EventType::Warning, "GateFlapping", || {
                format!("readiness gate {name} was lost {FLAPS} times within {FLAP_WINDOW_SECONDS} s")
            });
        }
    }

    fn time_out(
        &mut self,
        gate: &NodeReadinessGate,
        state: &mut GateState,
        sighting: Sighting,
        counters: &mut Counters,
    ) {
        let name = &gate.condition_type;
        state.timeout_written = sighting == Sighting::Observed(Observation::TimeoutExceeded);
        counters::count(&mut counters.timeouts);
        if gate.failure_action == FailureAction::BypassWithWarning {
            counters::count(&mut counters.bypasses);
            self.event(EventType::Warning, "GateBypassed", || {
                format!("readiness gate {name} was not satisfied in time: the node takes pods without it")
            });
        } else {
            self.event(EventType::Warning, "GateTimedOut", || {
                format!("readiness gate {name} was not satisfied in time")
            });
        }
    }

    /// Writes the timeout, once in an episode, and again if the condition was deleted or is as if nothing had been written.
    /// An observed True is never overwritten. Says whether it was written now.
    fn write_timeout(&mut self, case: Case<'_>, state: &mut GateState, sighting: Sighting) -> bool {
        let condition = case.condition;
        let is_unseen = condition.is_some_and(|condition| is_report(state.asked_over.as_ref(), condition));
        if !is_unseen {
            state.asked_over = None;
        }
        let is_due = match Observation::of(condition) {
            _ if sighting == Sighting::Observed(Observation::Missing) => true,
            // A timeout from before the boot, whose reset was lost, says nothing to the controller.
            Observation::TimeoutExceeded if sighting == Sighting::BeforeBoot => !state.timeout_written || is_unseen,
            Observation::True | Observation::TimeoutExceeded | Observation::Missing => false,
            Observation::False if self.policy.timeout_write == TimeoutWrite::WhenUnreported => {
                state.timeout_written = true;
                false
            }
            Observation::False | Observation::Unknown | Observation::NodeRestarted => {
                !state.timeout_written || is_unseen
            }
        };
        if !is_due || !self.writes(Actor::Kubelet) {
            return false;
        }
        let Some(timeout) = case.gate.releases_after() else { return false };
        state.timeout_written = true;
        state.asked_over = condition.and_then(Report::of);
        let limit = timeout::end(self.policy, timeout, state).map_or(Limit::Timeout(timeout), |(_, limit)| limit);
        let message = format!("not True within {limit}; before: {}", in_words(condition));
        self.patch(case, TIMEOUT_EXCEEDED, message);
        true
    }

    /// Sets a condition to Unknown. One that says so already is left alone, unless its heartbeat is all that can tell the
    /// controller of it.
    fn patch(&mut self, case: Case<'_>, reason: &str, message: String) {
        let says_so = |condition: &NodeCondition| {
            let texts = (condition.status.as_str(), condition.reason.as_deref(), condition.message.as_deref());
            texts == (UNKNOWN, Some(reason), Some(&message))
        };
        if self.role == Role::Combined && case.condition.is_some_and(says_so) {
            return;
        }
        self.outputs.push(
            Actor::Kubelet,
            Change::PatchCondition {
                condition_type: case.gate.condition_type.clone(),
                status: UNKNOWN.to_owned(),
                reason: reason.to_owned(),
                message,
                expect: case.condition.map(Expected::of),
            },
        );
    }

    fn event(&mut self, event_type: EventType, reason: &str, message: impl FnOnce() -> String) {
        if self.writes(Actor::Nlc) {
            self.outputs.event(event_type, reason, message());
        }
    }

    fn remember_to_wake(&mut self, case: Case<'_>, state: &GateState, sighting: Sighting) {
        let timer = self.deadline(case, state);
        let counts = timeout::stable_from(self.policy, state, self.now).filter(|_| sighting == Sighting::Stabilizing);
        let is_true = Observation::of(case.condition) == Observation::True;
        let expires =
            case.condition.filter(|_| is_true).and_then(|condition| timeout::stale_from(self.policy, condition));
        let next = [timer, counts, expires].into_iter().flatten().filter(|instant| *instant > self.now);
        self.wake_up = next.chain(self.wake_up).min();
    }

    fn decide(&self, case: Case<'_>, state: &GateState, sighting: Sighting, is_written: bool) -> Decision {
        let blocked = |why| Decision::Blocked { why, deadline: self.deadline(case, state) };
        match state.phase {
            Phase::Established if sighting == Sighting::Observed(Observation::True) => return Decision::Satisfied,
            Phase::Established | Phase::Waiting | Phase::Regressed => return blocked(Why::Condition(sighting)),
            Phase::TimedOut => {}
        }
        // A True that does not count is never overwritten, and no report that came late.
        let is_released = is_written
            || self.policy.late_report == LateReport::Sticky
            || matches!(sighting, Sighting::BeforeBoot | Sighting::Stale)
            || Observation::of(case.condition) == Observation::TimeoutExceeded;
        if !is_released {
            let is_late = state.timeout_written && state.asked_over.is_none() && case.condition.is_some();
            return blocked(if is_late { Why::LateReport(sighting) } else { Why::Condition(sighting) });
        }
        match case.gate.failure_action {
            FailureAction::BypassWithWarning => Decision::Bypass,
            _ if self.policy.handoff == Handoff::AwaitTaint && !is_taken_over(case.gate, self.view) => {
                blocked(Why::AwaitingTaint)
            }
            _ => Decision::TaintHandoff,
        }
    }
}
