//! Places of the pods of a gang.

use super::cycle::PodCycle;
use super::gang_error::GangError;
use super::identity::PodIdentity;
use super::tracker::ClaimTracker;

/// A gang that is placed: the pods with a node, and those that its quorum does not need.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "what is in flight is bound, or given back"]
#[non_exhaustive]
pub struct PlacedGang {
    /// Pods with a node, in their order.
    pub pods: Vec<GangPlacement>,
    /// Pods without a node, each with the reason; none unless the search has a quorum.
    pub left_out: Vec<GangError>,
}

/// A pod of a gang with its node. Its allocations are in flight.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "what is in flight is bound, or given back"]
#[non_exhaustive]
pub struct GangPlacement {
    /// The pod.
    pub pod: PodIdentity,
    /// Name of the node.
    pub node: String,
    /// Cycle of the pod, ready for `PreBind`; `None` for a pod without claims.
    pub cycle: Option<PodCycle>,
}

impl GangPlacement {
    /// Takes back what the pod has in flight.
    pub(crate) fn take_back(&mut self, tracker: &mut ClaimTracker) {
        if let Some(cycle) = &mut self.cycle {
            cycle.take_back(tracker);
        }
    }
}
