//! Claims of pods that go, and of pods that come.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dra_device::claims::{ClaimKey, PodClaim, PodClaimError};
use dra_device::internal::{PodFields, extended_claim, is_for_pod};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;

use crate::claim_controller::{CleanStep, OwnerPhase};
use crate::pods::{ClaimFullError, ClaimLookup, Consumer, ConsumerError, PodOptions, can_reserve, is_reserved_for};

/// Way in which pods go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Departure {
    /// The pods lose their node and wait for another one: claims that nobody else has are deallocated.
    Unscheduled,
    /// The pods are deleted, or are done: their own claims are deleted, and other claims are cleaned as
    /// the controller for claims does.
    Removed,
    /// The same in the simulation of Cluster Autoscaler, where a claim of others stays allocated even if nobody is left.
    RemovedAsClusterAutoscaler,
}

/// Change of a claim because of pods that go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ClaimRelease {
    /// Reservations went; the claim keeps its devices.
    Unreserved,
    /// The devices are free.
    Deallocated,
    /// The claim is deleted, and its devices are free.
    Deleted,
}

impl ClaimRelease {
    /// Returns the change in one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreserved => "unreserved",
            Self::Deallocated => "deallocated",
            Self::Deleted => "deleted",
        }
    }
}

/// Returns the claims that change if pods go together, by namespace and name.
///
/// A reservation for a pod group stays, whatever becomes of its pods.
///
/// # Complexity
/// n log n in pods, claims and consumers.
pub fn release<'p, 'c>(
    pods: impl IntoIterator<Item = &'p Pod>,
    claims: impl IntoIterator<Item = &'c ResourceClaim>,
    departure: Departure,
) -> Vec<(ResourceClaim, ClaimRelease)> {
    let mut users: BTreeMap<ClaimKey, Vec<&Pod>> = BTreeMap::new();
    let mut going: BTreeSet<&str> = BTreeSet::new();
    for pod in pods {
        going.insert(pod.uid());
        claims_of(pod).for_each(|named| users.entry(named.claim).or_default().push(pod));
    }
    let claims: BTreeMap<ClaimKey, &ResourceClaim> =
        claims.into_iter().map(|claim| (ClaimKey::from_metadata(&claim.metadata), claim)).collect();
    let released = claims.into_iter().filter_map(|(key, claim)| {
        let users = users.get(&key)?;
        let is_owned = users.iter().any(|pod| is_for_pod(pod, claim, None));
        let goes = |consumer: &ResourceClaimConsumerReference| {
            consumer.api_group.as_deref().unwrap_or_default().is_empty()
                && consumer.resource == "pods"
                && going.contains(consumer.uid.as_str())
        };
        released_claim(claim, is_owned, goes, departure)
    });
    released.collect()
}

/// Returns the claims of a pod whose names are known, that for its extended resources last.
pub(crate) fn claims_of(pod: &Pod) -> impl Iterator<Item = PodClaim> {
    let entries = pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten());
    entries.filter_map(|entry| PodClaim::of_entry(pod, entry).ok().flatten()).chain(extended_claim(pod))
}

fn released_claim(
    claim: &ResourceClaim,
    is_owned: bool,
    goes: impl Fn(&ResourceClaimConsumerReference) -> bool,
    departure: Departure,
) -> Option<(ResourceClaim, ClaimRelease)> {
    let status = claim.status.clone().unwrap_or_default();
    let reserved = status.reserved_for.unwrap_or_default();
    let left: Vec<_> = reserved.iter().filter(|consumer| !goes(consumer)).cloned().collect();
    let (was_allocated, some_went) = (status.allocation.is_some(), left.len() < reserved.len());
    let release = match departure {
        _ if is_owned && departure != Departure::Unscheduled => ClaimRelease::Deleted,
        Departure::Unscheduled if was_allocated && (is_owned || left.is_empty()) => ClaimRelease::Deallocated,
        Departure::Removed
            if CleanStep::of_claim(claim, |consumer| !goes(consumer), OwnerPhase::Stays)
                .contains(&CleanStep::Deallocate) =>
        {
            ClaimRelease::Deallocated
        }
        _ if some_went => ClaimRelease::Unreserved,
        _ => return None,
    };
    let mut claim = claim.clone();
    let status = claim.status.get_or_insert_default();
    status.reserved_for = Some(if release == ClaimRelease::Deleted { Vec::new() } else { left });
    if release != ClaimRelease::Unreserved {
        (status.allocation, status.devices) = (None, None);
    }
    Some((claim, release))
}

/// Reason why the claims of a pod can't be reserved for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReservationError {
    /// The name of a claim can't be determined.
    #[error(transparent)]
    Name(#[from] PodClaimError),
    /// A claim does not exist.
    #[error("claim {claim} not found")]
    NotFound {
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
    /// The consumer of a claim can't be determined.
    #[error(transparent)]
    Consumer(#[from] ConsumerError),
    /// A claim has as many consumers as it may have.
    #[error("claim {claim} already has max number of reservations set, can't add more")]
    Full {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Number of consumers.
        #[source]
        full: ClaimFullError,
    },
}

/// Reserves all claims of a pod, or none: returns the claims that change. A claim that is reserved for the pod already,
/// and an entry that needs no claim, change nothing.
///
/// # Errors
/// The first claim that can't be reserved.
pub fn reserve(
    pod: &Pod,
    group: Option<&PodGroup>,
    claims: &impl ClaimLookup,
    options: PodOptions,
) -> Result<Vec<ResourceClaim>, ReservationError> {
    let mut reserved: BTreeMap<ClaimKey, ResourceClaim> = BTreeMap::new();
    for entry in pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten()) {
        let Some(named) = PodClaim::of_entry(pod, entry)? else { continue };
        let found: Option<&Arc<ResourceClaim>> = claims.claim(&named.claim.namespace, &named.claim.name);
        let claim = found.ok_or_else(|| ReservationError::NotFound { claim: named.claim.clone() })?;
        if reserved.contains_key(&named.claim) || is_reserved_for(pod, claim, options) {
            continue;
        }
        let consumer = Consumer::of_entry(pod, entry, group, options)?;
        can_reserve(claim, &consumer).map_err(|full| ReservationError::Full { claim: named.claim.clone(), full })?;
        let mut claim = ResourceClaim::clone(claim);
        claim.status.get_or_insert_default().reserved_for.get_or_insert_default().push(consumer.reference());
        reserved.insert(named.claim, claim);
    }
    Ok(reserved.into_values().collect())
}
