//! Writes to a node that a step of the reconciler requests.

use std::fmt;

use k8s_openapi::api::core::v1::{NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use crate::taint::is_same;
use crate::words::{Choice, EventType, Words};

/// Component that makes a write to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WriteActor {
    /// kubelet: writes conditions, and the labels that a kubelet may set.
    Kubelet,
    /// Node lifecycle controller (NLC): writes taints, events, and the labels that a kubelet may not set.
    Nlc,
}

/// Condition that must still be stored when a patch is applied. The caller sends it as a `test` operation of the patch,
/// so that a new report of an agent is never overwritten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExpectedCondition {
    /// Status that the stored condition must have.
    pub status: String,
    /// Reason that the stored condition must have.
    pub reason: Option<String>,
    /// Time of the last status change that the stored condition must have.
    pub last_transition_time: Option<Time>,
}

impl ExpectedCondition {
    /// Returns true if `condition` still has the expected status, reason and transition time.
    #[must_use]
    pub fn matches(&self, condition: &NodeCondition) -> bool {
        *self == Self::from(condition)
    }
}

impl From<&NodeCondition> for ExpectedCondition {
    fn from(condition: &NodeCondition) -> Self {
        Self {
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            last_transition_time: condition.last_transition_time.clone(),
        }
    }
}

/// Change to one node: to a taint, a condition or a label, or a new event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum NodeChange {
    /// Adds a taint. The write replaces the whole list of taints, so that it must fail if the node has changed since
    /// `resource_version`.
    AddTaint {
        /// Taint to add.
        taint: Taint,
        /// `resourceVersion` of the node object from which the change was computed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource_version: Option<String>,
        /// True if the taint evicts running pods. The caller may want to limit the rate of evictions.
        #[serde(default)]
        evicting: bool,
    },
    /// Sets a condition in the status of the node.
    PatchCondition {
        /// Type of the condition.
        condition_type: String,
        /// New status of the condition.
        status: String,
        /// New reason of the condition.
        reason: String,
        /// New message of the condition, which quotes the replaced status and reason.
        message: String,
        /// Precondition of the write: the condition that must be stored, or `None` if the node must have none of this
        /// type.
        #[serde(rename = "expect")]
        expected: Option<ExpectedCondition>,
    },
    /// Sets a label of the node.
    SetLabel {
        /// Key of the label.
        key: String,
        /// Value of the label.
        value: String,
    },
    /// Removes a taint by key and effect. A taint that is already gone is not an error.
    RemoveTaint {
        /// Taint to remove. Its value does not count.
        taint: Taint,
        /// `resourceVersion` of the node object from which the change was computed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource_version: Option<String>,
    },
    /// Removes a label from the node.
    RemoveLabel {
        /// Key of the label.
        key: String,
    },
    /// Records an event on the node.
    Event {
        /// True if the event may need an action of an administrator (`Warning`), false if it is for information only
        /// (`Normal`). In JSON `eventType`.
        #[serde(rename = "eventType", with = "Words::<EventType>")]
        is_warning: bool,
        /// Reason of the event.
        reason: String,
        /// Message of the event.
        message: String,
    },
}

impl NodeChange {
    /// Returns the order in which changes of this kind are made, lowest first. A taint is added before the condition
    /// that lets pods in.
    const fn rank(&self) -> u8 {
        match self {
            Self::AddTaint { .. } => 0,
            Self::PatchCondition { .. } => 1,
            Self::SetLabel { .. } => 2,
            Self::RemoveTaint { .. } => 3,
            Self::RemoveLabel { .. } => 4,
            Self::Event { .. } => 5,
        }
    }
}

/// Change to one node, with the component that has to make it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NodeWrite {
    /// Component that makes the change.
    pub(crate) actor: WriteActor,
    /// Change to make.
    #[serde(flatten)]
    pub change: NodeChange,
}

impl NodeWrite {
    /// Returns true if kubelet makes the change: to a condition, or to a label that a kubelet may set. The node lifecycle
    /// controller (NLC) makes the others. In JSON, `actor` is `kubelet` or `nlc`.
    #[must_use]
    pub const fn is_by_kubelet(&self) -> bool {
        matches!(self.actor, WriteActor::Kubelet)
    }
}

impl fmt::Display for NodeWrite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.change {
            NodeChange::AddTaint { taint, .. } => write!(formatter, "add taint {}", taint_text(taint)),
            NodeChange::PatchCondition { condition_type, status, reason, message, .. } => {
                write!(formatter, "set {condition_type} to {status} ({reason}): {message}")
            }
            NodeChange::SetLabel { key, value } => write!(formatter, "set label {key}={value}"),
            NodeChange::RemoveTaint { taint, .. } => write!(formatter, "remove taint {}", taint_text(taint)),
            NodeChange::RemoveLabel { key } => write!(formatter, "remove label {key}"),
            NodeChange::Event { is_warning, reason, message } => {
                let [normal, warning] = EventType::WORDS;
                let word = if *is_warning { warning } else { normal };
                write!(formatter, "{word} event {reason}: {message}")
            }
        }
    }
}

/// Formats a taint as `key=value:effect`, or `key:effect` without a value.
pub(super) fn taint_text(taint: &Taint) -> String {
    match taint.value.as_deref().unwrap_or_default() {
        "" => format!("{}:{}", taint.key, taint.effect),
        value => format!("{}={value}:{}", taint.key, taint.effect),
    }
}

/// Writes of one step, collected in any order and sorted at the end.
#[derive(Debug, Default)]
pub(super) struct WriteList {
    list: Vec<NodeWrite>,
}

impl WriteList {
    /// Adds a write to the list.
    pub(super) fn push(&mut self, actor: WriteActor, change: NodeChange) {
        self.list.push(NodeWrite { actor, change });
    }

    /// Adds an event for information, to be recorded by the node lifecycle controller.
    pub(super) fn normal_event(&mut self, reason: &str, message: String) {
        self.push(WriteActor::Nlc, NodeChange::Event { is_warning: false, reason: reason.to_owned(), message });
    }

    /// Adds an event that may need an action, to be recorded by the node lifecycle controller.
    pub(super) fn warning_event(&mut self, reason: &str, message: String) {
        self.push(WriteActor::Nlc, NodeChange::Event { is_warning: true, reason: reason.to_owned(), message });
    }

    /// Returns true if the list adds a taint with the key and effect of `wanted`.
    pub(super) fn adds(&self, wanted: &Taint) -> bool {
        self.list.iter().any(|write| match &write.change {
            NodeChange::AddTaint { taint, .. } => is_same(taint, wanted),
            _ => false,
        })
    }

    /// Returns the writes in the order in which they are to be made.
    pub(super) fn into_sorted(mut self) -> Vec<NodeWrite> {
        self.list.sort_by_key(|write| write.change.rank());
        self.list
    }
}
