//! Captured machines: the sysfs data of their NUMA nodes and PCI devices, as short YAML files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dra_attrs::SysfsMap;
use dra_attrs::numa::CpuSet;
use serde::{Deserialize, Serialize};

const NODES: &str = "devices/system/node";
const CPUS: &str = "devices/system/cpu";
const PCI_DEVICES: &str = "bus/pci/devices";

/// Captured machine.
///
/// ```
/// use dra_attrs::Sysfs;
/// use examples::machine::Machine;
/// let epyc = Machine::load("epyc-9825-nps4")?;
/// assert_eq!(epyc.sysfs().read("devices/system/node/online")?, "0-7\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Machine {
    /// Name of the capture and of its file.
    pub name: String,
    /// Short description of the machine.
    pub title: String,
    /// Source of the data, with a remark about illustrative parts.
    pub source: String,
    /// Online NUMA nodes.
    pub nodes: Vec<Node>,
    /// PCI functions; not necessarily all of the machine.
    pub devices: Vec<Device>,
}

/// NUMA node of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Node {
    /// Node id of the kernel.
    pub id: u32,
    /// Text of the `distance` file.
    pub distances: String,
    /// CPUs of the node as id lists, by package id.
    pub packages: BTreeMap<String, String>,
}

/// PCI function of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Device {
    /// Name of the function in `bus/pci/devices`.
    pub address: String,
    /// Text of the `class` file.
    pub class: String,
    /// Number in the `numa_node` file; a kernel without NUMA has none.
    pub numa_node: Option<i64>,
    /// Short description of the device.
    pub label: String,
    /// Target of the device's link, below `devices`.
    pub path: String,
}

/// Reason that a machine can't be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// There is no capture of this name.
    #[error("no capture {name:?}; known: {}", known.join(", "))]
    Unknown {
        /// Name as given.
        name: String,
        /// Names of the existing captures, sorted.
        known: Vec<String>,
    },
    /// A file or directory can't be read.
    #[error("{}: {reason}", path.display())]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// Text of the error.
        reason: String,
    },
    /// A file is not a valid capture.
    #[error("{}: not a capture: {reason}", path.display())]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// Description of the error, on one line.
        reason: String,
    },
}

impl Machine {
    /// Loads a capture by name.
    ///
    /// # Errors
    /// There is no such capture, or it can't be read.
    pub fn load(name: &str) -> Result<Self, MachineError> {
        let known = names()?;
        if known.iter().any(|known| known == name) {
            read(name)
        } else {
            Err(MachineError::Unknown { name: name.to_owned(), known })
        }
    }

    /// Loads all captures, sorted by name.
    ///
    /// # Errors
    /// A capture can't be read.
    pub fn all() -> Result<Vec<Self>, MachineError> {
        names()?.iter().map(|name| read(name)).collect()
    }

    /// Returns the machine's files and links below `/sys`.
    #[must_use]
    pub fn sysfs(&self) -> SysfsMap {
        let online = self.nodes.iter().map(|node| node.id).collect::<CpuSet>();
        let sysfs = SysfsMap::default().with_file(format!("{NODES}/online"), format!("{online}\n"));
        let sysfs = self.nodes.iter().fold(sysfs, with_node);
        self.devices.iter().fold(sysfs, with_device)
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/machines")
}

/// Returns the names of all captures, sorted.
fn names() -> Result<Vec<String>, MachineError> {
    let folder = folder();
    let io_error = |error: std::io::Error| MachineError::Io { path: folder.clone(), reason: error.to_string() };
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).map_err(io_error)? {
        let file = entry.map_err(io_error)?.file_name();
        names.extend(file.to_str().and_then(|file| file.strip_suffix(".yaml")).map(str::to_owned));
    }
    names.sort_unstable();
    Ok(names)
}

fn read(name: &str) -> Result<Machine, MachineError> {
    let path = folder().join(format!("{name}.yaml"));
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => return Err(MachineError::Io { path, reason: error.to_string() }),
    };
    match parse(&text) {
        Ok(machine) if machine.name == name => Ok(machine),
        Ok(machine) => Err(MachineError::Format { path, reason: format!("its name is {:?}", machine.name) }),
        Err(reason) => Err(MachineError::Format { path, reason }),
    }
}

fn parse(text: &str) -> Result<Machine, String> {
    let options = serde_saphyr::options! { with_snippet: false };
    let machine = serde_saphyr::from_str_with_options(text, options);
    machine.map_err(|error| error.to_string().lines().collect::<Vec<_>>().join(" "))
}

fn with_node(sysfs: SysfsMap, node: &Node) -> SysfsMap {
    let folder = format!("{NODES}/node{}", node.id);
    let sysfs = sysfs
        .with_file(format!("{folder}/distance"), format!("{}\n", node.distances))
        .with_file(format!("{folder}/cpulist"), format!("{}\n", cpulist(node)));
    node.packages.iter().fold(sysfs, |sysfs, (package, cpus)| with_package(sysfs, package, cpus))
}

/// Returns the union of the packages' CPUs. An invalid list is returned unchanged, so that its reader reports it.
fn cpulist(node: &Node) -> String {
    let lists: Vec<&str> = node.packages.values().map(String::as_str).filter(|list| !list.is_empty()).collect();
    let list = lists.join(",");
    list.parse::<CpuSet>().map(|cpus| cpus.to_string()).unwrap_or(list)
}

fn with_package(sysfs: SysfsMap, package: &str, cpus: &str) -> SysfsMap {
    let cpus = cpus.parse::<CpuSet>().unwrap_or_default();
    cpus.iter().fold(sysfs, |sysfs, cpu| {
        sysfs.with_file(format!("{CPUS}/cpu{cpu}/topology/physical_package_id"), format!("{package}\n"))
    })
}

fn with_device(sysfs: SysfsMap, device: &Device) -> SysfsMap {
    let folder = format!("{PCI_DEVICES}/{}", device.address);
    let sysfs = sysfs
        .with_link(folder.clone(), format!("../../../devices/{}", device.path))
        .with_file(format!("{folder}/class"), format!("{}\n", device.class));
    match device.numa_node {
        Some(node) => sysfs.with_file(format!("{folder}/numa_node"), format!("{node}\n")),
        None => sysfs,
    }
}
