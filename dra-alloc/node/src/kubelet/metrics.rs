//! Metrics of a kubelet (KEP-5945, Monitoring): their names, and counters of skipped driver calls.

use std::collections::BTreeMap;

use dra_attrs::Profile;
use dra_attrs::internal::release::MetricNames;
use serde::Serialize;

use super::operation::Operation;
use super::plan::Skipped;

impl Operation {
    /// Returns the name of the histogram of operation durations in seconds, with the labels `operation_name` and
    /// `is_error`. The KEP uses the name with and without the prefix `kubelet_`; Kubernetes 1.37 has no prefix.
    ///
    /// ```
    /// use dra_node::kubelet::Operation;
    /// use dra_attrs::Profile;
    /// assert_eq!(Operation::duration_metric(Profile::Kep), "kubelet_dra_operations_duration_seconds");
    /// assert_eq!(Operation::duration_metric(Profile::V1_37), "dra_operations_duration_seconds");
    /// ```
    #[must_use]
    pub const fn duration_metric(profile: Profile) -> &'static str {
        match profile.rules().metrics {
            MetricNames::Shipped => "dra_operations_duration_seconds",
            MetricNames::Kep => "kubelet_dra_operations_duration_seconds",
        }
    }

    /// Returns the name of the counter of skipped calls of an operation.
    ///
    /// ```
    /// use dra_node::kubelet::Operation;
    /// use dra_attrs::Profile;
    /// assert_eq!(Operation::Prepare.skips_metric(Profile::Kep), "kubelet_dra_node_prepare_skips_total");
    /// assert_eq!(Operation::Unprepare.skips_metric(Profile::V1_37), "dra_node_unprepare_skips_total");
    /// ```
    #[must_use]
    pub const fn skips_metric(self, profile: Profile) -> &'static str {
        match (self, profile.rules().metrics) {
            (Self::Prepare, MetricNames::Shipped) => "dra_node_prepare_skips_total",
            (Self::Unprepare, MetricNames::Shipped) => "dra_node_unprepare_skips_total",
            (Self::Prepare, MetricNames::Kep) => "kubelet_dra_node_prepare_skips_total",
            (Self::Unprepare, MetricNames::Kep) => "kubelet_dra_node_unprepare_skips_total",
        }
    }
}

/// Counters of skipped driver calls, by operation and driver. Each attempt counts once for each claim and driver.
///
/// Calls that are made, and operations that fail a check, are not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SkipCounts(BTreeMap<Operation, BTreeMap<String, u64>>);

impl SkipCounts {
    /// Name of the label with the driver's name on the counters of skipped calls.
    pub const DRIVER_LABEL: &str = "driver_name";

    /// Counts the skipped calls of a plan ([`super::Plan::skipped`]).
    pub fn add(&mut self, skipped: &[Skipped]) {
        for Skipped { driver, operation, .. } in skipped {
            let count = self.0.entry(*operation).or_default().entry(driver.clone()).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// Returns the number of skipped calls of one operation of one driver.
    #[must_use]
    pub fn count(&self, operation: Operation, driver: &str) -> u64 {
        self.0.get(&operation).and_then(|drivers| drivers.get(driver)).copied().unwrap_or_default()
    }

    /// Returns all counters as operation, driver and number of skipped calls.
    pub fn iter(&self) -> impl Iterator<Item = (Operation, &str, u64)> {
        self.0.iter().flat_map(|(operation, drivers)| {
            drivers.iter().map(|(driver, count)| (*operation, driver.as_str(), *count))
        })
    }
}
