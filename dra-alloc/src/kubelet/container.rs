//! What a container gets from its claims: CDI ids.

use std::collections::BTreeMap;

use dra_attrs::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, Pod};

use super::claim_info::{ClaimCache, ClaimInfo, ClaimKey};
use super::gate::{Gate, Settings};
use super::pod_claims::{PodClaimError, namespace, of_entry};

/// Why the devices of a container are not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// The name of a claim is not known.
    #[error(transparent)]
    PodClaim(#[from] PodClaimError),
    /// The claim has not been prepared.
    #[error("internal error: unable to get claim info for ResourceClaim {name} in namespace {namespace}")]
    NoClaimInfo {
        /// Name of the claim.
        name: String,
        /// Its namespace.
        namespace: String,
    },
}

/// Prefix of the name under which a device class offers itself as an extended resource.
const DEVICE_CLASS_PREFIX: &str = "deviceclass.resource.kubernetes.io/";

impl ClaimCache {
    /// The CDI ids of the devices that a container of the pod gets: claims by name, requests of a claim in the order of the
    /// container, drivers by name, devices in the order of the driver's response.
    ///
    /// A claim that the container names without a request gives all its devices, one with a request those for it and those
    /// for no request in particular. Two requests that a device serves give its ids twice. Drivers that were not called
    /// give none.
    ///
    /// # Errors
    /// A claim whose name is not known, or that has not been prepared.
    pub fn container_devices(
        &self,
        pod: &Pod,
        container: &Container,
        settings: Settings,
    ) -> Result<Vec<&str>, ContainerError> {
        let mut ids = Vec::new();
        for (key, requests) in wanted(pod, container, settings)? {
            let Some(info) = self.claims.get(&key) else {
                return Err(ContainerError::NoClaimInfo { name: key.name, namespace: key.namespace });
            };
            ids.extend(requests.iter().flat_map(|request| cdi_ids(info, request)));
        }
        Ok(ids)
    }
}

/// The claims that a container uses, with its requests; an empty request is the whole claim.
fn wanted<'a>(
    pod: &'a Pod,
    container: &'a Container,
    settings: Settings,
) -> Result<BTreeMap<ClaimKey, Vec<&'a str>>, PodClaimError> {
    let mut wanted: BTreeMap<ClaimKey, Vec<&str>> = BTreeMap::new();
    let used = container.resources.as_ref().and_then(|resources| resources.claims.as_deref()).unwrap_or_default();
    let entries = pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_deref()).unwrap_or_default();
    for entry in entries {
        let mut requests = used.iter().filter(|used| used.name == entry.name).peekable();
        if requests.peek().is_none() {
            continue;
        }
        if let Some(found) = of_entry(pod, entry)? {
            let requests = requests.map(|used| used.request.as_deref().unwrap_or_default());
            wanted.entry(found.claim).or_default().extend(requests);
        }
    }
    let extended = pod.status.as_ref().and_then(|status| status.extended_resource_claim_status.as_ref());
    if let Some(status) = extended.filter(|_| settings.has(Gate::ExtendedResource)) {
        let mut requests = status.request_mappings.iter().filter(|mapping| {
            mapping.container_name == container.name && asks_for_extended(container, &mapping.resource_name)
        });
        let claim = || ClaimKey::new(namespace(pod), &status.resource_claim_name);
        if let Some(first) = requests.next() {
            let requests = [first].into_iter().chain(requests).map(|mapping| mapping.request_name.as_str());
            wanted.entry(claim()).or_default().extend(requests);
        }
    }
    Ok(wanted)
}

/// Whether a container asks for some of an extended resource that devices may stand behind.
fn asks_for_extended(container: &Container, resource: &str) -> bool {
    let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let amount = requests.and_then(|requests| requests.get(resource));
    let amount = amount.and_then(|amount| Quantity::from_kube(amount).ok());
    amount.is_some_and(|amount| !amount.is_zero()) && is_extended(resource)
}

/// A resource with a domain that is not Kubernetes' own, or a device class.
fn is_extended(resource: &str) -> bool {
    let is_foreign =
        resource.contains('/') && !resource.contains("kubernetes.io/") && !resource.starts_with("requests.");
    is_foreign || resource.starts_with(DEVICE_CLASS_PREFIX)
}

fn cdi_ids<'a>(info: &'a ClaimInfo, request: &str) -> impl Iterator<Item = &'a str> {
    let devices = info.drivers.values().flat_map(|driver| &driver.devices);
    let serves =
        move |requests: &[String]| request.is_empty() || requests.is_empty() || requests.iter().any(|r| r == request);
    devices.filter(move |device| serves(&device.requests)).flat_map(|device| &device.cdi_ids).map(String::as_str)
}
