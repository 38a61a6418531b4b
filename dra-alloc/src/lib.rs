//! What Kubernetes decides about devices: which devices a claim gets, what a driver may publish, and which node
//! operations the kubelet performs or skips (KEP-5945, and the allocation side of KEP-6072).
//!
//! - [`allocator`] finds the devices that kube-scheduler would: an [`inventory`] of slices, the [`state`] of the cluster,
//!   [`features`] and a [`budget`] go in, an [`outcome`] comes out, with the [`result`] that belongs into the claim's
//!   status. [`explain`] says why not. The texts of the KEPs are followed unless the caller asks for
//!   [`Profile::V1_37`](dra_attrs::profile::Profile); features are by default those that 1.37 has on.
//! - [`selector`] evaluates CEL expressions over devices, [`capacity`] the request policies of capacities, [`taint`]
//!   tolerations, [`node`] node selectors.
//! - [`skip`] is `skipNodeOperations` in both forms that exist on the wire; [`kubelet`] is what the kubelet makes of it,
//!   [`declared_features`] keeps pods off nodes that can't skip, and [`diagnosis`] names the likely cause of trouble.
//! - [`validate`] is what the API server accepts and stores of slices, claims, templates, classes and taint rules;
//!   [`rollout`] is the order in which list attributes come and go.
//! - [`usage`] tells whether an attribute is in use and does its work, [`graduation`] what its stage makes of a
//!   feature's gate; [`allocated`] lists the devices of a claim, [`device_id`] names one.
//!
//! `docs/requirements.tsv` lists the statements of the KEPs with their state.
//!
//! # What a caller must know
//!
//! - **Parsing is not validating.** Objects are read as they are; what the allocator relies on is checked when the search
//!   comes to it, and an error names the field. [`validate`] checks the rest.
//! - **A "no" is an answer.** `Err` is for input that no node can make good ([`error::AllocateError`]).
//! - **Bounded.** Each step of a search counts against the caller's budget, and each evaluation of a selector has a cost
//!   limit of its own; explanations have bounds beside the budget ([`explain`]).
//! - **Deterministic.** The same input gives the same output, byte for byte; ids of shares are the caller's.
//!
//! # Features
//!
//! `schemars` adds `JsonSchema` to the types of [`skip`] and to ids of devices. The crate needs the Kubernetes types of 1.37.

pub mod allocated;
pub mod allocator;
pub mod budget;
pub mod capacity;
pub mod declared_features;
pub mod device_id;
pub mod diagnosis;
pub mod error;
pub mod explain;
pub mod features;
pub mod graduation;
pub mod inventory;
pub mod kubelet;
pub mod node;
pub mod outcome;
pub mod result;
pub mod rollout;
pub mod selector;
pub mod skip;
pub mod state;
pub mod taint;
pub mod usage;
pub mod validate;

mod class;
mod counters;
mod expression;
mod profile;
mod request;
mod search;
