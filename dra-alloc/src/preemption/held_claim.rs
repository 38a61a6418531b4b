//! Allocated claims: who uses them, and which preemption frees them.
//!
//! | claim | kube-scheduler's rule (KEP-5690) | least harm |
//! |---|---|---|
//! | reserved for pods | when all of them are out | same |
//! | reserved for a pod that is done or gone | never | as if that entry were not there |
//! | reserved for a pod group, or for a pod of one | never | when all pods of the group are out |
//! | reserved for nobody, named by pods | when one of them on the node is out | when one of them is out |
//! | reserved for nobody, named by nobody | never | by a write alone |
//! | with a device that is not bound to the node by name | never | as the others |

use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim, ResourceClaimConsumerReference};
use smallvec::SmallVec;

/// An allocated claim with its users.
#[derive(Debug)]
pub(super) struct HeldClaim<'c> {
    pub(super) claim: &'c ResourceClaim,
    pub(super) allocation: &'c AllocationResult,
    /// Entries of `status.reservedFor`.
    pub(super) users: Vec<User<'c>>,
    /// Positions of the living pods that name the claim, if it has no living user.
    pub(super) named_by: SmallVec<[usize; 1]>,
}

/// Consumer for which a claim is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User<'c> {
    /// Position of a living pod.
    Pod(usize),
    /// UID of a pod group.
    Group(&'c str),
    /// UID of a pod that is done or gone.
    Dead(&'c str),
    /// UID of a consumer of another kind, which nothing takes out.
    Other(&'c str),
}

impl<'c> User<'c> {
    /// Reads an entry of `status.reservedFor`. `living` is the position of the living pod with its UID.
    pub(super) fn new(reference: &'c ResourceClaimConsumerReference, living: Option<usize>) -> Self {
        match (reference.resource.as_str(), living) {
            ("pods", Some(pod)) => Self::Pod(pod),
            ("pods", None) => Self::Dead(&reference.uid),
            ("podgroups", _) => Self::Group(&reference.uid),
            _ => Self::Other(&reference.uid),
        }
    }
}

impl<'c> HeldClaim<'c> {
    /// Reads a claim, without its users; `None` if it is not allocated.
    pub(super) fn new(claim: &'c ResourceClaim) -> Option<Self> {
        let allocation = claim.status.as_ref()?.allocation.as_ref()?;
        let (users, named_by) = (Vec::new(), SmallVec::new());
        Some(Self { claim, allocation, users, named_by })
    }

    /// Returns true if the claim is reserved for more than pods that are done or gone.
    pub(super) fn has_living_user(&self) -> bool {
        self.users.iter().any(|user| !matches!(user, User::Dead(_)))
    }

    /// Returns true if nobody uses the claim or waits for it, so that a write alone frees it.
    pub(super) fn is_idle(&self) -> bool {
        !self.has_living_user() && self.named_by.is_empty()
    }
}
