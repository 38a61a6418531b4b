//! Events of a day.

use std::fmt;

use serde::Serialize;

/// Event at one instant.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Event<'e> {
    /// Milliseconds since the begin of the day.
    pub at: u64,
    /// Name of the pod.
    pub pod: &'e str,
    /// Name of the pod's kind.
    pub kind: &'e str,
    /// Position of the kind.
    #[serde(skip)]
    pub(super) kind_index: usize,
    /// Kind of event.
    #[serde(flatten)]
    pub event: EventKind<'e>,
}

/// Event of a pod.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "camelCase")]
#[non_exhaustive]
pub enum EventKind<'e> {
    /// The pod comes.
    Arrived,
    /// No node can serve the pod's claims now.
    Waits {
        /// Reasons of the nodes, for the first pod of a kind.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// The pod has got a node and devices.
    Placed {
        /// Name of the node.
        node: &'e str,
        /// Milliseconds that the pod has waited; `None` if it was placed at once.
        waited: Option<u64>,
        /// Devices of the pod's claims, those of admin access left out.
        devices: &'e [HeldDevice],
    },
    /// The pod is not going to be placed.
    Refused {
        /// Reason of the refusal.
        #[serde(flatten)]
        refusal: Refusal,
        /// Milliseconds that the pod has waited; `None` if it was refused at once.
        waited: Option<u64>,
        /// Reasons of the nodes, for the first pod of a kind.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// The pod gives up its devices for a pod of higher priority. It comes back at once, and waits.
    Preempted {
        /// Name of the other pod.
        by: &'e str,
        /// Name of the node.
        node: &'e str,
        /// Milliseconds that the pod has had its devices.
        ran: u64,
        /// Devices of the pod's claims, those of admin access left out.
        devices: &'e [HeldDevice],
    },
    /// The pod has moved to another node, so that its own can be emptied. It goes on from where it was.
    Moved {
        /// Name of the node that it has left.
        from: &'e str,
        /// Name of the other node.
        node: &'e str,
        /// Devices that it has given back.
        left: &'e [HeldDevice],
        /// Devices that it has got.
        devices: &'e [HeldDevice],
    },
    /// The pod has ended, and its devices are free.
    Ended {
        /// Name of the node.
        node: &'e str,
        /// Devices of the pod's claims, those of admin access left out.
        devices: &'e [HeldDevice],
    },
}

/// Device that a claim has got.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HeldDevice {
    /// Name of the driver.
    pub driver: String,
    /// Name of the pool.
    pub pool: String,
    /// Name of the device.
    pub device: String,
    /// True if other claims may get a share of the device too.
    pub shared: bool,
}

/// Reason that a pod is refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "reason", content = "detail", rename_all = "camelCase")]
#[non_exhaustive]
pub enum Refusal {
    /// No node could serve the claims if all devices were free.
    NeverFits,
    /// The pod has waited as long as it may.
    GaveUp,
    /// The claims can't be read on any node.
    Invalid(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverFits => f.write_str("fits no node, even if all devices are free"),
            Self::GaveUp => f.write_str("gave up waiting"),
            Self::Invalid(detail) => f.write_str(detail),
        }
    }
}
