//! Claims of an API server in memory, with optimistic concurrency.

use std::collections::BTreeMap;

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::{ApiResponse, ClaimWrite};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

/// Largest length of what comes before the generated part of a name.
const MAX_PREFIX: usize = 58;

/// Claims as an API server stores them, each in a version of its own.
///
/// ```
/// use dra_alloc::pods::{ApiResponse, ClaimWrite};
/// use examples::claim_store::ClaimStore;
/// use k8s_openapi::api::resource::v1::ResourceClaim;
/// let mut store = ClaimStore::default();
/// let read = store.put(ResourceClaim::default());
/// store.put(ResourceClaim::default()); // somebody else writes
/// let late = store.call(&ClaimWrite::Update { claim: Box::new(read) });
/// assert!(matches!(late, ApiResponse::Conflict(_)));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimStore {
    claims: BTreeMap<ClaimKey, ResourceClaim>,
    version: u64,
    /// Number of claims that were created.
    created: u64,
}

impl ClaimStore {
    /// Stores a claim in a new version, and returns it as stored.
    pub fn put(&mut self, mut claim: ResourceClaim) -> ResourceClaim {
        self.version += 1;
        claim.metadata.resource_version = Some(self.version.to_string());
        self.claims.insert(ClaimKey::from_metadata(&claim.metadata), claim.clone());
        claim
    }

    /// Removes a claim, and returns it.
    pub fn remove(&mut self, claim: &ClaimKey) -> Option<ResourceClaim> {
        self.claims.remove(claim)
    }

    /// Returns the claims by namespace and name.
    #[must_use]
    pub const fn claims(&self) -> &BTreeMap<ClaimKey, ResourceClaim> {
        &self.claims
    }

    /// Carries out a call of a scheduler and returns the server's answer. A pod's status is accepted and not kept.
    pub fn call(&mut self, write: &ClaimWrite) -> ApiResponse {
        let key = match write {
            ClaimWrite::Create { claim } => return ApiResponse::Object(Box::new(self.create(claim))),
            ClaimWrite::PatchPodStatus { .. } => return ApiResponse::Done,
            ClaimWrite::Update { claim } | ClaimWrite::UpdateStatus { claim } => {
                ClaimKey::from_metadata(&claim.metadata)
            }
            ClaimWrite::PatchReservation { namespace, name, .. }
            | ClaimWrite::Delete { namespace, name, .. }
            | ClaimWrite::Get { namespace, name } => ClaimKey::new(namespace, name),
            _ => return ApiResponse::Failed("a call that this server does not know".to_owned()),
        };
        let Some(stored) = self.claims.get(&key).cloned() else {
            if matches!(write, ClaimWrite::Get { .. }) {
                return ApiResponse::Done;
            }
            return ApiResponse::Failed(format!("resourceclaims.resource.k8s.io {:?} not found", key.name));
        };
        let changed = match write {
            ClaimWrite::Update { claim } | ClaimWrite::UpdateStatus { claim }
                if claim.metadata.resource_version != stored.metadata.resource_version =>
            {
                return conflict(&key.name);
            }
            ClaimWrite::PatchReservation { uid, .. } | ClaimWrite::Delete { uid, .. }
                if stored.metadata.uid.as_ref() != Some(uid) =>
            {
                return conflict(&key.name);
            }
            ClaimWrite::Update { claim } => ResourceClaim { status: stored.status, ..ResourceClaim::clone(claim) },
            ClaimWrite::UpdateStatus { claim } => ResourceClaim { status: claim.status.clone(), ..stored },
            ClaimWrite::PatchReservation { consumer, .. } => without_consumer(stored, consumer),
            ClaimWrite::Delete { .. } if stored.metadata.finalizers.iter().flatten().next().is_none() => {
                self.remove(&key);
                return ApiResponse::Done;
            }
            ClaimWrite::Delete { .. } => being_deleted(stored),
            _ => return ApiResponse::Object(Box::new(stored)),
        };
        ApiResponse::Object(Box::new(self.put(changed)))
    }

    /// Stores a new claim, whose name is completed by a number, and whose UID is made of the name.
    fn create(&mut self, claim: &ResourceClaim) -> ResourceClaim {
        let mut claim = claim.clone();
        if let Some(prefix) = &claim.metadata.generate_name {
            self.created += 1;
            let prefix: String = prefix.chars().take(MAX_PREFIX).collect();
            claim.metadata.name = Some(format!("{prefix}{:05}", self.created));
        }
        claim.metadata.uid = claim.metadata.name.as_ref().map(|name| format!("{name}-uid"));
        self.put(claim)
    }
}

fn being_deleted(mut claim: ResourceClaim) -> ResourceClaim {
    claim.metadata.deletion_timestamp.get_or_insert(Time(Timestamp::UNIX_EPOCH));
    claim
}

/// Returns the answer to a write of a claim that has changed since it was read.
#[must_use]
pub fn conflict(name: &str) -> ApiResponse {
    ApiResponse::Conflict(format!(
        "Operation cannot be fulfilled on resourceclaims.resource.k8s.io {name:?}: the object has been modified"
    ))
}

fn without_consumer(mut claim: ResourceClaim, consumer: &str) -> ResourceClaim {
    if let Some(reserved) = claim.status.as_mut().and_then(|status| status.reserved_for.as_mut()) {
        reserved.retain(|entry| entry.uid != consumer);
    }
    claim
}
