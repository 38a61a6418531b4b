//! Tests of superposition: decisive cases, each corner by a plain question, and answers without an order.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod cases;
mod corners;
mod unknown;
mod world;
