//! Nominations of all tracked pods: as observed in the status, as written, and in the scheduler's memory.
//!
//! Four places know a node for a pod: the observed status, the writes that the watch has not shown yet, the
//! [`Nominator`] and the [`NominationState`]. They change here alone, so that they follow each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::commands::Command;
use crate::config::Behavior;
use crate::external::NominationOwner;
use crate::nomination::{FieldWrites, NominatingInfo, NominationEvent, NominationState, Nominator, TransitionError};
use crate::pod::{PodKey, PodSnapshot, ScheduledCondition};
use crate::scheduling::{MemoryUpdate, PodRequeueEvent, decide_requeue};

/// State of one pod's nomination: as observed and as written. The scheduler's memory is in
/// [`TrackedNominations::memory`].
#[derive(Clone, Debug)]
struct TrackedNomination {
    /// The pod as last observed.
    pod: PodSnapshot,
    state: NominationState,
    /// Pending writes of the condition `PodScheduled`.
    conditions: FieldWrites<Option<ScheduledCondition>>,
    /// Nominations that this scheduler has written and the watch has not shown yet.
    sent: BTreeSet<Option<String>>,
    /// Last nomination that this scheduler wrote, until the watch shows another value.
    own: Option<String>,
}

/// A pod that was deleted, with its last nomination.
pub(super) struct ForgottenPod {
    pub(super) pod: PodSnapshot,
    pub(super) state: NominationState,
    /// Node of the nomination in the scheduler's memory.
    pub(super) node: Option<String>,
}

/// Nominations of all the pods that the tracker has seen in its watch.
#[derive(Clone, Debug)]
pub(super) struct TrackedNominations {
    behavior: Behavior,
    /// Nominations in the scheduler's memory, which filters count.
    memory: Nominator,
    /// Tracked pods, by UID.
    pods: BTreeMap<String, TrackedNomination>,
    /// UIDs of pods by namespace and name.
    names: BTreeMap<(String, String), String>,
}

impl TrackedNominations {
    pub(super) fn new(behavior: Behavior) -> Self {
        Self { behavior, memory: Nominator::new(behavior), pods: BTreeMap::new(), names: BTreeMap::new() }
    }

    pub(super) const fn memory(&self) -> &Nominator {
        &self.memory
    }

    /// Returns a pod as last observed by the watch.
    pub(super) fn observed(&self, uid: &str) -> Option<&PodSnapshot> {
        self.pods.get(uid).map(|tracked| &tracked.pod)
    }

    /// Returns all pods as last observed by the watch, sorted by UID.
    pub(super) fn all_observed(&self) -> impl Iterator<Item = &PodSnapshot> {
        self.pods.values().map(|tracked| &tracked.pod)
    }

    /// Returns the last observed pod that has the namespace and name of `key`.
    pub(super) fn live(&self, key: &PodKey) -> Option<&PodSnapshot> {
        self.observed(self.names.get(&(key.namespace.clone(), key.name.clone()))?)
    }

    /// Returns the state of a pod; [`NominationState::Gone`] for a UID without a pod.
    pub(super) fn state(&self, uid: &str) -> &NominationState {
        self.pods.get(uid).map_or(&NominationState::Gone, |tracked| &tracked.state)
    }

    /// Returns the state of a pod after an event, without storing it.
    pub(super) fn next_state(&self, uid: &str, event: &NominationEvent) -> Result<NominationState, TransitionError> {
        self.state(uid).next(event)
    }

    pub(super) fn set_state(&mut self, uid: &str, state: NominationState) {
        if let Some(tracked) = self.pods.get_mut(uid) {
            tracked.state = state;
        }
    }

    /// Returns the node in the pod's `status.nominatedNodeName`, as last written or observed.
    pub(super) fn current_node(&self, uid: &str) -> Option<&str> {
        let observed = self.observed(uid).and_then(|pod| pod.nnn.as_deref());
        let written = self.memory.unseen_write(uid).filter(|_| self.behavior.counts_own_writes());
        written.unwrap_or(observed)
    }

    /// Returns the pod's condition `PodScheduled` as last written or observed.
    pub(super) fn current_condition(&self, uid: &str) -> Option<&ScheduledCondition> {
        let tracked = self.pods.get(uid)?;
        let observed = &tracked.pod.scheduled;
        let written = tracked.conditions.last().filter(|_| self.behavior.counts_own_writes());
        written.unwrap_or(observed).as_ref()
    }

    /// Returns the owner of the pod's nomination. The scheduler owns its pending writes before the watch shows them,
    /// but not a value that it found already set.
    pub(super) fn owner(&self, uid: &str) -> Option<NominationOwner> {
        let tracked = self.pods.get(uid)?;
        let is_own = tracked.own.is_some() && tracked.own.as_deref() == self.current_node(uid);
        Some(if is_own || self.is_write_pending(uid) {
            NominationOwner::Scheduler
        } else {
            NominationOwner::from_pod(&tracked.pod)
        })
    }

    /// Returns true if the watch has not yet shown a nomination that this scheduler wrote.
    fn is_write_pending(&self, uid: &str) -> bool {
        self.memory.unseen_write(uid).is_some()
    }

    /// Returns true if the nomination of an observed pod has changed by a write of another component.
    pub(super) fn is_foreign_write(&self, pod: &PodSnapshot) -> bool {
        let Some(tracked) = self.pods.get(&pod.key.uid) else { return false };
        // A value that names its writer is theirs, also if this scheduler has written the same one before.
        let writer = pod.nnn_manager.as_deref();
        let is_own = writer
            .map_or_else(|| tracked.sent.contains(&pod.nnn), |writer| writer == NominationOwner::SCHEDULER_MANAGER);
        tracked.pod.nnn != pod.nnn && !is_own
    }

    /// Returns the commands that report the change of a pod's nomination in memory.
    fn memory_commands(&self, pod: &PodKey, before: Option<&str>) -> Vec<Command> {
        let after = self.memory.nominated_node(&pod.uid);
        if before == after {
            return Vec::new();
        }
        let release = before.map(|node| Command::Release { pod: pod.clone(), node: node.to_owned() });
        let reserve = after.map(|node| Command::Reserve { pod: pod.clone(), node: node.to_owned() });
        release.into_iter().chain(reserve).collect()
    }

    /// Adds a pod that the watch shows for the first time.
    pub(super) fn enter(&mut self, pod: PodSnapshot) -> Vec<Command> {
        let key = pod.key.clone();
        if pod.node.is_none() {
            self.memory.add(&pod, &NominatingInfo::Noop, Some(&pod));
        }
        let tracked = TrackedNomination {
            state: NominationState::from_pod(&pod),
            conditions: FieldWrites::default(),
            sent: BTreeSet::new(),
            own: None,
            pod,
        };
        self.names.insert((key.namespace.clone(), key.name.clone()), key.uid.clone());
        self.pods.insert(key.uid.clone(), tracked);
        self.memory_commands(&key, None)
    }

    /// Removes a pod that was deleted, has succeeded or has failed.
    pub(super) fn forget(&mut self, uid: &str) -> Option<ForgottenPod> {
        let TrackedNomination { pod, state, .. } = self.pods.remove(uid)?;
        let name = (pod.key.namespace.clone(), pod.key.name.clone());
        if self.names.get(&name).is_some_and(|known| known == uid) {
            self.names.remove(&name);
        }
        let node = self.memory.forget(uid).map(|nomination| nomination.node);
        Some(ForgottenPod { pod, state, node })
    }

    /// Stores an observed pod and updates the pending writes.
    pub(super) fn observe(&mut self, pod: PodSnapshot) {
        let uid = pod.key.uid.clone();
        let Some(tracked) = self.pods.get_mut(&uid) else { return };
        tracked.conditions.observed(&tracked.pod.scheduled, &pod.scheduled, pod.resource_version);
        // The same value, but somebody else has written it since.
        if tracked.pod.nnn == pod.nnn && tracked.pod.nnn_manager != pod.nnn_manager {
            tracked.own = None;
        }
        tracked.pod = pod;
        self.forget_writes(&uid);
    }

    /// Stores an observed pod that waits for a node, and updates its nomination in memory from the status.
    pub(super) fn observe_waiting(&mut self, pod: PodSnapshot) -> Vec<Command> {
        let Some(old) = self.observed(&pod.key.uid).cloned() else { return Vec::new() };
        let before = self.memory.nominated_node(&pod.key.uid).map(str::to_owned);
        self.memory.update(&old, &pod, Some(&pod));
        let commands = self.follow_status(&old, &pod, before.as_deref());
        self.observe(pod);
        commands
    }

    /// Stores an observed pod that is assumed, and ignores its nomination.
    pub(super) fn observe_assumed(&mut self, pod: PodSnapshot) {
        if let Some(tracked) = self.pods.get(&pod.key.uid) {
            self.memory.observed(&tracked.pod, &pod);
        }
        self.observe(pod);
    }

    /// Stores a pod that the watch shows as bound, which ends its nomination.
    pub(super) fn observe_binding(&mut self, pod: PodSnapshot, state: NominationState) -> Vec<Command> {
        let before = self.memory.forget(&pod.key.uid).map(|nomination| nomination.node);
        let mut commands = self.memory_commands(&pod.key, before.as_deref());
        if self.behavior.requeues_by_memory() {
            let event = PodRequeueEvent::Deleted { pod: &pod, before: before.as_deref() };
            commands.extend(decide_requeue(event, self.behavior));
        }
        self.set_state(&pod.key.uid, state);
        self.observe(pod);
        commands
    }

    /// Ends the nomination of a pod that is assumed.
    pub(super) fn assume(&mut self, pod: &PodKey, state: NominationState) -> Vec<Command> {
        let before = self.memory.remove(&pod.uid).map(|nomination| nomination.node);
        self.set_state(&pod.uid, state);
        self.memory_commands(pod, before.as_deref())
    }

    /// Ends the nomination of a pod whose binding the API server accepted, before the watch shows the binding.
    pub(super) fn bind(&mut self, uid: &str, state: NominationState) {
        self.memory.forget(uid);
        if let Some(tracked) = self.pods.get_mut(uid) {
            tracked.pod.node = state.node().map(str::to_owned);
            tracked.state = state;
        }
    }

    /// Changes the pod's nomination in memory, and its state, after a failed cycle.
    pub(super) fn fail(
        &mut self,
        queued_pod: &PodSnapshot,
        info: &NominatingInfo,
        update: MemoryUpdate,
    ) -> Vec<Command> {
        let pod = &queued_pod.key;
        let before = self.memory.nominated_node(&pod.uid).map(str::to_owned);
        match (update, self.pods.get(&pod.uid).map(|tracked| &tracked.pod)) {
            (MemoryUpdate::Renewed, Some(observed)) => self.memory.add(observed, info, Some(observed)),
            (MemoryUpdate::Untouched, _) => {}
            _ => drop(self.memory.remove(&pod.uid)),
        }
        let mut commands = self.memory_commands(pod, before.as_deref());
        let after = self.memory.nominated_node(&pod.uid);
        let event = PodRequeueEvent::Failed { pod: queued_pod, before: before.as_deref(), after };
        commands.extend(decide_requeue(event, self.behavior));
        self.follow_memory(&pod.uid, info);
        commands
    }

    /// Sets the state of a waiting pod to match its nomination in memory.
    fn follow_memory(&mut self, uid: &str, info: &NominatingInfo) {
        let memory = self.memory.nominated_node(uid).map(str::to_owned);
        let event = match (info, memory) {
            (NominatingInfo::Override(Some(_)), Some(node)) => NominationEvent::CycleNominated { node },
            (NominatingInfo::Override(_), _) => NominationEvent::CycleCleared,
            (NominatingInfo::Noop, status) => NominationEvent::CycleKept { status },
        };
        if let Ok(state) = self.next_state(uid, &event) {
            self.set_state(uid, state);
        }
    }

    /// Updates the pod's state and requeues waiting pods, after memory was set from a status.
    fn follow_status(&mut self, old: &PodSnapshot, new: &PodSnapshot, before: Option<&str>) -> Vec<Command> {
        let key = &new.key;
        let after = self.memory.nominated_node(&key.uid).map(str::to_owned);
        let mut commands = self.memory_commands(key, before);
        let event = PodRequeueEvent::Updated { old, new, before, after: after.as_deref() };
        commands.extend(decide_requeue(event, self.behavior));
        if let Ok(state) = self.next_state(&key.uid, &NominationEvent::StatusUpdated { memory: after }) {
            self.set_state(&key.uid, state);
        }
        commands
    }

    /// Records the values that a command writes, as pending. Writes to bound or deleted pods are not recorded.
    pub(super) fn note_write(&mut self, command: &Command) {
        let Some(pod) = command.patched() else { return };
        let Some(tracked) = self.pods.get_mut(&pod.uid) else { return };
        if matches!(tracked.state, NominationState::Bound { .. }) {
            return;
        }
        tracked.conditions.issued(command.written_condition().cloned().map(Some));
        match command.written_nnn() {
            Some((_, node)) => {
                self.memory.write_issued(&pod.uid, node);
                tracked.own = node.map(str::to_owned);
                tracked.sent.insert(tracked.own.clone());
            }
            None => self.memory.other_write_issued(&pod.uid),
        }
    }

    /// Records the response to a PATCH: the new resource version, or `None` if it failed.
    pub(super) fn answer(&mut self, uid: &str, version: Option<u64>) -> Vec<Command> {
        let was_pending = self.is_write_pending(uid);
        self.memory.write_answered(uid, version);
        if let Some(tracked) = self.pods.get_mut(uid) {
            tracked.conditions.answered(version);
        }
        self.forget_writes(uid);
        let is_shown = was_pending && version.is_some() && !self.is_write_pending(uid);
        if is_shown { self.catch_up(uid) } else { Vec::new() }
    }

    /// Forgets the nominations that this scheduler wrote for a pod, once no write is pending. Keeps the nomination that
    /// the status still has.
    fn forget_writes(&mut self, uid: &str) {
        let is_pending = self.is_write_pending(uid);
        let Some(tracked) = self.pods.get_mut(uid).filter(|_| !is_pending) else { return };
        tracked.sent.clear();
        tracked.own = tracked.own.take().filter(|own| tracked.pod.nnn.as_ref() == Some(own));
    }

    /// Sets the nomination in memory to the observed status, if a PATCH response shows that the watch is up to date
    /// (its resource version is not newer than the observed one).
    fn catch_up(&mut self, uid: &str) -> Vec<Command> {
        let protects = self.behavior.protects_pending_writes();
        let before = self.memory.nominated_node(uid).map(str::to_owned);
        let is_behind =
            |tracked: &&TrackedNomination| protects && tracked.state.is_waiting() && tracked.pod.nnn != before;
        let Some(pod) = self.pods.get(uid).filter(is_behind).map(|tracked| tracked.pod.clone()) else {
            return Vec::new();
        };
        self.memory.add(&pod, &NominatingInfo::Noop, Some(&pod));
        self.follow_status(&pod, &pod, before.as_deref())
    }
}
