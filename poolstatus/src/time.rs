//! Spans between two times.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

/// How long before `now` something was; nothing if it was later.
pub(crate) fn since(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(then)).unwrap_or_default()
}
