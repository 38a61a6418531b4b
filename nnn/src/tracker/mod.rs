//! The tracker of nominations: takes events of one scheduler, returns commands.
//!
//! Tests: `tests/it/invariants.rs`, `tests/it/explore.rs`, `tests/it/races.rs`.

mod binding_cycle;
mod input;
mod nomination_tracker;
mod open_binding;
mod output;
mod scheduling_cycle;
mod tracked_nominations;
mod watch;

pub use input::TrackerInput;
pub use nomination_tracker::NominationTracker;
pub use output::{TrackerNotice, TrackerOutput};
