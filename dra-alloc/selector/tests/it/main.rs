//! Tests of the public API, one module per concept.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::needless_pass_by_value, reason = "values made in place read better without a borrow")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test has threads of its own")]

mod bounds;
#[path = "../naive/mod.rs"]
mod evaluator;
mod generated;
mod language;
mod lazy;
mod matching;
mod naive;
mod net;
mod releases;
mod two_variables;
mod values;
