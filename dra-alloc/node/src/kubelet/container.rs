//! CDI devices that a container gets from its claims.

use std::collections::BTreeMap;

use dra_attrs::internal::release::ExtendedMappings;
use dra_attrs::{Gate, Quantity};
use dra_device::claims::{ClaimKey, PodClaim, PodClaimError};
use dra_device::internal::{PodFields, is_extended_resource};
use k8s_openapi::api::core::v1::{Container, Pod};

use super::claim_info::{ClaimCache, ClaimInfo};
use dra_attrs::Component;

/// Reason why the devices of a container can't be determined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// The name of a claim of the pod can't be determined.
    #[error(transparent)]
    PodClaim(#[from] PodClaimError),
    /// The claim has not been prepared.
    #[error("internal error: unable to get claim info for ResourceClaim {name} in namespace {namespace}")]
    NoClaimInfo {
        /// Name of the claim.
        name: String,
        /// Namespace of the claim.
        namespace: String,
    },
}

impl ClaimCache {
    /// Returns the CDI IDs of the devices that a container of the pod gets. The order is: claims by name, requests of a
    /// claim in the order of the container, drivers by name, devices in the order of the driver's response.
    ///
    /// If the container uses a claim without naming a request, it gets all devices of the claim. If it names a request,
    /// it gets the devices for that request and those for all requests. The IDs of a device that serves two named
    /// requests occur twice. Drivers that were not called contribute no IDs.
    ///
    /// # Errors
    /// The name of a claim can't be determined, or a claim is not in the cache.
    pub fn container_devices(
        &self,
        pod: &Pod,
        container: &Container,
        kubelet: Component,
    ) -> Result<Vec<&str>, ContainerError> {
        let mut ids = Vec::new();
        for (key, requests) in wanted(pod, container, kubelet)? {
            let Some(info) = self.claims.get(&key) else {
                return Err(ContainerError::NoClaimInfo { name: key.name, namespace: key.namespace });
            };
            ids.extend(requests.iter().flat_map(|request| cdi_ids(info, request)));
        }
        Ok(ids)
    }
}

/// Returns the claims that a container uses, each with the names of the requests that it uses; an empty name stands for
/// all requests.
fn wanted<'a>(
    pod: &'a Pod,
    container: &'a Container,
    kubelet: Component,
) -> Result<BTreeMap<ClaimKey, Vec<&'a str>>, PodClaimError> {
    let mut wanted: BTreeMap<ClaimKey, Vec<&str>> = BTreeMap::new();
    let used = container.resources.as_ref().and_then(|resources| resources.claims.as_deref()).unwrap_or_default();
    let entries = pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_deref()).unwrap_or_default();
    for entry in entries {
        let mut requests = used.iter().filter(|used| used.name == entry.name).peekable();
        if requests.peek().is_none() {
            continue;
        }
        if let Some(found) = PodClaim::of_entry(pod, entry)? {
            let requests = requests.map(|used| used.request.as_deref().unwrap_or_default());
            wanted.entry(found.claim).or_default().extend(requests);
        }
    }
    let extended = pod.status.as_ref().and_then(|status| status.extended_resource_claim_status.as_ref());
    if let Some(status) = extended.filter(|_| kubelet.has(Gate::ExtendedResource)) {
        let mut requests = status.request_mappings.iter().filter(|mapping| {
            mapping.container_name == container.name && asks_for_extended(container, &mapping.resource_name)
        });
        let claim = || ClaimKey::new(pod.namespace(), &status.resource_claim_name);
        if let Some(first) = requests.next() {
            let others = match kubelet.profile().rules().kubelet.extended_mappings {
                ExtendedMappings::First => 0,
                ExtendedMappings::All => usize::MAX,
            };
            let requests =
                [first].into_iter().chain(requests.take(others)).map(|mapping| mapping.request_name.as_str());
            wanted.entry(claim()).or_default().extend(requests);
        }
    }
    Ok(wanted)
}

/// Returns true if a container requests a non-zero amount of an extended resource that devices can provide.
fn asks_for_extended(container: &Container, resource: &str) -> bool {
    let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let amount = requests.and_then(|requests| requests.get(resource));
    let amount = amount.and_then(|amount| Quantity::from_kube(amount).ok());
    amount.is_some_and(|amount| amount != Quantity::ZERO) && is_extended_resource(resource)
}

fn cdi_ids<'a>(info: &'a ClaimInfo, request: &str) -> impl Iterator<Item = &'a str> {
    let devices = info.drivers.values().flat_map(|driver| &driver.devices);
    let serves =
        move |requests: &[String]| request.is_empty() || requests.is_empty() || requests.iter().any(|r| r == request);
    devices.filter(move |device| serves(&device.requests)).flat_map(|device| &device.cdi_ids).map(String::as_str)
}
