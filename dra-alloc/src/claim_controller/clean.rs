//! The rule for one claim: reservations, allocations and claims that nobody needs go.

use dra_device::claims::ClaimKey;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference};

use super::call::ControllerCall;
use crate::pods::ClaimWrite;

/// Fate of the pod that owns a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum OwnerPhase {
    /// The claim has no owner, its owner is not known, or it may still run: the claim stays, if need be until the garbage
    /// collector takes it.
    #[default]
    Stays,
    /// The pod has another UID by now, or is done.
    Done,
}

/// Step of the clean-up of a claim. Each is applied to the claim as the call before has left it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CleanStep {
    /// Sets `status.reservedFor`.
    Reserve(Vec<ResourceClaimConsumerReference>),
    /// Clears `status.reservedFor` and the allocation.
    Deallocate,
    /// Removes the finalizer, unless the claim has got an allocation meanwhile.
    RemoveFinalizer,
    /// Deletes the claim.
    Delete,
}

impl CleanStep {
    /// Returns the call of the step; `None` if nothing is left to do.
    #[must_use]
    pub fn call(&self, claim: &ResourceClaim) -> Option<ControllerCall> {
        let mut claim = Box::new(claim.clone());
        match self {
            Self::Reserve(consumers) => {
                claim.status.get_or_insert_default().reserved_for = Some(consumers.clone());
                Some(ControllerCall::UpdateStatus { claim })
            }
            Self::Deallocate => {
                let status = claim.status.get_or_insert_default();
                (status.allocation, status.reserved_for) = (None, Some(Vec::new()));
                Some(ControllerCall::UpdateStatus { claim })
            }
            Self::RemoveFinalizer => {
                let is_removable = has_finalizer(&claim) && !is_allocated(&claim);
                claim.metadata.finalizers.as_mut()?.retain(|finalizer| finalizer != ClaimWrite::FINALIZER);
                is_removable.then_some(ControllerCall::Update { claim })
            }
            Self::Delete => Some(ControllerCall::DeleteClaim { claim: ClaimKey::from_metadata(&claim.metadata) }),
        }
    }

    /// Returns the steps that take away what nobody needs of a claim. `stays` tells which entries of `status.reservedFor` are
    /// still right.
    ///
    /// | entries that went | left | finalizer | steps |
    /// |---|---|---|---|
    /// | some | some | – | the entries that are left; and no finalizer if there is no allocation |
    /// | all | none | yes | no entries, no allocation; then no finalizer |
    /// | all | none | no | no entries; the allocation stays |
    /// | none, and the claim is being deleted | none | yes | no allocation, if there is one; then no finalizer |
    /// | none | none | – | nothing: an allocation that was never reserved stays |
    ///
    /// A claim without entries is deleted if its pod is done. Applied to the result, the rule has no further step.
    ///
    /// ```
    /// use dra_alloc::claim_controller::{CleanStep, OwnerPhase};
    /// use k8s_openapi::api::resource::v1::ResourceClaim;
    /// use serde_json::{from_value, json};
    /// let claim: ResourceClaim = from_value(json!({"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]},
    ///     "spec": {}, "status": {"allocation": {}, "reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]}}))?;
    /// assert_eq!(CleanStep::of_claim(&claim, |_| true, OwnerPhase::Stays), []);
    /// assert_eq!(CleanStep::of_claim(&claim, |_| false, OwnerPhase::Stays), [CleanStep::Deallocate, CleanStep::RemoveFinalizer]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn of_claim(
        claim: &ResourceClaim,
        stays: impl Fn(&ResourceClaimConsumerReference) -> bool,
        owner: OwnerPhase,
    ) -> Vec<Self> {
        let reserved = claim.status.as_ref().and_then(|status| status.reserved_for.as_deref()).unwrap_or_default();
        let left: Vec<_> = reserved.iter().filter(|consumer| stays(consumer)).cloned().collect();
        let (is_unused, some_went) = (left.is_empty(), left.len() < reserved.len());
        let (has_finalizer, is_allocated) = (has_finalizer(claim), is_allocated(claim));
        let mut steps = Vec::new();
        if some_went && is_unused && has_finalizer {
            steps.extend([Self::Deallocate, Self::RemoveFinalizer]);
        } else if some_went {
            steps.push(Self::Reserve(left));
            steps.extend((has_finalizer && !is_allocated).then_some(Self::RemoveFinalizer));
        } else if is_unused && has_finalizer && claim.metadata.deletion_timestamp.is_some() {
            steps.extend(is_allocated.then_some(Self::Deallocate));
            steps.push(Self::RemoveFinalizer);
        }
        if is_unused && owner == OwnerPhase::Done {
            steps.push(Self::Delete);
        }
        steps
    }
}

fn has_finalizer(claim: &ResourceClaim) -> bool {
    claim.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == ClaimWrite::FINALIZER)
}

fn is_allocated(claim: &ResourceClaim) -> bool {
    claim.status.as_ref().is_some_and(|status| status.allocation.is_some())
}
