//! Tests of the public API, one module per concept.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::needless_pass_by_value, reason = "values made in place read better without a borrow")]

mod diagnosis;
mod equality;
mod internal;
mod pool_check;
mod skip;
mod skip_aggregate;
mod taint;
