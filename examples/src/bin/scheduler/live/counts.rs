//! Metrics of the scheduler, with the names and labels that kube-scheduler has.

use std::time::Duration;

use dra_live::metrics::{Histogram, Metrics, Series};

/// Upper bounds of the durations, in milliseconds.
const BOUNDS: [u64; 14] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16_384, 65_536];

/// Upper bounds of the numbers of victims. A histogram counts durations, and writes whole seconds as whole numbers.
const VICTIMS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Upper bounds of the numbers of attempts.
const ATTEMPTS: [u64; 5] = [1, 2, 4, 8, 16];

/// Number of attempts from which on they are not told apart.
const MANY: u32 = 15;

/// Result of an attempt to place a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Scheduled,
    Unschedulable,
    Error,
}

/// Metrics of a scheduler. Clones count together.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    attempts: Series,
    durations: Histogram,
    decisions: Histogram,
    waits: Histogram,
    attempts_of_pods: Histogram,
    pending: Series,
    incoming: Series,
    preemptions: Series,
    victims: Histogram,
    judged: Series,
    looked_at: Series,
    events_lost: Series,
}

impl Counts {
    pub(super) fn new(metrics: &Metrics) -> Self {
        let bounds = || BOUNDS.map(Duration::from_millis);
        Self {
            attempts: metrics.counter(
                "scheduler_schedule_attempts_total",
                "Attempts to place a pod, by result",
                &["profile", "result"],
            ),
            durations: metrics.histogram(
                "scheduler_scheduling_attempt_duration_seconds",
                "Time of an attempt with the writes of its binding, by result",
                &["profile", "result"],
                bounds(),
            ),
            decisions: metrics.histogram(
                "scheduler_scheduling_algorithm_duration_seconds",
                "Time of the decision about a pod",
                &[],
                bounds(),
            ),
            waits: metrics.histogram(
                "scheduler_pod_scheduling_sli_duration_seconds",
                "Time from when a pod was first seen to be pending to its binding, by the number of attempts",
                &["attempts"],
                bounds(),
            ),
            attempts_of_pods: metrics.histogram(
                "scheduler_pod_scheduling_attempts",
                "Attempts that a pod has taken until its binding",
                &[],
                ATTEMPTS.map(Duration::from_secs),
            ),
            pending: metrics.gauge("scheduler_pending_pods", "Pods that wait, by their place", &["queue"]),
            incoming: metrics.counter(
                "scheduler_queue_incoming_pods_total",
                "Pods that came to a place, by the event that has brought them",
                &["event", "queue"],
            ),
            preemptions: metrics.counter(
                "scheduler_preemption_attempts_total",
                "Searches for pods to preempt for one that waits",
                &[],
            ),
            victims: metrics.histogram(
                "scheduler_preemption_victims",
                "Pods that were preempted for one pod",
                &[],
                VICTIMS.map(Duration::from_secs),
            ),
            judged: metrics.counter("dra_scheduler_nodes_judged_total", "Nodes that were judged for a pod", &[]),
            looked_at: metrics.counter(
                "dra_scheduler_pods_looked_at_total",
                "Pods that were looked at: listed, changed, or tried",
                &[],
            ),
            events_lost: metrics.counter(
                "dra_scheduler_events_lost_total",
                "Events about pods that were not written, since too many were waiting",
                &[],
            ),
        }
    }

    /// Counts nodes that were judged.
    pub(super) fn judged(&self, nodes: u64) {
        self.judged.add(&[], nodes);
    }

    /// Counts pods that were looked at.
    pub(super) fn looked_at(&self, pods: u64) {
        self.looked_at.add(&[], pods);
    }

    /// Counts a search for pods to preempt.
    pub(super) fn preemption(&self) {
        self.preemptions.add(&[], 1);
    }

    /// Counts the pods that were preempted for one.
    pub(super) fn victims(&self, pods: usize) {
        self.victims.observe(&[], Duration::from_secs(number(pods)));
    }

    /// Counts an attempt.
    pub(super) fn attempt(&self, outcome: Outcome, profile: &str, duration: Duration) {
        let result = match outcome {
            Outcome::Scheduled => "scheduled",
            Outcome::Unschedulable => "unschedulable",
            Outcome::Error => "error",
        };
        self.attempts.add(&[profile, result], 1);
        self.durations.observe(&[profile, result], duration);
    }

    /// Counts the time of a decision.
    pub(super) fn decision(&self, duration: Duration) {
        self.decisions.observe(&[], duration);
    }

    /// Counts a pod that was bound so long after it was first seen to be pending, in so many attempts.
    pub(super) fn bound(&self, wait: Duration, attempts: u32) {
        let label = if attempts < MANY { attempts.to_string() } else { format!("{MANY}+") };
        self.waits.observe(&[&label], wait);
        self.attempts_of_pods.observe(&[], Duration::from_secs(attempts.into()));
    }

    /// Shows the number of pods in a place.
    pub(super) fn pending(&self, queue: &str, pods: usize) {
        self.pending.set(&[queue], number(pods));
    }

    /// Counts pods that an event has brought to a place.
    pub(super) fn incoming(&self, queue: &str, event: &str, pods: usize) {
        self.incoming.add(&[event, queue], number(pods));
    }

    /// Returns the counter of events that were not written.
    pub(super) fn events_lost(&self) -> Series {
        self.events_lost.clone()
    }
}

fn number(pods: usize) -> u64 {
    pods.try_into().unwrap_or(u64::MAX)
}
