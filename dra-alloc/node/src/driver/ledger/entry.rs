//! Entry of the ledger: one claim and the devices that the driver holds for it.

use dra_device::claims::ClaimKey;
use dra_device::skip::SkipDeclaration;
use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceClaim};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::driver::claim::request_names;
use crate::kubelet::PreparedDevice;

/// Annotation of a claim from a template with its name in the pod.
const POD_CLAIM_NAME: &str = "resource.kubernetes.io/pod-claim-name";

/// State of a claim in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "the states of the protocol")]
pub enum EntryState {
    /// Set-up has begun: any part of it may be done.
    Started,
    /// The claim is prepared.
    Completed,
    /// Undoing has begun: any part of it may be done.
    Undoing,
}

/// Device that the driver holds for a claim, from one device result of the allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HeldDevice {
    /// Request of the claim, with the subrequest if one was chosen.
    pub request: String,
    /// Name of the pool.
    pub pool: String,
    /// Name of the device.
    pub device: String,
    /// Share ID of a device that several claims share.
    #[serde(rename = "shareID", default, skip_serializing_if = "Option::is_none")]
    pub share_id: Option<String>,
    /// True for administrative access: no exclusive use, and no reset of the device.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub admin_access: bool,
    /// True if the device declared that it needs no `NodePrepareResources` (`skipNodeOperations`). The call comes all the same
    /// where another device of the claim needs it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skips_prepare: bool,
    /// Qualified CDI device names, once the claim is prepared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cdi_ids: Vec<String>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// Identity of a held device within its claim.
pub(super) type HeldKey<'a> = (&'a str, &'a str, &'a str, Option<&'a str>, bool);

impl HeldDevice {
    pub(super) fn key(&self) -> HeldKey<'_> {
        (&self.request, &self.pool, &self.device, self.share_id.as_deref(), self.admin_access)
    }

    /// Returns pool and name, which identify a device of a driver.
    pub(super) fn place(&self) -> (&str, &str) {
        (&self.pool, &self.device)
    }
}

impl From<&DeviceRequestAllocationResult> for HeldDevice {
    fn from(result: &DeviceRequestAllocationResult) -> Self {
        Self {
            request: result.request.clone(),
            pool: result.pool.clone(),
            device: result.device.clone(),
            share_id: result.share_id.clone(),
            admin_access: result.admin_access.unwrap_or_default(),
            skips_prepare: SkipDeclaration::from_kube(result.skip_node_operations.as_deref()).set().prepare,
            cdi_ids: Vec::new(),
            other: Map::new(),
        }
    }
}

/// Entry of the ledger: one claim. Namespace and name are there in every state, so that the claim can be looked up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LedgerEntry {
    /// Namespace of the claim.
    pub namespace: String,
    /// Name of the claim.
    pub name: String,
    /// State of the claim.
    pub state: EntryState,
    /// Boot in which the claim was prepared; `None` in entries of versions that wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// `resourceVersion` of the claim when it was prepared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Name of the claim in its pod, if it was made from a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_claim_name: Option<String>,
    /// Devices of this driver, in the order of the allocation.
    #[serde(rename = "results", default)]
    pub devices: Vec<HeldDevice>,
    #[serde(flatten)]
    pub(super) other: Map<String, Value>,
}

impl LedgerEntry {
    pub(super) fn started(key: &ClaimKey, boot_id: &str, stored: &ResourceClaim, devices: Vec<HeldDevice>) -> Self {
        Self {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            state: EntryState::Started,
            boot_id: Some(boot_id.to_owned()),
            resource_version: stored.metadata.resource_version.clone(),
            pod_claim_name: stored.metadata.annotations.as_ref().and_then(|all| all.get(POD_CLAIM_NAME)).cloned(),
            devices,
            other: Map::new(),
        }
    }

    /// Returns true if the entry is of this boot, or of a version that recorded none.
    #[must_use]
    pub fn is_of_boot(&self, boot_id: &str) -> bool {
        self.boot_id.as_deref().is_none_or(|boot| boot == boot_id)
    }

    /// Returns the devices of the answer to `NodePrepareResources`, with the base names of their requests.
    #[must_use]
    pub fn answer(&self) -> Vec<PreparedDevice> {
        let device = |device: &HeldDevice| PreparedDevice {
            pool: device.pool.clone(),
            device: device.device.clone(),
            share_id: device.share_id.clone(),
            requests: request_names([device.request.as_str()]),
            cdi_ids: device.cdi_ids.clone(),
        };
        self.devices.iter().map(device).collect()
    }
}
