//! Timeline of events on nodes.

use std::collections::BTreeMap;

use readiness::NodeReadinessGate;
use serde::Deserialize;

/// Events at one instant.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Entry {
    /// Seconds since the start of the timeline.
    pub(crate) at: i64,
    /// Name of the node. Every node if missing.
    pub(crate) node: Option<String>,
    /// New value of kubelet's own condition Ready.
    pub(crate) ready: Option<ReadyReport>,
    /// Condition that an agent reports.
    pub(crate) report: Option<ConditionReport>,
    /// Probe of an agent, which its reporter writes if it changes something.
    pub(crate) probe: Option<Probe>,
    /// Type of the condition to delete.
    pub(crate) delete: Option<String>,
    /// Reboots the node.
    pub(crate) reboot: bool,
    /// Restarts kubelet.
    pub(crate) restart: bool,
    /// New list of gates.
    pub(crate) gates: Option<Vec<NodeReadinessGate>>,
    /// Labels that the node gets, or loses where the value is null.
    pub(crate) labels: BTreeMap<String, Option<String>>,
    /// Name of the rule of node-readiness-controller that is deleted.
    #[serde(rename = "withoutRule")]
    pub(crate) without_rule: Option<String>,
    /// Number of seconds by which the evaluator's clock is set forward, or back if negative.
    pub(crate) clock: Option<i64>,
    /// True if the evaluator knows of the change of its clock, from a monotonic one.
    pub(crate) known: bool,
}

/// Status, reason and message of the condition Ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ReadyReport {
    /// Status of the condition.
    pub(crate) status: String,
    /// Reason of the condition.
    pub(crate) reason: String,
    /// Message of the condition.
    pub(crate) message: String,
}

/// Condition with status, reason and message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ConditionReport {
    /// Type of the condition.
    #[serde(rename = "type")]
    pub(crate) type_: String,
    /// Status of the condition.
    pub(crate) status: String,
    /// Reason of the condition.
    pub(crate) reason: String,
    /// Message of the condition.
    pub(crate) message: String,
}

/// Probe of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Probe {
    /// Type of the agent's condition.
    #[serde(rename = "type")]
    pub(crate) type_: String,
    /// Result of the probe.
    pub(crate) result: ProbeOutcome,
    /// Strategy of the reporter.
    #[serde(default)]
    pub(crate) strategy: Strategy,
}

/// Strategy of a reporter, in the words of the KEP's sidecar (`REPORT_STRATEGY`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Strategy {
    /// The agent reports as long as it runs.
    #[default]
    Continuous,
    /// The agent ends with its first success.
    ReportOnSuccessAndTerminate,
}

/// Result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ProbeOutcome {
    /// The agent has just started.
    Starting,
    /// The component works.
    Success,
    /// The component does not work.
    Failure,
    /// The agent can't reach the node.
    Unreachable,
}

/// Reason that a timeline can't be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TimelineError {
    /// An entry is about a node that does not exist.
    #[error("at {at} s: no node {node:?}")]
    NoNode {
        /// Seconds since the start of the timeline.
        at: i64,
        /// Name of the node.
        node: String,
    },
    /// An entry is before or after all times.
    #[error("at {at} s: beyond the range of times")]
    OutOfRange {
        /// Seconds since the start of the timeline.
        at: i64,
    },
}

/// Reads a timeline: a YAML or JSON list of entries, sorted by time; entries of one instant keep their order.
///
/// # Errors
/// Text that is not YAML or JSON, or an unknown field, with its place.
pub(crate) fn read_timeline(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries: Vec<Entry> = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    entries.sort_by_key(|entry| entry.at);
    Ok(entries)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use super::read_timeline;

    #[test]
    fn entries_are_sorted_by_time() {
        let timeline = read_timeline("- {at: 20, reboot: true}\n- {at: 10, clock: -5}\n").unwrap();
        assert_eq!(timeline[0].clock, Some(-5));
    }
}
