//! Behaviour of the public API, one module per concept.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::redundant_clone, clippy::cloned_ref_to_slice_refs, reason = "the rows of a table look alike")]
#![allow(clippy::needless_pass_by_value, reason = "values made in place read better without a borrow")]

mod actions;
mod examples;
mod filter;
mod helpers;
mod laws;
mod restarts;
mod scenario;
mod state;
mod timeouts;
mod timers;
mod trace;
mod validate;
mod world;
