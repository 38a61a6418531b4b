//! Binding cycles in the tracker: start, success and failure.

use super::nomination_tracker::NominationTracker;
use super::open_binding::OpenBinding;
use super::output::{TrackerNotice, TrackerOutput};
use crate::binding::{Assumed, BindingClaim, BindingStart, FailedStage, PreFlightError, persist};
use crate::commands::{Command, NoPatchReason};
use crate::nomination::{NominatingInfo, NominationEvent, NominationState, TransitionError};
use crate::pod::{PodKey, PodSnapshot, ScheduledCondition};

impl NominationTracker {
    pub(super) fn start_binding_cycle(&mut self, assumed: Assumed) -> Result<TrackerOutput, TransitionError> {
        let start = BindingStart {
            scheduler: self.options.scheduler,
            pre_flights: &assumed.pre_flights,
            waits_on_permit: assumed.waits_on_permit,
            nnn: self.nominations.current_node(&assumed.pod.uid),
            host: &assumed.node,
        };
        let decision = start.no_patch_reason();
        let mut commands = self.assume(&assumed, &decision)?;
        let TrackerOutput { commands: next, notices } = match decision {
            Ok(no_patch) => self.announce_and_bind(assumed, no_patch),
            Err(error) => self.fail_pre_flight(&assumed.pod, &error)?,
        };
        commands.extend(next);
        Ok(TrackerOutput { commands, notices })
    }

    /// Records that the pod is assumed: removes its nomination and starts its binding cycle.
    fn assume(
        &mut self,
        assumed: &Assumed,
        decision: &Result<Option<NoPatchReason>, PreFlightError>,
    ) -> Result<Vec<Command>, TransitionError> {
        let Assumed { pod, waits_on_permit, claims, .. } = assumed;
        let node = assumed.node.clone();
        let event = match decision {
            Ok(no_patch) if is_announced(*no_patch) => NominationEvent::AssumedAndAnnounced { node },
            _ => NominationEvent::AssumedQuietly { node },
        };
        let state = self.nominations.next_state(&pod.uid, &event)?;
        self.bindings.insert(pod.uid.clone(), OpenBinding::new(*waits_on_permit, claims.clone(), decision.is_ok()));
        Ok(self.nominations.assume(pod, state))
    }

    fn announce_and_bind(&mut self, assumed: Assumed, no_patch: Option<NoPatchReason>) -> TrackerOutput {
        let mut commands = match no_patch {
            None => assumed.announce(),
            Some(reason) => {
                let nothing = Command::None { pod: assumed.pod.clone(), reason };
                std::iter::once(nothing).chain(persist(&assumed)).collect()
            }
        };
        let Assumed { pod, node, waits_on_permit, claims, .. } = assumed;
        for command in &commands {
            self.nominations.note_write(command);
        }
        let has_chosen = claims.iter().any(|claim| *claim != BindingClaim::Allocated);
        let is_partial = is_announced(no_patch) && waits_on_permit && has_chosen;
        let notices = is_partial.then(|| TrackerNotice::PartialReservation { pod: pod.clone() });
        commands.push(Command::Bind { pod, node });
        TrackerOutput { commands, notices: notices.into_iter().collect() }
    }

    fn fail_pre_flight(&mut self, pod: &PodKey, error: &PreFlightError) -> Result<TrackerOutput, TransitionError> {
        let queued_pod = self.nominations.observed(&pod.uid).cloned().unwrap_or_default();
        let condition = ScheduledCondition::failed("SchedulerError", &error.to_string());
        self.fail_binding(&queued_pod, FailedStage::PreFlight, &condition)
    }

    pub(super) fn fail_binding(
        &mut self,
        queued_pod: &PodSnapshot,
        failed_at: FailedStage,
        condition: &ScheduledCondition,
    ) -> Result<TrackerOutput, TransitionError> {
        let pod = &queued_pod.key;
        let info = self.apply_clearing_policy(pod, NominatingInfo::clear());
        if !self.is_overtaken(&pod.uid) {
            let state = self.nominations.next_state(&pod.uid, &NominationEvent::BindingFailed)?;
            self.nominations.set_state(&pod.uid, state);
        }
        let mut commands = match self.bindings.remove(&pod.uid) {
            Some(binding) => binding.failed_at(failed_at).unreserve(pod),
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

    /// Returns the claim writes of a pod whose wait on permit has ended.
    pub(super) fn grant_permit(&mut self, pod: &PodKey) -> TrackerOutput {
        let commands = self.bindings.get_mut(&pod.uid).map(|binding| binding.grant(pod)).unwrap_or_default();
        TrackerOutput { commands, notices: Vec::new() }
    }

    pub(super) fn bind(&mut self, pod: &PodKey) -> Result<TrackerOutput, TransitionError> {
        if !self.is_overtaken(&pod.uid) {
            let state = self.nominations.next_state(&pod.uid, &NominationEvent::Bound)?;
            self.nominations.bind(&pod.uid, state);
        }
        self.bindings.remove(&pod.uid);
        Ok(TrackerOutput { commands: vec![Command::Done { pod: pod.clone() }], notices: Vec::new() })
    }

    /// Returns true if the watch showed the pod as bound or deleted before the caller reported the end of its binding
    /// cycle.
    fn is_overtaken(&self, uid: &str) -> bool {
        match self.nominations.state(uid) {
            NominationState::Gone => true,
            NominationState::Bound { .. } => self.bindings.contains_key(uid),
            _ => false,
        }
    }
}

/// Returns true if `status.nominatedNodeName` names the chosen node, already or after the PATCH.
fn is_announced(no_patch: Option<NoPatchReason>) -> bool {
    matches!(no_patch, None | Some(NoPatchReason::AlreadySet))
}
