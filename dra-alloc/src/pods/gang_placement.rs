//! Place of a pod of a gang.

use super::cycle::PodCycle;
use super::identity::PodIdentity;
use super::tracker::ClaimTracker;

/// A pod of a gang with its node. Its allocations are in flight.
#[derive(Clone, Debug, PartialEq)]
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
