//! Device metadata for containers: documents, paths and versions (KEP-5304).
//!
//! A driver writes a file for each request of a claim that has devices of its own, before the container starts, and adds
//! a CDI device that mounts the file. The file is a stream of JSON objects, one for each version of the API, so that
//! programs in containers read the first one that they know.
//!
//! Differences from Kubernetes' helper: the directory on the host has the claim's UID, so that a late unprepare does not
//! remove the files of a claim that was created anew under the same name.
//!
//! Source of the rules: `kubeletplugin/metadata.go`, `api/metadata`, `devicemetadata` of Kubernetes 1.36, and the
//! documentation of 1.37.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::Index;
use k8s_openapi::api::resource::v1::{DeviceAttribute, DeviceRequestAllocationResult, NetworkDeviceData};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::cdi::{CdiDevice, CdiEdits, CdiError, CdiKind, CdiMount, CdiSpec};
use super::claim::base_request;
use super::ledger::HeldDevice;

const KIND: &str = "DeviceMetadata";
/// Directory of the files in a container.
const IN_CONTAINER: &str = "/var/run/kubernetes.io/dra-device-attributes";
const CDI_CLASS: &str = "metadata";
/// First minor version of Kubernetes with [`MetadataVersion::V1beta1`].
const V1BETA1_SINCE: u32 = 37;

/// Version of the metadata API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MetadataVersion {
    /// `metadata.resource.k8s.io/v1alpha1`, of Kubernetes 1.36.
    V1alpha1,
    /// `metadata.resource.k8s.io/v1beta1`, of Kubernetes 1.37.
    V1beta1,
}

impl MetadataVersion {
    /// All versions, newest first.
    pub const ALL: [Self; 2] = [Self::V1beta1, Self::V1alpha1];

    /// Returns the `apiVersion` of documents.
    #[must_use]
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::V1alpha1 => "metadata.resource.k8s.io/v1alpha1",
            Self::V1beta1 => "metadata.resource.k8s.io/v1beta1",
        }
    }

    /// Returns the versions that a driver writes on a node of Kubernetes `1.{minor}`, in the order asked for. Before 1.37
    /// there is v1alpha1 only.
    ///
    /// ```
    /// use dra_node::driver::MetadataVersion::{self, V1alpha1, V1beta1};
    /// assert_eq!(MetadataVersion::written(37, &[V1beta1, V1alpha1])?, [V1beta1, V1alpha1]);
    /// assert_eq!(MetadataVersion::written(36, &[V1beta1, V1alpha1])?, [V1alpha1]);
    /// assert!(MetadataVersion::written(37, &[V1alpha1]).is_err());
    /// # Ok::<(), dra_node::driver::MetadataVersionError>(())
    /// ```
    ///
    /// # Errors
    /// From 1.37 on, v1beta1 must be among them.
    pub fn written(minor: u32, asked: &[Self]) -> Result<Vec<Self>, MetadataVersionError> {
        if minor < V1BETA1_SINCE {
            return Ok(vec![Self::V1alpha1]);
        }
        if !asked.contains(&Self::V1beta1) {
            return Err(MetadataVersionError);
        }
        let mut seen = BTreeSet::new();
        Ok(asked.iter().copied().filter(|version| seen.insert(*version)).collect())
    }
}

/// Error of a driver that does not write v1beta1 on Kubernetes 1.37 or later, where readers may know nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("device metadata: v1beta1 must be among the versions from Kubernetes 1.37 on")]
#[non_exhaustive]
pub struct MetadataVersionError;

/// Document with the metadata of a claim's devices. All versions have these fields.
///
/// As Go does, reading ignores unknown fields and takes `null` for an absent value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct DeviceMetadata {
    /// The claim.
    #[serde(deserialize_with = "null_as_default")]
    pub metadata: ClaimMetadata,
    /// Name of the claim in the pod, if the claim was made from a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_claim_name: Option<String>,
    /// Requests with their devices.
    #[serde(deserialize_with = "null_as_default")]
    pub requests: Vec<MetadataRequest>,
}

/// Claim in a metadata document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ClaimMetadata {
    /// Name of the claim.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    /// Namespace of the claim.
    #[serde(deserialize_with = "null_as_default")]
    pub namespace: String,
    /// UID of the claim.
    #[serde(deserialize_with = "null_as_default")]
    pub uid: String,
    /// Generation of the document: see [`DeviceMetadata::next_generation`].
    #[serde(deserialize_with = "null_as_default")]
    pub generation: i64,
}

/// Request in a metadata document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct MetadataRequest {
    /// Name of the request, with the subrequest if one was chosen.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    /// Devices of the driver for the request.
    #[serde(deserialize_with = "null_as_default")]
    pub devices: Vec<MetadataDevice>,
}

/// Device in a metadata document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct MetadataDevice {
    /// Name of the driver.
    #[serde(deserialize_with = "null_as_default")]
    pub driver: String,
    /// Name of the pool.
    #[serde(deserialize_with = "null_as_default")]
    pub pool: String,
    /// Name of the device.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    /// Attributes of the device, by qualified name. Capacities are not part of the document.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, DeviceAttribute>,
    /// Network interface of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_data: Option<NetworkDeviceData>,
}

fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(value: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

impl MetadataRequest {
    /// Returns the requests of a claim with the devices of its results, without attributes, in the order of the results.
    pub fn from_results<'a>(results: impl IntoIterator<Item = &'a DeviceRequestAllocationResult>) -> Vec<Self> {
        Self::of_devices(results.into_iter().map(|result| {
            let device = MetadataDevice {
                driver: result.driver.clone(),
                pool: result.pool.clone(),
                name: result.device.clone(),
                ..MetadataDevice::default()
            };
            (result.request.clone(), device)
        }))
    }

    /// Returns the requests of a claim with the devices that `driver` holds for it, without attributes, in their order.
    ///
    /// ```
    /// use dra_node::driver::MetadataRequest;
    /// use serde_json::{from_value, json};
    /// let held = from_value::<Vec<_>>(json!([{"request": "gpu", "pool": "node-1", "device": "gpu-0"}]))?;
    /// let requests = MetadataRequest::from_held("gpu.example.com", &held);
    /// assert_eq!(requests[0].devices[0].name, "gpu-0");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn from_held(driver: &str, devices: &[HeldDevice]) -> Vec<Self> {
        Self::of_devices(devices.iter().map(|held| {
            let device = MetadataDevice {
                driver: driver.to_owned(),
                pool: held.pool.clone(),
                name: held.device.clone(),
                ..MetadataDevice::default()
            };
            (held.request.clone(), device)
        }))
    }

    /// Collects devices by their requests, in the order in which these come first.
    fn of_devices(devices: impl IntoIterator<Item = (String, MetadataDevice)>) -> Vec<Self> {
        let mut requests: Vec<Self> = Vec::new();
        for (name, device) in devices {
            match requests.iter_mut().find(|request| request.name == name) {
                Some(request) => request.devices.push(device),
                None => requests.push(Self { name, devices: vec![device] }),
            }
        }
        requests
    }
}

impl DeviceMetadata {
    /// Returns the content of a metadata file: the document in each version, in their order, one a line.
    #[must_use]
    pub fn to_stream(&self, versions: &[MetadataVersion]) -> String {
        let document = serde_json::to_value(self).unwrap_or_default();
        let mut stream = String::new();
        for version in versions {
            let mut document = document.clone();
            if let Value::Object(fields) = &mut document {
                fields.insert("apiVersion".to_owned(), version.api_version().into());
                fields.insert("kind".to_owned(), KIND.into());
            }
            stream.push_str(&document.to_string());
            stream.push('\n');
        }
        stream
    }

    /// Reads a metadata file: the first document whose `apiVersion` is one of `known`, and its position in the stream.
    /// Documents of other versions and kinds are skipped. Linear in the length of the stream.
    ///
    /// ```
    /// use dra_node::driver::{DeviceMetadata, MetadataVersion};
    /// let stream = DeviceMetadata::default().to_stream(&MetadataVersion::ALL);
    /// let (index, document) = DeviceMetadata::from_stream(&stream, &["metadata.resource.k8s.io/v1alpha1"])?;
    /// assert_eq!((usize::from(index), document), (1, DeviceMetadata::default()));
    /// # Ok::<(), dra_node::driver::MetadataReadError>(())
    /// ```
    ///
    /// # Errors
    /// A document of a known version does not fit its type, the stream is no JSON before one was found, or it has no
    /// document of a known version.
    pub fn from_stream(stream: &str, known: &[&str]) -> Result<(Index<Self>, Self), MetadataReadError> {
        let mut seen = Vec::new();
        for (index, document) in serde_json::Deserializer::from_str(stream).into_iter::<Value>().enumerate() {
            let broken = |error: serde_json::Error| MetadataReadError::Decode {
                index: Index::from(index),
                reason: error.to_string(),
            };
            let document = document.map_err(broken)?;
            let text = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or_default();
            let version = text("apiVersion");
            if known.contains(&version) && text("kind") == KIND {
                return Self::deserialize(document).map(|found| (Index::from(index), found)).map_err(broken);
            }
            seen.push(version.to_owned());
        }
        Err(MetadataReadError::NoKnownVersion { seen })
    }

    /// Returns the generation of a document: 1 when the claim is prepared, also if attributes come later, and one more at
    /// each update.
    #[must_use]
    pub const fn next_generation(previous: Option<i64>) -> i64 {
        match previous {
            None => 1,
            Some(previous) => previous.saturating_add(1),
        }
    }
}

/// Reason why a metadata file can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataReadError {
    /// A document of a known version does not fit its type, or the stream is no JSON there.
    #[error("device metadata: document {index}: {reason}")]
    Decode {
        /// Position of the document in the stream.
        index: Index<DeviceMetadata>,
        /// Message of the JSON parser.
        reason: String,
    },
    /// The file has no document of a known version.
    #[error("device metadata: no known version among {}", shown(seen))]
    NoKnownVersion {
        /// `apiVersion` of each document.
        seen: Vec<String>,
    },
}

/// Largest number of versions that a message lists.
const SHOWN: usize = 8;

fn shown(versions: &[String]) -> String {
    let more = versions.len().saturating_sub(SHOWN);
    let listed = versions.iter().take(SHOWN).map(|version| format!("{version:?}")).collect::<Vec<_>>().join(", ");
    match (listed.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => listed,
        (false, more) => format!("{listed} and {more} more"),
    }
}

/// Claim and driver to which metadata files belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "arguments of one call by name")]
pub struct MetadataOwner<'a> {
    /// Name of the driver.
    pub driver: &'a str,
    /// Plugin directory of the driver on the host.
    pub plugin_dir: &'a str,
    /// Directory of CDI specs: [`CdiSpec::DIRECTORY`], unless the runtime reads another one.
    pub cdi_dir: &'a str,
    /// Namespace of the claim.
    pub namespace: &'a str,
    /// Name of the claim.
    pub claim: &'a str,
    /// UID of the claim.
    pub uid: &'a str,
    /// Annotation `resource.kubernetes.io/pod-claim-name` of the claim; `None` if the pod names the claim itself.
    pub pod_claim_name: Option<&'a str>,
}

/// Names and paths of one metadata file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetadataFile {
    /// Path of the file on the host. It is replaced by a rename only before the container exists: a bind mount keeps the
    /// old file.
    pub host_path: String,
    /// Path of the file in containers.
    pub container_path: String,
    /// Kind of the CDI device that mounts the file.
    pub cdi_kind: CdiKind,
    /// Name of the CDI device.
    pub cdi_device: String,
    /// Qualified name of the CDI device, which the first device of the request has in the answer to the kubelet, so that
    /// the file is mounted once.
    pub cdi_id: String,
    /// Path of the CDI spec file.
    pub cdi_file: String,
}

/// Reason why a claim can't have metadata files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataPathError {
    /// The driver or the claim gives no name of CDI.
    #[error(transparent)]
    CdiName(#[from] CdiError),
    /// A name is empty, has a slash, or leads out of its directory.
    #[error("{field}: {name:?} can't be part of a path")]
    Name {
        /// Field of [`MetadataOwner`], or `request`.
        field: &'static str,
        /// The name.
        name: String,
    },
}

impl MetadataOwner<'_> {
    /// Returns names and paths of the file for a request, whose subrequest does not count.
    ///
    /// ```
    /// use dra_node::driver::MetadataOwner;
    /// let owner = MetadataOwner {
    ///     driver: "gpu.example.com", plugin_dir: "/var/lib/kubelet/plugins/gpu.example.com", cdi_dir: "/var/run/cdi",
    ///     namespace: "default", claim: "train-x7k2p", uid: "5f1c", pod_claim_name: Some("train"),
    /// };
    /// let file = owner.file("gpu/large")?;
    /// let inside = "/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/train/gpu/gpu.example.com-metadata.json";
    /// assert_eq!(file.container_path, inside);
    /// assert_eq!(file.cdi_id, "gpu.example.com/metadata=5f1c_gpu");
    /// # Ok::<(), dra_node::driver::MetadataPathError>(())
    /// ```
    ///
    /// # Errors
    /// A name is not one of CDI, or can't be part of a path.
    pub fn file(&self, request: &str) -> Result<MetadataFile, MetadataPathError> {
        let Self { driver, plugin_dir, cdi_dir, namespace, claim, uid, pod_claim_name } = *self;
        let request = base_request(request);
        let names = [
            ("driver", driver),
            ("namespace", namespace),
            ("claim", claim),
            ("uid", uid),
            ("pod_claim_name", pod_claim_name.unwrap_or(claim)),
            ("request", request),
        ];
        if let Some((field, name)) = names.into_iter().find(|(_, name)| !is_path_part(name)) {
            return Err(MetadataPathError::Name { field, name: name.to_owned() });
        }
        let cdi_kind = CdiKind::new(driver, CDI_CLASS)?;
        let cdi_device = format!("{uid}_{request}");
        let claim_dir = match pod_claim_name {
            Some(name) => format!("resourceclaimtemplates/{name}"),
            None => format!("resourceclaims/{claim}"),
        };
        Ok(MetadataFile {
            host_path: format!(
                "{plugin_dir}/{}/{namespace}_{claim}_{uid}/{request}/metadata.json",
                MetadataFile::HOST_DIRECTORY
            ),
            container_path: format!("{IN_CONTAINER}/{claim_dir}/{request}/{driver}-metadata.json"),
            cdi_id: cdi_kind.device_id(&cdi_device)?,
            cdi_file: format!("{cdi_dir}/{driver}_{CDI_CLASS}_{cdi_device}.json"),
            cdi_kind,
            cdi_device,
        })
    }

    /// Returns the files of a claim: one for each request with devices of the driver.
    ///
    /// # Errors
    /// A name is not one of CDI, or can't be part of a path.
    pub fn files(&self, requests: &[MetadataRequest]) -> Result<Vec<MetadataFile>, MetadataPathError> {
        let with_devices =
            requests.iter().filter(|request| request.devices.iter().any(|device| device.driver == self.driver));
        let mut seen = BTreeSet::new();
        let names = with_devices.map(|request| base_request(&request.name)).filter(|name| seen.insert(*name));
        names.map(|name| self.file(name)).collect()
    }

    /// Returns the files of a claim, each with its document: that of one request, in generation 1. Requests without devices of
    /// the driver have none.
    ///
    /// ```
    /// use dra_node::driver::{MetadataOwner, MetadataRequest};
    /// use serde_json::{from_value, json};
    /// let owner = MetadataOwner {
    ///     driver: "gpu.example.com", plugin_dir: "/plugins", cdi_dir: "/var/run/cdi",
    ///     namespace: "default", claim: "train", uid: "5f1c", pod_claim_name: None,
    /// };
    /// let request = |name| json!({"name": name, "devices": [{"driver": "gpu.example.com", "pool": "p", "name": name}]});
    /// let requests: Vec<MetadataRequest> = from_value(json!([request("gpu"), request("more")]))?;
    /// let documents = owner.documents(&requests)?;
    /// assert_eq!(documents.len(), 2);
    /// assert_eq!(documents[1].1.requests, requests[1..], "a container sees the devices of its request");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A name is not one of CDI, or can't be part of a path.
    pub fn documents(
        &self,
        requests: &[MetadataRequest],
    ) -> Result<Vec<(MetadataFile, DeviceMetadata)>, MetadataPathError> {
        let own_devices = |request: &MetadataRequest| MetadataRequest {
            name: request.name.clone(),
            devices: request.devices.iter().filter(|device| device.driver == self.driver).cloned().collect(),
        };
        let document = |file: &MetadataFile| DeviceMetadata {
            metadata: ClaimMetadata {
                name: self.claim.to_owned(),
                namespace: self.namespace.to_owned(),
                uid: self.uid.to_owned(),
                generation: DeviceMetadata::next_generation(None),
            },
            pod_claim_name: self.pod_claim_name.map(str::to_owned),
            requests: requests
                .iter()
                .filter(|request| file.cdi_device == format!("{}_{}", self.uid, base_request(&request.name)))
                .map(own_devices)
                .filter(|request| !request.devices.is_empty())
                .collect(),
        };
        Ok(self.files(requests)?.into_iter().map(|file| (file.clone(), document(&file))).collect())
    }
}

fn is_path_part(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

impl MetadataFile {
    /// Directory of the files in the driver's plugin directory. It has a folder for each claim.
    pub const HOST_DIRECTORY: &str = "dra-device-metadata";

    /// Returns the UID of the claim that a folder in [`MetadataFile::HOST_DIRECTORY`] belongs to, so that files are removed also
    /// when nothing else of the claim is known any more.
    ///
    /// ```
    /// use dra_node::driver::MetadataFile;
    /// assert_eq!(MetadataFile::claim_of_folder("default_train_5f1c"), Some("5f1c"));
    /// assert_eq!(MetadataFile::claim_of_folder("lost+found"), None);
    /// ```
    #[must_use]
    pub fn claim_of_folder(name: &str) -> Option<&str> {
        let (_, rest) = name.split_once('_')?;
        rest.split_once('_').map(|(_, uid)| uid).filter(|uid| !uid.is_empty())
    }

    /// Returns the UID of the claim that a file in the CDI directory belongs to; `None` for a file of other kinds.
    ///
    /// ```
    /// use dra_node::driver::MetadataFile;
    /// let claim_of = |name| MetadataFile::claim_of_cdi_file("gpu.example.com", name);
    /// assert_eq!(claim_of("gpu.example.com_metadata_5f1c_gpu.json"), Some("5f1c"));
    /// assert_eq!(claim_of("nic.example.com_metadata_5f1c_nic.json"), None);
    /// ```
    #[must_use]
    pub fn claim_of_cdi_file<'a>(driver: &str, name: &'a str) -> Option<&'a str> {
        let rest = name.strip_prefix(driver)?.strip_prefix('_')?.strip_prefix(CDI_CLASS)?.strip_prefix('_')?;
        rest.strip_suffix(".json")?.split_once('_').map(|(uid, _)| uid)
    }

    /// Returns the CDI spec that mounts the file into containers, read-only.
    ///
    /// # Errors
    /// None for the paths of a [`MetadataOwner`].
    pub fn cdi_spec(&self) -> Result<CdiSpec, CdiError> {
        let mount = CdiMount {
            host_path: self.host_path.clone(),
            container_path: self.container_path.clone(),
            options: vec!["ro".to_owned(), "bind".to_owned()],
            type_: String::new(),
        };
        let container_edits = CdiEdits { mounts: vec![mount], ..CdiEdits::default() };
        let device = CdiDevice { name: self.cdi_device.clone(), container_edits, ..CdiDevice::default() };
        let spec = CdiSpec::new(&self.cdi_kind, vec![device])?;
        // A fixed version: it does not depend on the first character of a UID.
        Ok(CdiSpec { cdi_version: METADATA_CDI_VERSION.to_owned(), ..spec })
    }
}

/// Version of CDI specs that mount metadata files.
const METADATA_CDI_VERSION: &str = "0.5.0";
