//! The list of KEP-6072: which nodes are as local to a device as its own.
//!
//! 1. *Minimum distance*: the nodes at the smallest distance from the physical node, over all other nodes of every
//!    socket.
//! 2. *Same socket*: of these, only nodes of the physical node's socket.
//!
//! The physical node comes first, the rest ascending (their order means nothing). What the KEP leaves open is decided so
//! that no wrong locality is claimed: a table that can't be used gives the physical node alone, with a diagnostic.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::topology::{Distances, NumaNode, NumaTopology, Socket, SocketUnknown};

/// From this distance on a node is unreachable (ACPI).
pub(super) const UNREACHABLE: u32 = 255;

/// What to do with a nearest node whose socket is not known and can't be inferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_enums, reason = "a node is in the list or it is not")]
pub enum UnknownSockets {
    /// Keep it, as upstream does. A memory node that is nearest to everyone then joins all devices of the machine.
    #[default]
    Include,
    /// Leave it out.
    Exclude,
}

/// The local nodes of a physical node, and what was noticed on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LocalNodes {
    /// The physical node, then the others ascending.
    pub nodes: Vec<i64>,
    /// Why the list is shorter, or less certain, than the table could say.
    pub diagnostics: Vec<Diagnostic>,
}

impl LocalNodes {
    /// The first `most` nodes, the physical one always among them: for a device that would otherwise have more values
    /// than the API allows.
    #[must_use]
    pub fn trimmed(mut self, most: usize) -> Self {
        self.nodes.truncate(most.max(1));
        self
    }
}

/// Something noticed while the attribute was computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Diagnostic {
    /// The topology can't be read; the list is the physical node alone.
    NoTopology {
        /// Why not.
        reason: String,
    },
    /// The physical node is not among the online nodes; the list is that node alone.
    NotOnline {
        /// The physical node.
        node: i64,
    },
    /// The distance row can't be used; the list is the physical node alone.
    NoDistances {
        /// The physical node.
        node: i64,
        /// Why not.
        reason: String,
    },
    /// The nearest other node is unreachable; the list is the physical node alone.
    Unreachable {
        /// The physical node.
        node: i64,
        /// The smallest distance.
        distance: u32,
    },
    /// The physical node's socket is not known while others are; the list is that node alone.
    SocketUnknown {
        /// The physical node.
        node: i64,
        /// Why not.
        reason: SocketUnknown,
    },
    /// A node was kept although its socket is not known.
    KeptUnknown {
        /// The node.
        node: i64,
        /// Why its socket is not known.
        reason: SocketUnknown,
    },
    /// A node was left out because its socket is not known.
    LeftOutUnknown {
        /// The node.
        node: i64,
        /// Why its socket is not known.
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
    /// The nodes local to a physical node, nodes of unknown socket included.
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
        self.local_nodes_with(physical, UnknownSockets::Include)
    }

    /// The nodes local to a physical node, with a choice about nodes of unknown socket.
    ///
    /// # Complexity
    /// Linear in the number of nodes.
    #[must_use]
    pub fn local_nodes_with(&self, physical: i64, unknown: UnknownSockets) -> LocalNodes {
        match self.nearest(physical) {
            Ok(nearest) => self.same_socket(physical, &nearest, unknown),
            Err(diagnostic) => LocalNodes { nodes: vec![physical], diagnostics: Vec::from_iter(diagnostic) },
        }
    }

    /// Positions of the nodes at the smallest distance; `Err` when only the physical node can be listed.
    fn nearest(&self, physical: i64) -> Result<Vec<usize>, Option<Diagnostic>> {
        let position = self.position(physical).ok_or(Some(Diagnostic::NotOnline { node: physical }))?;
        let row = self.nodes.get(position).and_then(|node| self.row(node));
        let row = row.ok_or_else(|| Some(self.no_distances(position, physical)))?;
        let others = || row.iter().enumerate().filter(|(index, _)| *index != position);
        let distance = others().map(|(_, distance)| *distance).min().ok_or(None)?;
        if distance >= UNREACHABLE {
            return Err(Some(Diagnostic::Unreachable { node: physical, distance }));
        }
        Ok(others().filter(|(_, other)| **other == distance).map(|(index, _)| index).collect())
    }

    fn no_distances(&self, position: usize, node: i64) -> Diagnostic {
        let reason = match self.nodes.get(position).map(NumaNode::distances) {
            Some(Distances::Unreadable(reason)) => reason.clone(),
            Some(Distances::Row(row)) => {
                format!("the distance row has {} columns for {} online nodes", row.len(), self.nodes.len())
            }
            None => String::new(),
        };
        Diagnostic::NoDistances { node, reason }
    }

    fn same_socket(&self, physical: i64, nearest: &[usize], unknown: UnknownSockets) -> LocalNodes {
        let mut list = LocalNodes { nodes: vec![physical], diagnostics: Vec::new() };
        let sockets_known = self.nodes.iter().any(|node| matches!(node.socket(), Socket::Id(_)));
        let own = self.position(physical).and_then(|position| self.sockets.get(position).copied().flatten());
        if sockets_known && own.is_none() {
            let reason = self.why_unknown(self.position(physical).unwrap_or_default());
            list.diagnostics.push(Diagnostic::SocketUnknown { node: physical, reason });
            return list;
        }
        for &position in nearest {
            let Some(node) = self.nodes.get(position).map(NumaNode::id) else { continue };
            let socket = self.sockets.get(position).copied().flatten();
            match (socket, unknown) {
                (Some(_), _) if socket == own => list.nodes.push(node),
                (Some(_), _) => {}
                (None, UnknownSockets::Include) => {
                    list.nodes.push(node);
                    // Without any known socket the filter is off: nothing is uncertain about one node in particular.
                    if sockets_known {
                        list.diagnostics.push(Diagnostic::KeptUnknown { node, reason: self.why_unknown(position) });
                    }
                }
                (None, UnknownSockets::Exclude) => {
                    list.diagnostics.push(Diagnostic::LeftOutUnknown { node, reason: self.why_unknown(position) });
                }
            }
        }
        list
    }

    fn why_unknown(&self, position: usize) -> SocketUnknown {
        match self.nodes.get(position).map(NumaNode::socket) {
            Some(Socket::Unknown(reason)) => reason.clone(),
            _ => SocketUnknown::Unstated,
        }
    }
}
