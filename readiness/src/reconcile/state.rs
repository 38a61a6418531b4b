//! What the reconciler remembers of a node between two steps.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::before::Before;
use super::counters::Counters;
use crate::taint::TaintId;

/// Where a gate stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "the rows of the decision table")]
pub enum Phase {
    /// Not yet True since the gate came or the node booted.
    #[default]
    Waiting,
    /// True.
    Established,
    /// It was True.
    Regressed,
    /// The timeout has passed; the failure action is in force.
    TimedOut,
}

/// A condition as it once was. One without any time has nothing by which a new report could be told from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    status: String,
    reason: Option<String>,
    last_transition_time: Option<Timestamp>,
    last_heartbeat_time: Option<Timestamp>,
}

impl Report {
    pub(crate) fn of(condition: &NodeCondition) -> Option<Self> {
        let has_time = condition.last_transition_time.is_some() || condition.last_heartbeat_time.is_some();
        has_time.then(|| Self {
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            last_transition_time: instant(condition.last_transition_time.as_ref()),
            last_heartbeat_time: instant(condition.last_heartbeat_time.as_ref()),
        })
    }

    pub(crate) fn is(&self, condition: &NodeCondition) -> bool {
        self.status == condition.status
            && self.reason == condition.reason
            && self.last_transition_time == instant(condition.last_transition_time.as_ref())
            && self.last_heartbeat_time == instant(condition.last_heartbeat_time.as_ref())
    }
}

/// Whether a condition is what it once was.
pub(crate) fn is_report(report: Option<&Report>, condition: &NodeCondition) -> bool {
    report.is_some_and(|report| report.is(condition))
}

/// The API's own type is written in whole seconds, so it would not read back as it was.
fn instant(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}

/// What is remembered of one gate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GateState {
    /// Where it stands.
    pub phase: Phase,
    /// When its timer began.
    pub anchor: Option<Timestamp>,
    /// When its timer began for the first time in this boot.
    pub first_anchor: Option<Timestamp>,
    /// Whether the timeout of this episode has been written, or left unwritten for good.
    pub timeout_written: bool,
    /// Since when the condition is True.
    pub true_since: Option<Timestamp>,
    /// When it regressed, the last few times.
    pub regressions: Vec<Timestamp>,
    /// A report from before the boot, which counts no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) before_boot: Option<Report>,
    /// Whether the node has booted while the gate was out of sight, so that its condition has not been reset.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) reset_is_due: bool,
    /// What the timeout was to be written over, until something else is seen: the write may be lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) asked_over: Option<Report>,
    /// The timeout that was there when the gate came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) leftover: Option<Report>,
}

/// What is remembered of one node. The default is "nothing": an evaluator that starts cold.
///
/// It belongs to the caller, who stores it wherever it survives: it can be written as JSON and read back. Ownership of taints
/// and labels is recorded nowhere else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct State {
    /// UID of the node. Another one is another node.
    pub uid: String,
    /// The boot that was last seen.
    pub boot_id: String,
    /// The run of kubelet that was last seen.
    pub kubelet_instance: Option<String>,
    /// Whether the node was ready.
    pub ready: bool,
    /// Whether the node was open for pods.
    pub open: bool,
    /// Each gate by its condition type.
    pub gates: BTreeMap<String, GateState>,
    /// Taints that we added or adopted.
    pub owned_taints: BTreeSet<TaintId>,
    /// Taints that we asked to have removed, and that have not been seen gone.
    pub leaving_taints: BTreeSet<TaintId>,
    /// Labels that we set.
    pub owned_labels: BTreeSet<String>,
    /// Labels that we asked to have removed, and that have not been seen gone.
    pub leaving_labels: BTreeSet<String>,
    /// What was there before a gate asked for it.
    #[serde(skip_serializing_if = "Before::is_empty")]
    pub(crate) before: Before,
    /// Counts of what happened.
    pub counters: Counters,
    /// Whether a step has been made.
    pub(crate) is_warm: bool,
}
