//! `Reserve` and `Unreserve`: allocations in flight, and the way back.

use std::sync::Arc;

use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim, ResourceClaimConsumerReference};

use super::claim_calls::ClaimCalls;
use super::cycle::{ClaimSituation, CycleClaim, GroupRound, PodCycle};
use super::lookup::{ClaimLookup, allocation_of, uid_of};
use super::post_filter::deallocated;
use super::special_claim;
use super::status_code::StatusCode;
use super::tracker::ClaimTracker;
use super::write::ClaimWrite;
use crate::cluster::state::StateError;

/// Reason why the claims can't be reserved on a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReserveError {
    /// The node has not passed the filter in this cycle.
    #[error("claim allocation not found for node")]
    NoResults,
    /// An allocation can't be counted.
    #[error(transparent)]
    State(#[from] StateError),
}

impl ReserveError {
    /// Returns the status of the extension point.
    #[must_use]
    pub const fn code(&self) -> StatusCode {
        StatusCode::Error
    }
}

impl PodCycle {
    /// Chooses a node's allocations for the claims to allocate (`Reserve`): they are in flight in `tracker` from now on, and
    /// known to `round`. Nothing is written.
    ///
    /// # Errors
    /// The node has not passed the filter. An error changes nothing that [`PodCycle::unreserve`] does not take back.
    pub fn reserve(
        &mut self,
        node: &str,
        tracker: &mut ClaimTracker,
        round: &mut GroupRound,
    ) -> Result<(), ReserveError> {
        if !self.needs_allocation() {
            return Ok(());
        }
        let is_reserved = self.is_reserved();
        let Self { nodes, claims, chosen_requests, .. } = self;
        let Some(found) = nodes.get(node) else {
            // Only extended resources are left to provide, and the node does that itself.
            return if is_reserved { Ok(()) } else { Err(ReserveError::NoResults) };
        };
        chosen_requests.clone_from(&found.extended);
        for (index, allocation) in &found.results {
            let Some(claim) = claims.get_mut(usize::from(*index)) else { continue };
            claim.chosen = Some(allocation.clone());
            let (key, uid) = (claim.key(), uid_of(&claim.claim));
            // A claim that somebody else allocated meanwhile is not in flight: its binding will fail.
            let cached = tracker.claim(&key.namespace, &key.name);
            if cached.is_some_and(|cached| uid_of(cached) == uid && allocation_of(cached).is_some()) {
                continue;
            }
            let Some(object) = claim.object_on_node(found.extended.as_ref()) else { continue };
            let allocated = Arc::new(with_allocation(&object, allocation.clone()));
            claim.in_flight = Some(tracker.add_in_flight(uid, &allocated)?);
            round.add(uid_of(&claim.claim));
        }
        Ok(())
    }

    /// Takes back what the cycle has reserved (`Unreserve`), in memory, and returns the calls that take the pod out of
    /// `reservedFor`. Allocations that are written stay, but for the claim for the pod's extended resources: it is deleted if
    /// it was created. May be called twice, and at any point of the cycle.
    ///
    /// An allocation whose write may be stored stays in flight until the claim was read, which is one of the calls. One that other pods of the group share stays for them, however often this pod gives up;
    /// kube-scheduler ends it for all of them if a failed `PreBind` and `Unreserve` count the pod twice.
    pub fn unreserve(&mut self, tracker: &mut ClaimTracker) -> ClaimCalls {
        let mut calls = ClaimCalls::default();
        for claim in &mut self.claims {
            claim.release(tracker);
            if tracker.allocation_in_doubt(uid_of(&claim.claim)).is_some() {
                calls.push_settling(&claim.claim);
            }
            if claim.is_for_extended_resources {
                if !special_claim::is_in_memory(&claim.claim) {
                    calls.push_removal(ResourceClaim::clone(&claim.claim));
                }
                continue;
            }
            let claim = &claim.claim;
            let consumers = claim.status.iter().flat_map(|status| status.reserved_for.iter().flatten());
            if allocation_of(claim).is_some() && { consumers }.any(|consumer| consumer.uid == self.pod.uid) {
                calls.push(ClaimWrite::remove_consumer(claim, &self.pod.uid));
            }
        }
        calls
    }

    /// Takes back what the cycle has reserved as [`PodCycle::unreserve`] does, and the allocations that it has written as well: the
    /// calls deallocate the claims whose allocation the cycle chose and that nobody but the pod has reserved. For a scheduler
    /// that sees, before it binds the pod, that another one has given the same devices away.
    pub fn give_way(&mut self, tracker: &mut ClaimTracker) -> ClaimCalls {
        let pod = self.pod.uid.clone();
        let is_written = |claim: &&CycleClaim| {
            let of_pod = |entry: &ResourceClaimConsumerReference| entry.uid == pod;
            let mut consumers = claim.claim.status.iter().flat_map(|status| status.reserved_for.iter().flatten());
            claim.chosen.is_some() && allocation_of(&claim.claim).is_some() && consumers.all(of_pod)
        };
        let written = self.claims.iter().filter(|claim| !claim.is_for_extended_resources).filter(is_written);
        let written: Vec<ResourceClaim> = written.map(|claim| deallocated(&claim.claim)).collect();
        let mut calls = ClaimCalls::default();
        for claim in &mut self.claims {
            if written.iter().any(|other| uid_of(other) == uid_of(&claim.claim)) {
                claim.release(tracker);
                claim.claim = Arc::new(deallocated(&claim.claim));
            }
        }
        for claim in written {
            calls.push(ClaimWrite::UpdateStatus { claim: Box::new(claim) });
        }
        calls.append(self.unreserve(tracker));
        calls
    }

    /// Takes back what the cycle has in flight. Nothing of it is written.
    pub(crate) fn take_back(&mut self, tracker: &mut ClaimTracker) {
        for claim in &mut self.claims {
            claim.release(tracker);
        }
    }

    /// Returns true if the cycle has chosen an allocation for each claim of the pod's entries that has none.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        let mut of_entries = self.claims.iter().filter(|claim| !claim.is_for_extended_resources);
        of_entries.all(|claim| claim.situation == ClaimSituation::Allocated || claim.chosen.is_some())
    }
}

impl CycleClaim {
    /// Ends the pod's share of the allocation in flight, if it has one.
    pub(super) fn release(&mut self, tracker: &mut ClaimTracker) {
        if let Some(share) = self.in_flight.take() {
            tracker.release(uid_of(&self.claim), &share);
        }
    }
}

/// Returns the claim as it will be after the binding.
pub(crate) fn with_allocation(claim: &ResourceClaim, allocation: AllocationResult) -> ResourceClaim {
    let mut claim = claim.clone();
    add_finalizer(&mut claim);
    claim.status.get_or_insert_default().allocation = Some(allocation);
    claim
}

/// Adds the finalizer of allocated claims, unless it is there already.
pub(super) fn add_finalizer(claim: &mut ResourceClaim) {
    if !has_finalizer(claim) {
        claim.metadata.finalizers.get_or_insert_default().push(ClaimWrite::FINALIZER.to_owned());
    }
}

pub(super) fn has_finalizer(claim: &ResourceClaim) -> bool {
    claim.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == ClaimWrite::FINALIZER)
}
