//! Metrics of the controller, by driver.

use std::time::Duration;

use dra_attrs::Profile;
use dra_live::metrics::{Histogram, Metrics, Series};
use poolstatus::metrics::{Metric, MetricIncrements};

/// Metrics of a controller, with the names of KEP-5677.
pub(super) struct Counts {
    processed: Series,
    errors: Series,
    duration: Histogram,
}

impl Counts {
    pub(super) fn new(metrics: &Metrics, profile: Profile) -> Self {
        const LABELS: &[&str] = &[Metric::DRIVER_LABEL];
        let name = |metric: Metric| metric.name(profile);
        Self {
            processed: metrics.counter(name(Metric::Processed), "Requests that were processed", LABELS),
            errors: metrics.counter(name(Metric::Errors), "Failed attempts to process a request", LABELS),
            duration: metrics.histogram(name(Metric::Duration), "Time to process a request", LABELS, Metric::buckets()),
        }
    }

    pub(super) fn add(&self, increments: &MetricIncrements, taken: Duration) {
        let labels = [increments.driver.as_str()];
        self.processed.add(&labels, increments.processed);
        self.errors.add(&labels, increments.errors);
        self.duration.observe(&labels, taken);
    }
}
