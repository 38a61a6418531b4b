//! What is counted about processing. There are no events.

use std::time::Duration;

use dra_attrs::profile::Profile;
use serde::Serialize;

/// The label of every metric.
pub const DRIVER_LABEL: &str = "driver_name";

/// What one processing adds to the counters, and the label under which it does. The duration is the caller's to measure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Observability {
    /// For [`Metric::Processed`].
    pub processed: u64,
    /// For [`Metric::Errors`].
    pub errors: u64,
    /// The driver.
    pub driver: String,
}

/// A metric of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Metric {
    /// Histogram of how long processing takes, in seconds.
    Duration,
    /// Counter of failed attempts.
    Errors,
    /// Counter of processed requests.
    Processed,
}

impl Metric {
    /// The name.
    ///
    /// ```
    /// use dra_attrs::profile::Profile;
    /// use poolstatus::metrics::Metric;
    /// assert_eq!(Metric::Errors.name(Profile::Kep), "resourcepoolstatus_request_processing_errors_total");
    /// ```
    #[must_use]
    pub const fn name(self, profile: Profile) -> &'static str {
        match (profile, self) {
            (Profile::V1_37, Self::Duration) => {
                "resourcepoolstatusrequest_controller_request_processing_duration_seconds"
            }
            (Profile::V1_37, Self::Errors) => "resourcepoolstatusrequest_controller_request_processing_errors_total",
            (Profile::V1_37, Self::Processed) => "resourcepoolstatusrequest_controller_requests_processed_total",
            (_, Self::Duration) => "resourcepoolstatus_request_processing_duration_seconds",
            (_, Self::Errors) => "resourcepoolstatus_request_processing_errors_total",
            (_, Self::Processed) => "resourcepoolstatus_requests_processed_total",
        }
    }
}

/// The upper bounds of the histogram's buckets: 15, from a millisecond, each twice the one before.
///
/// ```
/// use std::time::Duration;
/// let buckets: Vec<Duration> = poolstatus::metrics::buckets().collect();
/// assert_eq!((buckets[0], buckets[14]), (Duration::from_millis(1), Duration::from_millis(16_384)));
/// ```
pub fn buckets() -> impl Iterator<Item = Duration> {
    (0..15).map(|power| Duration::from_millis(1 << power))
}

/// Within what time 99% of the requests are to be processed.
pub const OBJECTIVE: Duration = Duration::from_secs(30);

/// Whether at least 99% of the durations are within the [`OBJECTIVE`]. None at all are.
///
/// ```
/// use std::time::Duration;
/// use poolstatus::metrics::is_objective_met;
/// let (fast, slow) = (Duration::from_secs(30), Duration::from_millis(30_001));
/// assert!(is_objective_met(&[vec![fast; 99], vec![slow]].concat()));
/// assert!(!is_objective_met(&[vec![fast; 98], vec![slow]].concat()));
/// ```
#[must_use]
pub fn is_objective_met(durations: &[Duration]) -> bool {
    let slow = durations.iter().filter(|duration| **duration > OBJECTIVE).count();
    slow.saturating_mul(100) <= durations.len()
}
