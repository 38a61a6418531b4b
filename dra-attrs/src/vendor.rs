//! Migration from vendor-specific NUMA attributes to the standard one, by the KEP's table "Current Driver Attribute
//! Names".

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::k8s::DeviceAttribute;
use crate::name::lookup_by_name;
use crate::numa::NumaTopology;
use crate::standard::StandardAttribute;

/// Driver that publishes a device's NUMA node in an attribute with a name of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum VendorDriver {
    /// NVIDIA GPU driver (for VFIO devices only).
    NvidiaGpu,
    /// AMD GPU driver.
    AmdGpu,
    /// Network driver dranet.
    Dranet,
    /// SR-IOV NIC driver.
    SriovNic,
    /// CPU driver (`dra.cpu`).
    Cpu,
    /// Memory driver (`dra.memory`).
    Memory,
}

impl VendorDriver {
    /// Returns the names of the attribute in which the driver publishes a device's NUMA node: the primary name, then
    /// the aliases. A name without a domain is in the driver's own domain.
    ///
    /// ```
    /// use dra_attrs::VendorDriver;
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

    /// Adds the attribute `resource.kubernetes.io/numaNode` to a device, with the value of the vendor's attribute, which is
    /// kept. An existing standard attribute is never overwritten, and "no affinity" (-1) is never published.
    ///
    /// `driver_name` is the name under which the driver runs, and the domain of a bare vendor name. The first name of the
    /// table that the device has is used.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use dra_attrs::{VendorDriver, VendorMigration};
    /// use k8s_openapi::api::resource::v1::DeviceAttribute;
    ///
    /// let int = |node| DeviceAttribute { int: Some(node), ..Default::default() };
    /// let mut attributes = BTreeMap::from([("numaNode".to_owned(), int(3))]);
    /// let done = VendorDriver::AmdGpu.add_standard_numa_node("gpu.amd.com", &mut attributes);
    /// assert_eq!(done, VendorMigration::Added { from: "numaNode", node: 3 });
    /// assert_eq!(attributes["resource.kubernetes.io/numaNode"], int(3));
    /// assert_eq!(attributes["numaNode"], int(3));
    /// ```
    pub fn add_standard_numa_node(
        self,
        driver_name: &str,
        attributes: &mut BTreeMap<String, DeviceAttribute>,
    ) -> VendorMigration {
        if attributes.contains_key(StandardAttribute::NUMA_NODE) {
            return VendorMigration::AlreadyStandard;
        }
        let found = self.names().iter().find_map(|name| {
            let attribute = vendor_attribute(attributes, name, driver_name)?;
            Some((*name, attribute.int))
        });
        match found {
            None => VendorMigration::NoVendorName,
            Some((from, Some(node))) if (0..NumaTopology::MAX_NODES).contains(&node) => {
                let value = DeviceAttribute { int: Some(node), ..DeviceAttribute::default() };
                attributes.insert(StandardAttribute::NUMA_NODE.to_owned(), value);
                VendorMigration::Added { from, node }
            }
            Some((from, node)) => VendorMigration::NotANode { from, node },
        }
    }
}

/// Result of [`VendorDriver::add_standard_numa_node`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum VendorMigration {
    /// The standard attribute was added.
    Added {
        /// Name of the vendor's attribute that the value was read from.
        from: &'static str,
        /// NUMA node in the added attribute.
        node: i64,
    },
    /// The device already had the standard attribute, which is unchanged.
    AlreadyStandard,
    /// The device has no attribute with one of the driver's names.
    NoVendorName,
    /// The value of the vendor's attribute is not a NUMA node: negative (no affinity), 1024 or more, or not an `int`.
    /// Nothing was added.
    NotANode {
        /// Name of the vendor's attribute that the value was read from.
        from: &'static str,
        /// Value of the vendor's attribute, if it is a number.
        node: Option<i64>,
    },
}

/// Looks up the attribute `name` of a vendor's driver. A bare name also finds the name with the driver's domain, and
/// the other way round.
fn vendor_attribute<'m>(
    attributes: &'m BTreeMap<String, DeviceAttribute>,
    name: &str,
    driver_name: &str,
) -> Option<&'m DeviceAttribute> {
    if name.contains('/') {
        return lookup_by_name(attributes, name, driver_name);
    }
    lookup_by_name(attributes, &format!("{driver_name}/{name}"), driver_name)
}
