//! The operations `scheduling.*`: decisions about pods with devices.

mod api_server;
pub(super) mod autoscaler;
pub(super) mod claims;
pub(super) mod controller;
pub(super) mod cycle;
pub(super) mod eligibility;
pub(super) mod eviction;
pub(super) mod extended;
mod input;
pub(super) mod node_allocatable;
pub(super) mod preemption;
mod room;
pub(super) mod rules;
mod steps;
