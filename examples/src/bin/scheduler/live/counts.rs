//! Metrics of the scheduler, with the names that KEP-5278 and kube-scheduler have.

use std::time::Duration;

use examples::live::metrics::{Histogram, Metrics, Series};

/// Upper bounds of the durations, in milliseconds.
const BOUNDS: [u64; 14] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16_384, 65_536];

/// Upper bounds of the numbers of victims. A histogram counts durations, and writes whole seconds as whole numbers.
const VICTIMS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Result of an attempt to place a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Scheduled,
    Unschedulable,
    Error,
}

/// Metrics of a scheduler.
#[derive(Debug)]
pub(super) struct Counts {
    attempts: Series,
    durations: Histogram,
    waits: Histogram,
    judged: Series,
    looked_at: Series,
    preemptions: Series,
    victims: Histogram,
}

impl Counts {
    pub(super) fn new(metrics: &Metrics) -> Self {
        let bounds = || BOUNDS.map(Duration::from_millis);
        Self {
            attempts: metrics.counter(
                "scheduler_schedule_attempts_total",
                "Attempts to place a pod, by result",
                &["result"],
            ),
            durations: metrics.histogram(
                "scheduler_scheduling_attempt_duration_seconds",
                "Time of an attempt with the writes of its binding, by result",
                &["result"],
                bounds(),
            ),
            waits: metrics.histogram(
                "scheduler_pod_scheduling_sli_duration_seconds",
                "Time from when a pod was first seen to be pending to its binding",
                &[],
                bounds(),
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
        self.victims.observe(&[], Duration::from_secs(pods.try_into().unwrap_or(u64::MAX)));
    }

    /// Counts an attempt.
    pub(super) fn attempt(&self, outcome: Outcome, duration: Duration) {
        let result = match outcome {
            Outcome::Scheduled => "scheduled",
            Outcome::Unschedulable => "unschedulable",
            Outcome::Error => "error",
        };
        self.attempts.add(&[result], 1);
        self.durations.observe(&[result], duration);
    }

    /// Counts a pod that was bound so long after it was first seen to be pending.
    pub(super) fn bound(&self, wait: Duration) {
        self.waits.observe(&[], wait);
    }
}
