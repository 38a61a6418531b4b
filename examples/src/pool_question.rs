//! Question that is asked about every driver, and the request object that a cluster would store for it.

use std::collections::BTreeSet;

use dra_attrs::{Component, GateSet, Profile};
use dra_attrs::{FieldErrors, PoolStatusForm};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::resource::v1alpha3::{ResourcePoolStatusRequest, ResourcePoolStatusRequestSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use poolstatus::{AvailabilityReport, Cluster, PoolIndex, Query, RequestOutcome, StatusRequest, kep};
use serde_json::{Value, json};

use crate::held_twice::{HeldTwice, held_twice};
use crate::manifest::Manifests;

/// Error of a driver name that the API server refuses.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("--driver {driver}: {errors}")]
#[non_exhaustive]
pub struct RefusedDriver {
    /// Name of the driver.
    pub driver: String,
    /// Errors of a request for it.
    pub errors: FieldErrors,
}

/// Question that is asked about every driver.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "flags of a command line")]
pub struct Question {
    /// Names of the drivers. All drivers that publish slices if empty.
    pub drivers: Vec<String>,
    /// Name of the pool, if only one is asked for.
    pub pool: Option<String>,
    /// Maximum number of listed pools per driver.
    pub limit: i32,
    /// Partition type attribute for pools whose slices do not name one.
    pub partition_type: Option<String>,
    /// Namespace, if only pools are asked for of which its claims hold devices.
    pub namespace: Option<String>,
    /// Feature gates.
    pub gates: GateSet,
    /// Contract to follow.
    pub profile: Profile,
}

/// Answer to a question.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "parts of an answer, with names")]
pub struct PoolAnswer {
    /// One report for each driver, sorted by driver name.
    pub reports: Vec<AvailabilityReport>,
    /// Devices that several claims hold, in all pools that are asked for: also in those beyond the limit, and in those without
    /// slices.
    pub held_twice: Vec<HeldTwice>,
}

impl Question {
    /// Creates the question about all pools of all drivers.
    #[must_use]
    pub const fn new(profile: Profile, gates: GateSet) -> Self {
        Self {
            drivers: Vec::new(),
            pool: None,
            limit: StatusRequest::DEFAULT_LIMIT,
            partition_type: None,
            namespace: None,
            gates,
            profile,
        }
    }

    /// Returns the controller manager that counts.
    #[must_use]
    pub fn controllers(&self) -> Component {
        Component::new(self.profile, self.gates)
    }

    /// Answers the question from manifests.
    #[must_use]
    pub fn ask(&self, manifests: &Manifests, now: Timestamp) -> PoolAnswer {
        let drivers = self.drivers_or(manifests.slices.iter().map(|slice| slice.spec.driver.as_str()));
        let cluster = Cluster::new(self.controllers(), &manifests.slices, &manifests.claims)
            .with_taint_rules(&manifests.taint_rules);
        let reports = drivers.into_iter().map(|driver| cluster.report(&self.query(driver), now)).collect();
        PoolAnswer { reports, held_twice: self.held_twice(&manifests.claims) }
    }

    /// Answers the question from an index, which has to have the gates of the question.
    #[must_use]
    pub fn ask_index(&self, index: &PoolIndex, now: Timestamp) -> PoolAnswer {
        let drivers = self.drivers_or(index.drivers());
        let reports = drivers.into_iter().map(|driver| index.report(&self.query(driver), now)).collect();
        PoolAnswer { reports, held_twice: self.held_twice(index.claims()) }
    }

    /// Finds the devices of the drivers and the pool that several claims hold. If the question is about a namespace, one of
    /// the claims is there.
    pub fn held_twice<'c>(&self, claims: impl IntoIterator<Item = &'c ResourceClaim>) -> Vec<HeldTwice> {
        let is_asked = |held: &HeldTwice| {
            (self.drivers.is_empty() || self.drivers.contains(&held.device.driver))
                && self.pool.as_ref().is_none_or(|pool| *pool == held.device.pool)
                && self.namespace.as_ref().is_none_or(|name| held.claims.iter().any(|claim| claim.namespace == *name))
        };
        let mut held = held_twice(claims);
        held.retain(is_asked);
        held
    }

    fn drivers_or<'d>(&'d self, published: impl Iterator<Item = &'d str>) -> BTreeSet<&'d str> {
        if self.drivers.is_empty() { published.collect() } else { self.drivers.iter().map(String::as_str).collect() }
    }

    /// Checks that the API server of the profile accepts requests for the drivers.
    ///
    /// # Errors
    /// The first driver that it refuses.
    pub fn check_drivers(&self) -> Result<(), RefusedDriver> {
        let metadata = ObjectMeta { name: Some("check".to_owned()), ..ObjectMeta::default() };
        for driver in &self.drivers {
            let errors = match self.profile.pool_status_form() {
                PoolStatusForm::V1alpha3 => {
                    let spec = ResourcePoolStatusRequestSpec { driver: driver.clone(), ..Default::default() };
                    let request = ResourcePoolStatusRequest { metadata: metadata.clone(), spec, status: None };
                    StatusRequest::from(&request).validate(self.gates)
                }
                PoolStatusForm::Kep => {
                    let spec = kep::Spec { driver: driver.clone(), ..kep::Spec::default() };
                    let metadata = metadata.clone();
                    let request = kep::ResourcePoolStatusRequest { metadata, spec, ..Default::default() };
                    StatusRequest::from(&request).validate(self.gates)
                }
            };
            let driver = driver.clone();
            errors.into_result().map_err(|errors| RefusedDriver { driver, errors })?;
        }
        Ok(())
    }

    fn query(&self, driver: &str) -> Query {
        let mut query = Query::new(driver).with_limit(usize::try_from(self.limit).unwrap_or_default());
        if let Some(pool) = &self.pool {
            query = query.with_pool(pool);
        }
        if let Some(attribute) = &self.partition_type {
            query = query.with_partition_type_attribute(attribute);
        }
        if let Some(namespace) = &self.namespace {
            query = query.with_namespace(namespace);
        }
        query
    }

    /// Builds the request object with its status, as a cluster would store it.
    #[must_use]
    pub fn object(&self, report: &AvailabilityReport) -> Value {
        let name = format!("pool-status-{}", report.driver.to_ascii_lowercase().replace('/', "-"));
        let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
        match self.profile.pool_status_form() {
            PoolStatusForm::V1alpha3 => json!(self.v1alpha3(report, metadata)),
            PoolStatusForm::Kep => json!(self.kep(report, metadata)),
        }
    }

    fn kep(&self, report: &AvailabilityReport, metadata: ObjectMeta) -> kep::ResourcePoolStatusRequest {
        let (driver, pool_name, limit) = (report.driver.clone(), self.pool.clone(), Some(self.limit));
        let spec = kep::Spec { driver, pool_name, limit, ..kep::Spec::default() };
        kep::ResourcePoolStatusRequest { metadata, spec, status: report.to_kep() }
    }

    fn v1alpha3(&self, report: &AvailabilityReport, metadata: ObjectMeta) -> ResourcePoolStatusRequest {
        let spec = ResourcePoolStatusRequestSpec {
            driver: report.driver.clone(),
            pool_name: self.pool.clone(),
            limit: Some(self.limit),
            default_partition_type_attribute: self.partition_type.clone(),
        };
        ResourcePoolStatusRequest { metadata, spec, status: report.to_v1alpha3().status().cloned() }
    }
}

/// Returns the names of incomplete pools, which keep a `v1alpha3` status from being written.
#[must_use]
pub fn incomplete_pools(report: &AvailabilityReport) -> Vec<String> {
    match report.to_v1alpha3() {
        RequestOutcome::Incomplete { pools, .. } => pools,
        _ => Vec::new(),
    }
}
