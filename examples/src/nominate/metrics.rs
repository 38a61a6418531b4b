//! Metrics of the scheduler that KEP-5278 names, counted over a timeline.

use std::collections::BTreeMap;

/// Counter of scheduling attempts, by result.
const ATTEMPTS: &str = "scheduler_schedule_attempts_total";

/// Time from the start of a pod's cycle to its end, with the binding, by result.
const ATTEMPT_DURATION: &str = "scheduler_scheduling_attempt_duration_seconds";

/// Time from a pod's entry into the queue to its binding. Gated time does not count.
const SLI_DURATION: &str = "scheduler_pod_scheduling_sli_duration_seconds";

/// Result of a scheduling attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AttemptResult {
    Error,
    Scheduled,
    Unschedulable,
}

impl AttemptResult {
    const fn label(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Scheduled => "scheduled",
            Self::Unschedulable => "unschedulable",
        }
    }
}

/// Number and sum of observed durations, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Summary {
    count: u64,
    sum: u64,
}

/// Metrics of one scheduler. A restart sets them to zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metrics {
    attempts: BTreeMap<AttemptResult, Summary>,
    sli: Summary,
}

impl Summary {
    fn observe(&mut self, seconds: u64) {
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(seconds);
    }
}

impl Metrics {
    /// Counts an attempt that took so long.
    pub(crate) fn attempt(&mut self, result: AttemptResult, seconds: u64) {
        self.attempts.entry(result).or_default().observe(seconds);
    }

    /// Counts a pod that was bound so long after it had entered the queue.
    pub(crate) fn scheduled(&mut self, seconds: u64) {
        self.sli.observe(seconds);
    }

    /// Returns the lines of an exposition.
    pub(crate) fn lines(&self) -> Vec<String> {
        let label = |result: &AttemptResult| format!("{{result={:?}}}", result.label());
        let counts = self.attempts.iter().map(|(result, seen)| format!("{ATTEMPTS}{} {}", label(result), seen.count));
        let durations = self.attempts.iter().flat_map(|(result, seen)| {
            let label = label(result);
            [
                format!("{ATTEMPT_DURATION}_sum{label} {}", seen.sum),
                format!("{ATTEMPT_DURATION}_count{label} {}", seen.count),
            ]
        });
        let sli = [format!("{SLI_DURATION}_sum {}", self.sli.sum), format!("{SLI_DURATION}_count {}", self.sli.count)];
        counts.chain(durations).chain(sli).collect()
    }
}
