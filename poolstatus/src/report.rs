//! The answer to a query, and its two renderings.

use dra_attrs::profile::Profile;
use k8s_openapi::api::resource::v1alpha3::{PoolStatus, ResourcePoolStatusRequestStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use crate::kep;
use crate::lint::{Finding, Lint};
use crate::metrics::Observability;
use crate::outcome::Outcome;
use crate::pool::{PoolReport, count};

/// The most validation errors of the KEP's status.
pub const MAX_VALIDATION_ERRORS: usize = 10;

/// The longest validation error: characters in the KEP's status, bytes in the shipped one. What is longer is cut, between
/// two characters.
pub const MAX_ERROR_LEN: usize = 256;

/// What was found out about the pools that a query asks for.
///
/// Both statuses are made from it. They list the same pools, and differ in what they say about them:
///
/// | | [`Report::kep`] | [`Report::shipped`] |
/// |---|---|---|
/// | devices in claims that the pool does not have | do not count | are allocated |
/// | a device that is allocated and tainted | is allocated | is both, and taken off twice |
/// | a pool with missing slices | counts what is there, with an error | has no counts, and holds the status back |
/// | partitions and shares | - | views |
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The driver asked for.
    pub driver: String,
    /// The time given.
    pub now: Timestamp,
    /// The first pools by name, at most as many as asked for.
    pub pools: Vec<PoolReport>,
    /// How many pools match.
    pub matching: usize,
}

impl Report {
    /// Whether more pools match than are listed.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.pools.len() < self.matching
    }

    /// The status of the KEP's text. A request has one always: what is inconsistent about pools is among its validation
    /// errors.
    ///
    /// ```
    /// use poolstatus::compute::Cluster;
    /// use poolstatus::request::Query;
    /// let now = "2026-02-07T10:30:00Z".parse()?;
    /// let status = Cluster::default().report(&Query::new("gpu.example.com"), now).kep();
    /// assert_eq!(status.conditions[0].message, "Processed 0 pools");
    /// # Ok::<(), k8s_openapi::jiff::Error>(())
    /// ```
    #[must_use]
    pub fn kep(&self) -> kep::Status {
        let message = format!("Processed {} pools", self.matching);
        let errors = self.lints(Profile::Kep).filter(|lint| lint.finding.is_validation_error());
        let errors = errors.map(|lint| lint.to_string().chars().take(MAX_ERROR_LEN).collect());
        kep::Status {
            observation_time: Some(Time(self.now)),
            pools: self.pools.iter().map(kep_pool).collect(),
            conditions: vec![condition("Complete", "CalculationComplete", message, self.now)],
            validation_errors: errors.take(MAX_VALIDATION_ERRORS).collect(),
            truncated: self.is_truncated(),
            total_matching_pools: count(self.matching),
        }
    }

    /// What becomes of the request in the shipped form. An incomplete pool among the listed ones holds it back.
    ///
    /// ```
    /// use poolstatus::compute::Cluster;
    /// use poolstatus::outcome::Outcome;
    /// use poolstatus::request::Query;
    /// let now = "2026-02-07T10:30:00Z".parse()?;
    /// let outcome = Cluster::default().report(&Query::new("gpu.example.com"), now).shipped();
    /// let Outcome::Ready(status) = outcome else { panic!("no pool is incomplete") };
    /// assert_eq!((status.pool_count, status.pools), (0, None));
    /// # Ok::<(), k8s_openapi::jiff::Error>(())
    /// ```
    #[must_use]
    pub fn shipped(&self) -> Outcome {
        let incomplete: Vec<String> =
            self.pools.iter().filter(|pool| pool.is_incomplete()).map(|pool| pool.pool.clone()).collect();
        let status = self.shipped_status();
        if incomplete.is_empty() {
            Outcome::Ready(status)
        } else {
            Outcome::Incomplete { pools: incomplete, preview: status }
        }
    }

    fn shipped_status(&self) -> ResourcePoolStatusRequestStatus {
        let pools: Vec<PoolStatus> = self.pools.iter().map(shipped_pool).collect();
        let flawed = pools.iter().filter(|pool| pool.validation_error.is_some()).count();
        let note = if flawed > 0 { format!(" ({flawed} incomplete)") } else { String::new() };
        let message = format!("Calculated status for {} pools{note}", pools.len());
        ResourcePoolStatusRequestStatus {
            conditions: Some(vec![condition("Complete", "CalculationComplete", message, self.now)]),
            pool_count: count(self.matching),
            pools: (!pools.is_empty()).then_some(pools),
        }
    }

    /// What is odd about the listed pools, by pool.
    pub fn lints(&self, profile: Profile) -> impl Iterator<Item = Lint> {
        self.pools.iter().flat_map(move |pool| {
            let findings = pool.findings.iter().filter(move |finding| is_shown(pool, finding, profile));
            findings.map(|finding| Lint { pool: pool.pool.clone(), finding: finding.clone() })
        })
    }

    /// What the metrics need. A request that is held back counts as nothing yet; errors are those of writing a status,
    /// which are the caller's to add.
    #[must_use]
    pub fn observability(&self, profile: Profile) -> Observability {
        let held_back = profile == Profile::V1_37 && self.pools.iter().any(PoolReport::is_incomplete);
        Observability { processed: u64::from(!held_back), errors: 0, driver: self.driver.clone() }
    }
}

/// A partition summary says what the counts of partitions do not, if it has all of them.
fn is_shown(pool: &PoolReport, finding: &Finding, profile: Profile) -> bool {
    *finding != Finding::PartitionsAsListed
        || profile != Profile::V1_37
        || !pool.partitions_are_summarised
        || pool.view_error().is_some()
}

fn kep_pool(pool: &PoolReport) -> kep::PoolStatus {
    let counts = pool.counts.kep();
    kep::PoolStatus {
        driver: pool.driver.clone(),
        pool_name: pool.pool.clone(),
        node_name: pool.node.clone().unwrap_or_default(),
        total_devices: counts.total,
        allocated_devices: counts.allocated,
        available_devices: counts.available,
        unavailable_devices: counts.unavailable,
        slice_count: count(pool.slices),
        generation: pool.generation,
    }
}

fn shipped_pool(pool: &PoolReport) -> PoolStatus {
    let status = PoolStatus {
        driver: pool.driver.clone(),
        pool_name: pool.pool.clone(),
        generation: pool.generation,
        node_name: pool.node.clone(),
        ..PoolStatus::default()
    };
    if pool.is_incomplete() {
        let PoolReport { driver, pool, slices, announced, generation, .. } = pool;
        let error = format!(
            "PoolIncomplete: pool {driver}/{pool} is incomplete: observed {slices}/{announced} slices at generation \
             {generation}"
        );
        return PoolStatus { validation_error: Some(cut(error)), ..status };
    }
    let counts = pool.counts.shipped();
    let error = pool.view_error();
    let partitions = pool.partitions.as_ref().ok().filter(|partitions| !partitions.is_empty() && error.is_none());
    PoolStatus {
        total_devices: Some(counts.total),
        allocated_devices: Some(counts.allocated),
        available_devices: Some(counts.available),
        unavailable_devices: Some(counts.unavailable),
        resource_slice_count: Some(count(pool.slices)),
        partition_summary: partitions.cloned(),
        shareable_summary: pool.shareable.as_ref().ok().cloned().flatten(),
        validation_error: error.map(|error| cut(error.to_string())),
        ..status
    }
}

/// The text up to its limit in bytes.
fn cut(mut text: String) -> String {
    let end = (0..=MAX_ERROR_LEN).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    if text.len() > MAX_ERROR_LEN {
        text.truncate(end);
    }
    text
}

pub(crate) fn condition(of_type: &str, reason: &str, message: String, now: Timestamp) -> Condition {
    Condition {
        type_: of_type.to_owned(),
        status: "True".to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: Time(now),
        observed_generation: None,
    }
}
