//! Behaviour of the public API, one module per concept.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod skip;
