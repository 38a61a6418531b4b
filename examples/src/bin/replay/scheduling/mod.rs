//! The operations `scheduling.*`: decisions about pods with devices.

mod api_server;
pub(super) mod claims;
pub(super) mod cycle;
mod input;
pub(super) mod rules;
mod steps;
