//! Standard attributes: their names, and a computed attribute for a device.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::k8s::DeviceAttribute;

/// Standard attribute computed for one device: its full name and its value.
///
/// ```
/// use std::collections::BTreeMap;
/// use dra_attrs::{PciAddress, StandardAttribute};
///
/// let mut attributes = BTreeMap::new();
/// PciAddress::parse("0000:0f:00.0")?.attribute().insert_into(&mut attributes);
/// assert_eq!(attributes[StandardAttribute::PCI_BUS_ID].string.as_deref(), Some("0000:0f:00.0"));
/// # Ok::<(), dra_attrs::PciAddressError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StandardAttribute {
    /// Name of the attribute, with the domain.
    pub name: String,
    /// Value of the attribute, with exactly one field set.
    pub value: DeviceAttribute,
}

impl StandardAttribute {
    /// Name of the NUMA node of a device: `int`, or `ints` with the physical node first (KEP-6072).
    pub const NUMA_NODE: &str = "resource.kubernetes.io/numaNode";

    /// Name of the PCI Express root complex of a device: `string`, or `strings`.
    pub const PCIE_ROOT: &str = "resource.kubernetes.io/pcieRoot";

    /// Name of the PCI address of a device: `string`.
    pub const PCI_BUS_ID: &str = "resource.kubernetes.io/pciBusID";

    pub(crate) fn new(name: &str, value: DeviceAttribute) -> Self {
        Self { name: name.to_owned(), value }
    }

    /// Builds a standard attribute with a string value.
    pub(crate) fn string(name: &str, value: String) -> Self {
        Self::new(name, DeviceAttribute { string: Some(value), ..DeviceAttribute::default() })
    }

    /// Adds the attribute to a device's attributes and replaces an earlier value.
    pub fn insert_into(self, attributes: &mut BTreeMap<String, DeviceAttribute>) {
        attributes.insert(self.name, self.value);
    }
}
