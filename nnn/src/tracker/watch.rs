//! Watch events and answers to writes.

use super::binding_cycle::Binding;
use super::{NominationTracker, Tracked, TrackerNotice, TrackerOutput};
use crate::behavior::{PendingWrites, RequeueSource};
use crate::command::Command;
use crate::external::SCHEDULER_MANAGER;
use crate::field_writes::FieldWrites;
use crate::nominating_info::NominatingInfo;
use crate::nomination_state::{NominationEvent, NominationState};
use crate::pod::{PodPhase, PodSnapshot};
use crate::scheduling::{PodRequeueEvent, decide_requeue};

impl NominationTracker {
    pub(super) fn observe(&mut self, pod: PodSnapshot) -> TrackerOutput {
        let mut output = self.replace_recreated(&pod);
        if pod.phase == PodPhase::Terminal {
            // The watch of kube-scheduler has no pods that have ended: to it they are deleted.
            output.commands.extend(self.delete(&pod.key.uid).commands);
            return output;
        }
        if let Some(notice) = stale_nomination(&pod) {
            output.notices.push(notice);
        }
        let Some(old) = self.pods.get(&pod.key.uid) else {
            output.commands.extend(self.enter(&pod));
            return output;
        };
        if let NominationState::Bound { node } = &old.state {
            // A binding is never undone: an update without it is an old one.
            let node = pod.node.clone().unwrap_or_else(|| node.clone());
            self.set_view(PodSnapshot { node: Some(node), ..pod });
            return output;
        }
        if pod.node.is_some() {
            output.commands.extend(self.observe_binding(pod));
            return output;
        }
        if old.view.resource_version.is_some() && old.view.resource_version == pod.resource_version {
            return output;
        }
        let is_assumed = old.state.is_assumed();
        output.notices.extend(self.foreign_write(&pod));
        let commands = if is_assumed { self.update_assumed(pod) } else { self.update_waiting(pod) };
        output.commands.extend(commands);
        output
    }

    pub(super) fn delete(&mut self, uid: &str) -> TrackerOutput {
        let Some(mut tracked) = self.pods.remove(uid) else { return TrackerOutput::default() };
        let pod = &tracked.view;
        let name = (pod.key.namespace.clone(), pod.key.name.clone());
        if self.names.get(&name).is_some_and(|known| known == uid) {
            self.names.remove(&name);
        }
        let before = self.nominator.forget(uid).map(|nomination| nomination.node);
        let release = before.clone().map(|node| Command::Release { pod: pod.key.clone(), node });
        let event = match &tracked.state {
            NominationState::Bound { .. } => None,
            state if state.is_assumed() => Some(PodRequeueEvent::AssumedDeleted),
            _ => Some(PodRequeueEvent::Deleted { pod, before: before.as_deref() }),
        };
        let requeue = event.and_then(|event| decide_requeue(event, self.options.behavior.requeue_by));
        let reject = tracked.binding.as_mut().and_then(|binding| binding.reject(&pod.key));
        let unreserved = tracked.binding.into_iter().flat_map(|binding| binding.unreserve(&pod.key));
        let commands = release.into_iter().chain(reject).chain(unreserved).chain(requeue).collect();
        TrackerOutput { commands, notices: Vec::new() }
    }

    /// Deletes the pod that had the same name with another UID, even if the watch did not show its deletion.
    fn replace_recreated(&mut self, pod: &PodSnapshot) -> TrackerOutput {
        match self.live(&pod.key).map(|live| live.view.key.uid.clone()) {
            Some(uid) if uid != pod.key.uid => self.delete(&uid),
            _ => TrackerOutput::default(),
        }
    }

    fn enter(&mut self, pod: &PodSnapshot) -> Vec<Command> {
        let key = pod.key.clone();
        let tracked = Tracked {
            state: NominationState::from_pod(pod),
            conditions: FieldWrites::default(),
            view: pod.clone(),
            sent: std::collections::BTreeSet::new(),
            own: None,
            binding: None,
        };
        self.names.insert((key.namespace.clone(), key.name.clone()), key.uid.clone());
        self.pods.insert(key.uid.clone(), tracked);
        if pod.node.is_none() {
            self.nominator.add(pod, &NominatingInfo::Noop, Some(pod));
        }
        self.memory_commands(&key, None)
    }

    /// Stores the observed pod and updates the pending writes.
    fn set_view(&mut self, pod: PodSnapshot) {
        let uid = pod.key.uid.clone();
        let Some(tracked) = self.pods.get_mut(&uid) else { return };
        tracked.conditions.observed(&tracked.view.scheduled, &pod.scheduled, pod.resource_version);
        // The same value, but somebody else has written it since.
        if tracked.view.nnn == pod.nnn && tracked.view.nnn_manager != pod.nnn_manager {
            tracked.own = None;
        }
        tracked.view = pod;
        self.forget_writes(&uid);
    }

    /// Forgets this scheduler's writes once none is pending; only the value in the status may still be its own.
    fn forget_writes(&mut self, uid: &str) {
        let Some(tracked) = self.pods.get_mut(uid) else { return };
        if self.nominator.unseen_write(uid).is_none() {
            tracked.sent.clear();
            tracked.own = tracked.own.take().filter(|own| tracked.view.nnn.as_ref() == Some(own));
        }
    }

    fn observe_binding(&mut self, pod: PodSnapshot) -> Vec<Command> {
        let (uid, node) = (pod.key.uid.clone(), pod.node.clone().unwrap_or_default());
        let own = self.pods.get(&uid).is_some_and(|it| it.state.is_assumed() && it.state.node() == Some(&node));
        let event = if own { NominationEvent::Bound } else { NominationEvent::BoundByOther { node } };
        let Ok(state) = self.next_state(&uid, &event) else { return Vec::new() };
        let before = self.nominator.forget(&uid).map(|nomination| nomination.node);
        let mut commands = self.memory_commands(&pod.key, before.as_deref());
        if self.options.behavior.requeue_by == RequeueSource::Memory {
            let event = PodRequeueEvent::Deleted { pod: &pod, before: before.as_deref() };
            commands.extend(decide_requeue(event, RequeueSource::Memory));
        }
        self.set_state(&uid, state);
        // What its own binding cycle has chosen is in use now: nothing is left to reject or to take back.
        if own && let Some(binding) = self.pods.get_mut(&uid).and_then(|tracked| tracked.binding.as_mut()) {
            *binding = Binding::default();
        }
        self.set_view(pod);
        commands
    }

    /// Handles an update of an assumed pod: its nomination is ignored, and only the start of a deletion counts.
    fn update_assumed(&mut self, pod: PodSnapshot) -> Vec<Command> {
        let key = pod.key.clone();
        let Some(tracked) = self.pods.get_mut(&key.uid) else { return Vec::new() };
        let starts = pod.deleting && !tracked.view.deleting;
        let reject = tracked.binding.as_mut().filter(|_| starts).and_then(|binding| binding.reject(&key));
        self.nominator.observed(&tracked.view, &pod);
        self.set_view(pod);
        let requeue =
            starts.then(|| decide_requeue(PodRequeueEvent::AssumedDeleted, self.options.behavior.requeue_by)).flatten();
        reject.into_iter().chain(requeue).collect()
    }

    fn update_waiting(&mut self, pod: PodSnapshot) -> Vec<Command> {
        let Some(old) = self.pods.get(&pod.key.uid).map(|tracked| tracked.view.clone()) else { return Vec::new() };
        let before = self.nominator.nominated_node(&pod.key.uid).map(str::to_owned);
        self.nominator.update(&old, &pod, Some(&pod));
        let commands = self.follow_status(&old, &pod, before.as_deref());
        self.set_view(pod);
        commands
    }

    pub(super) fn answer(&mut self, uid: &str, version: Option<u64>) -> TrackerOutput {
        let was_unseen = self.nominator.unseen_write(uid).is_some();
        self.nominator.write_answered(uid, version);
        if let Some(tracked) = self.pods.get_mut(uid) {
            tracked.conditions.answered(version);
        }
        self.forget_writes(uid);
        let is_shown = was_unseen && version.is_some() && self.nominator.unseen_write(uid).is_none();
        let commands = if is_shown { self.catch_up(uid) } else { Vec::new() };
        TrackerOutput { commands, notices: Vec::new() }
    }

    /// Follows the observed status after the answer to a PATCH shows that the watch is not behind it: the PATCH's
    /// resource version is not newer than the observed one.
    fn catch_up(&mut self, uid: &str) -> Vec<Command> {
        let protects = self.options.behavior.pending_writes == PendingWrites::Protected;
        let before = self.nominator.nominated_node(uid).map(str::to_owned);
        let is_behind = |tracked: &&Tracked| protects && tracked.state.is_waiting() && tracked.view.nnn != before;
        let Some(view) = self.pods.get(uid).filter(is_behind).map(|tracked| tracked.view.clone()) else {
            return Vec::new();
        };
        self.nominator.add(&view, &NominatingInfo::Noop, Some(&view));
        self.follow_status(&view, &view, before.as_deref())
    }

    /// Updates state and requeues other pods after memory has followed a status.
    fn follow_status(&mut self, old: &PodSnapshot, new: &PodSnapshot, before: Option<&str>) -> Vec<Command> {
        let key = &new.key;
        let after = self.nominator.nominated_node(&key.uid).map(str::to_owned);
        let mut commands = self.memory_commands(key, before);
        let event = PodRequeueEvent::Updated { old, new, before, after: after.as_deref() };
        commands.extend(decide_requeue(event, self.options.behavior.requeue_by));
        if let Ok(state) = self.next_state(&key.uid, &NominationEvent::StatusUpdated { memory: after }) {
            self.set_state(&key.uid, state);
        }
        commands
    }

    fn foreign_write(&self, pod: &PodSnapshot) -> Option<TrackerNotice> {
        let tracked = self.pods.get(&pod.key.uid)?;
        // A value that names its writer is theirs, also if this scheduler has written the same one before.
        let writer = pod.nnn_manager.as_deref();
        let is_own = writer.map_or_else(|| tracked.sent.contains(&pod.nnn), |writer| writer == SCHEDULER_MANAGER);
        (tracked.view.nnn != pod.nnn && !is_own).then(|| TrackerNotice::ForeignWrite {
            pod: pod.key.clone(),
            writer: pod.nnn_manager.clone(),
            node: pod.nnn.clone(),
        })
    }
}

fn stale_nomination(pod: &PodSnapshot) -> Option<TrackerNotice> {
    let (nominated, node) = (pod.nnn.clone()?, pod.node.clone()?);
    (nominated != node).then(|| TrackerNotice::StaleNomination { pod: pod.key.clone(), nominated, node })
}
