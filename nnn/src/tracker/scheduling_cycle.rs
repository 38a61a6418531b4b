//! Failed scheduling cycles in the tracker.

use super::nomination_tracker::NominationTracker;
use super::output::TrackerOutput;
use crate::commands::Command;
use crate::nomination::{NominatingInfo, NominationEvent, NominationState, TransitionError};
use crate::pod::{PodKey, PodSnapshot, ScheduledCondition};
use crate::scheduling::{CycleOutcome, FailedCycle, FailureDecision, clear_lower_nominations};

impl NominationTracker {
    pub(super) fn fail_cycle(
        &mut self,
        queued_pod: &PodSnapshot,
        outcome: &CycleOutcome,
        condition: &ScheduledCondition,
    ) -> Result<TrackerOutput, TransitionError> {
        let pod = &queued_pod.key;
        let info = outcome.nominating_info(self.options.scheduler);
        let info = self.apply_clearing_policy(pod, info);
        let cleared = match outcome {
            CycleOutcome::Nominated { node } => self.clear_lower_nominations(queued_pod, node),
            _ => Vec::new(),
        };
        self.fail(queued_pod, &info, condition, cleared)
    }

    pub(super) fn fail_member(
        &mut self,
        queued_pod: &PodSnapshot,
        info: NominatingInfo,
        condition: &ScheduledCondition,
    ) -> Result<TrackerOutput, TransitionError> {
        let pod = &queued_pod.key;
        let info = self.apply_clearing_policy(pod, info);
        let clears = |node: &str| self.options.behavior.clears_for_groups() && !self.has_preempted(pod, node);
        let cleared = match &info {
            NominatingInfo::Override(Some(node)) if clears(node) => self.clear_lower_nominations(queued_pod, node),
            _ => Vec::new(),
        };
        self.fail(queued_pod, &info, condition, cleared)
    }

    fn fail(
        &mut self,
        queued_pod: &PodSnapshot,
        info: &NominatingInfo,
        condition: &ScheduledCondition,
        cleared: Vec<Command>,
    ) -> Result<TrackerOutput, TransitionError> {
        // A pod that is bound or gone by now is no news; one that is assumed can't fail a scheduling cycle.
        let uid = &queued_pod.key.uid;
        if self.nominations.state(uid).is_assumed() {
            self.nominations.next_state(uid, &NominationEvent::CycleCleared)?;
        }
        for command in &cleared {
            self.nominations.note_write(command);
        }
        let mut commands = cleared;
        commands.extend(self.finish_failure(queued_pod, info, condition));
        Ok(TrackerOutput { commands, notices: Vec::new() })
    }

    /// Returns the commands after a failed cycle. Updates memory first, then the status, then the queue.
    pub(super) fn finish_failure(
        &mut self,
        queued_pod: &PodSnapshot,
        info: &NominatingInfo,
        condition: &ScheduledCondition,
    ) -> Vec<Command> {
        let pod = &queued_pod.key;
        let FailureDecision { memory, no_patch, requeues } = self.decide_failure(queued_pod, info, condition);
        let mut commands = self.nominations.fail(queued_pod, info, memory);
        let write = match no_patch {
            None => Command::PatchConditionAndNnn { pod: pod.clone(), condition: condition.clone(), nnn: info.clone() },
            Some(reason) => Command::None { pod: pod.clone(), reason },
        };
        self.nominations.note_write(&write);
        let pod = pod.clone();
        let queue = if requeues { Command::Requeue { pod } } else { Command::Done { pod } };
        commands.extend([write, queue]);
        commands
    }

    fn decide_failure(
        &self,
        queued_pod: &PodSnapshot,
        info: &NominatingInfo,
        condition: &ScheduledCondition,
    ) -> FailureDecision {
        let uid = &queued_pod.key.uid;
        let live = self.nominations.live(&queued_pod.key);
        let is_waiting = live.is_some_and(|live| live.node.is_none() && live.key.uid == *uid);
        let (current_nnn, current_condition) = if is_waiting {
            (self.nominations.current_node(uid), self.nominations.current_condition(uid))
        } else {
            (queued_pod.nnn.as_deref(), queued_pod.scheduled.as_ref())
        };
        let failed = FailedCycle {
            queued_pod,
            live,
            info,
            current_nnn,
            is_condition_new: current_condition != Some(condition),
            behavior: self.options.behavior,
            gates: self.options.scheduler.gates(),
        };
        failed.decide()
    }

    /// Returns true if an earlier cycle chose victims for the pod on `node`, so that no new preemption has happened. A
    /// pod group that still waits for victims nominates its members in every cycle.
    fn has_preempted(&self, pod: &PodKey, node: &str) -> bool {
        let state = self.nominations.state(&pod.uid);
        matches!(state, NominationState::NominatedPreempting { node: chosen } if chosen == node)
    }

    /// Returns the commands that clear the nominations of lower-priority pods after a preemption, if the clearing
    /// policy allows it. Clears them even if the preemptor is bound or deleted, because the victims are chosen.
    fn clear_lower_nominations(&self, queued_pod: &PodSnapshot, node: &str) -> Vec<Command> {
        let preemptor = self.nominations.observed(&queued_pod.key.uid).unwrap_or(queued_pod);
        let mut cleared = clear_lower_nominations(self.nominations.memory(), preemptor.priority, node);
        cleared.retain(|command| command.patched().is_some_and(|lower| self.may_clear(lower)));
        cleared
    }

    fn may_clear(&self, pod: &PodKey) -> bool {
        let clear = NominatingInfo::clear();
        self.nominations.current_node(&pod.uid).is_some() && self.apply_clearing_policy(pod, clear.clone()) == clear
    }

    pub(super) fn apply_clearing_policy(&self, pod: &PodKey, info: NominatingInfo) -> NominatingInfo {
        let Some(owner) = self.nominations.owner(&pod.uid) else { return info };
        let has_node = self.nominations.current_node(&pod.uid).is_none_or(|node| self.nodes.contains(node));
        self.options.clearing.apply(info, &owner, has_node)
    }
}
