//! Metrics of the kubelet, with the names of its profile (KEP-5945, Monitoring).

use std::time::Duration;

use dra_alloc::kubelet::{Operation, SkipCounts};
use dra_attrs::Profile;
use dra_live::metrics::{Histogram, Metrics, Series};

use super::super::agent::Agent;

/// Upper bounds of the durations, in milliseconds: a call may take 45 seconds.
const BOUNDS: [u64; 12] = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 15_000, 45_000];

/// Metrics of an agent.
#[derive(Debug)]
pub(super) struct Counts {
    durations: Histogram,
    skips: [(Operation, Series); 2],
    in_use: Series,
}

impl Counts {
    pub(super) fn new(metrics: &Metrics, profile: Profile) -> Self {
        let skips = |operation: Operation| {
            let help = "Calls of drivers that were left out, because the devices skip the operation";
            (operation, metrics.counter(operation.skips_metric(profile), help, &[SkipCounts::DRIVER_LABEL]))
        };
        Self {
            durations: metrics.histogram(
                Operation::duration_metric(profile),
                "Time of preparing or unpreparing the claims of a pod",
                &["operation_name", "is_error"],
                BOUNDS.map(Duration::from_millis),
            ),
            skips: [Operation::Prepare, Operation::Unprepare].map(skips),
            in_use: metrics.gauge(
                "dra_resource_claims_in_use",
                "Prepared claims, by driver",
                &[SkipCounts::DRIVER_LABEL],
            ),
        }
    }

    /// Counts an operation that has ended, and what the agent has counted.
    pub(super) fn observe(&self, agent: &Agent, operation: Operation, is_error: bool, duration: Duration) {
        let name = match operation {
            Operation::Prepare => "PrepareResources",
            Operation::Unprepare => "UnprepareResources",
        };
        self.durations.observe(&[name, if is_error { "true" } else { "false" }], duration);
        let counted = agent.skips();
        for (operation, driver, count) in counted.iter() {
            for (_, series) in self.skips.iter().filter(|(known, _)| *known == operation) {
                series.set(&[driver], count);
            }
        }
        let cache = agent.cache();
        let in_use = cache.in_use().into_iter();
        self.in_use.replace(in_use.map(|(driver, count)| (vec![driver.to_owned()], count as u64)));
    }
}
