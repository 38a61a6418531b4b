//! An API server in memory: claims with optimistic concurrency, generated names, and the rules of their status.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::{ApiResponse, ClaimWrite};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

#[derive(Clone, Default)]
pub(crate) struct ApiServer {
    pub(crate) claims: BTreeMap<ClaimKey, Arc<ResourceClaim>>,
    /// True if each claim counts its own versions, so that histories of other claims make no difference.
    has_own_versions: bool,
    version: u64,
    created: u64,
}

impl ApiServer {
    /// Returns a server with the claims of another one, in their first version.
    pub(crate) fn with_own_versions(other: &Self) -> Self {
        let mut server = Self { has_own_versions: true, ..Self::default() };
        for claim in other.list() {
            server.store(ResourceClaim::clone(&claim));
        }
        server
    }

    pub(crate) const fn has_own_versions(&self) -> bool {
        self.has_own_versions
    }

    pub(crate) fn store(&mut self, mut claim: ResourceClaim) -> ResourceClaim {
        self.version += 1;
        let key = ClaimKey::from_metadata(&claim.metadata);
        let own = || self.claims.get(&key).and_then(|known| known.metadata.resource_version.as_ref()?.parse().ok());
        let version = if self.has_own_versions { own().unwrap_or(0) + 1 } else { self.version };
        claim.metadata.resource_version = Some(version.to_string());
        self.claims.insert(key, Arc::new(claim.clone()));
        claim
    }

    /// Returns the version of a list that is made now.
    pub(crate) fn version(&self) -> String {
        self.version.to_string()
    }

    pub(crate) fn list(&self) -> impl Iterator<Item = Arc<ResourceClaim>> {
        self.claims.values().cloned()
    }

    pub(crate) fn call(&mut self, write: &ClaimWrite) -> ApiResponse {
        let key = match write {
            ClaimWrite::Create { claim } => return ApiResponse::Object(Box::new(self.create(claim))),
            ClaimWrite::PatchPodStatus { .. } => return ApiResponse::Done,
            ClaimWrite::Update { claim } | ClaimWrite::UpdateStatus { claim } => {
                ClaimKey::from_metadata(&claim.metadata)
            }
            ClaimWrite::PatchReservation { namespace, name, .. }
            | ClaimWrite::Delete { namespace, name, .. }
            | ClaimWrite::Get { namespace, name } => ClaimKey::new(namespace, name),
            other => panic!("{other:?}"),
        };
        let Some(stored) = self.claims.get(&key).cloned() else {
            return match write {
                ClaimWrite::Get { .. } => ApiResponse::Done,
                _ => ApiResponse::Failed("not found".to_owned()),
            };
        };
        let stored = ResourceClaim::clone(&stored);
        let changed = match write {
            ClaimWrite::Update { claim } | ClaimWrite::UpdateStatus { claim }
                if claim.metadata.resource_version != stored.metadata.resource_version =>
            {
                return ApiResponse::Conflict("modified".to_owned());
            }
            ClaimWrite::Update { claim } => ResourceClaim { status: stored.status, ..ResourceClaim::clone(claim) },
            ClaimWrite::UpdateStatus { claim } => {
                let is_kept = allocation(&stored).is_none() || allocation(&stored) == allocation(claim);
                assert!(is_kept || allocation(claim).is_none(), "an allocation is immutable");
                assert_eq!(consumers(claim).iter().collect::<BTreeSet<_>>().len(), consumers(claim).len());
                ResourceClaim { status: claim.status.clone(), ..stored }
            }
            ClaimWrite::PatchReservation { consumer, .. } => without_consumer(stored, consumer),
            ClaimWrite::Delete { uid, .. } => {
                assert_eq!(stored.metadata.uid.as_deref(), Some(&**uid));
                assert_eq!(stored.metadata.finalizers.unwrap_or_default(), Vec::<String>::new(), "only marked");
                self.claims.remove(&key);
                return ApiResponse::Done;
            }
            _ => return ApiResponse::Object(Box::new(stored)),
        };
        ApiResponse::Object(Box::new(self.store(changed)))
    }

    fn create(&mut self, claim: &ResourceClaim) -> ResourceClaim {
        assert_eq!((&claim.metadata.name, &claim.metadata.uid, &claim.status), (&None, &None, &None));
        self.created += 1;
        let mut claim = claim.clone();
        let prefix = claim.metadata.generate_name.as_deref().unwrap();
        claim.metadata.name = Some(format!("{prefix}{:05}", self.created));
        claim.metadata.uid = Some(format!("uid-{:05}", self.created));
        self.store(claim)
    }
}

pub(crate) fn allocation(claim: &ResourceClaim) -> Option<&AllocationResult> {
    claim.status.as_ref()?.allocation.as_ref()
}

/// Returns the names of the devices of an allocation.
pub(crate) fn devices(allocation: &AllocationResult) -> Vec<String> {
    let results = allocation.devices.iter().flat_map(|devices| devices.results.iter().flatten());
    results.map(|result| result.device.clone()).collect()
}

pub(crate) fn consumers(claim: &ResourceClaim) -> Vec<&str> {
    let status = claim.status.iter().flat_map(|status| status.reserved_for.iter().flatten());
    status.map(|entry| entry.name.as_str()).collect()
}

pub(crate) fn without_consumer(mut claim: ResourceClaim, consumer: &str) -> ResourceClaim {
    if let Some(reserved) = claim.status.as_mut().and_then(|status| status.reserved_for.as_mut()) {
        reserved.retain(|entry| entry.uid != consumer);
    }
    claim
}
