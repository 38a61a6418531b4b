//! What a kubelet counts (KEP-5945, Monitoring): names, and the counters of skipped calls.

use std::collections::BTreeMap;

use dra_attrs::profile::Profile;
use serde::Serialize;

use super::plan::{Operation, Skipped};

/// The label of the counters.
pub const DRIVER_LABEL: &str = "driver_name";

/// The histogram of the time that an operation on a pod takes, by `operation_name` and `is_error`. The KEP also writes it
/// without the prefix, as the shipped kubelet does.
///
/// ```
/// use dra_alloc::kubelet::metrics::operations_duration;
/// use dra_attrs::profile::Profile;
/// assert_eq!(operations_duration(Profile::Kep), "kubelet_dra_operations_duration_seconds");
/// assert_eq!(operations_duration(Profile::V1_37), "dra_operations_duration_seconds");
/// ```
#[must_use]
pub const fn operations_duration(profile: Profile) -> &'static str {
    match profile {
        Profile::V1_37 => "dra_operations_duration_seconds",
        _ => "kubelet_dra_operations_duration_seconds",
    }
}

/// The counter of skipped calls.
///
/// ```
/// use dra_alloc::kubelet::{Operation, metrics::skips_total};
/// use dra_attrs::profile::Profile;
/// assert_eq!(skips_total(Operation::Prepare, Profile::Kep), "kubelet_dra_node_prepare_skips_total");
/// assert_eq!(skips_total(Operation::Unprepare, Profile::V1_37), "dra_node_unprepare_skips_total");
/// ```
#[must_use]
pub const fn skips_total(operation: Operation, profile: Profile) -> &'static str {
    match (operation, profile) {
        (Operation::Prepare, Profile::V1_37) => "dra_node_prepare_skips_total",
        (Operation::Unprepare, Profile::V1_37) => "dra_node_unprepare_skips_total",
        (Operation::Prepare, _) => "kubelet_dra_node_prepare_skips_total",
        (Operation::Unprepare, _) => "kubelet_dra_node_unprepare_skips_total",
    }
}

/// Counters of skipped calls, one for each claim and driver of each attempt.
///
/// Calls that are made and operations that fail a check add nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SkipCounts(BTreeMap<Operation, BTreeMap<String, u64>>);

impl SkipCounts {
    /// Adds the skips of a plan.
    pub fn add(&mut self, skipped: &[Skipped]) {
        for Skipped { driver, operation, .. } in skipped {
            let count = self.0.entry(*operation).or_default().entry(driver.clone()).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// The skips of a driver's operation.
    #[must_use]
    pub fn of(&self, operation: Operation, driver: &str) -> u64 {
        self.0.get(&operation).and_then(|drivers| drivers.get(driver)).copied().unwrap_or_default()
    }

    /// Every counter: operation, driver, count.
    pub fn iter(&self) -> impl Iterator<Item = (Operation, &str, u64)> {
        self.0.iter().flat_map(|(operation, drivers)| {
            drivers.iter().map(|(driver, count)| (*operation, driver.as_str(), *count))
        })
    }
}
