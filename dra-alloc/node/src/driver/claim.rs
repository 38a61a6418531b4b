//! Results and configurations of one driver in an allocated claim (KEP-4381, Resource Claim allocation).

use std::collections::BTreeSet;

use dra_attrs::Index;
use dra_device::internal::of_allocation;
use k8s_openapi::api::resource::v1::{
    AllocationResult, DeviceAllocationConfiguration, DeviceRequestAllocationResult, OpaqueDeviceConfiguration,
};

/// Configuration that applies to a device result, borrowed from the allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeviceConfig<'a> {
    /// Position in `allocation.devices.config`.
    pub index: Index<DeviceAllocationConfiguration>,
    /// True if it is of the `ResourceClaim`, which a user wrote (`FromClaim`), and outranks those of a `DeviceClass`, which an
    /// administrator wrote (`FromClass`).
    pub is_from_claim: bool,
    /// The driver's parameters, not decoded. An author decodes `apiVersion` and `kind` to a closed set of types, and
    /// makes an unknown field or kind an error of the claim.
    pub opaque: &'a OpaqueDeviceConfiguration,
}

/// Reason why the configuration of a device result can't be determined. The claim must not be prepared: the
/// configuration may be essential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An applicable configuration has no `opaque`: it is of a kind that this driver does not know.
    #[error("status.allocation.devices.config[{index}]: only opaque configuration is supported")]
    NotOpaque {
        /// Position in `allocation.devices.config`.
        index: Index<DeviceAllocationConfiguration>,
    },
    /// The source of an applicable configuration is neither `FromClass` nor `FromClaim`.
    #[error("status.allocation.devices.config[{index}].source: neither FromClass nor FromClaim")]
    UnknownSource {
        /// Position in `allocation.devices.config`.
        index: Index<DeviceAllocationConfiguration>,
    },
}

/// Returns the device results of one driver, in the order of the allocation. A claim goes to every driver that it names,
/// so that results of others are normal.
///
/// ```
/// use dra_node::driver::own_results;
/// use serde_json::{from_value, json};
/// let allocation = from_value(json!({"devices": {"results": [
///     {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"},
///     {"request": "nic", "driver": "nic.example.com", "pool": "node-1", "device": "nic-0"},
/// ]}}))?;
/// let devices: Vec<_> = own_results(&allocation, "gpu.example.com").map(|result| &result.device).collect();
/// assert_eq!(devices, ["gpu-0"]);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn own_results<'a>(
    allocation: &'a AllocationResult,
    driver: &str,
) -> impl Iterator<Item = &'a DeviceRequestAllocationResult> {
    of_allocation(allocation).iter().filter(move |result| result.driver == driver)
}

/// Returns the configurations of a driver that apply to the results of a request, lowest precedence first: those of
/// classes, then those of the claim, each in the order of the list. The last one wins, or overrides the ones before it
/// field by field; that is the driver's choice.
///
/// `request` is the `request` of a device result: `r`, or `r/sub` if a subrequest was chosen. A configuration applies if
/// it names no request, the same one, or the `r` of `r/sub`. Configurations of other drivers are skipped. Linear in the
/// number of configurations.
///
/// ```
/// use dra_node::driver::device_configs;
/// use serde_json::{from_value, json};
/// let sharing = |share: &str| json!({"driver": "gpu.example.com", "parameters": {"sharing": share}});
/// let allocation = from_value(json!({"devices": {"config": [
///     {"source": "FromClaim", "requests": ["gpu"], "opaque": sharing("time")},
///     {"source": "FromClass", "requests": ["gpu/large"], "opaque": sharing("none")},
/// ]}}))?;
/// let configs = device_configs(&allocation, "gpu.example.com", "gpu/large")?;
/// let order: Vec<usize> = configs.iter().map(|config| config.index.into()).collect();
/// assert_eq!(order, [1, 0], "the claim outranks the class");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first applicable configuration, in the order of the list, that is not opaque or has an unknown source.
///
/// Source of the rules: `ConfigForResult` in `dynamic-resource-allocation/resourceclaim`.
pub fn device_configs<'a>(
    allocation: &'a AllocationResult,
    driver: &str,
    request: &str,
) -> Result<Vec<DeviceConfig<'a>>, ConfigError> {
    let list = allocation.devices.as_ref().and_then(|devices| devices.config.as_deref()).unwrap_or_default();
    let mut found = Vec::new();
    for (index, config) in list.iter().enumerate().filter(|(_, config)| applies(config, request)) {
        let index = Index::from(index);
        let opaque = config.opaque.as_ref().ok_or(ConfigError::NotOpaque { index })?;
        if opaque.driver == driver {
            let is_from_claim = match config.source.as_str() {
                "FromClass" => false,
                "FromClaim" => true,
                _ => return Err(ConfigError::UnknownSource { index }),
            };
            found.push(DeviceConfig { index, is_from_claim, opaque });
        }
    }
    found.sort_by_key(|config| config.is_from_claim);
    Ok(found)
}

fn applies(config: &DeviceAllocationConfiguration, request: &str) -> bool {
    let requests = config.requests.as_deref().unwrap_or_default();
    requests.is_empty() || requests.iter().any(|name| name == request || name == base_request(request))
}

/// Returns the name of a request without its subrequest: `r` of `r/sub`.
pub(super) fn base_request(request: &str) -> &str {
    request.split_once('/').map_or(request, |(base, _)| base)
}

/// Returns the `request_names` of a device in the answer of `NodePrepareResources`: base names without subrequests, each
/// once, in order. The kubelet compares them with `resources.claims[].request` of containers, which has no subrequest.
///
/// ```
/// use dra_node::driver::request_names;
/// assert_eq!(request_names(["gpu/large", "gpu/large", "nic"]), ["gpu", "nic"]);
/// ```
#[must_use]
pub fn request_names<'a>(requests: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    requests.into_iter().map(base_request).filter(|name| seen.insert(*name)).map(str::to_owned).collect()
}
