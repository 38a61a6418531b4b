//! One question: the preemptor with its claims, and the work so far.

use dra_device::claims::PodClaim;
use dra_device::internal::{PodFields, extended_claim};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::halt::{Halt, PreemptionError};
use super::occupant::Occupant;
use super::question::Preemption;
use super::view::names_of;
use super::work::Work;
use crate::allocator::Attempt;
use crate::cluster::state::AllocatedState;
use crate::search::budget::Budget;

/// A preemptor with its claims, and the work so far.
pub(super) struct Asked<'q> {
    pub(super) rules: &'q Preemption<'q>,
    pub(super) preemptor: Occupant<'q>,
    /// Claims of the preemptor, in the order of its entries.
    pub(super) own: Vec<&'q ResourceClaim>,
    attempt: Attempt<'q>,
    pub(super) work: Work<'q>,
}

impl<'q> Asked<'q> {
    pub(super) fn new(rules: &'q Preemption<'q>, pod: &'q Pod, budget: Budget<'q>) -> Result<Self, PreemptionError> {
        let own = own_claims(rules, pod)?;
        let attempt = rules.allocator.attempt(rules.state, own.iter().copied());
        Ok(Self { rules, preemptor: Occupant::new(pod), own, attempt, work: Work::new(budget) })
    }

    /// Returns true for a claim of the preemptor.
    pub(super) fn is_own(&self, claim: &ResourceClaim) -> bool {
        self.own.iter().any(|own| names_of(own) == names_of(claim))
    }

    /// Returns true for the preemptor itself.
    pub(super) fn is_preemptor(&self, other: &Occupant<'_>) -> bool {
        other.name() == self.preemptor.name() && other.pod.uid() == self.preemptor.pod.uid()
    }

    /// Tells if the preemptor's claims can be allocated on a node beside the devices in use.
    pub(super) fn fits(&self, state: &AllocatedState, node: &Node) -> Result<bool, Halt> {
        self.work.fits(&self.attempt, state, node)
    }

    /// Allocates the preemptor's claims on a node beside the devices in use; `None` if that can't be done.
    pub(super) fn allocate(&self, state: &AllocatedState, node: &Node) -> Result<Option<Vec<AllocationResult>>, Halt> {
        self.work.allocate(&self.attempt, state, node)
    }
}

/// Returns the claims of a pod, each once, in the order of its entries. That for extended resources comes last.
fn own_claims<'q>(rules: &Preemption<'q>, pod: &Pod) -> Result<Vec<&'q ResourceClaim>, PreemptionError> {
    let entries = pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten());
    let named = entries.map(|entry| PodClaim::of_entry(pod, entry)).filter_map(Result::transpose);
    let mut own: Vec<&ResourceClaim> = Vec::new();
    for named in named.chain(extended_claim(pod).map(Ok)) {
        let key = named?.claim;
        let claim = rules.view.claim(&key).ok_or(PreemptionError::ClaimNotFound { claim: key })?;
        if !own.iter().any(|other| std::ptr::eq(*other, claim)) {
            own.push(claim);
        }
    }
    Ok(own)
}
