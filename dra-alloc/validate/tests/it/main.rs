//! Tests of the public API, one module per concept.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::needless_pass_by_value, reason = "values made in place read better without a borrow")]
#![allow(clippy::items_after_statements, clippy::type_complexity, reason = "a table has its words beside it")]

mod capacity_rows;
mod claim_rows;
mod class_rows;
mod device_rows;
mod gates;
mod leniency;
mod ratchet;
mod releases;
mod skip;
mod slice_rows;
mod status_rows;
mod stored;
mod world;
