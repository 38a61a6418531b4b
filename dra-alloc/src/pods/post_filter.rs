//! `PostFilter`: deallocation of a claim that keeps the pod from all nodes.

use k8s_openapi::api::resource::v1::ResourceClaim;

use super::claim_calls::ClaimCalls;
use super::consumer::{Consumer, is_reserved};
use super::cycle::{CycleClaim, PodCycle};
use super::lookup::allocation_of;
use super::status_code::StatusCode;
use super::write::ClaimWrite;

/// Decision after no node has passed the filters: at most one claim is freed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PostFilter {
    /// A claim that is out of reach, and that nobody else uses, is deallocated: allocation, consumers and device statuses
    /// are cleared.
    Deallocate {
        /// The write that clears the status.
        write: Box<ClaimWrite>,
    },
    /// The claim for the pod's extended resources, which an earlier attempt has left over, is deleted.
    DeleteLeftOver {
        /// The claim.
        claim: Box<ResourceClaim>,
    },
    /// The reservation of the pod's group is removed from a claim, because no pod of the group is assumed or bound.
    UnreserveGroup {
        /// The write that removes the group.
        write: Box<ClaimWrite>,
    },
    /// Nothing can be freed.
    Nothing,
}

impl PostFilter {
    /// Returns the status of the extension point, if the calls succeed. A failed call is an `Error` with the first of
    /// [`ClaimCalls::errors`].
    #[must_use]
    pub const fn code(&self) -> StatusCode {
        match self {
            Self::UnreserveGroup { .. } => StatusCode::UnschedulableAndUnresolvable,
            _ => StatusCode::Unschedulable,
        }
    }

    /// Returns kube-scheduler's text.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Deallocate { .. } => "deallocation of ResourceClaim completed",
            Self::DeleteLeftOver { .. } => "deletion of ResourceClaim completed",
            Self::UnreserveGroup { .. } => "ResourceClaim unreserved for PodGroup",
            Self::Nothing => "still not schedulable",
        }
    }

    /// Returns kube-scheduler's text for a pod without claims.
    pub const NO_CLAIMS: &'static str = "no new claims to deallocate";

    /// Returns the calls to make; none for [`PostFilter::Nothing`].
    pub fn calls(&self) -> ClaimCalls {
        match self {
            Self::Deallocate { write } | Self::UnreserveGroup { write } => ClaimCalls::write(ClaimWrite::clone(write)),
            Self::DeleteLeftOver { claim } => {
                let mut calls = ClaimCalls::default();
                calls.push_removal(ResourceClaim::clone(claim));
                calls
            }
            Self::Nothing => ClaimCalls::default(),
        }
    }
}

impl PodCycle {
    /// Chooses the claim to free after no node has passed the filters (`PostFilter`): the first that is out of reach of a
    /// node and that nobody else uses (kube-scheduler takes a random one), or the claim for extended resources that an
    /// earlier attempt has left over.
    ///
    /// `scheduled_in_group` is the number of pods of the group that are assumed or bound.
    #[must_use]
    pub fn post_filter(&self, scheduled_in_group: usize) -> PostFilter {
        if let Some(claim) = self.deallocatable().next() {
            let write = Box::new(ClaimWrite::UpdateStatus { claim: Box::new(deallocated(&claim.claim)) });
            return PostFilter::Deallocate { write };
        }
        if let Some(left_over) = self.left_over() {
            return PostFilter::DeleteLeftOver { claim: Box::new(ResourceClaim::clone(&left_over.claim)) };
        }
        let of_group = |claim: &&CycleClaim| matches!(claim.consumer, Consumer::PodGroup { .. });
        let reserved =
            |claim: &&CycleClaim| allocation_of(&claim.claim).is_some() && is_reserved(&self.pod, &claim.claim);
        let group = self.claims.iter().filter(of_group).find(reserved).filter(|_| scheduled_in_group == 0);
        match group {
            Some(claim) => {
                let write = ClaimWrite::remove_consumer(&claim.claim, claim.consumer.uid());
                PostFilter::UnreserveGroup { write: Box::new(write) }
            }
            None => PostFilter::Nothing,
        }
    }

    /// Returns the claims that [`PodCycle::post_filter`] chooses from: allocated, out of reach of a node, and reserved for
    /// nobody or for this pod alone.
    fn deallocatable(&self) -> impl Iterator<Item = &CycleClaim> {
        self.out_of_reach().filter(|claim| {
            let reserved = claim.claim.status.as_ref().and_then(|status| status.reserved_for.as_deref());
            let nobody_else = match reserved.unwrap_or_default() {
                [] => true,
                [only] => only.uid == self.pod.uid,
                _ => false,
            };
            nobody_else && allocation_of(&claim.claim).is_some()
        })
    }
}

/// Returns a claim without allocation, consumers and device statuses.
pub(crate) fn deallocated(claim: &ResourceClaim) -> ResourceClaim {
    let mut claim = claim.clone();
    if let Some(status) = &mut claim.status {
        (status.allocation, status.reserved_for, status.devices) = (None, None, None);
    }
    claim
}
