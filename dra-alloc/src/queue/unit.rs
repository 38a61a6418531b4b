//! Pods that are tried together: one pod, or the pods of a group.

use std::collections::BTreeSet;
use std::sync::Arc;

use dra_device::internal::PodFields;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde::Serialize;

use super::options::QueueOptions;
use super::refusal::Refusal;
use super::remedy::Remedy;

/// Place of a pod in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_enums, reason = "kube-scheduler's queue has these places")]
pub enum Place {
    /// The pod is tried as soon as it is the first.
    Active,
    /// The pod is tried once its pause is over.
    BackingOff,
    /// The pod was refused, and waits for an event that helps.
    Unschedulable,
    /// A scheduling gate, or a check before the attempt (`PreEnqueue`), holds the pod back.
    Gated,
    /// The pod is being tried or bound.
    InFlight,
}

/// Pods that are tried together.
#[derive(Clone, Debug)]
pub(super) struct Unit<R> {
    /// Pods of the next attempt, or of the one that is under way, in the order in which they came.
    pub(super) pods: Vec<Arc<Pod>>,
    /// Pods of the group that have come during the attempt.
    pub(super) joined: Vec<Arc<Pod>>,
    /// Group of the pods; none for a pod that gates hold.
    pub(super) group: Option<GroupKey>,
    /// Time since which the pods wait.
    pub(super) since: Timestamp,
    /// Number of attempts that were begun.
    pub(super) attempts: u32,
    pub(super) refusals: u32,
    /// Number of attempts that have failed since the last refusal.
    pub(super) failures: u32,
    pub(super) rank: R,
    pub(super) state: State,
}

/// Namespace and name of a pod group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupKey {
    namespace: String,
    name: String,
}

impl GroupKey {
    /// Returns the group of a pod, if it has one.
    pub(super) fn of_pod(pod: &Pod) -> Option<Self> {
        let name = pod.group_name()?.to_owned();
        Some(Self { namespace: pod.namespace().to_owned(), name })
    }
}

/// Place of a unit, with what ends its stay there.
#[derive(Clone, Debug)]
pub(super) enum State {
    Active,
    BackingOff {
        until: Timestamp,
        after: Ending,
    },
    Waiting {
        refusal: Refusal,
        flush_at: Timestamp,
        by: RefusedBy,
    },
    /// Held by scheduling gates, until an update takes them off.
    Held,
    /// `own` has what has changed in the pods since the begin.
    InFlight {
        begin: u64,
        own: BTreeSet<Remedy>,
        is_activated: bool,
    },
}

/// End of an attempt. Only a pause after a refusal may be cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Refused,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusedBy {
    Attempt,
    PreEnqueue,
}

impl State {
    pub(super) const fn place(&self) -> Place {
        match self {
            Self::Active => Place::Active,
            Self::BackingOff { .. } => Place::BackingOff,
            Self::Waiting { by: RefusedBy::Attempt, .. } => Place::Unschedulable,
            Self::Waiting { by: RefusedBy::PreEnqueue, .. } | Self::Held => Place::Gated,
            Self::InFlight { .. } => Place::InFlight,
        }
    }
}

impl<R> Unit<R> {
    pub(super) fn pod_mut(&mut self, uid: &str) -> Option<&mut Arc<Pod>> {
        self.pods.iter_mut().chain(&mut self.joined).find(|pod| pod.uid() == uid)
    }

    pub(super) fn remove(&mut self, uid: &str) {
        self.pods.retain(|pod| pod.uid() != uid);
        self.joined.retain(|pod| pod.uid() != uid);
    }

    /// Returns true if no pod is left and no attempt is under way.
    pub(super) const fn is_over(&self) -> bool {
        self.pods.is_empty() && !matches!(self.state, State::InFlight { .. })
    }

    /// Ends the attempt that is under way: pods that have come meanwhile are tried with the others from now on.
    pub(super) fn end(&mut self, now: Timestamp) {
        self.pods.append(&mut self.joined);
        self.since = now;
    }

    /// Returns the end of the pause after the last attempt; none if there was no attempt.
    pub(super) fn back_at(&self, options: QueueOptions) -> Option<Timestamp> {
        let count = if self.failures > 0 { self.failures } else { self.refusals };
        options.back_at(self.since, count, self.pods.len())
    }

    /// Lets the unit be tried again: at once, or after its pause.
    pub(super) fn release(&mut self, options: QueueOptions, now: Timestamp) {
        self.state = match self.back_at(options).filter(|end| *end > now) {
            Some(until) => State::BackingOff { until, after: Ending::Refused },
            None => State::Active,
        };
    }

    /// Lets the unit be tried again after its pause and not before, whatever comes.
    pub(super) fn pause(&mut self, options: QueueOptions, after: Ending) {
        let until = self.back_at(options).unwrap_or(self.since);
        self.state = State::BackingOff { until, after };
    }
}
