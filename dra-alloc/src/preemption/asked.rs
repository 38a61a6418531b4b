//! One question: the preemptor with its claims, and the work so far.

use std::cell::Cell;

use dra_device::claims::PodClaim;
use dra_device::internal::{PodFields, extended_claim};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::halt::{Halt, PreemptionError};
use super::occupant::Occupant;
use super::question::Preemption;
use super::view::names_of;
use crate::allocator::Attempt;
use crate::cluster::state::AllocatedState;
use crate::search::budget::{Budget, Meter};
use crate::search::outcome::{Fit, Outcome};
use crate::search::stopped::Limit;

/// A preemptor with its claims, and the work so far.
pub(super) struct Asked<'q> {
    pub(super) rules: &'q Preemption<'q>,
    pub(super) preemptor: Occupant<'q>,
    /// Claims of the preemptor, in the order of its entries.
    pub(super) own: Vec<&'q ResourceClaim>,
    attempt: Attempt<'q>,
    budget: Budget<'q>,
    work: Cell<u64>,
}

impl<'q> Asked<'q> {
    pub(super) fn new(rules: &'q Preemption<'q>, pod: &'q Pod, budget: Budget<'q>) -> Result<Self, PreemptionError> {
        let own = own_claims(rules, pod)?;
        let attempt = rules.allocator.attempt(rules.state, own.iter().copied());
        Ok(Self { rules, preemptor: Occupant::new(pod), own, attempt, budget, work: Cell::new(0) })
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
        let meter = Meter::new(self.rest());
        let fit = self.attempt.fits_beside(state, node, &meter);
        self.spend(meter.spent());
        match fit? {
            Fit::Yes => Ok(true),
            Fit::No => Ok(false),
            Fit::Stopped(stopped) => Err(Halt::Stopped(stopped.limit)),
        }
    }

    /// Allocates the preemptor's claims on a node beside the devices in use; `None` if that can't be done.
    pub(super) fn allocate(
        &self,
        state: &AllocatedState,
        node: &Node,
    ) -> Result<Option<Vec<AllocationResult>>, Halt> {
        self.allocated(&self.attempt, state, node)
    }

    /// Allocates the claims of an attempt on a node beside the devices in use; `None` if that can't be done.
    pub(super) fn allocated(
        &self,
        attempt: &Attempt<'_>,
        state: &AllocatedState,
        node: &Node,
    ) -> Result<Option<Vec<AllocationResult>>, Halt> {
        let (outcome, work) = attempt.allocate_beside(state, node, self.rest())?;
        self.spend(work);
        match outcome {
            Outcome::Allocated(results) => Ok(Some(results)),
            Outcome::Stopped(stopped) => Err(Halt::Stopped(stopped.limit)),
            Outcome::Unsatisfied | Outcome::FailedOnNode(_) => Ok(None),
        }
    }

    /// Counts work beside that of the allocator. Fails if the work of the call is used up.
    pub(super) fn work(&self, amount: usize) -> Result<(), Halt> {
        self.spend(u64::try_from(amount).unwrap_or(u64::MAX));
        if self.rest().limit() == 0 { Err(Halt::Stopped(Limit::Call)) } else { Ok(()) }
    }

    /// Returns the work so far.
    pub(super) const fn spent(&self) -> u64 {
        self.work.get()
    }

    /// Returns the largest work on a node.
    pub(super) const fn work_of_node(&self) -> u64 {
        self.budget.limit()
    }

    fn spend(&self, work: u64) {
        self.work.set(self.work.get().saturating_add(work));
    }

    const fn rest(&self) -> Budget<'q> {
        self.budget.after(self.work.get())
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
