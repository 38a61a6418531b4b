//! Check of nodes for pods by what has nothing to do with claims: CPU, ports, taints, affinity. It is the caller's.

use std::fmt;

use k8s_openapi::api::core::v1::{Node, Pod};

use super::gang_placement::GangPlacement;
use super::identity::PodIdentity;

/// Check that a pod fits on a node by what has nothing to do with claims, such as CPU or taints.
///
/// ```
/// use dra_alloc::pods::{FitQuestion, NodeCheck};
/// // A node takes two pods of a gang.
/// let fit = |question: &FitQuestion<'_>| match question.placed_here().count() {
///     0 | 1 => Ok(()),
///     _ => Err("Too many pods".to_owned()),
/// };
/// let (pod, node) = Default::default();
/// assert_eq!(fit.fits(&FitQuestion::new(&pod, &node)), Ok(()));
/// ```
pub trait NodeCheck {
    /// Checks that a pod fits on a node.
    ///
    /// With more pods gone and fewer pods placed on the node, a yes stays a yes: searches rely on it.
    ///
    /// # Errors
    /// The reason, in few words that are the same on all nodes with that reason.
    fn fits(&self, question: &FitQuestion<'_>) -> Result<(), String>;
}

impl<F: Fn(&FitQuestion<'_>) -> Result<(), String>> NodeCheck for F {
    fn fits(&self, question: &FitQuestion<'_>) -> Result<(), String> {
        self(question)
    }
}

/// Question to a [`NodeCheck`]: a pod, a node, and those who come and go before the pod is there.
#[derive(Clone, Copy)]
pub struct FitQuestion<'f> {
    pod: &'f Pod,
    node: &'f Node,
    placed: Placed<'f>,
    gone: &'f [&'f Pod],
}

/// Pods of the same gang that have a node.
#[derive(Clone, Copy)]
enum Placed<'f> {
    /// Those whose allocations are in flight.
    InFlight(&'f [GangPlacement]),
    /// Those that a search has placed, with the names of their nodes.
    Planned(&'f [(&'f PodIdentity, &'f str)]),
}

impl<'f> FitQuestion<'f> {
    /// Asks for a pod on a node as it is.
    #[must_use]
    pub const fn new(pod: &'f Pod, node: &'f Node) -> Self {
        Self { pod, node, placed: Placed::Planned(&[]), gone: &[] }
    }

    /// Sets the pods that are gone before.
    #[must_use]
    pub const fn with_gone(self, gone: &'f [&'f Pod]) -> Self {
        Self { gone, ..self }
    }

    pub(super) const fn with_in_flight(self, placed: &'f [GangPlacement]) -> Self {
        Self { placed: Placed::InFlight(placed), ..self }
    }

    pub(crate) const fn with_planned(self, placed: &'f [(&'f PodIdentity, &'f str)]) -> Self {
        Self { placed: Placed::Planned(placed), ..self }
    }

    /// Asks the same for another node.
    pub(crate) const fn on<'o>(&self, node: &'o Node) -> FitQuestion<'o>
    where
        'f: 'o,
    {
        FitQuestion { node, ..*self }
    }

    /// Returns the pod.
    #[must_use]
    pub const fn pod(&self) -> &'f Pod {
        self.pod
    }

    /// Returns the node.
    #[must_use]
    pub const fn node(&self) -> &'f Node {
        self.node
    }

    /// Returns the pods that are gone before the pod comes: victims of a preemption.
    #[must_use]
    pub const fn gone(&self) -> &'f [&'f Pod] {
        self.gone
    }

    /// Returns the pods of the same gang that have a node so far, with the names of their nodes.
    pub fn placed(&self) -> impl Iterator<Item = (&'f PodIdentity, &'f str)> + use<'f> {
        let (in_flight, planned) = match self.placed {
            Placed::InFlight(placed) => (placed, &[][..]),
            Placed::Planned(placed) => (&[][..], placed),
        };
        let in_flight = in_flight.iter().map(|placement| (&placement.pod, placement.node.as_str()));
        in_flight.chain(planned.iter().copied())
    }

    /// Returns the pods of the same gang that have the node of the question so far.
    pub fn placed_here(&self) -> impl Iterator<Item = &'f PodIdentity> + use<'f> {
        let here = self.node.metadata.name.as_deref();
        self.placed().filter(move |(_, node)| Some(*node) == here).map(|(pod, _)| pod)
    }
}

impl fmt::Debug for FitQuestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FitQuestion")
            .field("pod", &self.pod.metadata.name)
            .field("node", &self.node.metadata.name)
            .field("gone", &self.gone.len())
            .finish_non_exhaustive()
    }
}
