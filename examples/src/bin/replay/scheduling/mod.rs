//! The operations `scheduling.*`: decisions about pods with devices.

mod api_server;
pub(super) mod autoscaler;
pub(super) mod claims;
pub(super) mod controller;
pub(super) mod cycle;
pub(super) mod eviction;
mod input;
pub(super) mod rules;
mod steps;
