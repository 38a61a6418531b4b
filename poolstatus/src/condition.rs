//! Conditions in the status of a `ResourcePoolStatusRequest`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// Builds a condition of status `True` whose last transition is at `now`.
pub(crate) fn true_condition(condition_type: &str, reason: &str, message: String, now: Timestamp) -> Condition {
    Condition {
        type_: condition_type.to_owned(),
        status: "True".to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: Time(now),
        observed_generation: None,
    }
}
