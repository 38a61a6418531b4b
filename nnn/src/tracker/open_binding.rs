//! Running binding cycles, and their changes to claims.

use crate::binding::{BindingClaim, FailedStage, claim_writes};
use crate::commands::Command;
use crate::pod::PodKey;

/// Progress of writing the allocations that a binding cycle has chosen for claims.
#[derive(Clone, Copy, Debug, Default)]
enum Allocations {
    /// The devices are chosen, but no allocation is written.
    #[default]
    Chosen,
    /// The allocations are written after the wait on permit. The end of the wait is not reported, so that they may be
    /// written or not.
    Deferred,
    /// The allocations are written.
    Written,
}

impl Allocations {
    /// Returns the progress of the allocation writes when the binding cycle failed at `stage`.
    fn at(self, stage: FailedStage) -> Self {
        match self {
            Self::Deferred if stage == FailedStage::Bind => Self::Written,
            Self::Deferred if stage <= FailedStage::Permit => Self::Chosen,
            // A plugin that comes before their write may be the one that failed.
            known => known,
        }
    }
}

/// A running binding cycle. The default neither waits on permit nor has claims to undo.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenBinding {
    waits_on_permit: bool,
    /// Claims whose allocations the cycle writes.
    claims: Vec<BindingClaim>,
    allocations: Allocations,
}

impl OpenBinding {
    /// Starts the binding cycle of an assumed pod. `binds` is false if a pre-flight failed, so that no allocation is
    /// written.
    pub(super) fn new(waits_on_permit: bool, claims: Vec<BindingClaim>, binds: bool) -> Self {
        let allocations = match (binds, waits_on_permit) {
            (false, _) => Allocations::Chosen,
            (true, true) => Allocations::Deferred,
            (true, false) => Allocations::Written,
        };
        Self { waits_on_permit, claims, allocations }
    }

    /// Returns the cycle with the progress of its allocation writes at the failed `stage`.
    pub(super) fn failed_at(self, stage: FailedStage) -> Self {
        Self { allocations: self.allocations.at(stage), ..self }
    }

    /// Returns the command that ends the pod's wait on permit, if the pod waits.
    pub(super) fn reject(&mut self, pod: &PodKey) -> Option<Command> {
        std::mem::take(&mut self.waits_on_permit).then(|| Command::RejectWaiting { pod: pod.clone() })
    }

    /// Returns the commands that undo the cycle's changes to claims.
    pub(super) fn unreserve(self, pod: &PodKey) -> Vec<Command> {
        let allocation = |claim: &String| Command::DropAllocation { pod: pod.clone(), claim: claim.clone() };
        let reservation = |claim: &String| Command::DropReservation { pod: pod.clone(), claim: claim.clone() };
        // The devices of a shared claim are chosen by another pod, which may still count on them.
        let chosen = |claim: &BindingClaim| match claim {
            BindingClaim::Chosen(claim) => Some(allocation(claim)),
            BindingClaim::Allocated | BindingClaim::Shared(_) => None,
        };
        let reserved = |claim: &BindingClaim| match claim {
            BindingClaim::Chosen(claim) | BindingClaim::Shared(claim) => Some(reservation(claim)),
            BindingClaim::Allocated => None,
        };
        let claims = self.claims.iter();
        match self.allocations {
            Allocations::Chosen => claims.filter_map(chosen).collect(),
            Allocations::Written => claims.filter_map(reserved).collect(),
            Allocations::Deferred => {
                claims.flat_map(|claim| chosen(claim).into_iter().chain(reserved(claim))).collect()
            }
        }
    }

    /// Returns the writes that were put off until the permit is granted. They count as written afterwards.
    pub(super) fn grant(&mut self, pod: &PodKey) -> Vec<Command> {
        if !self.waits_on_permit || !matches!(self.allocations, Allocations::Deferred) {
            return Vec::new();
        }
        (self.waits_on_permit, self.allocations) = (false, Allocations::Written);
        claim_writes(pod, &self.claims)
    }
}
