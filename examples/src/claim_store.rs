//! Claims of an API server in memory, with optimistic concurrency.

use std::collections::BTreeMap;

use dra_alloc::kubelet::ClaimKey;
use dra_alloc::pods::{ApiAnswer, ClaimWrite};
use k8s_openapi::api::resource::v1::ResourceClaim;

/// Claims as an API server stores them, each in a version of its own.
///
/// ```
/// use dra_alloc::pods::{ApiAnswer, ClaimWrite};
/// use examples::claim_store::ClaimStore;
/// use k8s_openapi::api::resource::v1::ResourceClaim;
/// let mut store = ClaimStore::default();
/// let read = store.put(ResourceClaim::default());
/// store.put(ResourceClaim::default()); // somebody else writes
/// let late = store.call(&ClaimWrite::Update { claim: Box::new(read) });
/// assert!(matches!(late, ApiAnswer::Conflict(_)));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimStore {
    claims: BTreeMap<ClaimKey, ResourceClaim>,
    version: u64,
}

impl ClaimStore {
    /// Stores a claim in a new version, and returns it as stored.
    pub fn put(&mut self, mut claim: ResourceClaim) -> ResourceClaim {
        self.version += 1;
        claim.metadata.resource_version = Some(self.version.to_string());
        self.claims.insert(ClaimKey::from_metadata(&claim.metadata), claim.clone());
        claim
    }

    /// Removes a claim.
    pub fn remove(&mut self, claim: &ClaimKey) {
        self.claims.remove(claim);
    }

    /// Returns the claims by namespace and name.
    #[must_use]
    pub const fn claims(&self) -> &BTreeMap<ClaimKey, ResourceClaim> {
        &self.claims
    }

    /// Carries out a call of a scheduler and returns the server's answer. Calls that concern no claim fail.
    pub fn call(&mut self, write: &ClaimWrite) -> ApiAnswer {
        let Some(key) = key_of(write) else { return ApiAnswer::Failed("no call about a claim".to_owned()) };
        let Some(stored) = self.claims.get(&key).cloned() else {
            return ApiAnswer::Failed(format!("resourceclaims.resource.k8s.io {:?} not found", key.name));
        };
        let changed = match write {
            ClaimWrite::Update { claim } | ClaimWrite::UpdateStatus { claim }
                if claim.metadata.resource_version != stored.metadata.resource_version =>
            {
                return conflict(&key.name);
            }
            ClaimWrite::Update { claim } => ResourceClaim { status: stored.status, ..ResourceClaim::clone(claim) },
            ClaimWrite::UpdateStatus { claim } => ResourceClaim { status: claim.status.clone(), ..stored },
            ClaimWrite::PatchReservation { uid, .. } if stored.metadata.uid.as_ref() != Some(uid) => {
                return conflict(&key.name);
            }
            ClaimWrite::PatchReservation { consumer, .. } => without_consumer(stored, consumer),
            _ => return ApiAnswer::Object(Box::new(stored)),
        };
        ApiAnswer::Object(Box::new(self.put(changed)))
    }
}

/// Returns the claim that a call is about.
fn key_of(write: &ClaimWrite) -> Option<ClaimKey> {
    match write {
        ClaimWrite::Update { claim } | ClaimWrite::UpdateStatus { claim } => {
            Some(ClaimKey::from_metadata(&claim.metadata))
        }
        ClaimWrite::PatchReservation { namespace, name, .. } | ClaimWrite::Get { namespace, name } => {
            Some(ClaimKey::new(namespace, name))
        }
        _ => None,
    }
}

/// Returns the answer to a write of a claim that has changed since it was read.
#[must_use]
pub fn conflict(name: &str) -> ApiAnswer {
    ApiAnswer::Conflict(format!(
        "Operation cannot be fulfilled on resourceclaims.resource.k8s.io {name:?}: the object has been modified"
    ))
}

fn without_consumer(mut claim: ResourceClaim, consumer: &str) -> ResourceClaim {
    if let Some(reserved) = claim.status.as_mut().and_then(|status| status.reserved_for.as_mut()) {
        reserved.retain(|entry| entry.uid != consumer);
    }
    claim
}
