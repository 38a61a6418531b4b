//! What the watch shows.

use super::binding::Binding;
use super::{Notice, Reaction, Scheduler, Tracked};
use crate::command::Command;
use crate::external::SCHEDULER_MANAGER;
use crate::nominating::NominatingInfo;
use crate::nominator::PendingWrites;
use crate::pod::{Phase, PodView};
use crate::scheduling::wake::{PodEvent, WakeBy, decide_wake};
use crate::state::{Event, State};
use crate::writes::Writes;

impl Scheduler {
    pub(super) fn observe(&mut self, pod: PodView) -> Reaction {
        let mut reaction = self.replace_recreated(&pod);
        if pod.phase == Phase::Terminal {
            // The watch of kube-scheduler has no pods that have ended: to it they are deleted.
            reaction.commands.extend(self.delete(&pod.key.uid).commands);
            return reaction;
        }
        if let Some(notice) = stale_nomination(&pod) {
            reaction.notices.push(notice);
        }
        let Some(old) = self.pods.get(&pod.key.uid) else {
            reaction.commands.extend(self.enter(&pod));
            return reaction;
        };
        if let State::Bound { node } = &old.state {
            // A binding is never undone: an update without it is an old one.
            let node = pod.node.clone().unwrap_or_else(|| node.clone());
            self.set_view(PodView { node: Some(node), ..pod });
            return reaction;
        }
        if pod.node.is_some() {
            reaction.commands.extend(self.observe_binding(pod));
            return reaction;
        }
        if old.view.resource_version.is_some() && old.view.resource_version == pod.resource_version {
            return reaction;
        }
        let is_assumed = old.state.is_assumed();
        reaction.notices.extend(self.foreign_write(&pod));
        let commands = if is_assumed { self.update_assumed(pod) } else { self.update_waiting(pod) };
        reaction.commands.extend(commands);
        reaction
    }

    pub(super) fn delete(&mut self, uid: &str) -> Reaction {
        let Some(mut tracked) = self.pods.remove(uid) else { return Reaction::default() };
        let pod = &tracked.view;
        let name = (pod.key.namespace.clone(), pod.key.name.clone());
        if self.names.get(&name).is_some_and(|known| known == uid) {
            self.names.remove(&name);
        }
        let before = self.nominator.forget(uid).map(|nomination| nomination.node);
        let release = before.clone().map(|node| Command::Release { pod: pod.key.clone(), node });
        let event = match &tracked.state {
            State::Bound { .. } => None,
            state if state.is_assumed() => Some(PodEvent::AssumedDeleted),
            _ => Some(PodEvent::Deleted { pod, before: before.as_deref() }),
        };
        let wake = event.and_then(|event| decide_wake(event, self.options.wake_by));
        let reject = tracked.binding.as_mut().and_then(|binding| binding.reject(&pod.key));
        let unreserved = tracked.binding.into_iter().flat_map(|binding| binding.unreserve(&pod.key));
        let commands = release.into_iter().chain(reject).chain(unreserved).chain(wake).collect();
        Reaction { commands, notices: Vec::new() }
    }

    /// A pod that has the name of another one: that one is gone, even if its deletion was not shown.
    fn replace_recreated(&mut self, pod: &PodView) -> Reaction {
        match self.live(&pod.key).map(|live| live.view.key.uid.clone()) {
            Some(uid) if uid != pod.key.uid => self.delete(&uid),
            _ => Reaction::default(),
        }
    }

    fn enter(&mut self, pod: &PodView) -> Vec<Command> {
        let key = pod.key.clone();
        let tracked = Tracked {
            state: State::of(pod),
            conditions: Writes::default(),
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

    /// Follows the status, for what is not part of a decision.
    fn set_view(&mut self, pod: PodView) {
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

    /// Once nothing is on its way, only what the status shows was written by this scheduler.
    fn forget_writes(&mut self, uid: &str) {
        let Some(tracked) = self.pods.get_mut(uid) else { return };
        if self.nominator.unseen_write(uid).is_none() {
            tracked.sent.clear();
            tracked.own = tracked.own.take().filter(|own| tracked.view.nnn.as_ref() == Some(own));
        }
    }

    fn observe_binding(&mut self, pod: PodView) -> Vec<Command> {
        let (uid, node) = (pod.key.uid.clone(), pod.node.clone().unwrap_or_default());
        let own = self.pods.get(&uid).is_some_and(|it| it.state.is_assumed() && it.state.node() == Some(&node));
        let event = if own { Event::Bound } else { Event::BoundByOther { node } };
        let Ok(state) = self.next_state(&uid, &event) else { return Vec::new() };
        let before = self.nominator.forget(&uid).map(|nomination| nomination.node);
        let mut commands = self.memory_commands(&pod.key, before.as_deref());
        if self.options.wake_by == WakeBy::Memory {
            let event = PodEvent::Deleted { pod: &pod, before: before.as_deref() };
            commands.extend(decide_wake(event, WakeBy::Memory));
        }
        self.set_state(&uid, state);
        // What its own binding cycle has chosen is in use now: nothing is left to reject or to take back.
        if own && let Some(binding) = self.pods.get_mut(&uid).and_then(|tracked| tracked.binding.as_mut()) {
            *binding = Binding::default();
        }
        self.set_view(pod);
        commands
    }

    /// An assumed pod: its nomination may say what it likes. Only its deletion counts.
    fn update_assumed(&mut self, pod: PodView) -> Vec<Command> {
        let key = pod.key.clone();
        let Some(tracked) = self.pods.get_mut(&key.uid) else { return Vec::new() };
        let starts = pod.deleting && !tracked.view.deleting;
        let reject = tracked.binding.as_mut().filter(|_| starts).and_then(|binding| binding.reject(&key));
        self.nominator.observed(&tracked.view, &pod);
        self.set_view(pod);
        let wake = starts.then(|| decide_wake(PodEvent::AssumedDeleted, self.options.wake_by)).flatten();
        reject.into_iter().chain(wake).collect()
    }

    fn update_waiting(&mut self, pod: PodView) -> Vec<Command> {
        let Some(old) = self.pods.get(&pod.key.uid).map(|tracked| tracked.view.clone()) else { return Vec::new() };
        let before = self.nominator.node_of(&pod.key.uid).map(str::to_owned);
        self.nominator.update(&old, &pod, Some(&pod));
        let commands = self.follow_status(&old, &pod, before.as_deref());
        self.set_view(pod);
        commands
    }

    pub(super) fn answer(&mut self, uid: &str, version: Option<u64>) -> Reaction {
        let was_unseen = self.nominator.unseen_write(uid).is_some();
        self.nominator.write_answered(uid, version);
        if let Some(tracked) = self.pods.get_mut(uid) {
            tracked.conditions.answered(version);
        }
        self.forget_writes(uid);
        let is_shown = was_unseen && version.is_some() && self.nominator.unseen_write(uid).is_none();
        let commands = if is_shown { self.catch_up(uid) } else { Vec::new() };
        Reaction { commands, notices: Vec::new() }
    }

    /// An answer says that the watch has shown our last PATCH already: from now on the status is right.
    fn catch_up(&mut self, uid: &str) -> Vec<Command> {
        let protects = self.options.nominator.pending_writes == PendingWrites::Protected;
        let before = self.nominator.node_of(uid).map(str::to_owned);
        let is_behind = |tracked: &&Tracked| protects && tracked.state.is_waiting() && tracked.view.nnn != before;
        let Some(view) = self.pods.get(uid).filter(is_behind).map(|tracked| tracked.view.clone()) else {
            return Vec::new();
        };
        self.nominator.add(&view, &NominatingInfo::Noop, Some(&view));
        self.follow_status(&view, &view, before.as_deref())
    }

    /// State and wake-ups after memory has followed a status.
    fn follow_status(&mut self, old: &PodView, new: &PodView, before: Option<&str>) -> Vec<Command> {
        let key = &new.key;
        let after = self.nominator.node_of(&key.uid).map(str::to_owned);
        let mut commands = self.memory_commands(key, before);
        let event = PodEvent::Updated { old, new, before, after: after.as_deref() };
        commands.extend(decide_wake(event, self.options.wake_by));
        if let Ok(state) = self.next_state(&key.uid, &Event::StatusUpdated { memory: after }) {
            self.set_state(&key.uid, state);
        }
        commands
    }

    fn foreign_write(&self, pod: &PodView) -> Option<Notice> {
        let tracked = self.pods.get(&pod.key.uid)?;
        // A value that names its writer is theirs, also if this scheduler has written the same one before.
        let writer = pod.nnn_manager.as_deref();
        let is_own = writer.map_or_else(|| tracked.sent.contains(&pod.nnn), |writer| writer == SCHEDULER_MANAGER);
        (tracked.view.nnn != pod.nnn && !is_own).then(|| Notice::ForeignWrite {
            pod: pod.key.clone(),
            writer: pod.nnn_manager.clone(),
            node: pod.nnn.clone(),
        })
    }
}

fn stale_nomination(pod: &PodView) -> Option<Notice> {
    let (nominated, node) = (pod.nnn.clone()?, pod.node.clone()?);
    (nominated != node).then(|| Notice::StaleNomination { pod: pod.key.clone(), nominated, node })
}
