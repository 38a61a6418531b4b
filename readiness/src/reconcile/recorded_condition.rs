//! Copies of conditions in the stored state, to detect if a condition has been reported anew.

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Status, reason and timestamps of a condition at an earlier step, to detect a new report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordedCondition {
    status: String,
    reason: Option<String>,
    last_transition_time: Option<Timestamp>,
    last_heartbeat_time: Option<Timestamp>,
}

impl RecordedCondition {
    /// Records a condition. Returns `None` if it has no timestamp, since a new report could then look the same.
    pub(super) fn from_condition(condition: &NodeCondition) -> Option<Self> {
        let has_time = condition.last_transition_time.is_some() || condition.last_heartbeat_time.is_some();
        has_time.then(|| Self {
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            last_transition_time: instant(condition.last_transition_time.as_ref()),
            last_heartbeat_time: instant(condition.last_heartbeat_time.as_ref()),
        })
    }

    fn matches(&self, condition: &NodeCondition) -> bool {
        self.status == condition.status
            && self.reason == condition.reason
            && self.last_transition_time == instant(condition.last_transition_time.as_ref())
            && self.last_heartbeat_time == instant(condition.last_heartbeat_time.as_ref())
    }
}

/// Returns true if `condition` has not been reported anew since `recorded`.
pub(super) fn is_recorded(recorded: Option<&RecordedCondition>, condition: &NodeCondition) -> bool {
    recorded.is_some_and(|recorded| recorded.matches(condition))
}

/// Converts an API timestamp to a [`Timestamp`], which keeps fractions of a second when it is serialised.
fn instant(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}
