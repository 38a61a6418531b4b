//! Watch events in the tracker.

use super::nomination_tracker::NominationTracker;
use super::open_binding::OpenBinding;
use super::output::{TrackerNotice, TrackerOutput};
use super::tracked_nominations::ForgottenPod;
use crate::commands::Command;
use crate::nomination::{NominationEvent, NominationState};
use crate::pod::PodSnapshot;
use crate::scheduling::{PodRequeueEvent, decide_requeue};

impl NominationTracker {
    pub(super) fn observe(&mut self, pod: PodSnapshot) -> TrackerOutput {
        let mut output = self.replace_recreated(&pod);
        if pod.has_ended {
            // The watch of kube-scheduler has no pods that have ended: to it they are deleted.
            output.commands.extend(self.delete(&pod.key.uid).commands);
            return output;
        }
        if let Some(notice) = stale_nomination(&pod) {
            output.notices.push(notice);
        }
        let Some(old) = self.nominations.observed(&pod.key.uid) else {
            output.commands.extend(self.nominations.enter(pod));
            return output;
        };
        let state = self.nominations.state(&pod.key.uid);
        if let NominationState::Bound { node } = state {
            // A binding is never undone: an update without it is an old one.
            let node = pod.node.clone().unwrap_or_else(|| node.clone());
            self.nominations.observe(PodSnapshot { node: Some(node), ..pod });
            return output;
        }
        if pod.node.is_some() {
            output.commands.extend(self.observe_binding(pod));
            return output;
        }
        if old.resource_version.is_some() && old.resource_version == pod.resource_version {
            return output;
        }
        let is_assumed = state.is_assumed();
        if self.nominations.is_foreign_write(&pod) {
            let (writer, node) = (pod.nnn_manager.clone(), pod.nnn.clone());
            output.notices.push(TrackerNotice::ForeignWrite { pod: pod.key.clone(), writer, node });
        }
        let commands = if is_assumed { self.observe_assumed(pod) } else { self.nominations.observe_waiting(pod) };
        output.commands.extend(commands);
        output
    }

    pub(super) fn delete(&mut self, uid: &str) -> TrackerOutput {
        let Some(ForgottenPod { pod, state, node }) = self.nominations.forget(uid) else {
            return TrackerOutput::default();
        };
        let mut binding = self.bindings.remove(uid);
        let event = match &state {
            NominationState::Bound { .. } => None,
            state if state.is_assumed() => Some(PodRequeueEvent::AssumedDeleted),
            _ => Some(PodRequeueEvent::Deleted { pod: &pod, before: node.as_deref() }),
        };
        let requeue = event.and_then(|event| decide_requeue(event, self.options.behavior));
        let release = node.map(|node| Command::Release { pod: pod.key.clone(), node });
        let reject = binding.as_mut().and_then(|binding| binding.reject(&pod.key));
        let unreserved = binding.into_iter().flat_map(|binding| binding.unreserve(&pod.key));
        let commands = release.into_iter().chain(reject).chain(unreserved).chain(requeue).collect();
        TrackerOutput { commands, notices: Vec::new() }
    }

    /// Removes an earlier pod that had the name of `pod` but another UID, in case the watch did not show its deletion.
    fn replace_recreated(&mut self, pod: &PodSnapshot) -> TrackerOutput {
        match self.nominations.live(&pod.key).map(|live| live.key.uid.clone()) {
            Some(uid) if uid != pod.key.uid => self.delete(&uid),
            _ => TrackerOutput::default(),
        }
    }

    fn observe_binding(&mut self, pod: PodSnapshot) -> Vec<Command> {
        let (uid, node) = (pod.key.uid.clone(), pod.node.clone().unwrap_or_default());
        let state = self.nominations.state(&uid);
        let own = state.is_assumed() && state.node() == Some(&node);
        let event = if own { NominationEvent::Bound } else { NominationEvent::BoundByOther { node } };
        let Ok(state) = self.nominations.next_state(&uid, &event) else { return Vec::new() };
        // What its own binding cycle has chosen is in use now: nothing is left to reject or to take back.
        if own && let Some(binding) = self.bindings.get_mut(&uid) {
            *binding = OpenBinding::default();
        }
        self.nominations.observe_binding(pod, state)
    }

    /// Handles an update of an assumed pod: reacts only to the start of its deletion.
    fn observe_assumed(&mut self, pod: PodSnapshot) -> Vec<Command> {
        let key = pod.key.clone();
        let starts = pod.deleting && self.nominations.observed(&key.uid).is_some_and(|old| !old.deleting);
        self.nominations.observe_assumed(pod);
        if !starts {
            return Vec::new();
        }
        let reject = self.bindings.get_mut(&key.uid).and_then(|binding| binding.reject(&key));
        let requeue = decide_requeue(PodRequeueEvent::AssumedDeleted, self.options.behavior);
        reject.into_iter().chain(requeue).collect()
    }
}

fn stale_nomination(pod: &PodSnapshot) -> Option<TrackerNotice> {
    let (nominated, node) = (pod.nnn.clone()?, pod.node.clone()?);
    (nominated != node).then(|| TrackerNotice::StaleNomination { pod: pod.key.clone(), nominated, node })
}
