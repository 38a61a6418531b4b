//! Configuration: profile, feature gates, and the points in which a scheduler may avoid races of kube-scheduler.
//!
//! Tests: `tests/it/gated.rs`.

mod behavior;
mod clearing;
mod options;

pub use behavior::Behavior;
pub use clearing::ClearingPolicy;
pub use options::NominationOptions;
