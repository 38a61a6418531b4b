//! What an agent writes about its own condition (KEP-5233, Principles, and the condition reporter of the comparison with
//! taints). The KEP asks agents to write upon changes only, not as a heartbeat.

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::condition::{FALSE, INITIALIZING, TRUE, UNKNOWN};

/// What an agent found out about its component.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Probe {
    /// The agent has just started: nothing is verified.
    Starting,
    /// The component works.
    Success {
        /// Reason of the condition.
        reason: String,
        /// Message of the condition.
        message: String,
    },
    /// It does not.
    Failure {
        /// Reason of the condition.
        reason: String,
        /// Message of the condition.
        message: String,
    },
    /// An agent elsewhere can't reach the node (a partition).
    Unreachable,
}

/// When an agent reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// As long as it runs.
    #[default]
    Continuous,
    /// Until the first success (`ReportOnSuccessAndTerminate`): for tasks that are done once.
    OnSuccessAndTerminate,
}

/// What an agent elsewhere says of a node that it can't reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnUnreachable {
    /// The last status stays.
    #[default]
    KeepLast,
    /// Unknown.
    SetUnknown,
}

/// An agent's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reporter {
    /// Type of its condition.
    pub condition_type: String,
    /// Time between two probes.
    pub poll_interval: SignedDuration,
    /// When it reports.
    pub strategy: Strategy,
    /// What it says of a node out of reach.
    pub on_unreachable: OnUnreachable,
}

/// What comes after a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// Another probe at an instant. A patch that failed is tried again then.
    ProbeAt(Timestamp),
    /// Nothing: the agent is done once its patch is written.
    Finished,
}

impl Reporter {
    /// An agent that probes every 30 seconds as long as it runs.
    #[must_use]
    pub fn new(condition_type: &str) -> Self {
        Self {
            condition_type: condition_type.to_owned(),
            poll_interval: SignedDuration::from_secs(30),
            strategy: Strategy::default(),
            on_unreachable: OnUnreachable::default(),
        }
    }

    /// The condition to write after a probe, if status, reason or message change, and what comes next.
    ///
    /// ```
    /// use readiness::reporter::{Probe, Reporter};
    /// let agent = Reporter::new("a.example/Ready");
    /// let now = "2026-01-01T00:00:00Z".parse().unwrap();
    /// let (first, _) = agent.report(None, &Probe::Starting, now);
    /// let first = first.unwrap();
    /// assert_eq!((first.status.as_str(), first.reason.as_deref()), ("False", Some("Initializing")));
    /// let (again, _) = agent.report(Some(&first), &Probe::Starting, now);
    /// assert_eq!(again, None);
    /// ```
    #[must_use]
    pub fn report(
        &self,
        stored: Option<&NodeCondition>,
        probe: &Probe,
        now: Timestamp,
    ) -> (Option<NodeCondition>, Next) {
        let is_done = self.strategy == Strategy::OnSuccessAndTerminate && matches!(probe, Probe::Success { .. });
        let at = now.checked_add(self.poll_interval.max(SignedDuration::ZERO)).unwrap_or(Timestamp::MAX);
        let next = if is_done { Next::Finished } else { Next::ProbeAt(at) };
        (self.patch(stored, probe, now), next)
    }

    fn patch(&self, stored: Option<&NodeCondition>, probe: &Probe, now: Timestamp) -> Option<NodeCondition> {
        let (status, reason, message) = match probe {
            Probe::Starting => (FALSE, INITIALIZING, ""),
            Probe::Success { reason, message } => (TRUE, reason.as_str(), message.as_str()),
            Probe::Failure { reason, message } => (FALSE, reason.as_str(), message.as_str()),
            Probe::Unreachable if self.on_unreachable == OnUnreachable::SetUnknown => (UNKNOWN, "Unreachable", ""),
            Probe::Unreachable => return None,
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
