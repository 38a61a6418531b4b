//! Claims of pods, and the devices allocated to them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::node::DeviceUse;

/// Index of claims by namespace and name.
pub(super) struct Claims<'a> {
    by_name: BTreeMap<(&'a str, &'a str), &'a ResourceClaim>,
}

impl<'a> Claims<'a> {
    pub(super) fn new(claims: &[&'a ResourceClaim]) -> Self {
        let key = |claim: &'a ResourceClaim| {
            let metadata = &claim.metadata;
            (metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
        };
        Self { by_name: claims.iter().map(|&claim| (key(claim), claim)).collect() }
    }

    /// Returns the claims of a pod; `None` for each claim that was not created or is not in the index.
    pub(super) fn for_pod(&self, pod: &Pod) -> Vec<Option<&'a ResourceClaim>> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let find = |name: &str| self.by_name.get(&(namespace, name)).copied();
        let status = pod.status.as_ref();
        let made = status.and_then(|status| status.resource_claim_statuses.as_ref());
        let name_of = |entry: &str| {
            let made = made.iter().copied().flatten().find(|made| made.name == entry);
            made.map(|made| made.resource_claim_name.as_deref())
        };
        let referenced = pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten()).filter_map(|entry| {
            match (entry.resource_claim_name.as_deref(), name_of(&entry.name)) {
                (Some(name), _) | (None, Some(Some(name))) => Some(find(name)),
                // The template needed no claim.
                (None, Some(None)) => None,
                (None, None) => Some(None),
            }
        });
        let extended = status.and_then(|status| status.extended_resource_claim_status.as_ref());
        referenced.chain(extended.map(|extended| find(&extended.resource_claim_name))).collect()
    }
}

pub(super) fn uid(claim: &ResourceClaim) -> &str {
    claim.metadata.uid.as_deref().unwrap_or_default()
}

pub(super) fn allocation(claim: &ResourceClaim) -> Option<&AllocationResult> {
    claim.status.as_ref()?.allocation.as_ref()
}

/// Returns the allocated devices of a claim, without admin access, which reserves nothing.
pub(super) fn devices(claim: &ResourceClaim) -> impl Iterator<Item = DeviceUse> {
    let results = allocation(claim).and_then(|allocation| allocation.devices.as_ref()?.results.as_ref());
    let used = results.into_iter().flatten().filter(|result| result.admin_access != Some(true));
    let devices: BTreeSet<DeviceUse> = used
        .map(|result| DeviceUse {
            claim: uid(claim).to_owned(),
            driver: result.driver.clone(),
            pool: result.pool.clone(),
            device: result.device.clone(),
        })
        .collect();
    devices.into_iter()
}
