//! Pods that wait for a node: the queue of the library, with a clock, and with the counts that `/metrics` shows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dra_alloc::queue::{
    ClusterEvent, ObjectChange, Place, PrioritySort, QueueAttempt, QueueOptions, Refusal, Remedy, SchedulingQueue,
};
use dra_live::cluster_view::ClusterView;
use dra_live::now;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::counts::Counts;
use super::note;

/// Queues of kube-scheduler, as metrics name them.
const QUEUES: [(&str, Place); 4] = [
    ("active", Place::Active),
    ("backoff", Place::BackingOff),
    ("unschedulable", Place::Unschedulable),
    ("gated", Place::Gated),
];

/// Pods that wait for a node of this scheduler.
#[derive(Debug)]
pub(super) struct PodQueue {
    /// Names that pods ask for in `schedulerName`.
    names: BTreeSet<String>,
    queue: SchedulingQueue,
    /// Pods that wait or are being tried, by UID.
    known: BTreeMap<String, Known>,
    /// The queue's time goes on whatever the clock does.
    begin: (Timestamp, Instant),
    counts: Counts,
}

#[derive(Debug)]
struct Known {
    since: Instant,
    is_refused: bool,
}

impl PodQueue {
    pub(super) fn new(names: &[String], counts: Counts) -> Self {
        Self {
            names: names.iter().cloned().collect(),
            queue: SchedulingQueue::new(PrioritySort, QueueOptions::default()),
            known: BTreeMap::new(),
            begin: (now(), Instant::now()),
            counts,
        }
    }

    fn now(&self) -> Timestamp {
        let (time, begin) = self.begin;
        SignedDuration::try_from(begin.elapsed()).ok().and_then(|since| time.checked_add(since).ok()).unwrap_or(time)
    }

    /// Takes an event. Pods of other schedulers are not added, and bring what they bring to those that wait.
    pub(super) fn observe(&mut self, event: &ClusterEvent<'_>) {
        let pod = match event {
            ClusterEvent::Pod(
                ObjectChange::Added(pod) | ObjectChange::Updated { new: pod, .. } | ObjectChange::Deleted(pod),
            ) => Some(*pod),
            _ => None,
        };
        let is_other = pod.is_some_and(|pod| !self.is_ours(pod));
        let mut refused = None;
        self.counted(label(event), |queue, now| {
            if is_other {
                queue.wake(&event.remedies(), now);
            } else {
                refused = queue.observe(event, now).err();
            }
        });
        if let Some(error) = refused {
            note(error);
        }
        if let Some(uid) = pod.and_then(|pod| pod.metadata.uid.as_deref()) {
            self.update(uid);
        }
    }

    fn is_ours(&self, pod: &Pod) -> bool {
        let name = pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref());
        name.is_some_and(|name| self.names.contains(name))
    }

    fn update(&mut self, uid: &str) {
        if self.queue.place(uid).is_none() {
            self.known.remove(uid);
        } else if !self.known.contains_key(uid) {
            self.known.insert(uid.to_owned(), Known { since: Instant::now(), is_refused: false });
        }
    }

    /// Takes a view that has its first lists: the oldest pods first.
    pub(super) fn begin(&mut self, view: &ClusterView) {
        let mut pods: Vec<&Arc<Pod>> = view.pods.pods().map(|(pod, _)| pod).filter(|pod| self.is_ours(pod)).collect();
        pods.sort_by_key(|pod| pod.metadata.creation_timestamp.clone());
        for pod in pods {
            self.observe(&ClusterEvent::Pod(ObjectChange::Added(pod)));
        }
    }

    /// Forgets the pods that a view does not have.
    pub(super) fn retain(&mut self, view: &ClusterView) {
        let uids = view.all_pods().filter_map(|pod| pod.metadata.uid.as_deref());
        let now = self.now();
        self.queue.retain_listed(uids, now);
        self.known.retain(|uid, _| self.queue.place(uid).is_some());
    }

    /// Takes out the next pod to try, with the pods of its group. Pods that `check` refuses are kept back.
    pub(super) fn pop(&mut self, check: impl FnMut(&[Arc<Pod>]) -> Result<(), Refusal>) -> Option<QueueAttempt> {
        let (before, now) = (self.places(), self.now());
        let attempt = self.queue.pop(now, check);
        let after = self.places();
        // What has left the pauses has become active, or is tried early.
        self.count_more("BackoffComplete", "active", after.get(1), before.get(1));
        self.count_more("UnschedulableTimeout", "active", after.get(2), before.get(2));
        self.count_more("PreEnqueue", "gated", before.get(3), after.get(3));
        attempt
    }

    /// Lets pods be tried again for which something has changed that no event shows.
    pub(super) fn wake(&mut self, remedies: &[Remedy]) {
        self.counted("ForceActivate", |queue, now| {
            queue.wake(remedies, now);
        });
    }

    /// Ends an attempt: no node fits.
    pub(super) fn refused(&mut self, attempt: QueueAttempt, refusal: Refusal) {
        self.counted("ScheduleAttemptFailure", |queue, now| queue.refused(attempt, refusal, now));
    }

    /// Ends an attempt: a write was refused, or the search took too long.
    pub(super) fn failed(&mut self, attempt: QueueAttempt) {
        self.counted("ScheduleAttemptFailure", |queue, now| queue.failed(attempt, now));
    }

    /// Ends an attempt: its pods have a node.
    pub(super) fn done(&mut self, attempt: QueueAttempt) {
        for pod in attempt.pods() {
            self.known.remove(pod.metadata.uid.as_deref().unwrap_or_default());
        }
        self.queue.done(attempt);
    }

    /// Returns the time until a pod is to be tried without an event.
    pub(super) fn next_in(&self) -> Option<Duration> {
        let next = self.queue.next_at()?.duration_since(self.now());
        Some(Duration::try_from(next).unwrap_or_default())
    }

    /// Returns the time since which a pod waits.
    pub(super) fn waiting_since(&self, uid: &str) -> Option<Instant> {
        self.known.get(uid).map(|known| known.since)
    }

    /// Notes that a pod was refused. Returns true for the first time.
    pub(super) fn is_first_refusal(&mut self, uid: &str) -> bool {
        self.known.get_mut(uid).is_none_or(|known| !std::mem::replace(&mut known.is_refused, true))
    }

    /// Forgets that a pod was refused, since something else is wrong now.
    pub(super) fn forget_refusal(&mut self, uid: &str) {
        if let Some(known) = self.known.get_mut(uid) {
            known.is_refused = false;
        }
    }

    /// Shows the numbers of pods by place.
    pub(super) fn show(&self) {
        for ((name, _), pods) in QUEUES.iter().zip(self.places()) {
            self.counts.pending(name, pods);
        }
    }

    fn places(&self) -> [usize; 4] {
        QUEUES.map(|(_, place)| self.queue.count(place))
    }

    /// Does something with the queue, and counts the pods that it brings to each place.
    fn counted(&mut self, event: &str, act: impl FnOnce(&mut SchedulingQueue, Timestamp)) {
        let (before, now) = (self.places(), self.now());
        act(&mut self.queue, now);
        for (((name, _), before), after) in QUEUES.iter().zip(&before).zip(&self.places()) {
            self.count_more(event, name, Some(before), Some(after));
        }
    }

    fn count_more(&self, event: &str, queue: &str, before: Option<&usize>, after: Option<&usize>) {
        let more = after.zip(before).map_or(0, |(after, before)| after.saturating_sub(*before));
        if more > 0 {
            self.counts.incoming(queue, event, more);
        }
    }
}

/// Returns the name that kube-scheduler has for an event.
fn label(event: &ClusterEvent<'_>) -> &'static str {
    match event {
        ClusterEvent::Claim(change) => of(
            change,
            [
                "resource.k8s.io/ResourceClaimAdd",
                "resource.k8s.io/ResourceClaimUpdate",
                "resource.k8s.io/ResourceClaimDelete",
            ],
        ),
        ClusterEvent::Class(change) => of(
            change,
            [
                "resource.k8s.io/DeviceClassAdd",
                "resource.k8s.io/DeviceClassUpdate",
                "resource.k8s.io/DeviceClassDelete",
            ],
        ),
        ClusterEvent::Slice { change, .. } => of(
            change,
            [
                "resource.k8s.io/ResourceSliceAdd",
                "resource.k8s.io/ResourceSliceUpdate",
                "resource.k8s.io/ResourceSliceDelete",
            ],
        ),
        ClusterEvent::TaintRule(change) => of(
            change,
            [
                "resource.k8s.io/DeviceTaintRuleAdd",
                "resource.k8s.io/DeviceTaintRuleUpdate",
                "resource.k8s.io/DeviceTaintRuleDelete",
            ],
        ),
        ClusterEvent::Node(change) => of(change, ["NodeAdd", "NodeUpdate", "NodeDelete"]),
        ClusterEvent::Pod(change) if has_node(change) => {
            of(change, ["AssignedPodAdd", "AssignedPodUpdate", "AssignedPodDelete"])
        }
        ClusterEvent::Pod(change) => {
            of(change, ["UnschedulablePodAdd", "UnschedulablePodUpdate", "UnschedulablePodDelete"])
        }
        _ => "Unknown",
    }
}

fn of<K>(change: &ObjectChange<'_, K>, [add, update, delete]: [&'static str; 3]) -> &'static str {
    match change {
        ObjectChange::Added(_) => add,
        ObjectChange::Updated { .. } => update,
        ObjectChange::Deleted(_) => delete,
    }
}

fn has_node(change: &ObjectChange<'_, Arc<Pod>>) -> bool {
    let (ObjectChange::Added(pod) | ObjectChange::Updated { new: pod, .. } | ObjectChange::Deleted(pod)) = change;
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).is_some_and(|name| !name.is_empty())
}
