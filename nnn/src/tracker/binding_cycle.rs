//! Binding cycles: start, success and failure.

use super::{Assumed, NominationTracker, TrackerNotice, TrackerOutput};
use crate::binding::claims::{BindingClaim, announce, persist};
use crate::binding::failure::FailedStage;
use crate::binding::start::{BindingStart, PermitWait, PreFlightError};
use crate::command::{Command, NoPatchReason};
use crate::nominating_info::NominatingInfo;
use crate::nomination_state::{IllegalTransition, NominationEvent, NominationState};
use crate::patch::PatchDecision;
use crate::pod::{PodKey, PodSnapshot, ScheduledCondition};

/// Progress of the writes of allocations that a binding cycle has chosen.
#[derive(Clone, Copy, Debug, Default)]
enum Allocations {
    /// The devices are chosen, and nothing is written.
    #[default]
    Chosen,
    /// The allocations are written after the wait on permit, whose end is not reported.
    Deferred,
    /// The allocations are written.
    Written,
}

impl Allocations {
    /// Returns the progress of a binding cycle that failed at `stage`.
    fn at(self, stage: FailedStage) -> Self {
        match self {
            Self::Deferred if stage == FailedStage::Bind => Self::Written,
            Self::Deferred if stage <= FailedStage::Permit => Self::Chosen,
            // A plugin that comes before their write may be the one that failed.
            known => known,
        }
    }
}

/// A binding cycle whose end was not reported yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Binding {
    permit: PermitWait,
    /// Claims whose allocations the cycle writes.
    claims: Vec<BindingClaim>,
    allocations: Allocations,
}

impl Binding {
    /// Ends the wait on permit.
    pub(super) fn reject(&mut self, pod: &PodKey) -> Option<Command> {
        let waits = std::mem::take(&mut self.permit) == PermitWait::Waiting;
        waits.then(|| Command::RejectWaiting { pod: pod.clone() })
    }

    /// Undoes the cycle's changes to claims, so that nomination and device reservation end together.
    pub(super) fn unreserve(self, pod: &PodKey) -> Vec<Command> {
        let allocation = |claim: &String| Command::DropAllocation { pod: pod.clone(), claim: claim.clone() };
        let reservation = |claim: &String| Command::DropReservation { pod: pod.clone(), claim: claim.clone() };
        let claims = self.claims.iter().filter_map(|claim| match claim {
            BindingClaim::Allocated => None,
            BindingClaim::Chosen(claim) => Some(claim),
        });
        match self.allocations {
            Allocations::Chosen => claims.map(allocation).collect(),
            Allocations::Written => claims.map(reservation).collect(),
            Allocations::Deferred => claims.flat_map(|claim| [allocation(claim), reservation(claim)]).collect(),
        }
    }
}

impl NominationTracker {
    pub(super) fn start_binding_cycle(&mut self, assumed: Assumed) -> Result<TrackerOutput, IllegalTransition> {
        let start = BindingStart {
            gates: self.options.gates,
            pre_flights: &assumed.pre_flights,
            permit: assumed.permit,
            nnn: self.current_nnn(&assumed.pod.uid),
            host: &assumed.node,
        };
        let decision = start.decide();
        let mut commands = self.assume(&assumed, &decision)?;
        let TrackerOutput { commands: next, notices } = match decision {
            Ok(patch) => self.announce_and_bind(assumed, patch),
            Err(error) => self.fail_pre_flight(&assumed.pod, &error)?,
        };
        commands.extend(next);
        Ok(TrackerOutput { commands, notices })
    }

    /// Records that the pod is assumed: its nomination ends, and its binding cycle begins.
    fn assume(
        &mut self,
        assumed: &Assumed,
        decision: &Result<PatchDecision, PreFlightError>,
    ) -> Result<Vec<Command>, IllegalTransition> {
        let Assumed { pod, permit, claims, .. } = assumed;
        let node = assumed.node.clone();
        let event = match decision {
            Ok(patch) if is_announced(*patch) => NominationEvent::AssumedAndAnnounced { node },
            _ => NominationEvent::AssumedQuietly { node },
        };
        let allocations = match (decision, permit) {
            (Err(_), _) => Allocations::Chosen,
            (Ok(_), PermitWait::Waiting) => Allocations::Deferred,
            (Ok(_), PermitWait::None) => Allocations::Written,
        };
        let state = self.next_state(&pod.uid, &event)?;
        let before = self.nominator.remove(&pod.uid).map(|nomination| nomination.node);
        if let Some(tracked) = self.pods.get_mut(&pod.uid) {
            tracked.state = state;
            tracked.binding = Some(Binding { permit: *permit, claims: claims.clone(), allocations });
        }
        Ok(self.memory_commands(pod, before.as_deref()))
    }

    fn announce_and_bind(&mut self, assumed: Assumed, patch: PatchDecision) -> TrackerOutput {
        let Assumed { pod, node, permit, claims, .. } = assumed;
        let mut commands = match patch {
            PatchDecision::Needed => announce(&pod, &node, &claims, permit),
            PatchDecision::None(reason) => {
                let nothing = Command::None { pod: pod.clone(), reason };
                std::iter::once(nothing).chain(persist(&pod, &claims, permit)).collect()
            }
        };
        for command in &commands {
            self.note_write(command);
        }
        let has_chosen = claims.iter().any(|claim| *claim != BindingClaim::Allocated);
        let is_partial = is_announced(patch) && permit == PermitWait::Waiting && has_chosen;
        let notices = is_partial.then(|| TrackerNotice::PartialReservation { pod: pod.clone() });
        commands.push(Command::Bind { pod, node });
        TrackerOutput { commands, notices: notices.into_iter().collect() }
    }

    fn fail_pre_flight(&mut self, pod: &PodKey, error: &PreFlightError) -> Result<TrackerOutput, IllegalTransition> {
        let queued_pod = self.pods.get(&pod.uid).map(|tracked| tracked.view.clone()).unwrap_or_default();
        let condition = ScheduledCondition::failed("SchedulerError", &error.to_string());
        self.fail_binding(&queued_pod, FailedStage::PreFlight, &condition)
    }

    pub(super) fn fail_binding(
        &mut self,
        queued_pod: &PodSnapshot,
        failed_at: FailedStage,
        condition: &ScheduledCondition,
    ) -> Result<TrackerOutput, IllegalTransition> {
        let pod = &queued_pod.key;
        let info = match self.state(&pod.uid) {
            NominationState::AssumedAnnounced { node } => {
                self.options.behavior.on_binding_failure.decide(failed_at, &node)
            }
            _ => NominatingInfo::clear(),
        };
        let info = self.apply_clearing_policy(pod, info);
        let info = if self.overwrites_other_value(pod, &info) { NominatingInfo::Noop } else { info };
        if !self.is_overtaken(&pod.uid) {
            let keeps = matches!(info, NominatingInfo::Override(Some(_)));
            let event = if keeps { NominationEvent::BindingFailedKept } else { NominationEvent::BindingFailed };
            let state = self.next_state(&pod.uid, &event)?;
            self.set_state(&pod.uid, state);
        }
        let mut commands = match self.end_binding(&pod.uid) {
            Some(binding) => Binding { allocations: binding.allocations.at(failed_at), ..binding }.unreserve(pod),
            None => Vec::new(),
        };
        // A rejected pod must not be woken by the room that it gives back itself, so it is served before the others.
        if condition.is_unschedulable() {
            commands.extend(self.finish_failure(queued_pod, &info, condition));
            commands.push(Command::RequeueAll { except: Some(pod.uid.clone()) });
        } else {
            commands.push(Command::RequeueAll { except: None });
            commands.extend(self.finish_failure(queued_pod, &info, condition));
        }
        Ok(TrackerOutput { commands, notices: Vec::new() })
    }

    pub(super) fn bind(&mut self, pod: &PodKey) -> Result<TrackerOutput, IllegalTransition> {
        if !self.is_overtaken(&pod.uid) {
            let state = self.next_state(&pod.uid, &NominationEvent::Bound)?;
            self.nominator.forget(&pod.uid);
            if let Some(tracked) = self.pods.get_mut(&pod.uid) {
                tracked.view.node = state.node().map(str::to_owned);
                tracked.state = state;
            }
        }
        self.end_binding(&pod.uid);
        Ok(TrackerOutput { commands: vec![Command::Done { pod: pod.clone() }], notices: Vec::new() })
    }

    /// Returns true if the watch has shown the binding or the deletion of the pod before the cycle reported its end.
    fn is_overtaken(&self, uid: &str) -> bool {
        let Some(tracked) = self.pods.get(uid) else { return true };
        matches!(tracked.state, NominationState::Bound { .. }) && tracked.binding.is_some()
    }

    fn end_binding(&mut self, uid: &str) -> Option<Binding> {
        self.pods.get_mut(uid)?.binding.take()
    }
}

/// Returns true if the status names the node of the binding cycle, now or after the PATCH.
fn is_announced(patch: PatchDecision) -> bool {
    matches!(patch, PatchDecision::Needed | PatchDecision::None(NoPatchReason::AlreadySet))
}
