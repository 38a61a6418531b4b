//! The rule for one claim: reservations, allocations and claims that nobody needs go.

use dra_device::claims::ClaimKey;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference};

use super::call::ControllerCall;
use crate::pods::ClaimWrite;

/// Fate of the pod that owns a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum OwnerPhase {
    /// The claim has no owner, its owner is not known, or it may still run: the claim stays, if need be until the garbage
    /// collector takes it.
    #[default]
    Stays,
    /// The pod has another UID by now, or is done.
    Done,
}

/// Step of the clean-up of a claim. Each is applied to the claim as the call before has left it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CleanStep {
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
    pub(super) fn call(&self, claim: &ResourceClaim) -> Option<ControllerCall> {
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
            Self::Delete => Some(ControllerCall::DeleteClaim {
                claim: ClaimKey::from_metadata(&claim.metadata),
                uid: claim.metadata.uid.take().unwrap_or_default(),
            }),
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
    pub(crate) fn of_claim(
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

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use k8s_openapi::api::resource::v1::AllocationResult;
    use proptest::prelude::*;
    use serde_json::{Value, from_value, json};

    use super::*;

    const FINALIZER: &str = ClaimWrite::FINALIZER;

    fn claim(status: &Value) -> ResourceClaim {
        let metadata = json!({"namespace": "ns", "name": "c", "finalizers": [FINALIZER]});
        from_value(json!({"metadata": metadata, "spec": {}, "status": status})).unwrap()
    }

    #[test]
    fn a_claim_keeps_its_devices_until_its_last_consumer_goes() {
        let claim = claim(&json!({"allocation": {}, "reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]}));
        assert_eq!(CleanStep::of_claim(&claim, |_| true, OwnerPhase::Stays), []);
        let steps = CleanStep::of_claim(&claim, |_| false, OwnerPhase::Stays);
        assert_eq!(steps, [CleanStep::Deallocate, CleanStep::RemoveFinalizer]);
    }

    fn any_claim() -> impl Strategy<Value = (ResourceClaim, Vec<bool>, bool)> {
        let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
        (flags, prop::collection::vec(any::<bool>(), 0..4)).prop_map(
            |((allocated, finalizer, deleted, owner), stays)| {
                let consumers: Vec<Value> = (0..stays.len())
                    .map(|index| json!({"resource": "pods", "name": format!("p{index}"), "uid": format!("{index}")}))
                    .collect();
                let mut claim = claim(&json!({"reservedFor": consumers}));
                if allocated {
                    claim.status.as_mut().unwrap().allocation = Some(AllocationResult::default());
                }
                if !finalizer {
                    claim.metadata.finalizers = None;
                }
                if deleted {
                    claim.metadata.deletion_timestamp = from_value(json!("2026-01-01T00:00:00Z")).unwrap();
                }
                (claim, stays, owner)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn cleaning_twice_is_cleaning_once((claim, stays, is_done) in any_claim()) {
            let owner = if is_done { OwnerPhase::Done } else { OwnerPhase::Stays };
            let stays = |consumer: &ResourceClaimConsumerReference| {
                stays[consumer.uid.parse::<usize>().unwrap()]
            };
            let (mut cleaned, mut is_deleted) = (claim.clone(), false);
            for step in CleanStep::of_claim(&claim, stays, owner) {
                match step.call(&cleaned) {
                    Some(ControllerCall::UpdateStatus { claim } | ControllerCall::Update { claim }) => cleaned = *claim,
                    Some(ControllerCall::DeleteClaim { .. }) => is_deleted = true,
                    other => prop_assert!(other.is_none() && step == CleanStep::RemoveFinalizer),
                }
            }
            let left = if is_deleted { vec![CleanStep::Delete] } else { Vec::new() };
            prop_assert_eq!(CleanStep::of_claim(&cleaned, stays, owner), left);
            // What is reserved keeps its devices, and what is free has no finalizer that it got with them.
            let status = cleaned.status.unwrap();
            let kept = claim.status.as_ref().unwrap().reserved_for.iter().flatten().filter(|consumer| stays(consumer)).count();
            prop_assert_eq!(status.reserved_for.unwrap_or_default().len(), kept);
            if kept > 0 {
                prop_assert_eq!(status.allocation.is_some(), claim.status.as_ref().unwrap().allocation.is_some());
            }
        }
    }
}
