//! Statuses of a node condition that readiness gates tell apart.

use std::fmt;

use k8s_openapi::api::core::v1::NodeCondition;

use super::{FALSE, NODE_RESTARTED, TIMEOUT_EXCEEDED, TRUE, UNKNOWN};

/// Status of a node condition, with the two reasons of Unknown that readiness gates treat in a special way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the columns of the decision tables")]
pub enum ConditionStatus {
    /// The node has no condition of the type.
    Missing,
    /// Status True, with any reason.
    True,
    /// Status False, with any reason.
    False,
    /// Status Unknown with a reason other than `TimeoutExceeded` and `NodeRestarted`, or a status that is not
    /// True, False or Unknown.
    Unknown,
    /// Status Unknown with reason `TimeoutExceeded`.
    TimeoutExceeded,
    /// Status Unknown with reason `NodeRestarted`.
    NodeRestarted,
}

impl ConditionStatus {
    /// Classifies a condition by its status and reason; `None` is [`Self::Missing`]. The comparison is exact: `true` is
    /// not `True`.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::NodeCondition;
    /// use readiness::ConditionStatus;
    /// let condition = |status: &str, reason: &str| NodeCondition {
    ///     status: status.into(), reason: Some(reason.into()), ..NodeCondition::default()
    /// };
    /// let status = |text, reason| ConditionStatus::from_condition(Some(&condition(text, reason)));
    /// assert_eq!(status("True", ""), ConditionStatus::True);
    /// assert_eq!(status("true", ""), ConditionStatus::Unknown);
    /// assert_eq!(status("Unknown", "TimeoutExceeded"), ConditionStatus::TimeoutExceeded);
    /// assert_eq!(status("False", "TimeoutExceeded"), ConditionStatus::False);
    /// assert_eq!(ConditionStatus::from_condition(None), ConditionStatus::Missing);
    /// ```
    #[must_use]
    pub fn from_condition(condition: Option<&NodeCondition>) -> Self {
        let Some(condition) = condition else { return Self::Missing };
        match (condition.status.as_str(), condition.reason.as_deref()) {
            (TRUE, _) => Self::True,
            (FALSE, _) => Self::False,
            (UNKNOWN, Some(TIMEOUT_EXCEEDED)) => Self::TimeoutExceeded,
            (UNKNOWN, Some(NODE_RESTARTED)) => Self::NodeRestarted,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Missing => "Missing",
            Self::True => TRUE,
            Self::False => FALSE,
            Self::Unknown => UNKNOWN,
            Self::TimeoutExceeded => TIMEOUT_EXCEEDED,
            Self::NodeRestarted => NODE_RESTARTED,
        })
    }
}

/// Formats status and reason of a condition: `status is False (Initializing)`, or `does not exist`.
pub(crate) fn status_text(condition: Option<&NodeCondition>) -> String {
    let Some(condition) = condition else { return "does not exist".to_owned() };
    match condition.reason.as_deref().unwrap_or_default() {
        "" => format!("status is {}", condition.status),
        reason => format!("status is {} ({reason})", condition.status),
    }
}

/// Returns true if a reboot has reset the condition to Unknown and no agent has reported it since. Its reason is then
/// `NodeRestarted`, or `TimeoutExceeded` with a message that ends with the reset status.
pub(crate) fn is_reset_by_boot(condition: &NodeCondition) -> bool {
    let reset = format!("status is {UNKNOWN} ({NODE_RESTARTED})");
    match ConditionStatus::from_condition(Some(condition)) {
        ConditionStatus::NodeRestarted => true,
        ConditionStatus::TimeoutExceeded => condition.message.as_deref().is_some_and(|text| text.ends_with(&reset)),
        _ => false,
    }
}
