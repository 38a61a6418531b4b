//! Availability of Kubernetes resource pools, as a `ResourcePoolStatusRequest` reports it (KEP-5677).
//!
//! [`Cluster::report`] answers the question of that API: how many devices of each pool of a driver are allocated, available
//! or unavailable?
//!
//! ```
//! use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
//! use k8s_openapi::jiff::Timestamp;
//! use dra_attrs::Profile;
//! use poolstatus::{Cluster, Query, RequestOutcome};
//! # let slice = serde_json::json!({"metadata": {"name": "node-1-gpus"}, "spec": {
//! #     "driver": "gpu.example.com", "nodeName": "node-1", "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
//! #     "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
//! # }});
//! # let result = serde_json::json!({"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-1"});
//! # let claim = serde_json::json!({"metadata": {"namespace": "team", "name": "training"}, "spec": {},
//! #     "status": {"allocation": {"devices": {"results": [result]}}}});
//!
//! let slice: ResourceSlice = serde_json::from_value(slice)?;
//! let claim: ResourceClaim = serde_json::from_value(claim)?;
//!
//! let cluster = Cluster::new(Profile::V1_37, [&slice], [&claim]);
//! let report = cluster.report(&Query::new("gpu.example.com"), Timestamp::UNIX_EPOCH);
//! let RequestOutcome::Ready(status) = report.to_v1alpha3() else { panic!("slices are missing") };
//! let pool = &status.pools.unwrap_or_default()[0];
//! assert_eq!((pool.total_devices, pool.allocated_devices, pool.available_devices), (Some(2), Some(1), Some(1)));
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! # Contents
//!
//! - **Computation**: [`Cluster`] for one report, [`PoolIndex`] for many reports while objects change ([`PoolIndexEvent`]).
//!   A [`Query`] names the driver and narrows the pools.
//! - **Result**: [`AvailabilityReport`] with one [`PoolReport`] for each pool. [`AvailabilityReport::to_v1alpha3`] gives the
//!   [`RequestOutcome`] of Kubernetes 1.37 (`resource.k8s.io/v1alpha3`), [`AvailabilityReport::to_kep`] the status of the
//!   KEP (module [`kep`]). [`PoolWarning`] is a problem of a pool's objects, [`DeviceTotals`] the sum over pools.
//! - **API server**: [`StatusRequest`] is a request in either form; [`StatusRequest::validate`],
//!   [`StatusRequest::validate_update`] and [`validate_status`] return the field errors of a write.
//!   [`StatusRequest::reader_role`] is the role of who may ask, [`StatusRequest::is_granted_by`] says if a role lets somebody.
//! - **Controller**: module [`lifecycle`] decides which requests are processed and deleted, and limits their rate per user;
//!   module [`metrics`] names the metrics.
//!
//! # Guarantees
//!
//! - **Parsing is not validating.** Objects are read as they are. A quantity that can't be read counts as zero and adds a
//!   [`PoolWarning`], as do numbers of slices that contradict each other. A claim without results counts as nothing.
//! - **Objects come decoded.** Those of a cluster are decoded after [`dra_attrs::saturate_times`]: k8s-openapi can't hold
//!   times after 9999-12-30T22:00Z, which an API server stores.
//! - **No names of consumers.** Claims are counted, never named: no output has the name of a claim, of its namespace or pod,
//!   or of a device that only a claim names. [`PoolIndex::claims`] gives the caller its own objects back.
//! - **Deterministic.** The order of the objects does not matter, provided that slices have names: the slices of a pool are
//!   read in the order of their names.
//! - **Bounded, without panics.** Sums saturate at the ends of their types. The work is linear in slices, devices and
//!   allocation results, apart from sorting.
//!
//! # Features
//!
//! `schemars` adds `JsonSchema` to the objects of [`kep`]. The crate needs the Kubernetes types of 1.37.
//!
//! Tests: `tests/it`.

pub mod kep;
pub mod lifecycle;
pub mod metrics;

mod availability_report;
mod cluster;
mod condition;
mod device_counts;
mod device_totals;
mod in_use;
mod names;
mod partition_summary;
mod pool_index;
mod pool_report;
mod quantity_sum;
mod query;
mod request_outcome;
mod role;
mod shareable_summary;
mod status_request;
mod summary_error;
mod taint;
mod validate_request;
mod validate_status;
mod warning;

pub use availability_report::AvailabilityReport;
pub use cluster::Cluster;
pub use device_counts::DeviceCounts;
pub use device_totals::DeviceTotals;
pub use pool_index::{PoolIndex, PoolIndexEvent};
pub use pool_report::PoolReport;
pub use query::Query;
pub use request_outcome::{InputKind, RequestOutcome};
pub use status_request::StatusRequest;
pub use summary_error::SummaryError;
pub use validate_status::validate_status;
pub use warning::PoolWarning;
