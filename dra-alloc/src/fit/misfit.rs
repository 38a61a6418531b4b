//! Reasons why a pod does not fit on a node.

use std::fmt;

use dra_attrs::Quantity;
use k8s_openapi::api::core::v1::Taint;
use nnn::memory::HostPort;
use serde::Serialize;

/// Reason why a pod does not fit on a node apart from its devices. Displayed in kube-scheduler's words.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", tag = "reason")]
#[non_exhaustive]
pub enum Misfit {
    /// The node is cordoned: `spec.unschedulable`.
    Unschedulable,
    /// The pod does not tolerate a taint of the node.
    UntoleratedTaint {
        /// The first such taint.
        taint: Taint,
    },
    /// The node selector or the required node affinity of the pod does not admit the node.
    NotSelected,
    /// A port that the pod asks for is taken.
    PortTaken {
        /// Port of the pod.
        wanted: HostPort,
        /// Port that another pod has.
        taken: HostPort,
    },
    /// The node has as many pods as it may have.
    TooManyPods {
        /// Number of pods that the node may have.
        most: i64,
    },
    /// The node has not enough of a resource left.
    Insufficient {
        /// Name of the resource.
        resource: String,
        /// Amount that the pod asks for.
        wanted: Quantity,
        /// Amount that is left; below zero where the node has promised too much.
        free: Quantity,
        /// Amount that the node has for pods.
        allocatable: Quantity,
    },
}

impl Misfit {
    /// Returns true if the pod would not fit even if all other pods went: preemption can't help.
    #[must_use]
    pub fn is_unresolvable(&self) -> bool {
        match self {
            Self::Unschedulable | Self::UntoleratedTaint { .. } | Self::NotSelected => true,
            Self::PortTaken { .. } => false,
            Self::TooManyPods { most } => *most < 1,
            Self::Insufficient { wanted, allocatable, .. } => wanted > allocatable,
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unschedulable => f.write_str("node(s) were unschedulable"),
            Self::UntoleratedTaint { .. } => f.write_str("node(s) had untolerated taint(s)"),
            Self::NotSelected => f.write_str("node(s) didn't match Pod's node affinity/selector"),
            Self::PortTaken { .. } => f.write_str("node(s) didn't have free ports for the requested pod ports"),
            Self::TooManyPods { .. } => f.write_str("Too many pods"),
            Self::Insufficient { resource, .. } => write!(f, "Insufficient {resource}"),
        }
    }
}
