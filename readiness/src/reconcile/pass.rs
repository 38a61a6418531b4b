//! One step of the reconciler, gate by gate.

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::jiff::Timestamp;

use super::effective_status::EffectiveStatus;
use super::evaluator_role::EvaluatorRole;
use super::gate_state::{GatePhase, GateState, Timer};
use super::node_state::NodeState;
use super::node_write::{ExpectedCondition, NodeChange, WriteActor, WriteList};
use super::observation::{observe, stable_from, stale_from};
use super::readiness_counters::{ReadinessCounters, increment};
use super::recorded_condition::{RecordedCondition, is_recorded};
use super::restart::{self, Restart};
use super::timeout::{self, WaitLimit};
use super::verdict::{BlockReason, GateDecision};
use crate::condition::{ConditionStatus, NODE_RESTARTED, TIMEOUT_EXCEEDED, UNKNOWN, status_text};
use crate::gate::{FailureAction, NodeReadinessGate};
use crate::node::GatedNodeView;
use crate::policy::{Policy, PolicyMode};

/// Period in seconds within which [`FLAPS`] regressions are reported as flapping.
const FLAP_WINDOW_SECONDS: i64 = 600;

/// Number of regressions (changes of a condition from True to another status) that are reported as flapping.
const FLAPS: usize = 3;

/// Request of a step to write that a gate has timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeoutRequest {
    Made,
    None,
}

/// Gate under evaluation, with its stored condition.
#[derive(Clone, Copy)]
struct GateContext<'c> {
    gate: &'c NodeReadinessGate,
    condition: Option<&'c NodeCondition>,
}

/// Inputs of one step, and the results collected so far.
pub(super) struct Pass<'p, 'v, 'a> {
    pub(super) policy: &'p Policy,
    pub(super) role: EvaluatorRole,
    pub(super) view: &'v GatedNodeView<'a>,
    pub(super) now: Timestamp,
    pub(super) restart: Restart,
    pub(super) is_ready: bool,
    /// Start time of timeouts that begin in this step; `None` while the node is not ready.
    pub(super) timers_from: Option<Timestamp>,
    pub(super) writes: WriteList,
    pub(super) requeue_at: Option<Timestamp>,
}

impl Pass<'_, '_, '_> {
    fn may_write(&self, actor: WriteActor) -> bool {
        self.policy.mode == PolicyMode::Active && self.role.plays(actor)
    }

    /// Moves a gate to its next phase, and returns its decision: if it lets pods onto the node.
    pub(super) fn evaluate_gate(&mut self, gate: &NodeReadinessGate, all: &mut NodeState) -> GateDecision {
        let name = gate.condition_type.as_str();
        if !all.gates.contains_key(name) {
            let preexisting_timeout = all.ungated.timeouts.remove(name);
            all.gates.insert(name.to_owned(), GateState { preexisting_timeout, ..GateState::default() });
        }
        let NodeState { gates, counters, .. } = all;
        let Some(state) = gates.get_mut(name) else {
            let reason = BlockReason::Condition(EffectiveStatus::Observed(ConditionStatus::Missing));
            return GateDecision::Blocked { reason, deadline: None };
        };
        let context = GateContext { gate, condition: self.view.condition(name) };
        let mut effective = self.effective_status(context, state);
        if state.phase == GatePhase::Established && self.is_latched(name, effective) {
            effective = EffectiveStatus::Observed(ConditionStatus::True);
        }
        restart::start_or_stop_timer(state, self.timers_from);
        self.change_phase(context, state, effective, counters);
        let timeout_write = match state.phase {
            GatePhase::TimedOut => self.write_timeout(context, state, effective),
            _ => TimeoutRequest::None,
        };
        self.requeue(context, state, effective);
        self.decide(context, state, effective, timeout_write)
    }

    /// Applies a restart to the state of a gate, and returns the effective status of its condition.
    fn effective_status(&mut self, context: GateContext<'_>, state: &mut GateState) -> EffectiveStatus {
        restart::reset(state, self.restart);
        if self.restart == Restart::Node {
            return self.reset_after_boot(context, state);
        }
        let effective = observe(self.policy, state, context.condition, self.now);
        if std::mem::take(&mut state.reset_is_due) && effective == EffectiveStatus::BeforeBoot {
            restart::reset(state, Restart::Node);
            return self.reset_after_boot(context, state);
        }
        effective
    }

    /// Returns the time at which the gate times out; `None` if no timeout runs.
    fn deadline(&self, context: GateContext<'_>, state: &GateState) -> Option<Timestamp> {
        let runs = self.role.keeps_time() && self.is_ready;
        timeout::deadline(self.policy, context.gate, state).filter(|_| runs)
    }

    /// Returns true if the gate stays satisfied after it was True once: the gate is bootstrap-only, and no reboot has
    /// reset its condition since.
    fn is_latched(&self, name: &str, effective: EffectiveStatus) -> bool {
        !effective.is_reset() && self.view.bootstrap_only.iter().any(|latched| latched == name)
    }

    /// Requests that a condition from before a reboot be set to Unknown with the reason `NodeRestarted`. Called in the
    /// step that detects the reboot, or in the first step after it that shows the gate.
    fn reset_after_boot(&mut self, context: GateContext<'_>, state: &mut GateState) -> EffectiveStatus {
        if context.condition.is_none() {
            return EffectiveStatus::Observed(ConditionStatus::Missing);
        }
        restart::record_before_boot(state, self.view, &context.gate.condition_type);
        let is_reset = ConditionStatus::from_condition(context.condition) == ConditionStatus::NodeRestarted;
        // kubelet's own conditions are never written, even if a stored gate names one.
        if !is_reset && self.may_write(WriteActor::Kubelet) && context.gate.has_valid_type() {
            let message = format!("the node has booted; before: {}", status_text(context.condition));
            self.patch(context, NODE_RESTARTED, message);
        }
        EffectiveStatus::Observed(ConditionStatus::NodeRestarted)
    }

    /// Moves a gate to its next phase by the decision table of [`GatePhase`], and updates events and counters.
    fn change_phase(
        &mut self,
        context: GateContext<'_>,
        state: &mut GateState,
        effective: EffectiveStatus,
        counters: &mut ReadinessCounters,
    ) {
        let gate = context.gate;
        let is_over = |deadline| deadline <= self.now;
        let timer = if self.deadline(context, state).is_some_and(is_over) { Timer::Expired } else { Timer::Pending };
        let before = state.phase;
        state.phase = before.next(effective, timer);
        if state.phase == before {
            return;
        }
        increment(&mut counters.transitions);
        match state.phase {
            GatePhase::Established => self.establish(gate, state, before, counters),
            GatePhase::Regressed => self.regress(gate, state, effective, counters),
            GatePhase::TimedOut => self.time_out(gate, state, effective, counters),
            GatePhase::Waiting => {
                // A new wait after a reset.
                state.timer_started_at = self.is_ready.then_some(self.now);
                state.first_timer_started_at = state.timer_started_at;
                state.timeout_written = false;
            }
        }
    }

    fn establish(
        &mut self,
        gate: &NodeReadinessGate,
        state: &mut GateState,
        before: GatePhase,
        counters: &mut ReadinessCounters,
    ) {
        (state.timeout_written, state.timeout_write_base, state.first_timer_started_at) = (false, None, None);
        let waited = state.timer_started_at.take().filter(|_| before != GatePhase::Regressed);
        if let Some(started_at) = waited {
            let seconds = self.now.duration_since(started_at).as_secs();
            let seconds = u64::try_from(seconds).unwrap_or_default();
            increment(&mut counters.established);
            counters.seconds_to_established = counters.seconds_to_established.saturating_add(seconds);
        }
        self.normal_event("GateSatisfied", || format!("readiness gate {} is satisfied", gate.condition_type));
    }

    fn regress(
        &mut self,
        gate: &NodeReadinessGate,
        state: &mut GateState,
        effective: EffectiveStatus,
        counters: &mut ReadinessCounters,
    ) {
        let name = &gate.condition_type;
        state.timer_started_at = self.policy.rearm_on_regression.then_some(self.now);
        increment(&mut counters.flaps);
        self.warning_event("GateRegressed", || format!("readiness gate {name} is not satisfied any more: {effective}"));
        let now = self.now;
        state.regressions.retain(|at| now.duration_since(*at).as_secs() < FLAP_WINDOW_SECONDS);
        state.regressions.push(now);
        if state.regressions.len() >= FLAPS {
            state.regressions.clear();
            self.warning_event("GateFlapping", || {
                format!("readiness gate {name} was lost {FLAPS} times within {FLAP_WINDOW_SECONDS} s")
            });
        }
    }

    fn time_out(
        &mut self,
        gate: &NodeReadinessGate,
        state: &mut GateState,
        effective: EffectiveStatus,
        counters: &mut ReadinessCounters,
    ) {
        let name = &gate.condition_type;
        state.timeout_written = effective == EffectiveStatus::Observed(ConditionStatus::TimeoutExceeded);
        increment(&mut counters.timeouts);
        if gate.failure_action == FailureAction::BypassWithWarning {
            increment(&mut counters.bypasses);
            self.warning_event("GateBypassed", || {
                format!("readiness gate {name} was not satisfied in time: the node takes pods without it")
            });
        } else {
            self.warning_event("GateTimedOut", || format!("readiness gate {name} was not satisfied in time"));
        }
    }

    /// Requests the write of `TimeoutExceeded`, unless it was written before or the condition is True. Repeats a write
    /// that was lost.
    fn write_timeout(
        &mut self,
        context: GateContext<'_>,
        state: &mut GateState,
        effective: EffectiveStatus,
    ) -> TimeoutRequest {
        let condition = context.condition;
        let is_unseen = condition.is_some_and(|condition| is_recorded(state.timeout_write_base.as_ref(), condition));
        if !is_unseen {
            state.timeout_write_base = None;
        }
        let is_due = match ConditionStatus::from_condition(condition) {
            _ if effective == EffectiveStatus::Observed(ConditionStatus::Missing) => true,
            // A timeout from before the boot whose reset was lost does not tell the controller of the new timeout.
            ConditionStatus::TimeoutExceeded if effective == EffectiveStatus::BeforeBoot => {
                !state.timeout_written || is_unseen
            }
            ConditionStatus::True | ConditionStatus::TimeoutExceeded | ConditionStatus::Missing => false,
            ConditionStatus::False if self.policy.keeps_reported_false => {
                state.timeout_written = true;
                false
            }
            ConditionStatus::False | ConditionStatus::Unknown | ConditionStatus::NodeRestarted => {
                !state.timeout_written || is_unseen
            }
        };
        if !is_due || !self.may_write(WriteActor::Kubelet) {
            return TimeoutRequest::None;
        }
        let Some(timeout) = context.gate.releases_after() else { return TimeoutRequest::None };
        state.timeout_written = true;
        state.timeout_write_base = condition.and_then(RecordedCondition::from_condition);
        let end = timeout::timer_end(self.policy, timeout, state);
        let limit = end.map_or(WaitLimit::Timeout(timeout), |(_, limit)| limit);
        let message = format!("not True within {limit}; before: {}", status_text(condition));
        self.patch(context, TIMEOUT_EXCEEDED, message);
        TimeoutRequest::Made
    }

    /// Requests that a condition be set to Unknown with `reason` and `message`. [`EvaluatorRole::Combined`] skips a
    /// write without a change. kubelet makes it, since the node lifecycle controller learns of the timeout from the new
    /// heartbeat.
    fn patch(&mut self, context: GateContext<'_>, reason: &str, message: String) {
        let is_same = |condition: &NodeCondition| {
            let texts = (condition.status.as_str(), condition.reason.as_deref(), condition.message.as_deref());
            texts == (UNKNOWN, Some(reason), Some(&message))
        };
        if self.role == EvaluatorRole::Combined && context.condition.is_some_and(is_same) {
            return;
        }
        self.writes.push(
            WriteActor::Kubelet,
            NodeChange::PatchCondition {
                condition_type: context.gate.condition_type.clone(),
                status: UNKNOWN.to_owned(),
                reason: reason.to_owned(),
                message,
                expected: context.condition.map(ExpectedCondition::from),
            },
        );
    }

    fn normal_event(&mut self, reason: &str, message: impl FnOnce() -> String) {
        if self.may_write(WriteActor::Nlc) {
            self.writes.normal_event(reason, message());
        }
    }

    fn warning_event(&mut self, reason: &str, message: impl FnOnce() -> String) {
        if self.may_write(WriteActor::Nlc) {
            self.writes.warning_event(reason, message());
        }
    }

    /// Sets `requeue_at` to the next time at which the gate times out, has been True for long enough or has an old
    /// heartbeat, if that is earlier.
    fn requeue(&mut self, context: GateContext<'_>, state: &GateState, effective: EffectiveStatus) {
        let timer = self.deadline(context, state);
        let stable = stable_from(self.policy, state, self.now).filter(|_| effective == EffectiveStatus::Stabilizing);
        let is_true = ConditionStatus::from_condition(context.condition) == ConditionStatus::True;
        let expiry = context.condition.filter(|_| is_true).and_then(|condition| stale_from(self.policy, condition));
        let next = [timer, stable, expiry].into_iter().flatten().filter(|instant| *instant > self.now);
        self.requeue_at = next.chain(self.requeue_at).min();
    }

    fn decide(
        &self,
        context: GateContext<'_>,
        state: &GateState,
        effective: EffectiveStatus,
        timeout_write: TimeoutRequest,
    ) -> GateDecision {
        let blocked = |reason| GateDecision::Blocked { reason, deadline: self.deadline(context, state) };
        match state.phase {
            GatePhase::Established if effective == EffectiveStatus::Observed(ConditionStatus::True) => {
                return GateDecision::Satisfied;
            }
            GatePhase::Established | GatePhase::Waiting | GatePhase::Regressed => {
                return blocked(BlockReason::Condition(effective));
            }
            GatePhase::TimedOut => {}
        }
        // A True from before the boot or with an old heartbeat is never overwritten, and it is not a late report.
        let is_reported_late = !self.policy.ignores_late_reports
            && !matches!(effective, EffectiveStatus::BeforeBoot | EffectiveStatus::Stale);
        // A gate that replaces one which timed out, and never times out itself, is released by the condition alone, which
        // all evaluators see.
        let outlasts_report = !is_reported_late && context.gate.releases_after().is_some();
        let is_released = timeout_write == TimeoutRequest::Made
            || outlasts_report
            || ConditionStatus::from_condition(context.condition) == ConditionStatus::TimeoutExceeded;
        if !is_released {
            let is_late = state.timeout_written && state.timeout_write_base.is_none() && context.condition.is_some();
            let reason = if is_late { BlockReason::LateReport(effective) } else { BlockReason::Condition(effective) };
            return blocked(reason);
        }
        match context.gate.failure_action {
            FailureAction::BypassWithWarning => GateDecision::Bypass,
            _ if self.policy.waits_for_taint && !self.view.has_failure_action(context.gate) => {
                blocked(BlockReason::AwaitingTaint)
            }
            _ => GateDecision::TaintHandoff,
        }
    }
}
