//! Behaviour of the public API, one module per concept.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod allocate;
mod cluster;
mod inventory;
mod node_selector;
mod numa;
mod selector;
mod skip;
mod skip_allocation;
mod state;
mod taint;
mod usage;
