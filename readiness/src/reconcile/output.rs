//! What a step asks the caller to write.

use std::fmt;

use k8s_openapi::api::core::v1::{NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use crate::taint::is_same;

/// Which component writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the KEP knows these two")]
pub enum Actor {
    /// kubelet: conditions, and the labels that it may set.
    Kubelet,
    /// The node lifecycle controller: taints, events, and the other labels.
    Nlc,
}

/// What a condition must be like for a patch to apply. A caller turns it into a test of the patch, so that an agent's fresh
/// report is never overwritten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Expected {
    /// Its status.
    pub status: String,
    /// Its reason.
    pub reason: Option<String>,
    /// Time of its last change.
    pub last_transition_time: Option<Time>,
}

impl Expected {
    pub(crate) fn of(condition: &NodeCondition) -> Self {
        Self {
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            last_transition_time: condition.last_transition_time.clone(),
        }
    }

    /// Whether a condition is still like that.
    #[must_use]
    pub fn holds(&self, condition: &NodeCondition) -> bool {
        *self == Self::of(condition)
    }
}

/// Type of an event, as in `core/v1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "Kubernetes knows these two")]
pub enum EventType {
    /// For information.
    Normal,
    /// Something may need attention.
    Warning,
}

/// A change to one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Change {
    /// Add a taint. The write must fail if the node has changed since: lists of taints do not merge.
    AddTaint {
        /// The taint.
        taint: Taint,
        /// Version of the node that the decision is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource_version: Option<String>,
        /// Whether running pods are evicted by it: a caller may want to limit their rate.
        #[serde(default)]
        evicting: bool,
    },
    /// Write a condition. `expect` is what must still be there, None for nothing.
    PatchCondition {
        /// Type of the condition.
        condition_type: String,
        /// The new status.
        status: String,
        /// The new reason.
        reason: String,
        /// The new message, which quotes what is overwritten.
        message: String,
        /// What the condition must be like.
        expect: Option<Expected>,
    },
    /// Set a label.
    SetLabel {
        /// Its key.
        key: String,
        /// Its value.
        value: String,
    },
    /// Remove a taint, by key and effect. That it is gone already is no error.
    RemoveTaint {
        /// The taint.
        taint: Taint,
        /// Version of the node that the decision is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resource_version: Option<String>,
    },
    /// Remove a label.
    RemoveLabel {
        /// Its key.
        key: String,
    },
    /// Record an event on the node.
    Event {
        /// Its type.
        event_type: EventType,
        /// Its reason.
        reason: String,
        /// Its message.
        message: String,
    },
}

impl Change {
    /// The order in which changes are made: a taint comes before the condition that hands over to it.
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

/// A change and who makes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Output {
    /// Who.
    pub actor: Actor,
    /// What.
    #[serde(flatten)]
    pub change: Change,
}

impl fmt::Display for Output {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.change {
            Change::AddTaint { taint, .. } => write!(formatter, "add taint {}", in_words(taint)),
            Change::PatchCondition { condition_type, status, reason, message, .. } => {
                write!(formatter, "set {condition_type} to {status} ({reason}): {message}")
            }
            Change::SetLabel { key, value } => write!(formatter, "set label {key}={value}"),
            Change::RemoveTaint { taint, .. } => write!(formatter, "remove taint {}", in_words(taint)),
            Change::RemoveLabel { key } => write!(formatter, "remove label {key}"),
            Change::Event { event_type, reason, message } => {
                write!(formatter, "{event_type:?} event {reason}: {message}")
            }
        }
    }
}

/// `key=value:effect`, or `key:effect`.
pub(crate) fn in_words(taint: &Taint) -> String {
    match taint.value.as_deref().unwrap_or_default() {
        "" => format!("{}:{}", taint.key, taint.effect),
        value => format!("{}={value}:{}", taint.key, taint.effect),
    }
}

/// Collects changes, in whatever order they are found.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    list: Vec<Output>,
}

impl Outputs {
    pub(crate) fn push(&mut self, actor: Actor, change: Change) {
        self.list.push(Output { actor, change });
    }

    pub(crate) fn event(&mut self, event_type: EventType, reason: &str, message: String) {
        self.push(Actor::Nlc, Change::Event { event_type, reason: reason.to_owned(), message });
    }

    /// Whether a taint with the same key and effect is among the changes.
    pub(crate) fn adds(&self, wanted: &Taint) -> bool {
        self.list.iter().any(|output| match &output.change {
            Change::AddTaint { taint, .. } => is_same(taint, wanted),
            _ => false,
        })
    }

    /// The changes in their order.
    pub(crate) fn sorted(mut self) -> Vec<Output> {
        self.list.sort_by_key(|output| output.change.rank());
        self.list
    }
}
