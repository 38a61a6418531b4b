//! What scheduling cycles come to.

use super::{Reaction, Scheduler, Tracked};
use crate::command::Command;
use crate::external::{Clearing, NodePresence, Owner};
use crate::nominating::NominatingInfo;
use crate::patch::{Change, Patch};
use crate::pod::{PodKey, PodView, ScheduledCondition};
use crate::scheduling::cycle::{CycleOutcome, decide_cycle};
use crate::scheduling::failure::{FailedCycle, Failure, Memory, Queue};
use crate::scheduling::group::LowerNominations;
use crate::scheduling::preemption::clear_lower;
use crate::scheduling::wake::{PodEvent, decide_wake};
use crate::state::{Event, IllegalTransition, State};

impl Scheduler {
    pub(super) fn fail_cycle(
        &mut self,
        popped: &PodView,
        outcome: &CycleOutcome,
        condition: &ScheduledCondition,
    ) -> Result<Reaction, IllegalTransition> {
        let pod = &popped.key;
        let info = decide_cycle(outcome, self.options.profile);
        let info = self.by_policy(pod, info);
        let cleared = match outcome {
            CycleOutcome::Nominated { node } => self.clear_lower(popped, node),
            _ => Vec::new(),
        };
        self.fail(popped, &info, condition, cleared)
    }

    pub(super) fn fail_member(
        &mut self,
        popped: &PodView,
        info: NominatingInfo,
        condition: &ScheduledCondition,
    ) -> Result<Reaction, IllegalTransition> {
        let pod = &popped.key;
        let info = self.by_policy(pod, info);
        let cleared = match (&info, self.options.group_preemption) {
            (NominatingInfo::Override(Some(node)), LowerNominations::Cleared) if !self.has_preempted(pod, node) => {
                self.clear_lower(popped, node)
            }
            _ => Vec::new(),
        };
        self.fail(popped, &info, condition, cleared)
    }

    fn fail(
        &mut self,
        popped: &PodView,
        info: &NominatingInfo,
        condition: &ScheduledCondition,
        cleared: Vec<Command>,
    ) -> Result<Reaction, IllegalTransition> {
        // A pod that is bound or gone by now is no news; one that is assumed can't fail a scheduling cycle.
        let uid = &popped.key.uid;
        if self.state(uid).is_assumed() {
            self.next_state(uid, &Event::CycleCleared)?;
        }
        for command in &cleared {
            self.note_write(command);
        }
        let mut commands = cleared;
        commands.extend(self.finish_failure(popped, info, condition));
        Ok(Reaction { commands, notices: Vec::new() })
    }

    /// The failure handler: memory, then one PATCH, then the queue.
    pub(super) fn finish_failure(
        &mut self,
        popped: &PodView,
        info: &NominatingInfo,
        condition: &ScheduledCondition,
    ) -> Vec<Command> {
        let pod = &popped.key;
        let Failure { memory, patch, queue } = self.decide_failure(popped, info, condition);
        let before = self.nominator.node_of(&pod.uid).map(str::to_owned);
        match (memory, self.pods.get(&pod.uid).map(|tracked| tracked.view.clone())) {
            (Memory::Renewed, Some(view)) => self.nominator.add(&view, info, Some(&view)),
            (Memory::Untouched, _) => {}
            _ => drop(self.nominator.remove(&pod.uid)),
        }
        let mut commands = self.memory_commands(pod, before.as_deref());
        let event =
            PodEvent::Failed { pod: popped, before: before.as_deref(), after: self.nominator.node_of(&pod.uid) };
        commands.extend(decide_wake(event, self.options.wake_by));
        self.follow_memory(pod, info);
        let write = match patch {
            Patch::Needed => {
                Command::PatchConditionAndNnn { pod: pod.clone(), condition: condition.clone(), nnn: info.clone() }
            }
            Patch::None(reason) => Command::None { pod: pod.clone(), reason },
        };
        self.note_write(&write);
        let queue = match queue {
            Queue::Requeue => Command::Requeue { pod: pod.clone() },
            Queue::Done => Command::Done { pod: pod.clone() },
        };
        commands.extend([write, queue]);
        commands
    }

    fn decide_failure(&self, popped: &PodView, info: &NominatingInfo, condition: &ScheduledCondition) -> Failure {
        let live = self.live(&popped.key);
        let waiting = live.filter(|live| live.view.node.is_none() && live.view.key.uid == popped.key.uid);
        let (known_nnn, known_condition) = match waiting {
            Some(tracked) => (self.known_nnn(&popped.key.uid), self.known_condition(tracked)),
            None => (popped.nnn.as_deref(), popped.scheduled.as_ref()),
        };
        let failed = FailedCycle {
            popped,
            live: live.map(|live| &live.view),
            info,
            known_nnn,
            condition: Change::between(&known_condition, &Some(condition)),
            late_patch: self.options.late_patch,
            gates: self.options.gates,
        };
        failed.decide()
    }

    /// The state of a pod that waits again, as memory has it.
    fn follow_memory(&mut self, pod: &PodKey, info: &NominatingInfo) {
        let memory = self.nominator.node_of(&pod.uid).map(str::to_owned);
        let event = match (info, memory) {
            (NominatingInfo::Override(Some(_)), Some(node)) => Event::CycleNominated { node },
            (NominatingInfo::Override(_), _) => Event::CycleCleared,
            (NominatingInfo::Noop, status) => Event::CycleKept { status },
        };
        if let Ok(state) = self.next_state(&pod.uid, &event) {
            self.set_state(&pod.uid, state);
        }
    }

    /// The node was chosen in an earlier cycle: a group that still waits for victims nominates its members again.
    fn has_preempted(&self, pod: &PodKey, node: &str) -> bool {
        matches!(self.state(&pod.uid), State::NominatedPreempting { node: chosen } if chosen == node)
    }

    /// The nominations that a preemption ends, as far as their pods' statuses have them and the policy lets them go. Its
    /// victims are chosen, also if the preemptor is gone by now.
    fn clear_lower(&self, popped: &PodView, node: &str) -> Vec<Command> {
        let preemptor = self.pods.get(&popped.key.uid).map_or(popped, |tracked| &tracked.view);
        let mut cleared = clear_lower(&self.nominator, preemptor.priority, node, self.options.eviction);
        cleared.retain(|command| command.patched().is_some_and(|lower| self.may_clear(lower)));
        cleared
    }

    fn may_clear(&self, pod: &PodKey) -> bool {
        let clear = NominatingInfo::clear();
        self.known_nnn(&pod.uid).is_some() && self.by_policy(pod, clear.clone()) == clear
    }

    pub(super) fn by_policy(&self, pod: &PodKey, info: NominatingInfo) -> NominatingInfo {
        let Some(tracked) = self.pods.get(&pod.uid) else { return info };
        let node = self.known_nnn(&pod.uid).is_none_or(|node| self.nodes.contains(node));
        let node = if node { NodePresence::Present } else { NodePresence::Missing };
        self.options.clearing.apply(info, &self.owner(tracked), node)
    }

    /// Whether the end of a binding cycle would write over another value where those of other writers are kept: they give
    /// way at a preemption and at the start of a binding cycle only.
    pub(super) fn displaces(&self, pod: &PodKey, info: &NominatingInfo) -> bool {
        let NominatingInfo::Override(Some(node)) = info else { return false };
        self.options.clearing != Clearing::Always && self.known_nnn(&pod.uid) != Some(node)
    }

    /// Who wrote the nomination: a write of this scheduler's own says so before the object does. Whoever chose a node that
    /// was there already has written nothing.
    fn owner(&self, tracked: &Tracked) -> Owner {
        let uid = &tracked.view.key.uid;
        let is_own = tracked.own.is_some() && tracked.own.as_deref() == self.known_nnn(uid);
        if is_own || self.nominator.unseen_write(uid).is_some() { Owner::Scheduler } else { Owner::of(&tracked.view) }
    }
}
