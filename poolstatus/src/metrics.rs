//! Metrics of the pool status controller. It emits no events.

use std::time::Duration;

use dra_attrs::PoolStatusForm;
use dra_attrs::Profile;
use dra_attrs::internal::release::MetricNames;
use serde::Serialize;

/// Amounts that the processing of one request adds to the counters. The caller measures the duration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MetricIncrements {
    /// Amount to add to the counter [`Metric::Processed`].
    pub processed: u64,
    /// Amount to add to the counter [`Metric::Errors`].
    pub errors: u64,
    /// Name of the driver, the value of [`Metric::DRIVER_LABEL`].
    pub driver: String,
}

impl MetricIncrements {
    /// Returns the amounts for a request whose objects could not be listed. In the KEP, the attempt is an error and the
    /// request stays pending; Kubernetes 1.37 writes a `Failed` condition, and counts the request as processed.
    ///
    /// ```
    /// use dra_attrs::Profile;
    /// use poolstatus::metrics::MetricIncrements;
    /// let counts = |profile| {
    ///     let increments = MetricIncrements::from_list_error("gpu.example.com", profile);
    ///     (increments.processed, increments.errors)
    /// };
    /// assert_eq!((counts(Profile::Kep), counts(Profile::V1_37)), ((0, 1), (1, 0)));
    /// ```
    #[must_use]
    pub fn from_list_error(driver: &str, profile: Profile) -> Self {
        let is_final = match profile.rules().pool_status {
            PoolStatusForm::V1alpha3 => true,
            PoolStatusForm::Kep => false,
        };
        Self { processed: u64::from(is_final), errors: u64::from(!is_final), driver: driver.to_owned() }
    }

    /// Adds a failed write of the status. Kubernetes 1.37 counts the request as processed all the same; in the KEP, it is
    /// processed when its status is written.
    ///
    /// ```
    /// use k8s_openapi::jiff::Timestamp;
    /// use dra_attrs::Profile;
    /// use poolstatus::{PoolIndex, Query};
    /// let report = PoolIndex::new(Profile::V1_37).report(&Query::new("gpu.example.com"), Timestamp::UNIX_EPOCH);
    /// let failed = |profile| report.metric_increments(profile).with_failed_write(profile);
    /// assert_eq!((failed(Profile::Kep).processed, failed(Profile::Kep).errors), (0, 1));
    /// assert_eq!((failed(Profile::V1_37).processed, failed(Profile::V1_37).errors), (1, 1));
    /// ```
    #[must_use]
    pub fn with_failed_write(self, profile: Profile) -> Self {
        let processed = match profile.rules().pool_status {
            PoolStatusForm::V1alpha3 => self.processed,
            PoolStatusForm::Kep => 0,
        };
        Self { processed, errors: self.errors.saturating_add(1), ..self }
    }
}

/// A metric of the pool status controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Metric {
    /// Histogram of the time that the processing of a `ResourcePoolStatusRequest` takes, in seconds.
    Duration,
    /// Counter of failed attempts to process a request.
    Errors,
    /// Counter of processed requests.
    Processed,
}

impl Metric {
    /// Name of the label that every metric has; its value is the name of the driver.
    pub const DRIVER_LABEL: &'static str = "driver_name";

    /// Service level objective: time within which 99 % of the requests are processed.
    pub const OBJECTIVE: Duration = Duration::from_secs(30);

    /// Returns the name of the metric, which differs between the profiles.
    ///
    /// ```
    /// use dra_attrs::Profile;
    /// use poolstatus::metrics::Metric;
    /// assert_eq!(Metric::Errors.name(Profile::Kep), "resourcepoolstatus_request_processing_errors_total");
    /// ```
    #[must_use]
    pub const fn name(self, profile: Profile) -> &'static str {
        match (profile.rules().metrics, self) {
            (MetricNames::Shipped, Self::Duration) => {
                "resourcepoolstatusrequest_controller_request_processing_duration_seconds"
            }
            (MetricNames::Shipped, Self::Errors) => {
                "resourcepoolstatusrequest_controller_request_processing_errors_total"
            }
            (MetricNames::Shipped, Self::Processed) => "resourcepoolstatusrequest_controller_requests_processed_total",
            (MetricNames::Kep, Self::Duration) => "resourcepoolstatus_request_processing_duration_seconds",
            (MetricNames::Kep, Self::Errors) => "resourcepoolstatus_request_processing_errors_total",
            (MetricNames::Kep, Self::Processed) => "resourcepoolstatus_requests_processed_total",
        }
    }

    /// Returns the upper bounds of the histogram's 15 buckets: 1 ms, and each bound twice the one before.
    ///
    /// ```
    /// use std::time::Duration;
    /// let buckets: Vec<Duration> = poolstatus::metrics::Metric::buckets().collect();
    /// assert_eq!((buckets[0], buckets[14]), (Duration::from_millis(1), Duration::from_millis(16_384)));
    /// ```
    pub fn buckets() -> impl Iterator<Item = Duration> {
        (0..15).map(|power| Duration::from_millis(1 << power))
    }

    /// Returns true if at least 99 % of the durations are within the [`Self::OBJECTIVE`], or if there are none.
    ///
    /// ```
    /// use std::time::Duration;
    /// use poolstatus::metrics::Metric;
    /// let (fast, slow) = (Duration::from_secs(30), Duration::from_millis(30_001));
    /// assert!(Metric::is_objective_met(&[vec![fast; 99], vec![slow]].concat()));
    /// assert!(!Metric::is_objective_met(&[vec![fast; 98], vec![slow]].concat()));
    /// ```
    #[must_use]
    pub fn is_objective_met(durations: &[Duration]) -> bool {
        let slow = durations.iter().filter(|duration| **duration > Self::OBJECTIVE).count();
        slow.saturating_mul(100) <= durations.len()
    }
}
