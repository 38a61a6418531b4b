//! NUMA nodes of a machine: distances, CPUs, sockets.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::cpu_set::CpuSet;
use crate::sysfs::{Sysfs, trimmed};

/// Distance of a node to itself in an ACPI SLIT; all others are larger.
const LOCAL_DISTANCE: u32 = 10;

/// Smallest distance at which a node counts as unreachable (ACPI).
pub(super) const UNREACHABLE: u32 = 255;

const NODES: &str = "devices/system/node";
const CPUS: &str = "devices/system/cpu";

/// Row of the distance table for one node, as far as it could be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[expect(clippy::exhaustive_enums, reason = "a row was read or it was not")]
pub enum Distances {
    /// Distances to the online nodes, by ascending node id.
    Row(Vec<u32>),
    /// The row can't be read, for this reason.
    Unreadable(String),
}

impl Distances {
    /// Parses the text of a node's `distance` file.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let columns: Result<Vec<u32>, _> = trimmed(text).split_ascii_whitespace().map(str::parse).collect();
        match columns {
            Ok(row) if row.is_empty() => Self::Unreadable("the distance row is empty".to_owned()),
            Ok(row) => Self::Row(row),
            Err(_) => Self::Unreadable(format!("the distance row {:?} is not a list of numbers", trimmed(text))),
        }
    }
}

/// Socket (physical package) of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_enums, reason = "a socket is known or it is not")]
pub enum Socket {
    /// Value of `physical_package_id` that all CPUs of the node report.
    Id(i64),
    /// The socket is unknown, for this reason.
    Unknown(SocketUnknown),
}

/// Reason that the socket of a node is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum SocketUnknown {
    /// No socket was given for the node.
    Unstated,
    /// The node has no CPUs: memory of a GPU or a CXL device, or persistent memory.
    NoCpus,
    /// The kernel reports a negative package id, which means unknown.
    Negative(i64),
    /// The CPUs of the node are in several sockets (packages), which are listed.
    Spans(Vec<i64>),
    /// A file that tells the socket can't be read, for this reason.
    Unreadable(String),
}

impl fmt::Display for SocketUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unstated => f.write_str("its socket is not known"),
            Self::NoCpus => f.write_str("it has no CPUs"),
            Self::Negative(id) => write!(f, "the package id of its CPUs is {id}"),
            Self::Spans(ids) => {
                let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
                write!(f, "it spans the packages {}", ids.join(","))
            }
            Self::Unreadable(reason) => f.write_str(reason),
        }
    }
}

/// NUMA node of a machine.
///
/// ```
/// use dra_attrs::numa::NumaNode;
/// let node = NumaNode::new(0, [10, 21]).on_socket(0).with_cpus("0-19,40-59".parse()?);
/// assert_eq!(node.id(), 0);
/// # Ok::<(), dra_attrs::numa::CpuSetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct NumaNode {
    id: i64,
    distances: Distances,
    socket: Socket,
    cpus: CpuSet,
}

impl NumaNode {
    /// Builds a node with its row of the distance table (one column per online node, ids ascending), without CPUs and
    /// with an unknown socket.
    #[must_use]
    pub fn new(id: i64, distances: impl Into<Vec<u32>>) -> Self {
        Self::with_distances(id, Distances::Row(distances.into()))
    }

    /// Builds a node whose row of the distance table may be unreadable.
    #[must_use]
    pub fn with_distances(id: i64, distances: Distances) -> Self {
        Self { id, distances, socket: Socket::Unknown(SocketUnknown::Unstated), cpus: CpuSet::default() }
    }

    /// Sets the socket of the node; a negative id means unknown, as in the kernel.
    #[must_use]
    pub fn on_socket(self, id: i64) -> Self {
        let socket = if id < 0 { Socket::Unknown(SocketUnknown::Negative(id)) } else { Socket::Id(id) };
        Self { socket, ..self }
    }

    /// Marks the socket of the node as unknown, for the reason `why`.
    #[must_use]
    pub fn on_unknown_socket(self, why: SocketUnknown) -> Self {
        Self { socket: Socket::Unknown(why), ..self }
    }

    /// Sets the CPUs of the node.
    #[must_use]
    pub fn with_cpus(self, cpus: CpuSet) -> Self {
        Self { cpus, ..self }
    }

    /// Returns the node's id.
    #[must_use]
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// Returns the node's row of the distance table.
    #[must_use]
    pub const fn distances(&self) -> &Distances {
        &self.distances
    }

    /// Returns the node's socket.
    #[must_use]
    pub const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Returns the node's CPUs.
    #[must_use]
    pub const fn cpus(&self) -> &CpuSet {
        &self.cpus
    }
}

/// Reason that a list of nodes is no valid topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A node's id is negative, or not below [`NumaTopology::MAX_NODES`].
    #[error("NUMA node id {id} is not in 0..{}", NumaTopology::MAX_NODES)]
    NodeOutOfRange {
        /// The id that is out of range.
        id: i64,
    },
    /// Two nodes have the same id.
    #[error("NUMA node {id} appears twice")]
    DuplicateNode {
        /// The id that two nodes have.
        id: i64,
    },
    /// The list of online nodes can't be read.
    #[error("online NUMA nodes: {reason}")]
    Online {
        /// Reason that the list can't be read.
        reason: String,
    },
}

/// Irregularity of the distance table (ACPI SLIT). The list algorithm accepts it; a caller may prefer the physical node
/// alone on a machine whose table ACPI does not allow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum SlitFinding {
    /// The row of a node is missing, malformed, or does not have one column per node.
    Row {
        /// Id of the node whose row is irregular.
        node: i64,
    },
    /// The distance of a node to itself is not 10.
    Diagonal {
        /// Id of the node whose row is irregular.
        node: i64,
        /// Distance in the row.
        distance: u32,
    },
    /// The distance to another node is 10 or less: NUMA emulation, or wrong firmware data.
    TooNear {
        /// Id of the node whose row is irregular.
        from: i64,
        /// Id of the other node.
        to: i64,
        /// Distance in the row.
        distance: u32,
    },
}

impl fmt::Display for SlitFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row { node } => write!(f, "node {node}: no distance to every node"),
            Self::Diagonal { node, distance } => write!(f, "node {node}: distance {distance} to itself, not 10"),
            Self::TooNear { from, to, distance } => {
                write!(f, "node {from}: distance {distance} to node {to}, not above 10")
            }
        }
    }
}

/// Online NUMA nodes of a machine.
///
/// The columns of a distance row are the online nodes in ascending order, not the ids `0, 1, 2, …`: ids have gaps on
/// many machines.
///
/// ```
/// use dra_attrs::numa::NumaTopology;
/// use dra_attrs::SysfsMap;
///
/// let machine = SysfsMap::default()
///     .with_file("devices/system/node/online", "0,8\n")
///     .with_file("devices/system/node/node0/distance", "10 40\n")
///     .with_file("devices/system/node/node0/cpulist", "0-1\n")
///     .with_file("devices/system/cpu/cpu0/topology/physical_package_id", "0\n")
///     .with_file("devices/system/cpu/cpu1/topology/physical_package_id", "0\n")
///     .with_file("devices/system/node/node8/distance", "40 10\n")
///     .with_file("devices/system/node/node8/cpulist", "\n");
/// let topology = NumaTopology::from_sysfs(&machine)?;
/// assert_eq!(topology.local_nodes(0).nodes, [0, 8]);
/// assert_eq!(topology.node_of_cpu(1)?, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct NumaTopology {
    pub(super) nodes: Vec<NumaNode>,
    /// Socket of each node, reported or inferred from its neighbours, by position.
    #[serde(skip)]
    pub(super) sockets: Vec<Option<i64>>,
}

impl NumaTopology {
    /// Exclusive upper bound of node ids (Linux allows at most `NODES_SHIFT` = 10).
    pub const MAX_NODES: i64 = 1024;

    /// Builds a topology of the given nodes, which may be in any order.
    ///
    /// # Errors
    /// An id is out of range or occurs twice.
    ///
    /// # Complexity
    /// `O(n log n)`, plus `O(n)` for each node whose socket has to be inferred.
    pub fn new(mut nodes: Vec<NumaNode>) -> Result<Self, TopologyError> {
        if let Some(node) = nodes.iter().find(|node| !(0..Self::MAX_NODES).contains(&node.id)) {
            return Err(TopologyError::NodeOutOfRange { id: node.id });
        }
        nodes.sort_by_key(|node| node.id);
        let twice = nodes.iter().zip(nodes.iter().skip(1)).find(|(a, b)| a.id == b.id);
        if let Some((node, _)) = twice {
            return Err(TopologyError::DuplicateNode { id: node.id });
        }
        let mut topology = Self { nodes, sockets: Vec::new() };
        topology.sockets = topology.nodes.iter().map(|node| topology.socket_or_inferred(node)).collect();
        Ok(topology)
    }

    /// Reads the topology of a machine. Unreadable data of one node become [`Distances::Unreadable`] or
    /// [`SocketUnknown::Unreadable`].
    ///
    /// # Errors
    /// The list of online nodes can't be read, or contains a node out of range.
    pub fn from_sysfs(sysfs: &impl Sysfs) -> Result<Self, TopologyError> {
        Self::new(online_nodes(sysfs)?.iter().map(|id| read_node(sysfs, id)).collect())
    }

    /// Returns the nodes, with ascending ids.
    #[must_use]
    pub fn nodes(&self) -> &[NumaNode] {
        &self.nodes
    }

    /// Returns the node's row of the distance table, if it has one column per online node.
    pub(super) fn row<'n>(&self, node: &'n NumaNode) -> Option<&'n [u32]> {
        match &node.distances {
            Distances::Row(row) if row.len() == self.nodes.len() => Some(row),
            _ => None,
        }
    }

    /// Returns the irregularities of the distance table; empty for a table that ACPI allows.
    ///
    /// ```
    /// use dra_attrs::numa::{NumaNode, NumaTopology};
    /// let emulated = NumaTopology::new(vec![NumaNode::new(0, [10, 10]), NumaNode::new(1, [10, 10])])?;
    /// assert_eq!(emulated.check_slit().len(), 2);
    /// # Ok::<(), dra_attrs::numa::TopologyError>(())
    /// ```
    #[must_use]
    pub fn check_slit(&self) -> Vec<SlitFinding> {
        self.nodes.iter().flat_map(|node| self.check_row(node)).collect()
    }

    fn check_row(&self, node: &NumaNode) -> Vec<SlitFinding> {
        let from = node.id;
        let Some(row) = self.row(node) else { return vec![SlitFinding::Row { node: from }] };
        let findings = self.nodes.iter().zip(row).filter_map(|(to, &distance)| match to.id == from {
            true if distance != LOCAL_DISTANCE => Some(SlitFinding::Diagonal { node: from, distance }),
            false if distance <= LOCAL_DISTANCE => Some(SlitFinding::TooNear { from, to: to.id, distance }),
            _ => None,
        });
        findings.collect()
    }

    /// Returns the node's own socket; if it is unknown, the common socket of the nearest nodes whose socket is known.
    /// The memory of a CXL device or of a Xeon Max belongs to the nearest socket.
    fn socket_or_inferred(&self, node: &NumaNode) -> Option<i64> {
        if let Socket::Id(id) = node.socket {
            return Some(id);
        }
        let row = self.row(node)?;
        let known = self.nodes.iter().zip(row).filter_map(|(other, &distance)| match other.socket {
            Socket::Id(id) => Some((distance, id)),
            Socket::Unknown(_) => None,
        });
        let known: BTreeSet<(u32, i64)> = known.collect();
        let (nearest, socket) = *known.first()?;
        let agree = known.iter().all(|(distance, id)| *distance > nearest || *id == socket);
        (agree && nearest < UNREACHABLE).then_some(socket)
    }
}

pub(super) fn online_nodes(sysfs: &impl Sysfs) -> Result<CpuSet, TopologyError> {
    let text = sysfs.read(&format!("{NODES}/online"));
    let text = text.map_err(|error| TopologyError::Online { reason: error.to_string() })?;
    let online: CpuSet = text.parse().map_err(|error| TopologyError::Online { reason: format!("{error}") })?;
    let too_large = online.iter().map(i64::from).find(|id| *id >= NumaTopology::MAX_NODES);
    match too_large {
        Some(id) => Err(TopologyError::NodeOutOfRange { id }),
        None => Ok(online),
    }
}

pub(super) fn cpus_of(sysfs: &impl Sysfs, node: u32) -> Result<CpuSet, String> {
    let text = sysfs.read(&format!("{NODES}/node{node}/cpulist")).map_err(|error| error.to_string())?;
    text.parse().map_err(|error: super::CpuSetError| error.to_string())
}

fn read_node(sysfs: &impl Sysfs, id: u32) -> NumaNode {
    let distances = match sysfs.read(&format!("{NODES}/node{id}/distance")) {
        Ok(text) => Distances::parse(&text),
        Err(error) => Distances::Unreadable(error.to_string()),
    };
    let node = NumaNode::with_distances(i64::from(id), distances);
    match cpus_of(sysfs, id) {
        Ok(cpus) => NumaNode { socket: socket_of(sysfs, &cpus), cpus, ..node },
        Err(reason) => node.on_unknown_socket(SocketUnknown::Unreadable(reason)),
    }
}

fn socket_of(sysfs: &impl Sysfs, cpus: &CpuSet) -> Socket {
    let mut packages = BTreeSet::new();
    for cpu in cpus.iter() {
        match package_of(sysfs, cpu) {
            Ok(package) => packages.insert(package),
            Err(reason) => return Socket::Unknown(SocketUnknown::Unreadable(reason)),
        };
    }
    let mut packages = packages.into_iter();
    match (packages.next(), packages.next()) {
        (None, _) => Socket::Unknown(SocketUnknown::NoCpus),
        (Some(id), None) if id < 0 => Socket::Unknown(SocketUnknown::Negative(id)),
        (Some(id), None) => Socket::Id(id),
        (Some(a), Some(b)) => Socket::Unknown(SocketUnknown::Spans([a, b].into_iter().chain(packages).collect())),
    }
}

fn package_of(sysfs: &impl Sysfs, cpu: u32) -> Result<i64, String> {
    let path = format!("{CPUS}/cpu{cpu}/topology/physical_package_id");
    let text = sysfs.read(&path).map_err(|error| error.to_string())?;
    trimmed(&text).parse().map_err(|_| format!("/sys/{path}: {:?} is not a number", trimmed(&text)))
}
