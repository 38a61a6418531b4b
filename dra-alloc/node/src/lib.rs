//! Decisions on a node: what a DRA driver publishes, prepares and reports, which drivers a kubelet calls, and which nodes
//! can run a pod. For authors of drivers and of agents that do the kubelet's work; the crate `dra-alloc` shows all of it too.
//!
//! - [`driver`] plans the slices of a driver's devices, keeps the stored slices so, and prepares claims.
//! - [`kubelet`] decides which drivers are called for a pod, and what is remembered (KEP-5945).
//! - [`declared_features`] keeps pods off nodes whose kubelet can't skip node operations.
//!
//! ```
//! use dra_attrs::Profile;
//! use dra_node::driver::{NodeChoice, PoolSpec, SliceLimits, split_into_slices};
//! use k8s_openapi::api::resource::v1::Device;
//!
//! let devices: Vec<Device> = (0..200).map(|number| Device { name: format!("gpu-{number}"), ..Device::default() }).collect();
//! let pool = PoolSpec::new("gpu.example.com", "node-1", NodeChoice::Node("node-1")).with_devices(&devices);
//! let plan = split_into_slices(&pool, &SliceLimits::of(Profile::V1_37).filling_slices(), None)?;
//! assert_eq!(plan.slices.len(), 2, "a slice has at most 128 devices");
//! # Ok::<(), dra_node::driver::PlanError>(())
//! ```
//!
//! Nothing here reads a clock or a file, or calls anybody: stored objects, answers and the time are arguments.
//!
//! # Features
//!
//! `schemars` adds `JsonSchema` to the types that `dra-device` has. The crate needs the Kubernetes types of 1.37.
//!
//! Tests: `tests/it`.

pub mod declared_features;
pub mod driver;
pub mod kubelet;
