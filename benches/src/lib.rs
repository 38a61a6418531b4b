//! Clusters for benches and tests: big ones, shared ones, full ones, with the questions that are asked of their nodes.
//!
//! Benches are in `benches/`, one file per crate, and `scale` for these clusters; tests that count work are in `tests/`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark stops where its input is wrong"
)]
#![allow(clippy::exhaustive_structs, clippy::exhaustive_enums, reason = "nobody else uses the crate")]
#![allow(clippy::missing_panics_doc, reason = "it panics where its input is wrong")]

pub mod case;
pub mod day;
pub mod dear_selectors;
pub mod objects;
pub mod processor_time;
pub mod random;
pub mod rows;
