//! Commands of the tracker to its caller, and the decision to write a status.
//!
//! Tests: `tests/it/cost.rs`, `tests/it/races.rs`.

mod command;
mod patch;

pub use command::{Command, NoPatchReason};
