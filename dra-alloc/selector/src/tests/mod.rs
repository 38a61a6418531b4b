//! Tests of what the public door does not show.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod cache;
mod direct;
mod patterns;
