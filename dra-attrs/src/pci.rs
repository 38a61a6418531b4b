//! PCI addresses, and PCI Express roots of devices.
//!
//! Source of the rules: KEP-4381's `pcieRoot` and `pciBusID`, and the `deviceattribute` helpers of
//! `k8s.io/dynamic-resource-allocation`.

use std::fmt;
use std::str::FromStr;

use crate::serde_text::serde_as_text;
use crate::standard::StandardAttribute;
use crate::sysfs::{Sysfs, SysfsError};

/// Directory of the PCI functions, below `/sys`.
pub(crate) const PCI_DEVICES: &str = "bus/pci/devices";

/// Reason that a text is not a PCI address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PciAddressError {
    /// The text is empty.
    #[error("PCI bus id cannot be empty")]
    Empty,
    /// The text does not have the form of a PCI address.
    #[error("invalid PCI bus id {text:?}: {expected}")]
    Format {
        /// The invalid text.
        text: String,
        /// Form that an address must have.
        expected: &'static str,
    },
}

/// Address of a PCI function: domain, bus, device, function.
///
/// ```
/// use dra_attrs::PciAddress;
/// let gpu = PciAddress::parse("0000:c1:00.0")?;
/// assert_eq!(gpu.to_string(), "0000:c1:00.0");
/// // Intel VMD puts NVMe drives into domains of their own, wider than upstream's helper accepts.
/// assert!(PciAddress::parse("10000:00:04.0").is_err());
/// assert_eq!(PciAddress::parse_extended("10000:00:04.0")?.to_string(), "10000:00:04.0");
/// # Ok::<(), dra_attrs::PciAddressError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(with = "String"))]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

impl PciAddress {
    /// Parses an address as upstream's helper does: exactly `hhhh:hh:hh.h` in lower case.
    ///
    /// # Errors
    /// The text is empty or of another form.
    pub fn parse(text: &str) -> Result<Self, PciAddressError> {
        let expected = "expected hhhh:hh:hh.h, lowercase hexadecimal";
        let is_lower = !text.bytes().any(|c| c.is_ascii_uppercase());
        Self::split(text, 4..=4).filter(|_| is_lower).ok_or_else(|| Self::error(text, expected))
    }

    /// Parses every address that the kernel prints: a domain of 4 to 8 digits (padded to 4), device up to `1f`,
    /// function up to `7`. Upper case is converted to lower case. This is an extension: upstream's helper rejects such
    /// addresses.
    ///
    /// # Errors
    /// The text is empty or of another form.
    pub fn parse_extended(text: &str) -> Result<Self, PciAddressError> {
        let expected = "expected a domain of 4 to 8 hexadecimal digits, bus, device up to 1f and function up to 7";
        let in_range = |address: &Self| address.device <= 0x1f && address.function <= 7;
        // The kernel pads to four digits only; another spelling would name another file.
        let padded = text.split(':').next().is_some_and(|domain| domain.len() > 4 && domain.starts_with('0'));
        Self::split(text, 4..=8)
            .filter(|address| in_range(address) && !padded)
            .ok_or_else(|| Self::error(text, expected))
    }

    fn error(text: &str, expected: &'static str) -> PciAddressError {
        if text.is_empty() {
            return PciAddressError::Empty;
        }
        PciAddressError::Format { text: text.to_owned(), expected }
    }

    fn split(text: &str, domain_digits: std::ops::RangeInclusive<usize>) -> Option<Self> {
        let (domain, rest) = text.split_once(':')?;
        let (bus, rest) = rest.split_once(':')?;
        let (device, function) = rest.split_once('.')?;
        Some(Self {
            domain: hex(domain, domain_digits)?,
            bus: u8::try_from(hex(bus, 2..=2)?).ok()?,
            device: u8::try_from(hex(device, 2..=2)?).ok()?,
            function: u8::try_from(hex(function, 1..=1)?).ok()?,
        })
    }

    /// Returns the attribute `resource.kubernetes.io/pciBusID`.
    #[must_use]
    pub fn attribute(self) -> StandardAttribute {
        StandardAttribute::string(StandardAttribute::PCI_BUS_ID, self.to_string())
    }

    /// Returns the path of a file of the function, below `/sys`.
    pub(crate) fn sysfs_file(self, file: &str) -> String {
        format!("{PCI_DEVICES}/{self}/{file}")
    }

    /// Returns the PCI Express root (`pci0000:00`) of a device, from the target of its link in `/sys/bus/pci/devices`.
    ///
    /// # Errors
    /// The target, relative to the directory of the link, is not below `devices/pci…` or ends in another device. Absolute
    /// targets are rejected, as upstream's helper does.
    ///
    /// ```
    /// use dra_attrs::PciAddress;
    /// let nic = PciAddress::parse("0000:41:00.0")?;
    /// assert_eq!(nic.pcie_root("../../../devices/pci0000:40/0000:40:01.1/0000:41:00.0")?, "pci0000:40");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pcie_root(self, target: &str) -> Result<String, PcieRootError> {
        let error = |reason| PcieRootError::Link { address: self, target: target.to_owned(), reason };
        let path = resolve(PCI_DEVICES, target).ok_or_else(|| error("not a relative path below /sys"))?;
        let (Some(&"devices"), Some(root)) = (path.first(), path.get(1)) else {
            return Err(error("does not lead below devices/pci"));
        };
        if !is_pci_root(root) {
            return Err(error("does not start at a PCI root (pciDDDD:BB)"));
        }
        if path.last().is_none_or(|name| *name != self.to_string()) {
            return Err(error("ends in another device"));
        }
        Ok((*root).to_owned())
    }

    /// Reads the attribute `resource.kubernetes.io/pcieRoot` of a device through its link in sysfs.
    ///
    /// # Errors
    /// The link can't be read or is not that of a PCI device.
    pub fn pcie_root_attribute(self, sysfs: &impl Sysfs) -> Result<StandardAttribute, PcieRootError> {
        let target = sysfs.link(&format!("{PCI_DEVICES}/{self}"))?;
        Ok(StandardAttribute::string(StandardAttribute::PCIE_ROOT, self.pcie_root(&target)?))
    }
}

fn hex(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let well_formed = digits.contains(&text.len()) && text.bytes().all(|c| c.is_ascii_hexdigit());
    if well_formed { u32::from_str_radix(text, 16).ok() } else { None }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

impl FromStr for PciAddress {
    type Err = PciAddressError;

    /// Parses an address like [`PciAddress::parse`].
    fn from_str(text: &str) -> Result<Self, PciAddressError> {
        Self::parse(text)
    }
}

serde_as_text!(PciAddress, read_any);

/// Parses an address like [`PciAddress::parse_extended`] too, so that every serialized address can be read.
fn read_any(text: &str) -> Result<PciAddress, PciAddressError> {
    PciAddress::parse(text).or_else(|_| PciAddress::parse_extended(text))
}

/// Reason that the PCI Express root of a device is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PcieRootError {
    /// The device's link in `/sys/bus/pci/devices` can't be read.
    #[error(transparent)]
    Sysfs(#[from] SysfsError),
    /// The device's link in `/sys/bus/pci/devices` does not point to a device below a PCI root.
    #[error("link of {address} to {target:?}: {reason}")]
    Link {
        /// Address of the device.
        address: PciAddress,
        /// Target of the link.
        target: String,
        /// Rule that the target breaks.
        reason: &'static str,
    },
}

/// Joins `target` to `folder` and removes `.`, `..` and empty components. Returns `None` if the target is absolute or
/// leaves `/sys`.
fn resolve<'a>(folder: &'a str, target: &'a str) -> Option<Vec<&'a str>> {
    if target.starts_with('/') {
        return None;
    }
    let mut path = Vec::new();
    for part in folder.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                path.pop()?;
            }
            _ => path.push(part),
        }
    }
    Some(path)
}

fn is_pci_root(component: &str) -> bool {
    let numbers = component.strip_prefix("pci").and_then(|rest| rest.split_once(':'));
    numbers.is_some_and(|(domain, bus)| hex(domain, 4..=8).is_some() && hex(bus, 2..=2).is_some())
}
