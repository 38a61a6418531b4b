//! Names and specs of the Container Device Interface (CDI), with which a driver's devices get into containers.
//!
//! A driver writes one transient spec file for each claim, and removes it when the claim is unprepared. The types here
//! are those of the JSON file; [`CdiSpec::new`] finds the smallest version that has what the spec uses, since a runtime
//! refuses versions that it does not know.
//!
//! Source of the rules: `container-device-interface`, `pkg/parser`, `specs-go/version.go` of version 1.1.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::claim::base_request;
use super::ledger::HeldDevice;

/// Reason why a name can't be used with CDI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CdiError {
    /// The vendor does not start with a letter, end with a letter or digit, or has other characters than letters, digits,
    /// `_`, `.` and `-`. The name of a driver may start with a digit; `k8s.` before it makes a vendor of it.
    #[error(
        "CDI vendor {vendor:?}: must start with a letter, end with a letter or digit and consist of [A-Za-z0-9_.-]"
    )]
    Vendor {
        /// The vendor.
        vendor: String,
    },
    /// The class has the same problem.
    #[error("CDI class {class:?}: must start with a letter, end with a letter or digit and consist of [A-Za-z0-9_.-]")]
    Class {
        /// The class.
        class: String,
    },
    /// The device does not start and end with a letter or digit, or has other characters than letters, digits, `_`, `.`,
    /// `-` and `:`.
    #[error("CDI device {device:?}: must start and end with a letter or digit and consist of [A-Za-z0-9_.:-]")]
    Device {
        /// Name of the device.
        device: String,
    },
    /// A spec has no device: a runtime would find none of the names that the kubelet passes on.
    #[error("CDI spec of {kind}: it needs at least one device")]
    NoDevices {
        /// Kind of the devices.
        kind: String,
    },
}

fn is_name(text: &str, is_first: fn(&u8) -> bool, others: &[u8]) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_first)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || others.contains(byte))
}

/// Kind of CDI devices: vendor and class.
///
/// ```
/// use dra_node::driver::CdiKind;
/// let kind = CdiKind::new("k8s.gpu.example.com", "claim")?;
/// assert_eq!(kind.to_string(), "k8s.gpu.example.com/claim");
/// assert_eq!(kind.device_id("5f1c-gpu-0")?, "k8s.gpu.example.com/claim=5f1c-gpu-0");
/// assert_eq!(kind.file_name("5f1c"), "k8s.gpu.example.com-claim_5f1c.json");
/// # Ok::<(), dra_node::driver::CdiError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CdiKind {
    vendor: String,
    class: String,
}

impl CdiKind {
    /// Creates a kind.
    ///
    /// # Errors
    /// The vendor or class is no name of CDI.
    pub fn new(vendor: &str, class: &str) -> Result<Self, CdiError> {
        let is_valid = |text| is_name(text, u8::is_ascii_alphabetic, b"_.-");
        if !is_valid(vendor) {
            return Err(CdiError::Vendor { vendor: vendor.to_owned() });
        }
        if !is_valid(class) {
            return Err(CdiError::Class { class: class.to_owned() });
        }
        Ok(Self { vendor: vendor.to_owned(), class: class.to_owned() })
    }

    /// Returns the qualified name of a device, which a driver answers to the kubelet: `vendor/class=device`.
    ///
    /// # Errors
    /// The device is no name of CDI.
    pub fn device_id(&self, device: &str) -> Result<String, CdiError> {
        if is_name(device, u8::is_ascii_alphanumeric, b"_.:-") {
            Ok(format!("{self}={device}"))
        } else {
            Err(CdiError::Device { device: device.to_owned() })
        }
    }

    /// Returns the name of the transient spec file of a claim, by its UID. The same name serves for writing and removing.
    #[must_use]
    pub fn file_name(&self, claim_uid: &str) -> String {
        format!("{}-{}_{claim_uid}.json", self.vendor, self.class)
    }

    /// Returns the UID of the claim that a file in the CDI directory belongs to; `None` for a file of other kinds, and for
    /// one that is being written.
    ///
    /// ```
    /// use dra_node::driver::CdiKind;
    /// let kind = CdiKind::new("gpu.example.com", "claim")?;
    /// assert_eq!(kind.claim_of_file(&kind.file_name("5f1c")), Some("5f1c"));
    /// assert_eq!(kind.claim_of_file("nic.example.com-claim_5f1c.json"), None);
    /// # Ok::<(), dra_node::driver::CdiError>(())
    /// ```
    #[must_use]
    pub fn claim_of_file<'a>(&self, file_name: &'a str) -> Option<&'a str> {
        let rest = file_name.strip_prefix(self.vendor.as_str())?.strip_prefix('-')?;
        rest.strip_prefix(self.class.as_str())?.strip_prefix('_')?.strip_suffix(".json")
    }
}

impl fmt::Display for CdiKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.vendor, self.class)
    }
}

impl CdiDevice {
    /// Returns a CDI device name for each device that is held for a claim, in their order: `{uid}-{device}[-{share ID}]`. Runtimes
    /// cache devices by name, so that a name is never used for another claim. Where two devices of the claim would have one
    /// name, the second one has its request added, and a number if need be.
    ///
    /// ```
    /// use dra_node::driver::CdiDevice;
    /// use serde_json::{from_value, json};
    /// let held = |request| json!({"request": request, "pool": "node-1", "device": "gpu-0"});
    /// let devices = from_value::<Vec<_>>(json!([held("train"), held("watch")]))?;
    /// assert_eq!(CdiDevice::names("5f1c", &devices), ["5f1c-gpu-0", "5f1c-gpu-0-watch"]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn names(claim_uid: &str, devices: &[HeldDevice]) -> Vec<String> {
        let mut taken = BTreeSet::new();
        let mut names = Vec::new();
        for held in devices {
            let share = held.share_id.as_deref().map(|share| format!("-{share}")).unwrap_or_default();
            let plain = format!("{claim_uid}-{}{share}", held.device);
            let with_request = format!("{plain}-{}", base_request(&held.request));
            let numbered = (2_u32..).map(|number| format!("{with_request}-{number}"));
            let free = [plain, with_request.clone()].into_iter().chain(numbered).find(|name| !taken.contains(name));
            let name = free.unwrap_or_default();
            taken.insert(name.clone());
            names.push(name);
        }
        names
    }
}

/// CDI spec: the content of a spec file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CdiSpec {
    /// Version of the specification, at least [`CdiSpec::minimum_version`].
    pub cdi_version: String,
    /// Kind of the devices: `vendor/class`.
    pub kind: String,
    /// Annotations of the spec.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Devices, at least one.
    pub devices: Vec<CdiDevice>,
    /// Edits for every device of the spec.
    #[serde(default, skip_serializing_if = "CdiEdits::is_empty")]
    pub container_edits: CdiEdits,
}

/// Device of a CDI spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CdiDevice {
    /// Name of the device, unique in its kind.
    pub name: String,
    /// Annotations of the device.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Changes of a container that gets the device.
    pub container_edits: CdiEdits,
}

impl CdiDevice {
    /// Returns a device with its name and the changes of a container that gets it.
    #[must_use]
    pub fn new(name: &str, container_edits: CdiEdits) -> Self {
        Self { name: name.to_owned(), container_edits, ..Self::default() }
    }
}

/// Changes of a container's OCI configuration. Set the fields of an empty one.
///
/// ```
/// use dra_node::driver::{CdiDeviceNode, CdiEdits};
/// let mut edits = CdiEdits::default();
/// edits.device_nodes = vec![CdiDeviceNode::new("/dev/gpu0")];
/// assert!(!edits.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct CdiEdits {
    /// Environment variables, as `NAME=VALUE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Device nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_nodes: Vec<CdiDeviceNode>,
    /// Network devices that move into the container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub net_devices: Vec<CdiNetDevice>,
    /// Hooks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<CdiHook>,
    /// Mounts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<CdiMount>,
    /// Cache and memory bandwidth classes of Intel RDT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intel_rdt: Option<CdiIntelRdt>,
    /// Additional groups of the container's process.
    #[serde(rename = "additionalGids", skip_serializing_if = "Vec::is_empty")]
    pub additional_gids: Vec<u32>,
}

impl CdiEdits {
    /// Returns true if nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Device node in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct CdiDeviceNode {
    /// Path in the container.
    pub path: String,
    /// Path on the host, if it is another one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host_path: String,
    /// Type of the node, as one letter; taken from the host if empty.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_: String,
    /// Major number; taken from the host if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub major: Option<i64>,
    /// Minor number; taken from the host if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minor: Option<i64>,
    /// Mode bits of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_mode: Option<u32>,
    /// Permissions of the device cgroup: letters of `rwm`; all if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub permissions: String,
    /// Owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
}

impl CdiDeviceNode {
    /// Returns the node at a path of the container, which is its path on the host too. All else is taken from the host.
    #[must_use]
    pub fn new(path: &str) -> Self {
        Self { path: path.to_owned(), ..Self::default() }
    }
}

/// Network device that moves into a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CdiNetDevice {
    /// Name of the interface on the host.
    pub host_interface_name: String,
    /// Name in the container.
    pub name: String,
}

impl CdiNetDevice {
    /// Returns an interface of the host with its name in the container.
    #[must_use]
    pub fn new(host_interface_name: &str, name: &str) -> Self {
        Self { host_interface_name: host_interface_name.to_owned(), name: name.to_owned() }
    }
}

/// Hook of a container's life cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CdiHook {
    /// Point in the life cycle, for example `createContainer`.
    pub hook_name: String,
    /// Path of the program on the host.
    pub path: String,
    /// Arguments, the name of the program included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Time limit in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
}

impl CdiHook {
    /// Returns a hook: the point in the life cycle, for example `createContainer`, and the path of the program.
    #[must_use]
    pub fn new(hook_name: &str, path: &str) -> Self {
        Self { hook_name: hook_name.to_owned(), path: path.to_owned(), ..Self::default() }
    }
}

/// Mount of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CdiMount {
    /// Path on the host.
    pub host_path: String,
    /// Path in the container.
    pub container_path: String,
    /// Options, for example `ro` and `bind`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Type of the file system; the runtime's default if empty.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub type_: String,
}

impl CdiMount {
    /// Returns a mount of a path of the host at a path of the container.
    #[must_use]
    pub fn new(host_path: &str, container_path: &str) -> Self {
        Self { host_path: host_path.to_owned(), container_path: container_path.to_owned(), ..Self::default() }
    }
}

/// Class of Intel RDT.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CdiIntelRdt {
    /// Name of the class of service.
    #[serde(rename = "closID", skip_serializing_if = "String::is_empty")]
    pub clos_id: String,
    /// Schema of the L3 cache.
    #[serde(rename = "l3CacheSchema", skip_serializing_if = "String::is_empty")]
    pub l3_cache_schema: String,
    /// Schema of memory bandwidth.
    #[serde(rename = "memBwSchema", skip_serializing_if = "String::is_empty")]
    pub mem_bw_schema: String,
    /// Schemata of any resource.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schemata: Vec<String>,
    /// True if the container gets a monitoring group.
    #[serde(rename = "enableMonitoring", skip_serializing_if = "std::ops::Not::not")]
    pub enable_monitoring: bool,
}

/// Feature of a spec, and the version of the specification that brought it.
type Feature = (&'static str, fn(&CdiSpec) -> bool);

/// Features, the newest first.
const FEATURES: [Feature; 5] = [
    ("1.1.0", |spec| {
        let new_rdt = |rdt: &CdiIntelRdt| !rdt.schemata.is_empty() || rdt.enable_monitoring;
        spec.edits().any(|edits| !edits.net_devices.is_empty() || edits.intel_rdt.as_ref().is_some_and(new_rdt))
    }),
    ("0.7.0", |spec| spec.edits().any(|edits| edits.intel_rdt.is_some() || !edits.additional_gids.is_empty())),
    ("0.6.0", |spec| {
        let class = spec.kind.split_once('/').map(|(_, class)| class);
        !spec.annotations.is_empty()
            || spec.devices.iter().any(|device| !device.annotations.is_empty())
            || class.is_some_and(|class| class.contains('.'))
    }),
    ("0.5.0", |spec| {
        let starts_with_letter =
            |device: &CdiDevice| device.name.starts_with(|first: char| first.is_ascii_alphabetic());
        spec.devices.iter().any(|device| !starts_with_letter(device))
            || spec.edits().flat_map(|edits| &edits.device_nodes).any(|node| !node.host_path.is_empty())
    }),
    ("0.4.0", |spec| spec.edits().flat_map(|edits| &edits.mounts).any(|mount| !mount.type_.is_empty())),
];

/// First version of the specification that runtimes read.
const EARLIEST: &str = "0.3.0";

impl CdiSpec {
    /// Directory of CDI specs that do not outlive a boot.
    pub const DIRECTORY: &str = "/var/run/cdi";

    /// Creates a spec with the smallest version that it needs.
    ///
    /// ```
    /// use dra_node::driver::{CdiDevice, CdiEdits, CdiKind, CdiSpec};
    /// let mut edits = CdiEdits::default();
    /// edits.env = vec!["GPU=0".to_owned()];
    /// let device = CdiDevice::new("5f1c-gpu-0", edits);
    /// let spec = CdiSpec::new(&CdiKind::new("gpu.example.com", "claim")?, vec![device])?;
    /// assert_eq!(spec.cdi_version, "0.5.0", "the device begins with a digit");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no device, or the name of one can't be used with CDI.
    pub fn new(kind: &CdiKind, devices: Vec<CdiDevice>) -> Result<Self, CdiError> {
        if devices.is_empty() {
            return Err(CdiError::NoDevices { kind: kind.to_string() });
        }
        devices.iter().try_for_each(|device| kind.device_id(&device.name).map(|_| ()))?;
        let mut spec = Self { kind: kind.to_string(), devices, ..Self::default() };
        spec.cdi_version = spec.minimum_version().to_owned();
        Ok(spec)
    }

    /// Returns the smallest version of the specification that has everything that the spec uses. A caller that changes a
    /// spec sets it anew.
    #[must_use]
    pub fn minimum_version(&self) -> &'static str {
        let needed = FEATURES.iter().find(|(_, is_used)| is_used(self));
        needed.map_or(EARLIEST, |(version, _)| version)
    }

    fn edits(&self) -> impl Iterator<Item = &CdiEdits> {
        self.devices.iter().map(|device| &device.container_edits).chain([&self.container_edits])
    }
}
