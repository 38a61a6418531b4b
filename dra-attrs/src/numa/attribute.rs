//! Attribute `resource.kubernetes.io/numaNode`: its computation for a device, and reading it from a device.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::local_nodes::{Diagnostic, LocalNodes};
use super::topology::{NumaTopology, TopologyError, cpus_of, online_nodes};
use crate::k8s::DeviceAttribute;
use crate::pci::PciAddress;
use crate::standard::StandardAttribute;
use crate::sysfs::{Sysfs, SysfsError, trimmed};
use crate::value::{AttributeValue, ValueError};

/// Form in which a driver publishes a device's NUMA node. The driver's operator chooses it; no cluster state is
/// consulted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum NumaForm {
    /// The device's own (physical) NUMA node as `int`, which is valid in every cluster.
    #[default]
    Scalar,
    /// The device's own (physical) NUMA node as a list of one element, for CPUs and memory in clusters with list types.
    OwnNode,
    /// The device's own (physical) NUMA node and the nearest nodes of the same socket, as `ints`. Needs the feature
    /// gate `DRAListTypeAttributes` in the cluster.
    LocalNodes,
}

/// Source from which the NUMA node of a device is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NumaPlace {
    /// NUMA node that the driver states itself (CPU and memory devices).
    Node(i64),
    /// NUMA node of the CPU with this id.
    Cpu(u32),
    /// NUMA node in the `numa_node` file of a PCI function.
    Pci(PciAddress),
}

/// Reason that a device has no NUMA attribute. A driver then omits the attribute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NumaError {
    /// The kernel reports no NUMA affinity (a negative node) for the device.
    #[error("the device has no NUMA affinity (node {node})")]
    NoAffinity {
        /// The negative node that the kernel reports.
        node: i64,
    },
    /// The NUMA node is not below [`NumaTopology::MAX_NODES`].
    #[error("NUMA node {node} is not in 0..{}", NumaTopology::MAX_NODES)]
    OutOfRange {
        /// The NUMA node that is out of range.
        node: i64,
    },
    /// The CPU belongs to no online NUMA node.
    #[error("CPU {cpu} is in no NUMA node")]
    UnknownCpu {
        /// Id of the CPU.
        cpu: u32,
    },
    /// No node with a readable list of CPUs has the CPU, and at least one node's list can't be read.
    #[error("the CPUs of NUMA node {node} are not known: {reason}")]
    UnreadableCpus {
        /// First node whose list of CPUs can't be read.
        node: u32,
        /// Reason that the `cpulist` of the node can't be read.
        reason: String,
    },
    /// A file below `/sys` can't be read: the device's `numa_node`, or the list of nodes.
    #[error(transparent)]
    Sysfs(#[from] SysfsError),
    /// The `numa_node` file does not contain a number.
    #[error("/sys/{path}: {text:?} is not a NUMA node")]
    NotANumber {
        /// Path of the file below `/sys`.
        path: String,
        /// Text of the file.
        text: String,
    },
    /// The list of online NUMA nodes, in which a CPU is looked up, can't be read.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The list has more nodes than a device may have attribute values.
    #[error("{count} local NUMA nodes, more than the {} values of a device", AttributeValue::MAX_PER_DEVICE)]
    TooManyValues {
        /// Number of nodes in the list.
        count: usize,
    },
}

/// Value of `resource.kubernetes.io/numaNode` for one device, with diagnostics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NumaNodeAttribute {
    /// Attribute value, with exactly one of `int` and `ints` set.
    pub value: DeviceAttribute,
    /// Reasons that the value has fewer nodes than the machine might offer; normally empty.
    pub diagnostics: Vec<Diagnostic>,
}

impl NumaNodeAttribute {
    /// Builds the scalar form of the attribute, an `int`.
    fn scalar(node: i64) -> Self {
        Self { value: DeviceAttribute { int: Some(node), ..DeviceAttribute::default() }, diagnostics: Vec::new() }
    }

    /// Builds the list form of the attribute from local nodes that the caller chose or [trimmed](LocalNodes::trimmed).
    ///
    /// # Errors
    /// The list has more nodes than a device may have values. Nothing is truncated silently.
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
        if nodes.len() > AttributeValue::MAX_PER_DEVICE {
            return Err(NumaError::TooManyValues { count: nodes.len() });
        }
        Ok(Self { value: DeviceAttribute { ints: Some(nodes), ..DeviceAttribute::default() }, diagnostics })
    }
}

impl NumaTopology {
    /// Returns the attribute `resource.kubernetes.io/numaNode` of a device on the NUMA node `node` of this machine.
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

    /// Returns the node of a CPU; the lowest one if several nodes list it (NUMA emulation).
    ///
    /// # Errors
    /// No node has the CPU.
    pub fn node_of_cpu(&self, cpu: u32) -> Result<i64, NumaError> {
        let node = self.nodes.iter().find(|node| node.cpus().contains(cpu));
        node.map(super::NumaNode::id).ok_or(NumaError::UnknownCpu { cpu })
    }
}

/// Computes the attribute `resource.kubernetes.io/numaNode` of a device from a machine's `/sys`. Entry point for
/// drivers.
///
/// The scalar form only reads the device's own place; the list form also reads distances and socket ids. Nothing is
/// cached: the value describes the machine at the time of the call. A driver with many devices reads the topology once,
/// and calls [`numa_node`] and [`NumaTopology::attribute`] for each device.
///
/// # Errors
/// The device has no affinity, its node is out of range or can't be read, or the list is too long. An unreadable
/// distance table is no error: the list is then the physical node alone, with a diagnostic.
///
/// ```
/// use dra_attrs::numa::{numa_node_attribute, NumaForm, NumaPlace};
/// use dra_attrs::{PciAddress, SysfsMap};
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

/// Reads the NUMA node of a device from a machine's `/sys`.
///
/// # Errors
/// The device has no affinity, or its node is out of range or can't be read.
///
/// ```
/// use dra_attrs::numa::{numa_node, NumaPlace};
/// use dra_attrs::{PciAddress, SysfsMap};
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
        NumaTopology::MAX_NODES.. => Err(NumaError::OutOfRange { node }),
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
    // The CPU may be in a node that could not be read.
    Err(unread.unwrap_or(NumaError::UnknownCpu { cpu }))
}

fn node_of_pci(sysfs: &impl Sysfs, address: PciAddress) -> Result<i64, NumaError> {
    let path = address.sysfs_file("numa_node");
    let text = sysfs.read(&path)?;
    let text = trimmed(&text);
    text.parse().map_err(|_| NumaError::NotANumber { path, text: text.to_owned() })
}

/// Sets the attribute `resource.kubernetes.io/numaNode` of a device to `outcome`, or removes it if `outcome` is an
/// error. Other attributes are unchanged.
///
/// # Errors
/// The helper's error, passed on after the attribute was removed.
///
/// ```
/// use std::collections::BTreeMap;
/// use dra_attrs::numa::{numa_node_attribute, publish, NumaForm, NumaPlace};
/// use dra_attrs::SysfsMap;
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
    attributes.remove(StandardAttribute::NUMA_NODE);
    let NumaNodeAttribute { value, diagnostics } = outcome?;
    attributes.insert(StandardAttribute::NUMA_NODE.to_owned(), value);
    Ok(diagnostics)
}

impl NumaNodeValue<'_> {
    /// Returns the physical NUMA node of a device from either form: the scalar, or the first element of the list.
    ///
    /// `None` means unknown, never node 0: the attribute has neither form. The list is not sorted before reading.
    ///
    /// ```
    /// use dra_attrs::internal::NumaNodeValue;
    /// use k8s_openapi::api::resource::v1::DeviceAttribute;
    /// let list = DeviceAttribute { ints: Some(vec![6, 4, 5, 7]), ..Default::default() };
    /// assert_eq!(NumaNodeValue::physical(&list), Some(6));
    /// assert_eq!(NumaNodeValue::physical(&DeviceAttribute::default()), None);
    /// ```
    #[must_use]
    pub fn physical(attribute: &DeviceAttribute) -> Option<i64> {
        attribute.int.or_else(|| attribute.ints.as_ref().and_then(|nodes| nodes.first().copied()))
    }
}

/// Valid value of the attribute `resource.kubernetes.io/numaNode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
#[expect(clippy::exhaustive_enums, reason = "the KEP has these two forms")]
pub enum NumaNodeValue<'a> {
    /// The device's own (physical) NUMA node.
    Scalar(i64),
    /// NUMA nodes, the device's own (physical) node first.
    List(&'a [i64]),
}

/// Reason that an attribute is not a valid `resource.kubernetes.io/numaNode`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NumaValueError {
    /// The attribute has no valid value.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The value is not of type `int` or `ints`.
    #[error("a NUMA node must be int or ints, not {field}")]
    Type {
        /// Field of the `DeviceAttribute` that is set, such as `string`.
        field: &'static str,
    },
}

impl<'a> NumaNodeValue<'a> {
    /// Parses and checks a NUMA node attribute: exactly one of `int` and `ints` is set.
    ///
    /// # Errors
    /// Both or neither is set, the list is empty, or the value is of another type.
    ///
    /// ```
    /// use dra_attrs::internal::NumaNodeValue;
    /// use dra_attrs::numa::NumaValueError;
    /// use k8s_openapi::api::resource::v1::DeviceAttribute;
    /// let text = DeviceAttribute { string: Some("0".into()), ..Default::default() };
    /// assert_eq!(NumaNodeValue::parse(&text), Err(NumaValueError::Type { field: "string" }));
    /// ```
    pub fn parse(attribute: &'a DeviceAttribute) -> Result<Self, NumaValueError> {
        match AttributeValue::parse(attribute)? {
            AttributeValue::Int(node) => Ok(Self::Scalar(node)),
            AttributeValue::Ints(nodes) => Ok(Self::List(nodes)),
            other => Err(NumaValueError::Type { field: other.field() }),
        }
    }
}
