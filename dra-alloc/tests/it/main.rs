//! Behaviour of the public API, one module per concept.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod selector;
mod skip;
mod taint;
