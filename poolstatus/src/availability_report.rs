//! Report on the pools of a driver, and its conversion to the status of KEP-5677 and to that of Kubernetes 1.37.

use dra_attrs::PoolStatusForm;
use dra_attrs::Profile;
use k8s_openapi::api::resource::v1alpha3::{PoolStatus, ResourcePoolStatusRequestStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use crate::condition::true_condition;
use crate::device_counts::to_i32;
use crate::kep;
use crate::metrics::MetricIncrements;
use crate::pool_report::PoolReport;
use crate::request_outcome::RequestOutcome;
use crate::warning::PoolWarning;

/// Maximum number of validation errors in the KEP's status.
const MAX_VALIDATION_ERRORS: usize = 10;

/// Maximum length of a validation error: in characters in the KEP's status, in bytes in `v1alpha3`. A longer text is cut
/// between two characters.
pub(crate) const MAX_VALIDATION_ERROR_LEN: usize = 256;

/// Availability of devices in the pools that a query selects.
///
/// Both forms of a status list the same pools, with these differences:
///
/// | | [`AvailabilityReport::to_kep`] | [`AvailabilityReport::to_v1alpha3`] |
/// |---|---|---|
/// | devices in claims that the pool does not have | not counted | allocated |
/// | a device that is allocated and tainted | allocated | allocated and unavailable, subtracted twice |
/// | a pool with missing slices | counts of the present slices, a validation error | no counts; the status is not written |
/// | partition and shareable summaries | no | yes |
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AvailabilityReport {
    /// Name of the driver whose pools were queried.
    pub driver: String,
    /// Time of the report, which becomes the observation time of a status.
    pub now: Timestamp,
    /// Reports on the first matching pools, sorted by name; at most as many as the limit of the query.
    pub pools: Vec<PoolReport>,
    /// Number of all pools that match the query, including those beyond its limit.
    pub matching_pools: usize,
}

impl AvailabilityReport {
    /// Returns true if more pools match the query than the report lists.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.pools.len() < self.matching_pools
    }

    /// Builds the status in the KEP's form. Inconsistent pools are listed too, and add validation errors.
    ///
    /// ```
    /// use dra_attrs::Profile;
    /// use poolstatus::{PoolIndex, Query};
    /// let now = "2026-02-07T10:30:00Z".parse()?;
    /// let status = PoolIndex::new(Profile::V1_37).report(&Query::new("gpu.example.com"), now).to_kep();
    /// assert_eq!(status.conditions[0].message, "Processed 0 pools");
    /// # Ok::<(), k8s_openapi::jiff::Error>(())
    /// ```
    #[must_use]
    pub fn to_kep(&self) -> kep::Status {
        let message = format!("Processed {} pools", self.matching_pools);
        let errors = self.warnings(Profile::Kep).filter(|(_, warning)| warning.is_validation_error());
        let errors = errors.map(|(pool, warning)| format!("pool {pool}: {warning}"));
        let errors = errors.map(|text| text.chars().take(MAX_VALIDATION_ERROR_LEN).collect());
        kep::Status {
            observation_time: Some(Time(self.now)),
            pools: self.pools.iter().map(kep_pool).collect(),
            conditions: vec![true_condition("Complete", "CalculationComplete", message, self.now)],
            validation_errors: errors.take(MAX_VALIDATION_ERRORS).collect(),
            truncated: self.is_truncated(),
            total_matching_pools: to_i32(self.matching_pools),
        }
    }

    /// Builds the status in the form of Kubernetes 1.37 (`resource.k8s.io/v1alpha3`). If a listed pool is incomplete, the
    /// status must not be written yet.
    ///
    /// ```
    /// use dra_attrs::Profile;
    /// use poolstatus::{PoolIndex, Query, RequestOutcome};
    /// let now = "2026-02-07T10:30:00Z".parse()?;
    /// let outcome = PoolIndex::new(Profile::V1_37).report(&Query::new("gpu.example.com"), now).to_v1alpha3();
    /// let RequestOutcome::Ready(status) = outcome else { panic!("no pool is incomplete") };
    /// assert_eq!((status.pool_count, status.pools), (0, None));
    /// # Ok::<(), k8s_openapi::jiff::Error>(())
    /// ```
    #[must_use]
    pub fn to_v1alpha3(&self) -> RequestOutcome {
        let incomplete: Vec<String> =
            self.pools.iter().filter(|pool| pool.is_incomplete()).map(|pool| pool.pool.clone()).collect();
        let status = self.v1alpha3_status();
        if incomplete.is_empty() {
            RequestOutcome::Ready(status)
        } else {
            RequestOutcome::Incomplete { pools: incomplete, preview: status }
        }
    }

    fn v1alpha3_status(&self) -> ResourcePoolStatusRequestStatus {
        let pools: Vec<PoolStatus> = self.pools.iter().map(v1alpha3_pool).collect();
        let flawed = pools.iter().filter(|pool| pool.validation_error.is_some()).count();
        let note = if flawed > 0 { format!(" ({flawed} incomplete)") } else { String::new() };
        let message = format!("Calculated status for {} pools{note}", pools.len());
        ResourcePoolStatusRequestStatus {
            conditions: Some(vec![true_condition("Complete", "CalculationComplete", message, self.now)]),
            pool_count: to_i32(self.matching_pools),
            pools: (!pools.is_empty()).then_some(pools),
        }
    }

    /// Returns the warnings of the listed pools, each with the name of its pool, in the order of the pools.
    ///
    /// [`Profile::V1_37`] leaves [`PoolWarning::PartitionsAsListed`] out where the partition summary counts all partitions,
    /// and [`PoolWarning::ShareableInUse`] where there is a shareable summary.
    pub fn warnings(&self, profile: Profile) -> impl Iterator<Item = (&str, &PoolWarning)> {
        self.pools.iter().flat_map(move |pool| {
            let warnings = pool.warnings.iter().filter(move |warning| applies(pool, warning, profile));
            warnings.map(|warning| (pool.pool.as_str(), warning))
        })
    }

    /// Returns the amounts that processing this request adds to the metrics.
    ///
    /// With [`Profile::V1_37`] a request with incomplete pools counts as nothing yet. See
    /// [`MetricIncrements::with_failed_write`] and [`MetricIncrements::from_list_error`] for attempts that fail.
    #[must_use]
    pub fn metric_increments(&self, profile: Profile) -> MetricIncrements {
        let waits = match profile.rules().pool_status {
            PoolStatusForm::V1alpha3 => true,
            PoolStatusForm::Kep => false,
        };
        let is_waiting = waits && self.pools.iter().any(PoolReport::is_incomplete);
        MetricIncrements { processed: u64::from(!is_waiting), errors: 0, driver: self.driver.clone() }
    }
}

/// Returns true if the warning is reported under `profile`. What a summary of Kubernetes 1.37 counts is left out there.
fn applies(pool: &PoolReport, warning: &PoolWarning, profile: Profile) -> bool {
    let summarizes = match profile.rules().pool_status {
        PoolStatusForm::V1alpha3 => true,
        PoolStatusForm::Kep => false,
    };
    let has_summary = summarizes && pool.summary_error().is_none();
    match warning {
        PoolWarning::PartitionsAsListed => !(has_summary && pool.is_summary_exhaustive),
        PoolWarning::ShareableInUse { .. } => !(has_summary && pool.shareable.as_ref().is_ok_and(Option::is_some)),
        _ => true,
    }
}

fn kep_pool(pool: &PoolReport) -> kep::PoolStatus {
    let counts = pool.counts(Profile::Kep);
    kep::PoolStatus {
        driver: pool.driver.clone(),
        pool_name: pool.pool.clone(),
        node_name: pool.node.clone().unwrap_or_default(),
        total_devices: counts.total,
        allocated_devices: counts.allocated,
        available_devices: counts.available,
        unavailable_devices: counts.unavailable,
        slice_count: to_i32(pool.slice_count),
        generation: pool.generation,
    }
}

fn v1alpha3_pool(pool: &PoolReport) -> PoolStatus {
    let status = PoolStatus {
        driver: pool.driver.clone(),
        pool_name: pool.pool.clone(),
        generation: pool.generation,
        node_name: pool.node.clone(),
        ..PoolStatus::default()
    };
    if pool.is_incomplete() {
        let PoolReport { driver, pool, slice_count, expected_slice_count, generation, .. } = pool;
        let error = format!(
            "PoolIncomplete: pool {driver}/{pool} is incomplete: observed {slice_count}/{expected_slice_count} slices at \
             generation {generation}"
        );
        return PoolStatus { validation_error: Some(cut(error)), ..status };
    }
    let counts = pool.counts(Profile::V1_37);
    let error = pool.summary_error();
    let partitions = pool.partitions.as_ref().ok().filter(|partitions| !partitions.is_empty() && error.is_none());
    PoolStatus {
        total_devices: Some(counts.total),
        allocated_devices: Some(counts.allocated),
        available_devices: Some(counts.available),
        unavailable_devices: Some(counts.unavailable),
        resource_slice_count: Some(to_i32(pool.slice_count)),
        partition_summary: partitions.cloned(),
        shareable_summary: pool.shareable.as_ref().ok().cloned().flatten(),
        validation_error: error.map(|error| cut(error.to_string())),
        ..status
    }
}

/// Cuts a text to the maximum length of a validation error, in bytes.
fn cut(mut text: String) -> String {
    let end = (0..=MAX_VALIDATION_ERROR_LEN).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    if text.len() > MAX_VALIDATION_ERROR_LEN {
        text.truncate(end);
    }
    text
}
