//! Failed scheduling cycles.

use super::{NominationTracker, Tracked, TrackerOutput};
use crate::behavior::{ClearingPolicy, GroupPreemptionPolicy};
use crate::command::Command;
use crate::external::{NodePresence, NominationOwner};
use crate::nominating_info::NominatingInfo;
use crate::nomination_state::{IllegalTransition, NominationEvent, NominationState};
use crate::patch::{ConditionChange, PatchDecision};
use crate::pod::{PodKey, PodSnapshot, ScheduledCondition};
use crate::scheduling::cycle_result::CycleOutcome;
use crate::scheduling::{
    FailedCycle, FailureDecision, MemoryUpdate, PodRequeueEvent, QueueAction, clear_lower_nominations, decide_cycle,
    decide_requeue,
};

impl NominationTracker {
    pub(super) fn fail_cycle(
        &mut self,
        queued_pod: &PodSnapshot,
        outcome: &CycleOutcome,
        condition: &ScheduledCondition,
    ) -> Result<TrackerOutput, IllegalTransition> {
        let pod = &queued_pod.key;
        let info = decide_cycle(outcome, self.options.profile);
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
    ) -> Result<TrackerOutput, IllegalTransition> {
        let pod = &queued_pod.key;
        let info = self.apply_clearing_policy(pod, info);
        let cleared = match (&info, self.options.behavior.group_preemption) {
            (NominatingInfo::Override(Some(node)), GroupPreemptionPolicy::ClearLowerNominations)
                if !self.has_preempted(pod, node) =>
            {
                self.clear_lower_nominations(queued_pod, node)
            }
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
    ) -> Result<TrackerOutput, IllegalTransition> {
        // A pod that is bound or gone by now is no news; one that is assumed can't fail a scheduling cycle.
        let uid = &queued_pod.key.uid;
        if self.state(uid).is_assumed() {
            self.next_state(uid, &NominationEvent::CycleCleared)?;
        }
        for command in &cleared {
            self.note_write(command);
        }
        let mut commands = cleared;
        commands.extend(self.finish_failure(queued_pod, info, condition));
        Ok(TrackerOutput { commands, notices: Vec::new() })
    }

    /// Handles a failure: updates memory, then writes the status, then requeues the pod.
    pub(super) fn finish_failure(
        &mut self,
        queued_pod: &PodSnapshot,
        info: &NominatingInfo,
        condition: &ScheduledCondition,
    ) -> Vec<Command> {
        let pod = &queued_pod.key;
        let FailureDecision { memory, patch, queue } = self.decide_failure(queued_pod, info, condition);
        let before = self.nominator.nominated_node(&pod.uid).map(str::to_owned);
        match (memory, self.pods.get(&pod.uid).map(|tracked| tracked.view.clone())) {
            (MemoryUpdate::Renewed, Some(view)) => self.nominator.add(&view, info, Some(&view)),
            (MemoryUpdate::Untouched, _) => {}
            _ => drop(self.nominator.remove(&pod.uid)),
        }
        let mut commands = self.memory_commands(pod, before.as_deref());
        let event = PodRequeueEvent::Failed {
            pod: queued_pod,
            before: before.as_deref(),
            after: self.nominator.nominated_node(&pod.uid),
        };
        commands.extend(decide_requeue(event, self.options.behavior.requeue_by));
        self.follow_memory(pod, info);
        let write = match patch {
            PatchDecision::Needed => {
                Command::PatchConditionAndNnn { pod: pod.clone(), condition: condition.clone(), nnn: info.clone() }
            }
            PatchDecision::None(reason) => Command::None { pod: pod.clone(), reason },
        };
        self.note_write(&write);
        let queue = match queue {
            QueueAction::Requeue => Command::Requeue { pod: pod.clone() },
            QueueAction::Done => Command::Done { pod: pod.clone() },
        };
        commands.extend([write, queue]);
        commands
    }

    fn decide_failure(
        &self,
        queued_pod: &PodSnapshot,
        info: &NominatingInfo,
        condition: &ScheduledCondition,
    ) -> FailureDecision {
        let live = self.live(&queued_pod.key);
        let waiting = live.filter(|live| live.view.node.is_none() && live.view.key.uid == queued_pod.key.uid);
        let (current_nnn, current_condition) = match waiting {
            Some(tracked) => (self.current_nnn(&queued_pod.key.uid), self.current_condition(tracked)),
            None => (queued_pod.nnn.as_deref(), queued_pod.scheduled.as_ref()),
        };
        let failed = FailedCycle {
            queued_pod,
            live: live.map(|live| &live.view),
            info,
            current_nnn,
            condition: ConditionChange::between(&current_condition, &Some(condition)),
            patch_after_bind: self.options.behavior.patch_after_bind,
            gates: self.options.gates,
        };
        failed.decide()
    }

    /// Sets the state of a waiting pod from its nomination in memory.
    fn follow_memory(&mut self, pod: &PodKey, info: &NominatingInfo) {
        let memory = self.nominator.nominated_node(&pod.uid).map(str::to_owned);
        let event = match (info, memory) {
            (NominatingInfo::Override(Some(_)), Some(node)) => NominationEvent::CycleNominated { node },
            (NominatingInfo::Override(_), _) => NominationEvent::CycleCleared,
            (NominatingInfo::Noop, status) => NominationEvent::CycleKept { status },
        };
        if let Ok(state) = self.next_state(&pod.uid, &event) {
            self.set_state(&pod.uid, state);
        }
    }

    /// Returns true if the pod was nominated to this node in an earlier cycle: a group that still waits for victims
    /// nominates its members again.
    fn has_preempted(&self, pod: &PodKey, node: &str) -> bool {
        matches!(self.state(&pod.uid), NominationState::NominatedPreempting { node: chosen } if chosen == node)
    }

    /// Returns the commands that clear lower nominations after a preemption, if the status has them and the policy
    /// allows it. They are cleared even if the preemptor is gone, because the victims are chosen.
    fn clear_lower_nominations(&self, queued_pod: &PodSnapshot, node: &str) -> Vec<Command> {
        let preemptor = self.pods.get(&queued_pod.key.uid).map_or(queued_pod, |tracked| &tracked.view);
        let mut cleared =
            clear_lower_nominations(&self.nominator, preemptor.priority, node, self.options.behavior.eviction);
        cleared.retain(|command| command.patched().is_some_and(|lower| self.may_clear(lower)));
        cleared
    }

    fn may_clear(&self, pod: &PodKey) -> bool {
        let clear = NominatingInfo::clear();
        self.current_nnn(&pod.uid).is_some() && self.apply_clearing_policy(pod, clear.clone()) == clear
    }

    pub(super) fn apply_clearing_policy(&self, pod: &PodKey, info: NominatingInfo) -> NominatingInfo {
        let Some(tracked) = self.pods.get(&pod.uid) else { return info };
        let node = self.current_nnn(&pod.uid).is_none_or(|node| self.nodes.contains(node));
        let node = if node { NodePresence::Present } else { NodePresence::Missing };
        self.options.behavior.clearing.apply(info, &self.owner(tracked), node)
    }

    /// Returns true if the end of a binding cycle would overwrite the value of another writer whose values are kept.
    /// Other writers give way only to a preemption and to the start of a binding cycle.
    pub(super) fn overwrites_other_value(&self, pod: &PodKey, info: &NominatingInfo) -> bool {
        let NominatingInfo::Override(Some(node)) = info else { return false };
        self.options.behavior.clearing != ClearingPolicy::Always && self.current_nnn(&pod.uid) != Some(node)
    }

    /// Returns the owner of the nomination. A pending write of this scheduler counts before the object shows it; a
    /// scheduler that chose the node that was already nominated has written nothing.
    fn owner(&self, tracked: &Tracked) -> NominationOwner {
        let uid = &tracked.view.key.uid;
        let is_own = tracked.own.is_some() && tracked.own.as_deref() == self.current_nnn(uid);
        if is_own || self.nominator.unseen_write(uid).is_some() {
            NominationOwner::Scheduler
        } else {
            NominationOwner::from_pod(&tracked.view)
        }
    }
}
