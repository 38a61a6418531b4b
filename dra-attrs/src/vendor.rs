//! From vendor-specific NUMA attributes to the standard one: the KEP's table "Current Driver Attribute Names".

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::k8s::DeviceAttribute;
use crate::name::lookup;
use crate::numa::MAX_NODES;
use crate::standard::NUMA_NODE;

/// A driver that publishes the NUMA node under a name of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum VendorDriver {
    /// The NVIDIA GPU driver (for VFIO devices only).
    NvidiaGpu,
    /// The AMD GPU driver.
    AmdGpu,
    /// dranet.
    Dranet,
    /// The SR-IOV NIC driver.
    SriovNic,
    /// The CPU driver.
    Cpu,
    /// The memory driver.
    Memory,
}

impl VendorDriver {
    /// All drivers of the table, in its order.
    pub const ALL: [Self; 6] = [Self::NvidiaGpu, Self::AmdGpu, Self::Dranet, Self::SriovNic, Self::Cpu, Self::Memory];

    /// The names under which the driver publishes the node: the primary one, then the aliases. A name without a domain
    /// is in the driver's own.
    ///
    /// ```
    /// use dra_attrs::vendor::VendorDriver;
    /// assert_eq!(VendorDriver::Cpu.names(), ["dra.cpu/numaNodeID", "dra.net/numaNode"]);
    /// ```
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::NvidiaGpu => &["numa"],
            Self::AmdGpu => &["numaNode"],
            Self::Dranet | Self::SriovNic => &["dra.net/numaNode"],
            Self::Cpu => &["dra.cpu/numaNodeID", "dra.net/numaNode"],
            Self::Memory => &["dra.memory/numaNode", "dra.cpu/numaNodeID", "dra.net/numaNode"],
        }
    }
}

/// What [`add_standard_numa_node`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Migration {
    /// The standard attribute was added.
    Added {
        /// The vendor name it was read from.
        from: &'static str,
        /// The node.
        node: i64,
    },
    /// The device had the standard attribute; it was left as it is.
    AlreadyStandard,
    /// The device has none of the driver's names.
    NoVendorName,
    /// The vendor's value is not a node: negative (no affinity), 1024 or more, or not an `int`. Nothing was added.
    NotANode {
        /// The vendor name it was read from.
        from: &'static str,
        /// The value, if it is a number.
        node: Option<i64>,
    },
}

/// Adds the standard NUMA attribute beside a vendor's own, which stays. A standard attribute is never overwritten, and
/// "no affinity" (-1) is never published.
///
/// `driver_name` is the name under which the driver runs; a bare vendor name is in its domain. The first name of the
/// table that the device has decides.
///
/// ```
/// use std::collections::BTreeMap;
/// use dra_attrs::vendor::{Migration, VendorDriver, add_standard_numa_node};
/// use k8s_openapi::api::resource::v1::DeviceAttribute;
///
/// let int = |node| DeviceAttribute { int: Some(node), ..Default::default() };
/// let mut attributes = BTreeMap::from([("numaNode".to_owned(), int(3))]);
/// let done = add_standard_numa_node(VendorDriver::AmdGpu, "gpu.amd.com", &mut attributes);
/// assert_eq!(done, Migration::Added { from: "numaNode", node: 3 });
/// assert_eq!(attributes["resource.kubernetes.io/numaNode"], int(3));
/// assert_eq!(attributes["numaNode"], int(3));
/// ```
pub fn add_standard_numa_node(
    driver: VendorDriver,
    driver_name: &str,
    attributes: &mut BTreeMap<String, DeviceAttribute>,
) -> Migration {
    if attributes.contains_key(NUMA_NODE) {
        return Migration::AlreadyStandard;
    }
    let found = driver.names().iter().find_map(|name| {
        let attribute = vendor_attribute(attributes, name, driver_name)?;
        Some((*name, attribute.int))
    });
    match found {
        None => Migration::NoVendorName,
        Some((from, Some(node))) if (0..MAX_NODES).contains(&node) => {
            let value = DeviceAttribute { int: Some(node), ..DeviceAttribute::default() };
            attributes.insert(NUMA_NODE.to_owned(), value);
            Migration::Added { from, node }
        }
        Some((from, node)) => Migration::NotANode { from, node },
    }
}

/// A vendor's attribute: a bare name may also be written with the driver's domain, and the other way round.
fn vendor_attribute<'m>(
    attributes: &'m BTreeMap<String, DeviceAttribute>,
    name: &str,
    driver_name: &str,
) -> Option<&'m DeviceAttribute> {
    if name.contains('/') {
        return lookup(attributes, name, driver_name);
    }
    lookup(attributes, &format!("{driver_name}/{name}"), driver_name)
}
