//! Rehearsal: the claims of a cluster while pods leave their nodes and come to others, as if everything were written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dra_device::claims::{ClaimKey, ClaimOrigin};
use dra_device::internal::PodFields;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::cluster_snapshot::ends_with_its_node;
use super::placing::PlacementError;
use super::release::{ClaimRelease, Departure, claims_of, release};
use super::removal_error::RemovalError;
use crate::cluster::state::ClaimId;
use crate::pods::{
    ClaimLookup, ClaimTracker, CycleClaim, GangPlacement, GangSearch, GroupRound, KnownRefusals, Member, MemberError,
    ReserveError, can_reserve, with_allocation,
};

/// Claims of a cluster while pods leave and come. A clone is a snapshot.
#[derive(Clone)]
pub(crate) struct Rehearsal {
    pub(crate) tracker: ClaimTracker,
    /// Claims for the extended resources of pods that came, by the UID of the pod.
    made: BTreeMap<String, ClaimId>,
}

impl Rehearsal {
    pub(crate) const fn new(tracker: ClaimTracker) -> Self {
        Self { tracker, made: BTreeMap::new() }
    }

    /// Lets pods leave: releases their claims, and makes those from templates anew. Returns the claims that change.
    pub(crate) fn leave(&mut self, going: &[&Pod]) -> Result<Vec<(ClaimId, ClaimRelease)>, Box<RemovalError>> {
        for pod in going {
            if let Some(claim) = self.made.remove(pod.uid()) {
                self.tracker.observe_deleted(&claim);
            }
        }
        release_claims(going, &mut self.tracker)
    }

    /// Lets a pod come to the first node that serves it. An error changes nothing.
    pub(crate) fn come(
        &mut self,
        search: &GangSearch<'_>,
        member: &Member<'_>,
        known: &mut KnownRefusals,
    ) -> Result<Arrival, PlacementError> {
        let round = &mut GroupRound::default();
        let mut placement = search.place_member(member, &mut self.tracker, round, Some(known))?;
        let GangPlacement { pod, node, cycle } = &mut placement;
        let mut results = Vec::new();
        let Some(cycle) = cycle else { return Ok(Arrival { placement, results }) };
        for claim in cycle.claims() {
            if let Err(full) = can_reserve(claim.claim(), claim.consumer()) {
                let claim = ClaimKey::from_metadata(&claim.claim().metadata);
                cycle.take_back(&mut self.tracker);
                return Err(PlacementError::ClaimFull { claim, full });
            }
        }
        let allocated: Vec<(&ResourceClaim, &AllocationResult)> = cycle.allocations_on(node).collect();
        let stored: Vec<ResourceClaim> = cycle
            .claims()
            .iter()
            .filter_map(|claim| {
                let (_, result) = allocated.iter().find(|(of, _)| std::ptr::eq(*of, claim.claim()))?;
                results.push((ClaimKey::from_metadata(&claim.claim().metadata), AllocationResult::clone(result)));
                Some(stored(claim, &pod.uid, AllocationResult::clone(result)))
            })
            .collect();
        if cycle.claims().iter().any(CycleClaim::is_for_extended_resources) {
            self.made.extend(stored.last().map(|claim| (pod.uid.clone(), ClaimId::from(claim))));
        }
        cycle.take_back(&mut self.tracker);
        for claim in stored {
            self.tracker.observe(claim).map_err(|error| MemberError::from(ReserveError::from(error)))?;
        }
        Ok(Arrival { placement, results })
    }
}

/// Returns a claim as it is once the pod of a cycle is bound.
fn stored(claim: &CycleClaim, pod: &str, allocation: AllocationResult) -> ResourceClaim {
    let mut object = with_allocation(claim.claim(), allocation);
    if claim.is_for_extended_resources() {
        object.metadata.name = Some(format!("<extended-resources of {pod}>"));
    }
    let reserved = object.status.get_or_insert_default().reserved_for.get_or_insert_default();
    if !reserved.iter().any(|consumer| consumer.uid == claim.consumer().uid()) {
        reserved.push(claim.consumer().reference());
    }
    object
}

/// A pod that came, with the allocations of all its claims.
pub(crate) struct Arrival {
    pub(crate) placement: GangPlacement,
    pub(crate) results: Vec<(ClaimKey, AllocationResult)>,
}

/// Releases the claims of pods that go, and makes those from templates anew.
pub(super) fn release_claims(
    going: &[&Pod],
    tracker: &mut ClaimTracker,
) -> Result<Vec<(ClaimId, ClaimRelease)>, Box<RemovalError>> {
    let named = going.iter().flat_map(|pod| claims_of(pod).map(move |named| (ends_with_its_node(pod), named)));
    let mut used: BTreeMap<ClaimKey, (Arc<ResourceClaim>, bool)> = BTreeMap::new();
    for (ends, named) in named {
        let Some(claim) = tracker.claim(&named.claim.namespace, &named.claim.name) else { continue };
        let (_, is_made_anew) = used.entry(named.claim).or_insert_with(|| (Arc::clone(claim), false));
        *is_made_anew |= !ends && named.origin == ClaimOrigin::Template;
    }
    let released = release(going.iter().copied(), used.values().map(|(claim, _)| &**claim), Departure::Removed);
    let leaving: BTreeSet<&str> = going.iter().filter_map(|pod| pod.metadata.uid.as_deref()).collect();
    let mut ids = Vec::with_capacity(released.len());
    for (mut claim, release) in released {
        let (key, id) = (ClaimKey::from_metadata(&claim.metadata), ClaimId::from(&claim));
        ids.push((id, release));
        if release != ClaimRelease::Deleted {
            tracker.observe(claim).map_err(RemovalError::from)?;
            continue;
        }
        let before = used.get(&key);
        let consumers = before.iter().filter_map(|(claim, _)| claim.status.as_ref()?.reserved_for.as_ref()).flatten();
        if { consumers }.any(|consumer| !leaving.contains(consumer.uid.as_str())) {
            return Err(Box::new(RemovalError::OwnedClaimShared { claim: key }));
        }
        if before.is_some_and(|(_, is_made_anew)| *is_made_anew) {
            (claim.status, claim.metadata.deletion_timestamp) = (None, None);
            tracker.observe(claim).map_err(RemovalError::from)?;
        } else {
            tracker.observe_deleted(&ClaimId::from(&claim));
        }
    }
    Ok(ids)
}
