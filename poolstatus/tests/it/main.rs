//! Tests of the public API, one module per concept.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::needless_pass_by_value, reason = "values made in place read better without a borrow")]

mod bad_input;
mod cluster;
mod counting;
mod index;
mod kep_form;
mod laws;
mod lifecycle;
mod limits;
mod oracle;
mod partition;
mod random;
mod request;
mod role;
mod secrets;
mod shareable;
mod shipped_form;
mod validate_status;
mod warnings;
