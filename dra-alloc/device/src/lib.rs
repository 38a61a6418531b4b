//! Slices and their pools, taints, `skipNodeOperations`, and the claims that have devices. For authors of controllers and agents that read these objects and decide nothing about placing; the crate
//! `dra-alloc` shows all of it too.
//!
//! ```
//! use dra_device::pool::{LatestGeneration, group_by_pool};
//! use k8s_openapi::api::resource::v1::ResourceSlice;
//!
//! let mut slice = ResourceSlice::default();
//! slice.spec.pool.name = "node-1".to_owned();
//! slice.spec.pool.resource_slice_count = 2;
//! let mut slices = [&slice];
//! for pool in group_by_pool(&mut slices) {
//!     let newest = LatestGeneration::from_slices(pool).expect("a pool has a slice");
//!     assert!(!newest.is_complete(), "{} has {} of its slices", newest.pool(), newest.count());
//! }
//! ```
//!
//! # Contents
//!
//! - **Pools** ([`pool`]): the slices of a pool that count, contradictions between them, and mistakes of a driver that no
//!   single slice shows.
//! - **Devices**: [`taint`] (tolerations), [`allocated_devices`] of a claim, [`DeviceId`].
//! - **Optional node operations** (KEP-5945): [`skip`] is `skipNodeOperations` in both wire forms.
//! - **Claims**: [`claims`] has their names and the claims of a pod.
//! - **Versions**: [`ApplyOutcome`] tells what an event about an object has changed.
//!
//! Nothing here reads a clock or a file, and the same input gives the same output.
//!
//! # Features
//!
//! `schemars` adds `JsonSchema` to the types of [`skip`] and to device IDs. The crate needs the Kubernetes types of 1.37.
//!
//! Tests: `tests/it`.

pub mod claims;
pub mod pool;
pub mod skip;
pub mod taint;

mod allocated;
mod condition;
mod device_id;
mod equality;
mod extended_resource;
mod gated;
#[doc(hidden)]
pub mod internal;
mod inventory_error;
mod limits;
mod places;
mod pool_check;
mod slice;
mod version;

pub use allocated::allocated_devices;
pub use device_id::{DeviceId, DeviceIdError};
pub use inventory_error::InventoryError;
pub use limits::MAX_DEVICES_PER_CLAIM;
pub use version::ApplyOutcome;
