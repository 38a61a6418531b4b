//! The end of a binding without success: calls that take back what is written.

use dra_device::claims::ClaimKey;
use jiff::Timestamp;
use nnn::memory::{NominationAnswer, PodStage};
use nnn::{Command, PodKey};

use super::call::BindingRequest;
use super::cycle::BoundClaims;
use super::memory::BindingMemory;
use super::repetition::settled_from;
use super::step::UnboundError;
use crate::pods::claim_calls::ClaimCalls;
use crate::pods::write::{ApiResponse, ClaimWrite};

/// Number of times that a nomination is cleared before it is left to others, in doubt.
const CLEARING_ATTEMPTS: u32 = 5;

/// Calls that take back what a binding has written: first its claims, then its nomination, which together reserve its room.
#[derive(Clone, Debug)]
pub(super) struct TakingBack {
    pub(super) reason: UnboundError,
    calls: ClaimCalls,
    /// Time of the last lost answer to the removal of a reservation.
    lost: Option<Timestamp>,
    /// Number of times that the nomination was cleared, in vain.
    cleared: u32,
    problems: Vec<String>,
}

impl TakingBack {
    pub(super) const fn new(reason: UnboundError, calls: ClaimCalls) -> Self {
        Self { reason, calls, lost: None, cleared: 0, problems: Vec::new() }
    }

    /// Returns the next call; `Err` with the claim if another binding writes it, `None` at the end.
    pub(super) fn next(
        &mut self,
        pod: &PodKey,
        claims: Option<&mut BoundClaims>,
        memory: &mut BindingMemory<'_>,
    ) -> Option<Result<BindingRequest, ClaimKey>> {
        if let Some(next) = claims.and_then(|claims| claims.next_of(&self.calls, memory.claims)) {
            return Some(next.map(BindingRequest::Claim));
        }
        let is_waiting = memory.pods.stage(&pod.uid).is_some_and(PodStage::is_waiting);
        let is_nominated = self.cleared > 0 || memory.pods.nomination(&pod.uid).is_some();
        if !is_waiting || !is_nominated || self.cleared >= CLEARING_ATTEMPTS {
            return None;
        }
        self.cleared += 1;
        // An amount that can't be read counts for nothing, here as in the watch.
        let _ = memory.pods.nominate(&pod.uid, None);
        Some(Ok(BindingRequest::Status(Command::ClearNnn { pod: pod.clone() })))
    }

    /// Returns the time before which the pod must not be tried again: the removal of a reservation has no version that would let a
    /// late one fail, so that it would take the pod from a claim that it has got again.
    pub(super) fn settled_from(&self) -> Option<Timestamp> {
        self.lost.map(settled_from)
    }

    /// Takes the answer to a call about a claim.
    pub(super) fn answer_claim(
        &mut self,
        claims: Option<&mut BoundClaims>,
        memory: &mut BindingMemory<'_>,
        answer: ApiResponse,
        now: Timestamp,
    ) {
        let is_lost = matches!(answer, ApiResponse::Lost(_) | ApiResponse::Unavailable(_));
        if is_lost && matches!(self.calls.next(), Some(ClaimWrite::PatchReservation { .. })) {
            self.lost = Some(now);
        }
        if let Some(claims) = claims {
            claims.answer_of(&mut self.calls, memory.claims, answer);
        }
    }

    /// Takes the answer to the clearing of the nomination: one that nobody knows of is sent once more.
    pub(super) fn answer_clearing(&mut self, answer: &NominationAnswer<'_>, text: String) {
        match answer {
            NominationAnswer::Stored { .. } => self.cleared = CLEARING_ATTEMPTS,
            NominationAnswer::Lost if self.cleared < CLEARING_ATTEMPTS => {}
            NominationAnswer::Lost | NominationAnswer::Refused => {
                self.cleared = CLEARING_ATTEMPTS;
                self.problems.push(text);
            }
        }
    }

    pub(super) fn problems(&self) -> Vec<String> {
        self.calls.errors().iter().chain(&self.problems).cloned().collect()
    }
}
