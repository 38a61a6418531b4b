//! List algorithm of KEP-6072: the NUMA nodes that are as local to a device as its own (physical) node.
//!
//! 1. *Minimum distance*: the nodes at the smallest distance from the physical node, over all other nodes of every
//!    socket.
//! 2. *Same socket*: of these, only nodes of the physical node's socket.
//!
//! The physical node comes first, the others are ascending (their order has no meaning). Where the KEP leaves a case
//! open, no wrong locality is claimed: an unusable table gives the physical node alone, with a diagnostic.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::topology::{Distances, NumaNode, NumaTopology, Socket, SocketUnknown, UNREACHABLE};

/// NUMA nodes that are local to a device, with diagnostics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LocalNodes {
    /// The device's own (physical) node, then the other local nodes in ascending order.
    pub nodes: Vec<i64>,
    /// Reasons that the list is shorter or less certain than it would be with complete distances and sockets.
    pub diagnostics: Vec<Diagnostic>,
}

impl LocalNodes {
    /// Keeps the first `most` nodes, always including the physical one. Use it if the device would have more values
    /// than the API allows.
    #[must_use]
    pub fn trimmed(mut self, most: usize) -> Self {
        self.nodes.truncate(most.max(1));
        self
    }
}

/// Reason that a NUMA attribute lists fewer nodes than expected, or less certain ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Diagnostic {
    /// The topology can't be read; the list is the physical node alone.
    NoTopology {
        /// Reason that the topology can't be read.
        reason: String,
    },
    /// The physical node is not online; the list is the physical node alone.
    NotOnline {
        /// The device's own (physical) NUMA node.
        node: i64,
    },
    /// The node's row of distances can't be used; the list is the physical node alone.
    NoDistances {
        /// The device's own (physical) NUMA node.
        node: i64,
        /// Reason that the row of distances can't be used.
        reason: String,
    },
    /// The nearest other node is unreachable; the list is the physical node alone.
    Unreachable {
        /// The device's own (physical) NUMA node.
        node: i64,
        /// Smallest distance to another node.
        distance: u32,
    },
    /// The physical node's socket is unknown although other sockets are known; the list is the physical node alone.
    SocketUnknown {
        /// The device's own (physical) NUMA node.
        node: i64,
        /// Reason that the socket is unknown.
        reason: SocketUnknown,
    },
    /// A nearest node is in the list although its socket is unknown.
    KeptUnknown {
        /// Node in the list.
        node: i64,
        /// Reason that the node's socket is unknown.
        reason: SocketUnknown,
    },
    /// A nearest node is not in the list because its socket is unknown.
    LeftOutUnknown {
        /// Node that is not in the list.
        node: i64,
        /// Reason that the node's socket is unknown.
        reason: SocketUnknown,
    },
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alone = "only the physical node is listed";
        match self {
            Self::NoTopology { reason } => write!(f, "{reason}; {alone}"),
            Self::NotOnline { node } => write!(f, "NUMA node {node} is not online; {alone}"),
            Self::NoDistances { node, reason } => write!(f, "NUMA node {node}: {reason}; {alone}"),
            Self::Unreachable { node, distance } => {
                write!(f, "NUMA node {node}: every other node is unreachable (distance {distance}); {alone}")
            }
            Self::SocketUnknown { node, reason } => write!(f, "NUMA node {node}: {reason}; {alone}"),
            Self::KeptUnknown { node, reason } => write!(f, "NUMA node {node} is listed although {reason}"),
            Self::LeftOutUnknown { node, reason } => write!(f, "NUMA node {node} is left out because {reason}"),
        }
    }
}

impl NumaTopology {
    /// Returns the nodes that are local to a device on the node `physical`, including nearest nodes of
    /// unknown socket, as upstream does: a memory node that is nearest to every node is then local to all devices of the
    /// machine.
    ///
    /// # Complexity
    /// Linear in the number of nodes.
    ///
    /// ```
    /// use dra_attrs::numa::{NumaNode, NumaTopology};
    /// // Two sockets with one node each: the nearest node is on another socket.
    /// let nps1 = NumaTopology::new(vec![
    ///     NumaNode::new(0, [10, 32]).on_socket(0),
    ///     NumaNode::new(1, [32, 10]).on_socket(1),
    /// ])?;
    /// assert_eq!(nps1.local_nodes(1).nodes, [1]);
    /// # Ok::<(), dra_attrs::numa::TopologyError>(())
    /// ```
    #[must_use]
    pub fn local_nodes(&self, physical: i64) -> LocalNodes {
        self.local_nodes_with(physical, true)
    }

    /// Returns the nodes that are local to a device on the node `physical`, without nearest nodes whose socket is unknown and
    /// can't be inferred.
    ///
    /// # Complexity
    /// Linear in the number of nodes.
    #[must_use]
    pub fn local_nodes_of_known_sockets(&self, physical: i64) -> LocalNodes {
        self.local_nodes_with(physical, false)
    }

    fn local_nodes_with(&self, physical: i64, keeps_unknown: bool) -> LocalNodes {
        let alone = |diagnostic| LocalNodes { nodes: vec![physical], diagnostics: Vec::from_iter(diagnostic) };
        let Some(own) = self.placed().find(|placed| placed.node.id() == physical) else {
            return alone(Some(Diagnostic::NotOnline { node: physical }));
        };
        match self.nearest(own.node) {
            Ok(nearest) => self.same_socket(own, &nearest, keeps_unknown),
            Err(diagnostic) => alone(diagnostic),
        }
    }

    fn placed(&self) -> impl Iterator<Item = Placed<'_>> {
        self.nodes.iter().zip(&self.sockets).map(|(node, socket)| Placed { node, socket: *socket })
    }

    /// Returns the nodes at the smallest distance from `own`; an error if only `own` itself can be listed.
    fn nearest(&self, own: &NumaNode) -> Result<Vec<Placed<'_>>, Option<Diagnostic>> {
        let row = self.row(own).ok_or_else(|| Some(self.no_distances(own)))?;
        let others = || self.placed().zip(row).filter(|(other, _)| other.node.id() != own.id());
        let nearest = others().map(|(_, distance)| *distance).min().ok_or(None)?;
        if nearest >= UNREACHABLE {
            return Err(Some(Diagnostic::Unreachable { node: own.id(), distance: nearest }));
        }
        Ok(others().filter(|(_, distance)| **distance == nearest).map(|(other, _)| other).collect())
    }

    fn no_distances(&self, node: &NumaNode) -> Diagnostic {
        let reason = match node.distances() {
            Distances::Unreadable(reason) => reason.clone(),
            Distances::Row(row) => {
                format!("the distance row has {} columns for {} online nodes", row.len(), self.nodes.len())
            }
        };
        Diagnostic::NoDistances { node: node.id(), reason }
    }

    fn same_socket(&self, own: Placed<'_>, nearest: &[Placed<'_>], keeps_unknown: bool) -> LocalNodes {
        let mut list = LocalNodes { nodes: vec![own.node.id()], diagnostics: Vec::new() };
        let sockets_known = self.nodes.iter().any(|node| matches!(node.socket(), Socket::Id(_)));
        let socket = own.own_socket();
        if sockets_known && socket.is_none() {
            list.diagnostics.push(Diagnostic::SocketUnknown { node: own.node.id(), reason: own.why_unknown() });
            return list;
        }
        for other in nearest.iter().filter(|other| !own.is_elsewhere(**other)) {
            let (node, reason) = (other.node.id(), other.why_unknown());
            match (other.own_socket(), keeps_unknown) {
                (Some(its), _) if Some(its) == socket => list.nodes.push(node),
                (Some(_), _) => {}
                (None, false) => list.diagnostics.push(Diagnostic::LeftOutUnknown { node, reason }),
                (None, true) => {
                    list.nodes.push(node);
                    // If no socket is known at all, the filter is off: then no diagnostic for a single node.
                    list.diagnostics.extend(sockets_known.then_some(Diagnostic::KeptUnknown { node, reason }));
                }
            }
        }
        list
    }
}

/// NUMA node with its reported or inferred socket.
#[derive(Clone, Copy)]
struct Placed<'t> {
    node: &'t NumaNode,
    socket: Option<i64>,
}

impl Placed<'_> {
    /// Returns the socket of the node. The inferred socket is only used for nodes without CPUs: a node with CPUs might
    /// be on another socket than its neighbour.
    fn own_socket(self) -> Option<i64> {
        match self.node.socket() {
            Socket::Id(id) => Some(*id),
            Socket::Unknown(SocketUnknown::NoCpus | SocketUnknown::Unstated | SocketUnknown::Negative(_))
                if self.node.cpus().is_empty() =>
            {
                self.socket
            }
            Socket::Unknown(_) => None,
        }
    }

    /// Returns true if both nodes report their sockets and have none in common. A node may span several sockets.
    fn is_elsewhere(self, other: Self) -> bool {
        let (own, its) = (told(self.node.socket()), told(other.node.socket()));
        !own.is_empty() && !its.is_empty() && own.iter().all(|id| !its.contains(id))
    }

    fn why_unknown(self) -> SocketUnknown {
        match self.node.socket() {
            Socket::Unknown(reason) => reason.clone(),
            Socket::Id(_) => SocketUnknown::Unstated,
        }
    }
}

/// Returns the sockets that the node's CPUs report.
fn told(socket: &Socket) -> &[i64] {
    match socket {
        Socket::Id(id) => std::slice::from_ref(id),
        Socket::Unknown(SocketUnknown::Spans(ids)) => ids,
        Socket::Unknown(_) => &[],
    }
}
