//! The parts of the program `pool-status`: its command line, the question for each driver, and the output.

pub mod args;
pub mod print;

use std::collections::BTreeSet;

use dra_attrs::profile::Profile;
use k8s_openapi::api::resource::v1alpha3::{ResourcePoolStatusRequest, ResourcePoolStatusRequestSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use poolstatus::compute::Cluster;
use poolstatus::gate::Gates;
use poolstatus::kep;
use poolstatus::outcome::Outcome;
use poolstatus::report::Report;
use poolstatus::request::Query;
use serde_json::{Value, json};

use crate::manifest::Manifests;

/// What is asked of every driver.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Question {
    /// The drivers; all that publish slices if empty.
    pub drivers: Vec<String>,
    /// The pool, if one is asked for.
    pub pool: Option<String>,
    /// The most pools of a driver to list.
    pub limit: i32,
    /// The attribute of partitions in pools whose slices do not name one.
    pub partition_type: Option<String>,
    /// Only pools that this namespace holds devices of.
    pub namespace: Option<String>,
    /// The gates.
    pub gates: Gates,
    /// The text to follow.
    pub profile: Profile,
}

impl Question {
    /// The answers, one for each driver, by name.
    #[must_use]
    pub fn ask(&self, manifests: &Manifests, now: Timestamp) -> Vec<Report> {
        let published = manifests.slices.iter().map(|slice| slice.spec.driver.as_str());
        let drivers: BTreeSet<&str> = if self.drivers.is_empty() {
            published.collect()
        } else {
            self.drivers.iter().map(String::as_str).collect()
        };
        let cluster = Cluster::new(&manifests.slices, &manifests.claims)
            .with_taint_rules(&manifests.taint_rules)
            .with_gates(self.gates);
        drivers.into_iter().map(|driver| cluster.report(&self.query(driver), now)).collect()
    }

    fn query(&self, driver: &str) -> Query {
        let mut query = Query::new(driver).with_limit(usize::try_from(self.limit).unwrap_or_default());
        if let Some(pool) = &self.pool {
            query = query.in_pool(pool);
        }
        if let Some(attribute) = &self.partition_type {
            query = query.with_partition_type(attribute);
        }
        if let Some(namespace) = &self.namespace {
            query = query.in_namespace(namespace);
        }
        query
    }

    /// An answer as the object that a cluster would have.
    #[must_use]
    pub fn object(&self, report: &Report) -> Value {
        let name = format!("pool-status-{}", report.driver.to_ascii_lowercase().replace('/', "-"));
        let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
        match self.profile {
            Profile::V1_37 => json!(self.shipped(report, metadata)),
            _ => json!(self.kep(report, metadata)),
        }
    }

    fn kep(&self, report: &Report, metadata: ObjectMeta) -> kep::ResourcePoolStatusRequest {
        let (driver, pool_name, limit) = (report.driver.clone(), self.pool.clone(), Some(self.limit));
        let spec = kep::Spec { driver, pool_name, limit, ..kep::Spec::default() };
        kep::ResourcePoolStatusRequest { metadata, spec, status: report.kep() }
    }

    fn shipped(&self, report: &Report, metadata: ObjectMeta) -> ResourcePoolStatusRequest {
        let spec = ResourcePoolStatusRequestSpec {
            driver: report.driver.clone(),
            pool_name: self.pool.clone(),
            limit: Some(self.limit),
            default_partition_type_attribute: self.partition_type.clone(),
        };
        ResourcePoolStatusRequest { metadata, spec, status: report.shipped().status().cloned() }
    }
}

/// The pools that hold back the shipped status of a driver.
#[must_use]
pub fn held_back(report: &Report) -> Vec<String> {
    match report.shipped() {
        Outcome::Incomplete { pools, .. } => pools,
        _ => Vec::new(),
    }
}
