//! Tests of the public API, one module per concept.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::needless_pass_by_value, reason = "values made in place read better without a borrow")]

mod declared_features;
mod driver;
mod driver_node;
mod kubelet;
