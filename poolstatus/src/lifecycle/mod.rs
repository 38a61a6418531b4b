//! Lifecycle of a request: which requests a controller processes and deletes, and how many a user may create.
//!
//! Tests: `tests/it/lifecycle.rs`.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

mod controller;
mod phase;
mod rate_limiter;
mod retention;

pub use controller::{RequestController, RequestDecision};
pub use phase::RequestPhase;
pub use rate_limiter::RateLimiter;
pub use retention::TtlError;

/// Returns the time from `start` to `now`, or zero if `start` is later.
fn elapsed(start: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(start)).unwrap_or_default()
}
