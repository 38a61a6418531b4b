//! How many devices of a resource pool are left, where, and why not more (KEP-5677, `ResourcePoolStatusRequest`).
//!
//! A request names a driver; the answer has one entry for each of its pools: total, allocated, available and unavailable
//! devices, and what could still be allocated of partitions and shared devices. Slices, claims, taint rules and the time
//! go in, a [`report::Report`] comes out. It is rendered as the status of the KEP ([`kep::Status`]) or as the one that
//! Kubernetes 1.37 ships (`resource.k8s.io/v1alpha3`).
//!
//! ```
//! use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
//! use k8s_openapi::jiff::Timestamp;
//! use poolstatus::compute::Cluster;
//! use poolstatus::request::Query;
//! use serde_json::{from_value, json};
//!
//! let slice: ResourceSlice = from_value(json!({"metadata": {"name": "node-1-gpus"}, "spec": {
//!     "driver": "gpu.example.com", "nodeName": "node-1",
//!     "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
//!     "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
//! }}))?;
//! let claim: ResourceClaim = from_value(json!({"metadata": {"namespace": "team", "name": "training"}, "spec": {},
//!     "status": {"allocation": {"devices": {"results": [
//!         {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-1"},
//!     ]}}},
//! }))?;
//!
//! let cluster = Cluster::new([&slice], [&claim]);
//! let report = cluster.report(&Query::new("gpu.example.com"), Timestamp::UNIX_EPOCH);
//! let pool = &report.kep().pools[0];
//! assert_eq!((pool.total_devices, pool.allocated_devices, pool.available_devices), (2, 1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The parts
//!
//! - [`request`]: both forms of the request, what is asked, validation. [`kep`]: the KEP's objects.
//! - [`compute`]: the one-shot computation; [`index`]: the same from an index that takes changes.
//! - [`report`] and [`pool`]: what was found out; [`outcome`]: ready, incomplete or failed; [`lint`]: what is odd about the
//!   objects; [`accept`]: whether the API server would take the status.
//! - [`lifecycle`]: which requests are processed, and how long they wait; [`retention`]: when they are deleted; [`rate`]:
//!   how many a user may create; [`metrics`]: what is counted; [`totals`]: sums over pools.
//!
//! # What a caller must know
//!
//! - **Parsing is not validating.** Objects are read as they are. A quantity that can't be read counts as nothing and becomes a
//!   [`lint`], as do numbers that make no sense; a claim without results counts as nothing.
//! - **No names of consumers.** Claims are counted, never named: no claim, namespace, pod or device name of a claim gets
//!   into any output.
//! - **Deterministic.** The order of the objects does not matter, provided that slices have names. Slices of a pool are
//!   looked at in the order of their names.
//! - **Nothing panics**, sums stop at the ends of their types, and the work is linear in slices, devices and allocation
//!   results.
//!
//! # Features
//!
//! `schemars` adds `JsonSchema` to the objects of [`kep`]. The crate needs the Kubernetes types of 1.37.

pub mod accept;
pub mod compute;
pub mod gate;
pub mod index;
pub mod kep;
pub mod lifecycle;
pub mod lint;
pub mod metrics;
pub mod outcome;
pub mod pool;
pub mod rate;
pub mod report;
pub mod request;
pub mod retention;
pub mod totals;

mod amount;
mod in_use;
mod names;
mod partition;
mod shareable;
mod taint;
mod time;
