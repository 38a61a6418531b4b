//! Output of a [`NominationTracker`](crate::NominationTracker): commands to carry out, and notices for logs.

use serde::Serialize;

use crate::commands::Command;
use crate::pod::PodKey;

/// Observation for logs and metrics. The caller need not act on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum TrackerNotice {
    /// Another component wrote `nominatedNodeName` of a pod. The scheduler tries that node first.
    ForeignWrite {
        /// Pod whose nomination was written.
        pod: PodKey,
        /// Field manager of the writer, if the object names it.
        writer: Option<String>,
        /// Node in the new nomination; `None` if it was cleared.
        node: Option<String>,
    },
    /// A bound pod has a nomination to a node other than its own, which is ignored.
    StaleNomination {
        /// Bound pod with the ignored nomination.
        pod: PodKey,
        /// Node in `status.nominatedNodeName`.
        nominated: String,
        /// Node to which the pod is bound.
        node: String,
    },
    /// A pod's nomination is written before its claims are allocated: API readers see its node resources without
    /// devices.
    PartialReservation {
        /// Pod whose claims are not allocated yet.
        pod: PodKey,
    },
}

/// Commands and notices that result from one event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TrackerOutput {
    /// Commands to carry out, in this order.
    pub commands: Vec<Command>,
    /// Observations for logs and metrics.
    pub notices: Vec<TrackerNotice>,
}
