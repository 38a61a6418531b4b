//! Standard attributes: their names, and a value on its way to a device.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::k8s::DeviceAttribute;

/// The device's NUMA node: `int`, or `ints` with the physical node first (KEP-6072).
pub const NUMA_NODE: &str = "resource.kubernetes.io/numaNode";

/// The device's PCI Express root complex: `string`, or `strings`.
pub const PCIE_ROOT: &str = "resource.kubernetes.io/pcieRoot";

/// The device's PCI address: `string`.
pub const PCI_BUS_ID: &str = "resource.kubernetes.io/pciBusID";

/// A standard attribute computed for one device: its full name and its value.
///
/// ```
/// use std::collections::BTreeMap;
/// use dra_attrs::pci::PciAddress;
/// use dra_attrs::standard::PCI_BUS_ID;
///
/// let mut attributes = BTreeMap::new();
/// PciAddress::parse("0000:0f:00.0")?.attribute().insert_into(&mut attributes);
/// assert_eq!(attributes[PCI_BUS_ID].string.as_deref(), Some("0000:0f:00.0"));
/// # Ok::<(), dra_attrs::pci::PciAddressError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StandardAttribute {
    /// The attribute's name, with the domain.
    pub name: String,
    /// The attribute's value, exactly one field of which is set.
    pub value: DeviceAttribute,
}

impl StandardAttribute {
    pub(crate) fn new(name: &str, value: DeviceAttribute) -> Self {
        Self { name: name.to_owned(), value }
    }

    /// A string-valued attribute.
    pub(crate) fn string(name: &str, value: String) -> Self {
        Self::new(name, DeviceAttribute { string: Some(value), ..DeviceAttribute::default() })
    }

    /// Adds the attribute to a device's attributes, replacing an earlier value.
    pub fn insert_into(self, attributes: &mut BTreeMap<String, DeviceAttribute>) {
        attributes.insert(self.name, self.value);
    }
}
