//! Conditions kept in the state, to recognise them later.

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Status, reason and timestamps of a condition at an earlier step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordedCondition {
    status: String,
    reason: Option<String>,
    last_transition_time: Option<Timestamp>,
    last_heartbeat_time: Option<Timestamp>,
}

impl RecordedCondition {
    /// Records a condition. Returns `None` for one without any timestamp: a new report could not be told from it.
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

/// Returns true if `condition` is unchanged since it was recorded.
pub(super) fn is_recorded(recorded: Option<&RecordedCondition>, condition: &NodeCondition) -> bool {
    recorded.is_some_and(|recorded| recorded.matches(condition))
}

/// Returns the instant of an API timestamp. The API's own type is serialised in whole seconds and would lose a fraction.
fn instant(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}
