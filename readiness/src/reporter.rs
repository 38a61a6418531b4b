//! Reporter for agents: turns the results of probes into writes of the agent's node condition (KEP-5233, Principles).
//! It writes only changes, not heartbeats, as the KEP asks.

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::condition::{FALSE, INITIALIZING, TRUE, UNKNOWN};

/// Result of an agent's probe of its component.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProbeResult {
    /// The agent has just started and has verified nothing.
    Starting,
    /// The component works.
    Success {
        /// Reason of the condition.
        reason: String,
        /// Message of the condition.
        message: String,
    },
    /// The component does not work.
    Failure {
        /// Reason of the condition.
        reason: String,
        /// Message of the condition.
        message: String,
    },
    /// The agent runs outside the node and can't reach the node (network partition).
    Unreachable,
}

/// Reporter of one agent's condition: decides after each probe if the condition must be written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reporter {
    /// Type of the condition.
    pub condition_type: String,
    /// Time between two probes.
    pub poll_interval: SignedDuration,
    /// True if the agent stops after its first success (`ReportOnSuccessAndTerminate`), as a task that runs once. Otherwise
    /// it reports as long as it runs.
    pub ends_on_success: bool,
    /// True if the condition becomes Unknown while an agent outside the node can't reach the node. Otherwise it stays as
    /// last reported.
    pub unknown_when_unreachable: bool,
}

impl Reporter {
    /// Creates a reporter that probes every 30 seconds as long as the agent runs.
    #[must_use]
    pub fn new(condition_type: &str) -> Self {
        Self {
            condition_type: condition_type.to_owned(),
            poll_interval: SignedDuration::from_secs(30),
            ends_on_success: false,
            unknown_when_unreachable: false,
        }
    }

    /// Returns the condition to write after a probe, `None` if it is unchanged, and the time of the next
    /// probe, at which a failed patch is retried as well. `None` as the time means that the agent stops as soon as the
    /// condition is written.
    ///
    /// ```
    /// use readiness::reporter::{ProbeResult, Reporter};
    /// let agent = Reporter::new("a.example/Ready");
    /// let now = "2026-01-01T00:00:00Z".parse().unwrap();
    /// let (first, _) = agent.report(None, &ProbeResult::Starting, now);
    /// let first = first.unwrap();
    /// assert_eq!((first.status.as_str(), first.reason.as_deref()), ("False", Some("Initializing")));
    /// let (again, _) = agent.report(Some(&first), &ProbeResult::Starting, now);
    /// assert_eq!(again, None);
    /// ```
    #[must_use]
    pub fn report(
        &self,
        stored: Option<&NodeCondition>,
        probe: &ProbeResult,
        now: Timestamp,
    ) -> (Option<NodeCondition>, Option<Timestamp>) {
        let is_done = self.ends_on_success && matches!(probe, ProbeResult::Success { .. });
        let at = now.checked_add(self.poll_interval.max(SignedDuration::ZERO)).unwrap_or(Timestamp::MAX);
        (self.patch(stored, probe, now), (!is_done).then_some(at))
    }

    fn patch(&self, stored: Option<&NodeCondition>, probe: &ProbeResult, now: Timestamp) -> Option<NodeCondition> {
        let (status, reason, message) = match probe {
            ProbeResult::Starting => (FALSE, INITIALIZING, ""),
            ProbeResult::Success { reason, message } => (TRUE, reason.as_str(), message.as_str()),
            ProbeResult::Failure { reason, message } => (FALSE, reason.as_str(), message.as_str()),
            ProbeResult::Unreachable if self.unknown_when_unreachable => (UNKNOWN, "Unreachable", ""),
            ProbeResult::Unreachable => return None,
        };
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let is_same =
            |old: &NodeCondition| old.status == status && text(&old.reason) == reason && text(&old.message) == message;
        if stored.is_some_and(is_same) {
            return None;
        }
        let kept = stored.filter(|old| old.status == status).and_then(|old| old.last_transition_time.clone());
        Some(NodeCondition {
            type_: self.condition_type.clone(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: kept.or(Some(Time(now))),
        })
    }
}
