//! Tests of consolidation: decisive cases, plans carried out step by step, the least moves by brute force, plans against changes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod cases;
mod changes;
mod emptied;
mod least_moves;
mod new_nodes;
mod odd_input;
mod replaced;
mod world;
