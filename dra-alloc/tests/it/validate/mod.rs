//! Tests of the validation by the API server.
#![allow(clippy::items_after_statements, clippy::type_complexity, reason = "a table has its words beside it")]

mod capacity_rows;
mod claim_rows;
mod class_rows;
mod device_rows;
mod gates;
mod leniency;
mod lists;
mod properties;
mod ratchet;
mod skip;
mod slice_rows;
mod status_rows;
mod stored;
mod world;
