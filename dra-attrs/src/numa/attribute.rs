//! The attribute `resource.kubernetes.io/numaNode`: computing it for a device, reading it from one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::local_nodes::{Diagnostic, LocalNodes};
use super::topology::{MAX_NODES, NumaTopology, TopologyError, cpus_of, online_nodes};
use crate::k8s::DeviceAttribute;
use crate::pci::PciAddress;
use crate::standard::{NUMA_NODE, StandardAttribute};
use crate::sysfs::{Sysfs, SysfsError, trimmed};
use crate::value::{AttributeValue, MAX_VALUES_PER_DEVICE, ValueError};

/// The form in which a driver publishes the attribute. The driver's operator chooses it; no cluster state is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum NumaForm {
    /// The physical node as `int`: valid in every cluster.
    #[default]
    Scalar,
    /// The physical node as a list of one element; for CPUs and memory once lists are usual.
    OwnNode,
    /// The physical node and the nodes as near to it as possible on the same socket, as `ints`. Needs the feature gate
    /// `DRAListTypeAttributes` in the cluster.
    LocalNodes,
}

/// What a device's NUMA node is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NumaPlace {
    /// A node that the driver knows (CPU and memory devices).
    Node(i64),
    /// The node of a CPU.
    Cpu(u32),
    /// The `numa_node` file of a PCI function.
    Pci(PciAddress),
}

/// Why a device has no NUMA attribute. A driver then leaves the attribute out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NumaError {
    /// The kernel reports no affinity (a negative node).
    #[error("the device has no NUMA affinity (node {node})")]
    NoAffinity {
        /// What was reported.
        node: i64,
    },
    /// The node is not below [`MAX_NODES`].
    #[error("NUMA node {node} is not in 0..{MAX_NODES}")]
    OutOfRange {
        /// The node.
        node: i64,
    },
    /// The CPU is in no online node.
    #[error("CPU {cpu} is in no NUMA node")]
    UnknownCpu {
        /// The CPU.
        cpu: u32,
    },
    /// No node that could be asked has the CPU, and one could not.
    #[error("the CPUs of NUMA node {node} are not known: {reason}")]
    UnreadableCpus {
        /// The first such node.
        node: u32,
        /// What is wrong with its `cpulist`.
        reason: String,
    },
    /// A file below `/sys` can't be read: the device's `numa_node`, or the list of nodes.
    #[error(transparent)]
    Sysfs(#[from] SysfsError),
    /// The `numa_node` file has no number.
    #[error("/sys/{path}: {text:?} is not a NUMA node")]
    NotANumber {
        /// The path below `/sys`.
        path: String,
        /// What the file holds.
        text: String,
    },
    /// The nodes that a CPU could be in can't be read.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The list has more values than a device may have.
    #[error("{count} local NUMA nodes, more than the {MAX_VALUES_PER_DEVICE} values of a device")]
    TooManyValues {
        /// Nodes in the list.
        count: usize,
    },
}

/// The attribute for one device, with what was noticed on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NumaNodeAttribute {
    /// Exactly one of `int` and `ints` is set.
    pub value: DeviceAttribute,
    /// Why the value is less than the machine might offer; empty in the normal case.
    pub diagnostics: Vec<Diagnostic>,
}

impl NumaNodeAttribute {
    /// The scalar form.
    fn scalar(node: i64) -> Self {
        Self { value: DeviceAttribute { int: Some(node), ..DeviceAttribute::default() }, diagnostics: Vec::new() }
    }

    /// The list form of given local nodes, for a caller that chose or [trimmed](LocalNodes::trimmed) them.
    ///
    /// # Errors
    /// More nodes than a device may have values. Nothing is cut off silently.
    ///
    /// ```
    /// use dra_attrs::numa::{NumaError, NumaNode, NumaNodeAttribute, NumaTopology};
    /// let wide: Vec<NumaNode> = (0..64).map(|id| NumaNode::new(id, vec![20; 64])).collect();
    /// let local = NumaTopology::new(wide)?.local_nodes(5);
    /// assert_eq!(NumaNodeAttribute::list(local.clone()), Err(NumaError::TooManyValues { count: 64 }));
    /// let attribute = NumaNodeAttribute::list(local.trimmed(48))?;
    /// assert_eq!(attribute.value.ints.map(|nodes| (nodes.len(), nodes[0])), Some((48, 5)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list(local: LocalNodes) -> Result<Self, NumaError> {
        let LocalNodes { nodes, diagnostics } = local;
        if nodes.len() > MAX_VALUES_PER_DEVICE {
            return Err(NumaError::TooManyValues { count: nodes.len() });
        }
        Ok(Self { value: DeviceAttribute { ints: Some(nodes), ..DeviceAttribute::default() }, diagnostics })
    }

    /// The attribute under its full name.
    #[must_use]
    pub fn into_standard(self) -> StandardAttribute {
        StandardAttribute::new(NUMA_NODE, self.value)
    }
}

impl NumaTopology {
    /// The attribute of a device on a node of this machine.
    ///
    /// # Errors
    /// The node is negative or out of range, or the list is too long.
    ///
    /// # Complexity
    /// Constant for the scalar and the own node, linear in the number of nodes for the list.
    ///
    /// ```
    /// use dra_attrs::numa::{NumaError, NumaForm, NumaNode, NumaTopology};
    /// let machine = NumaTopology::new(vec![NumaNode::new(0, [10]).on_socket(0)])?;
    /// assert_eq!(machine.attribute(0, NumaForm::Scalar)?.value.int, Some(0));
    /// assert_eq!(machine.attribute(-1, NumaForm::Scalar), Err(NumaError::NoAffinity { node: -1 }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attribute(&self, node: i64, form: NumaForm) -> Result<NumaNodeAttribute, NumaError> {
        attribute_on(node, form, |node| self.local_nodes(node))
    }

    /// The node of a CPU; the lowest one if several nodes claim it (NUMA emulation).
    ///
    /// # Errors
    /// No node has the CPU.
    pub fn node_of_cpu(&self, cpu: u32) -> Result<i64, NumaError> {
        let node = self.nodes.iter().find(|node| node.cpus().contains(cpu));
        node.map(super::NumaNode::id).ok_or(NumaError::UnknownCpu { cpu })
    }
}

/// The attribute of a device, read from a machine: what a driver calls.
///
/// The scalar reads nothing but the device's own place; the list also reads the distance rows and socket ids. Nothing is
/// cached: the value follows the machine as it is at the call. A driver with many devices reads the topology once, and
/// for each device [`numa_node`] and [`NumaTopology::attribute`].
///
/// # Errors
/// The device has no affinity, its node is out of range or can't be read, or the list is too long. A distance table that
/// can't be read is no error: the list is then the physical node alone, with a diagnostic.
///
/// ```
/// use dra_attrs::numa::{NumaForm, NumaPlace, numa_node_attribute};
/// use dra_attrs::pci::PciAddress;
/// use dra_attrs::sysfs::SysfsMap;
///
/// let machine = SysfsMap::default().with_file("bus/pci/devices/0000:c1:00.0/numa_node", "6\n");
/// let gpu = NumaPlace::Pci(PciAddress::parse("0000:c1:00.0")?);
/// assert_eq!(numa_node_attribute(&machine, gpu, NumaForm::Scalar)?.value.int, Some(6));
///
/// let list = numa_node_attribute(&machine, gpu, NumaForm::LocalNodes)?;
/// assert_eq!(list.value.ints, Some(vec![6]));
/// assert_eq!(list.diagnostics.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn numa_node_attribute(
    sysfs: &impl Sysfs,
    place: NumaPlace,
    form: NumaForm,
) -> Result<NumaNodeAttribute, NumaError> {
    attribute_on(numa_node(sysfs, place)?, form, |node| match NumaTopology::from_sysfs(sysfs) {
        Ok(topology) => topology.local_nodes(node),
        Err(error) => {
            LocalNodes { nodes: vec![node], diagnostics: vec![Diagnostic::NoTopology { reason: error.to_string() }] }
        }
    })
}

/// The NUMA node of a device, read from a machine.
///
/// # Errors
/// The device has no affinity, or its node is out of range or can't be read.
///
/// ```
/// use dra_attrs::numa::{NumaPlace, numa_node};
/// use dra_attrs::pci::PciAddress;
/// use dra_attrs::sysfs::SysfsMap;
///
/// let machine = SysfsMap::default().with_file("bus/pci/devices/0000:c1:00.0/numa_node", "6\n");
/// assert_eq!(numa_node(&machine, NumaPlace::Pci(PciAddress::parse("0000:c1:00.0")?))?, 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn numa_node(sysfs: &impl Sysfs, place: NumaPlace) -> Result<i64, NumaError> {
    let node = match place {
        NumaPlace::Node(node) => node,
        NumaPlace::Cpu(cpu) => node_of_cpu(sysfs, cpu)?,
        NumaPlace::Pci(address) => node_of_pci(sysfs, address)?,
    };
    check_node(node)?;
    Ok(node)
}

fn attribute_on(
    node: i64,
    form: NumaForm,
    local_nodes: impl FnOnce(i64) -> LocalNodes,
) -> Result<NumaNodeAttribute, NumaError> {
    check_node(node)?;
    match form {
        NumaForm::Scalar => Ok(NumaNodeAttribute::scalar(node)),
        NumaForm::OwnNode => NumaNodeAttribute::list(LocalNodes { nodes: vec![node], diagnostics: Vec::new() }),
        NumaForm::LocalNodes => NumaNodeAttribute::list(local_nodes(node)),
    }
}

fn check_node(node: i64) -> Result<(), NumaError> {
    match node {
        i64::MIN..0 => Err(NumaError::NoAffinity { node }),
        MAX_NODES.. => Err(NumaError::OutOfRange { node }),
        _ => Ok(()),
    }
}

fn node_of_cpu(sysfs: &impl Sysfs, cpu: u32) -> Result<i64, NumaError> {
    let mut unread = None;
    for node in online_nodes(sysfs)?.iter() {
        match cpus_of(sysfs, node) {
            Ok(cpus) if cpus.contains(cpu) => return Ok(i64::from(node)),
            Ok(_) => {}
            Err(reason) => drop(unread.get_or_insert(NumaError::UnreadableCpus { node, reason })),
        }
    }
    // The CPU may be in a node that could not be asked.
    Err(unread.unwrap_or(NumaError::UnknownCpu { cpu }))
}

fn node_of_pci(sysfs: &impl Sysfs, address: PciAddress) -> Result<i64, NumaError> {
    let path = address.sysfs_file("numa_node");
    let text = sysfs.read(&path)?;
    let text = trimmed(&text);
    text.parse().map_err(|_| NumaError::NotANumber { path, text: text.to_owned() })
}

/// Puts the outcome of a helper on a device: the attribute, or no attribute under the standard name. The device's other
/// attributes stay as they are.
///
/// # Errors
/// The helper's error, passed on after the attribute was left out.
///
/// ```
/// use std::collections::BTreeMap;
/// use dra_attrs::numa::{NumaForm, NumaPlace, numa_node_attribute, publish};
/// use dra_attrs::sysfs::SysfsMap;
///
/// let mut attributes = BTreeMap::new();
/// let unknown = numa_node_attribute(&SysfsMap::default(), NumaPlace::Node(-1), NumaForm::Scalar);
/// assert!(publish(&mut attributes, unknown).is_err());
/// assert!(attributes.is_empty());
/// ```
pub fn publish(
    attributes: &mut BTreeMap<String, DeviceAttribute>,
    outcome: Result<NumaNodeAttribute, NumaError>,
) -> Result<Vec<Diagnostic>, NumaError> {
    attributes.remove(NUMA_NODE);
    let NumaNodeAttribute { value, diagnostics } = outcome?;
    attributes.insert(NUMA_NODE.to_owned(), value);
    Ok(diagnostics)
}

/// The physical NUMA node of a device, from either form: the scalar, or the first element of the list.
///
/// `None` means unknown, never node 0: the attribute has neither form. Lists are read as they are, never sorted.
///
/// ```
/// use dra_attrs::numa::physical_node;
/// use k8s_openapi::api::resource::v1::DeviceAttribute;
/// let list = DeviceAttribute { ints: Some(vec![6, 4, 5, 7]), ..Default::default() };
/// assert_eq!(physical_node(&list), Some(6));
/// assert_eq!(physical_node(&DeviceAttribute::default()), None);
/// ```
#[must_use]
pub fn physical_node(attribute: &DeviceAttribute) -> Option<i64> {
    attribute.int.or_else(|| attribute.ints.as_ref().and_then(|nodes| nodes.first().copied()))
}

/// A valid value of the attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
#[expect(clippy::exhaustive_enums, reason = "the KEP has these two forms")]
pub enum NumaNodeValue<'a> {
    /// The physical node.
    Scalar(i64),
    /// The physical node first.
    List(&'a [i64]),
}

/// Why an attribute is not a NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotANumaNode {
    /// The attribute has no valid value at all.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The value is of a type that is no number.
    #[error("a NUMA node must be int or ints, not {field}")]
    Type {
        /// The field that is set.
        field: &'static str,
    },
}

impl<'a> NumaNodeValue<'a> {
    /// Reads and checks the attribute: exactly one of `int` and `ints`.
    ///
    /// # Errors
    /// Both or neither is set, the list is empty, or the value is of another type.
    ///
    /// ```
    /// use dra_attrs::numa::{NotANumaNode, NumaNodeValue};
    /// use k8s_openapi::api::resource::v1::DeviceAttribute;
    /// let text = DeviceAttribute { string: Some("0".into()), ..Default::default() };
    /// assert_eq!(NumaNodeValue::parse(&text), Err(NotANumaNode::Type { field: "string" }));
    /// ```
    pub fn parse(attribute: &'a DeviceAttribute) -> Result<Self, NotANumaNode> {
        match AttributeValue::parse(attribute)? {
            AttributeValue::Int(node) => Ok(Self::Scalar(node)),
            AttributeValue::Ints(nodes) => Ok(Self::List(nodes)),
            other => Err(NotANumaNode::Type { field: other.field() }),
        }
    }
}
