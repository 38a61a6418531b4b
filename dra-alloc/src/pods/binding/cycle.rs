//! The claims of a binding: their writes one after the other, each when it is the binding's turn.

use dra_device::claims::ClaimKey;
use jiff::Timestamp;

use super::memory::BindingMemory;
use crate::pods::claim_calls::ClaimCalls;
use crate::pods::cycle::PodCycle;
use crate::pods::pre_bind::{BindStep, PreBind};
use crate::pods::tracker::ClaimTracker;
use crate::pods::turns::Turn;
use crate::pods::write::{ApiResponse, ClaimWrite};

/// Claims of a pod on the way to their writes.
#[derive(Clone, Debug)]
pub(super) struct BoundClaims {
    pub(super) cycle: PodCycle,
    progress: PreBind,
    place: Place,
}

/// Claim that it is the binding's turn to write.
#[derive(Clone, Debug, Default)]
struct Place {
    turn: Turn,
    taken: Option<ClaimKey>,
}

/// Next step of a binding's claims.
#[derive(Clone, Debug)]
pub(super) enum ClaimsStep {
    Step(BindStep),
    /// Another binding writes the claim.
    NotYet(ClaimKey),
}

impl BoundClaims {
    pub(super) fn new(cycle: PodCycle) -> Self {
        Self { cycle, progress: PreBind::default(), place: Place::default() }
    }

    pub(super) fn next(&mut self, tracker: &mut ClaimTracker, now: Timestamp) -> ClaimsStep {
        loop {
            let ahead = self.progress.claim_ahead(&self.cycle);
            if let Some(claim) = self.place.take(ahead, tracker) {
                return ClaimsStep::NotYet(claim);
            }
            self.progress.refresh(&mut self.cycle, tracker);
            if let Some(step) = self.progress.advance(&mut self.cycle, tracker, now) {
                return ClaimsStep::Step(step);
            }
        }
    }

    pub(super) fn answer(&mut self, tracker: &mut ClaimTracker, answer: ApiResponse, now: Timestamp) {
        self.progress.answer(&mut self.cycle, tracker, answer, now);
        let ahead = self.progress.claim_ahead(&self.cycle);
        if self.place.taken != ahead {
            self.place.leave(tracker);
        }
    }

    /// Returns the next of the calls that take something back.
    pub(super) fn next_of(
        &mut self,
        calls: &ClaimCalls,
        tracker: &mut ClaimTracker,
    ) -> Option<Result<ClaimWrite, ClaimKey>> {
        let write = calls.next()?;
        Some(self.place.take(write.claim(), tracker).map_or(Ok(write), Err))
    }

    pub(super) fn answer_of(&mut self, calls: &mut ClaimCalls, tracker: &mut ClaimTracker, answer: ApiResponse) {
        calls.answer(tracker, answer);
        if calls.next().and_then(|write| write.claim()) != self.place.taken {
            self.place.leave(tracker);
        }
    }

    /// Takes back what the binding has reserved and written, as far as a reason of its end lets it.
    pub(super) fn take_back(&mut self, memory: &mut BindingMemory<'_>, extent: Extent) -> ClaimCalls {
        self.place.leave(memory.claims);
        match extent {
            Extent::Memory => {
                self.cycle.take_back(memory.claims);
                ClaimCalls::default()
            }
            Extent::Reservations => self.cycle.unreserve(memory.claims),
            Extent::Allocations => self.cycle.give_way(memory.claims),
        }
    }
}

/// Extent of what a binding takes back.
#[derive(Clone, Copy, Debug)]
pub(super) enum Extent {
    /// The pod runs with what is written: only memory forgets what is not.
    Memory,
    /// The pod is taken from its claims, which keep their allocations.
    Reservations,
    /// The allocations go as well: another claim has the devices.
    Allocations,
}

impl Place {
    /// Takes the turn at a claim, and leaves the one before. Returns the claim if another binding has it.
    fn take(&mut self, claim: Option<ClaimKey>, tracker: &mut ClaimTracker) -> Option<ClaimKey> {
        if self.taken == claim {
            return None;
        }
        self.leave(tracker);
        let claim = claim?;
        if !tracker.turns().take(&claim, &self.turn) {
            return Some(claim);
        }
        self.taken = Some(claim);
        None
    }

    fn leave(&mut self, tracker: &mut ClaimTracker) {
        if let Some(claim) = self.taken.take() {
            tracker.turns().end(&claim, &self.turn);
        }
    }
}
