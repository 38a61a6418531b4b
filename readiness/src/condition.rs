//! What a node's status says about a gate.

use std::fmt;

use k8s_openapi::api::core::v1::NodeCondition;

/// Type of the condition that kubelet reports on itself.
pub const READY: &str = "Ready";

/// Reason of a condition whose timeout has passed (KEP-5233, Node Readiness Timeout).
pub const TIMEOUT_EXCEEDED: &str = "TimeoutExceeded";

/// Reason of a condition that is from before a reboot (KEP-5233, Node Reboots).
pub const NODE_RESTARTED: &str = "NodeRestarted";

/// Reason that agents give at their start (KEP-5233, Node Reboots).
pub const INITIALIZING: &str = "Initializing";

pub(crate) const TRUE: &str = "True";
pub(crate) const FALSE: &str = "False";
pub(crate) const UNKNOWN: &str = "Unknown";

/// What a condition says, as far as gates distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the columns of the decision tables")]
pub enum Observation {
    /// There is no such condition.
    Missing,
    /// Status True.
    True,
    /// Status False.
    False,
    /// Status Unknown with any other reason, or a status that is not one of the three.
    Unknown,
    /// Status Unknown with reason [`TIMEOUT_EXCEEDED`].
    TimeoutExceeded,
    /// Status Unknown with reason [`NODE_RESTARTED`].
    NodeRestarted,
}

impl Observation {
    /// Reads a condition. Status and reason are compared exactly: `true` is not `True`.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::NodeCondition;
    /// use readiness::condition::Observation;
    /// let condition = |status: &str, reason: &str| NodeCondition {
    ///     status: status.into(), reason: Some(reason.into()), ..NodeCondition::default()
    /// };
    /// assert_eq!(Observation::of(Some(&condition("True", ""))), Observation::True);
    /// assert_eq!(Observation::of(Some(&condition("true", ""))), Observation::Unknown);
    /// assert_eq!(Observation::of(Some(&condition("Unknown", "TimeoutExceeded"))), Observation::TimeoutExceeded);
    /// assert_eq!(Observation::of(Some(&condition("False", "TimeoutExceeded"))), Observation::False);
    /// assert_eq!(Observation::of(None), Observation::Missing);
    /// ```
    #[must_use]
    pub fn of(condition: Option<&NodeCondition>) -> Self {
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

impl fmt::Display for Observation {
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

/// `False (Initializing)`, or `does not exist`.
pub(crate) fn in_words(condition: Option<&NodeCondition>) -> String {
    let Some(condition) = condition else { return "does not exist".to_owned() };
    match condition.reason.as_deref().unwrap_or_default() {
        "" => format!("status is {}", condition.status),
        reason => format!("status is {} ({reason})", condition.status),
    }
}

/// Whether a condition says that what it is about is to be reported anew since the boot: its reset, or a timeout over that,
/// whose message ends with what was there.
pub(crate) fn is_since_boot(condition: &NodeCondition) -> bool {
    let reset = format!("status is {UNKNOWN} ({NODE_RESTARTED})");
    match Observation::of(Some(condition)) {
        Observation::NodeRestarted => true,
        Observation::TimeoutExceeded => condition.message.as_deref().is_some_and(|text| text.ends_with(&reset)),
        _ => false,
    }
}
