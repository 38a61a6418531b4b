//! Survey of a machine: the PCI functions that are devices, with their attributes.

use std::collections::BTreeMap;

use dra_attrs::numa::{NumaForm, NumaPlace, numa_node_attribute, publish};
use dra_attrs::{PciAddress, PciAddressError, Scalar, StandardAttribute, Sysfs, SysfsError, check_device_attributes};
use examples::machine::{Machine, MachineError};
use examples::sysfs::SysfsDir;
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute};

use crate::MachineArgs;

/// Attribute with the kind of a device.
pub(crate) const KIND: &str = "kind";

/// Reason that there is no survey.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SurveyError {
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error("no PCI bus: {place}/{}: {}", error.path, error.reason)]
    NoBus { place: String, error: SysfsError },
}

/// Kind of device that the driver publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gpu,
    Accelerator,
    Nic,
    Nvme,
}

/// Devices found on a machine, with remarks.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) devices: Vec<Device>,
    others: usize,
    notes: Vec<String>,
}

impl MachineArgs {
    /// Returns the name of the machine that is read.
    fn place(&self) -> String {
        self.capture.clone().unwrap_or_else(|| self.sysfs.display().to_string())
    }

    const fn form(&self) -> NumaForm {
        if self.list { NumaForm::LocalNodes } else { NumaForm::Scalar }
    }
}

impl Kind {
    /// Returns the kind for a base class and, for storage, subclass.
    const fn of_class(class: u32) -> Option<Self> {
        match (class >> 16, (class >> 8) & 0xff) {
            (0x01, 0x08) => Some(Self::Nvme),
            (0x02, _) => Some(Self::Nic),
            (0x03, _) => Some(Self::Gpu),
            (0x12, _) => Some(Self::Accelerator),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::Accelerator => "accel",
            Self::Nic => "nic",
            Self::Nvme => "nvme",
        }
    }
}

impl Survey {
    /// Surveys the machine of the flags.
    ///
    /// # Errors
    /// There is no such machine, or its bus can't be read: a slice without devices would withdraw those of the node.
    pub(crate) fn of_machine(args: &MachineArgs) -> Result<Self, SurveyError> {
        let survey = match &args.capture {
            Some(capture) => match Machine::load(capture)? {
                // Files and links can't tell a bus without functions.
                machine if machine.devices.is_empty() => Ok(Self::default()),
                machine => Self::of(&machine.sysfs(), args.form()),
            },
            None => Self::of(&SysfsDir { root: args.sysfs.clone() }, args.form()),
        };
        survey.map_err(|error| SurveyError::NoBus { place: args.place(), error })
    }

    /// Surveys a machine.
    ///
    /// # Errors
    /// The machine has no PCI bus, or it can't be read.
    fn of(machine: &impl Sysfs, form: NumaForm) -> Result<Self, SysfsError> {
        let mut survey = Self::default();
        machine.list("bus/pci/devices")?.iter().for_each(|name| survey.visit(machine, name, form));
        Ok(survey)
    }

    /// Returns the notes on devices, then those on the survey as a whole.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let others = (self.others > 0).then(|| format!("PCI functions of other classes: {}", self.others));
        let empty = self.devices.is_empty().then(|| "no device to publish: the slice is empty".to_owned());
        self.notes.iter().cloned().chain(others).chain(empty)
    }

    fn visit(&mut self, machine: &impl Sysfs, name: &str, form: NumaForm) {
        let kind = address(name).and_then(|address| Ok((address, kind(machine, address)?)));
        match kind {
            Err(reason) => self.notes.push(format!("{name:?} left out: {reason}")),
            Ok((_, None)) => self.others = self.others.saturating_add(1),
            Ok((address, Some(kind))) => {
                let attributes = self.attributes(machine, address, kind, form);
                let name = device_name(kind, address);
                self.devices.push(Device { name, attributes: Some(attributes), ..Device::default() });
            }
        }
    }

    fn attributes(
        &mut self,
        machine: &impl Sysfs,
        address: PciAddress,
        kind: Kind,
        form: NumaForm,
    ) -> BTreeMap<String, DeviceAttribute> {
        let mut attributes = BTreeMap::from([(KIND.to_owned(), Scalar::String(kind.name()).to_attribute())]);
        address.attribute().insert_into(&mut attributes);
        match address.pcie_root_attribute(machine) {
            Ok(root) => root.insert_into(&mut attributes),
            Err(error) => self.notes.push(format!("{address}: no pcieRoot: {error}")),
        }
        match publish(&mut attributes, numa_node_attribute(machine, NumaPlace::Pci(address), form)) {
            Ok(diagnostics) => self.notes.extend(diagnostics.iter().map(|found| format!("{address}: {found}"))),
            Err(error) => self.notes.push(format!("{address}: no numaNode: {error}")),
        }
        self.fit(address, &mut attributes);
        attributes
    }

    /// Removes numaNode if the attributes exceed the device limits only because of it, and notes the reason.
    fn fit(&mut self, address: PciAddress, attributes: &mut BTreeMap<String, DeviceAttribute>) {
        let Err(errors) = check_device_attributes(attributes, 0) else { return };
        let numa = attributes.remove(StandardAttribute::NUMA_NODE);
        let prefix = if check_device_attributes(attributes, 0).is_ok() {
            "no numaNode: "
        } else {
            attributes.extend(numa.map(|value| (StandardAttribute::NUMA_NODE.to_owned(), value)));
            ""
        };
        self.notes.extend(errors.iter().map(|error| format!("{address}: {prefix}{error}")));
    }
}

/// Parses an address in the kernel's spelling. Another spelling would name other files.
fn address(name: &str) -> Result<PciAddress, String> {
    let parsed = PciAddress::parse(name).or_else(|_| PciAddress::parse_extended(name));
    let address = parsed.map_err(|error: PciAddressError| error.to_string())?;
    if address.to_string() == name { Ok(address) } else { Err(format!("the address is spelt {address}")) }
}

fn kind(machine: &impl Sysfs, address: PciAddress) -> Result<Option<Kind>, String> {
    let text = machine.read(&format!("bus/pci/devices/{address}/class")).map_err(|error| error.to_string())?;
    let digits = text.trim().strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
    digits.map(Kind::of_class).ok_or_else(|| format!("{:?} is not a PCI class", text.trim()))
}

/// Returns the device's name, a DNS label: `gpu-0000-c1-00-0`.
fn device_name(kind: Kind, address: PciAddress) -> String {
    format!("{}-{}", kind.name(), address.to_string().replace([':', '.'], "-"))
}
