//! The end of a binding without success: calls that take back what is written.

use dra_device::claims::ClaimKey;
use jiff::Timestamp;
use nnn::memory::{NominationAnswer, PodStage};
use nnn::{Command, PodKey};

use super::call::BindingRequest;
use super::cycle::BoundClaims;
use super::memory::BindingMemory;
use super::repetition::{again_at, settled_from};
use super::step::UnboundError;
use crate::cluster::state::ClaimId;
use crate::pods::claim_calls::ClaimCalls;
use crate::pods::tracker::ClaimTracker;
use crate::pods::write::{ApiResponse, ClaimWrite};

/// Number of times that a nomination is cleared before it is left to others, in doubt.
const CLEARING_ATTEMPTS: u32 = 5;

/// Calls that take back what a binding has written: first its claims, then its nomination, which together reserve its room.
#[derive(Clone, Debug)]
pub(super) struct TakingBack {
    pub(super) reason: UnboundError,
    calls: ClaimCalls,
    removals: LostRemovals,
    /// Number of times that the nomination was cleared, in vain.
    cleared: u32,
    problems: Vec<String>,
}

/// Removals of reservations whose answers were lost.
///
/// A removal has no version that would let a late one fail. So the pod is not free before the server can't carry it out any more, and
/// a claim of which no answer has come is read then: memory would go on with what was.
#[derive(Clone, Debug, Default)]
struct LostRemovals {
    /// Time of the last answer that was lost.
    since: Option<Timestamp>,
    /// Claims to read.
    unread: Vec<ClaimId>,
    /// Time of the next reading, and the number of those that were lost or refused.
    read_from: Timestamp,
    in_vain: u32,
    /// The last refusal of a reading.
    refusal: Option<String>,
}

/// Next step of taking back.
#[derive(Clone, Debug)]
pub(super) enum TakingBackStep {
    Call(BindingRequest),
    /// Another binding writes the claim.
    NotYet(ClaimKey),
    Wait(Timestamp),
    End,
}

impl TakingBack {
    pub(super) fn new(reason: UnboundError, calls: ClaimCalls) -> Self {
        Self { reason, calls, removals: LostRemovals::default(), cleared: 0, problems: Vec::new() }
    }

    /// Returns the next step.
    pub(super) fn next(
        &mut self,
        pod: &PodKey,
        claims: Option<&mut BoundClaims>,
        memory: &mut BindingMemory<'_>,
        now: Timestamp,
    ) -> TakingBackStep {
        if let Some(next) = claims.and_then(|claims| claims.next_of(&self.calls, memory.claims)) {
            return next
                .map_or_else(TakingBackStep::NotYet, |write| TakingBackStep::Call(BindingRequest::Claim(write)));
        }
        if self.clears(pod, memory) {
            self.cleared += 1;
            // An amount that can't be read counts for nothing, here as in the watch.
            let _ = memory.pods.nominate(&pod.uid, None);
            return TakingBackStep::Call(BindingRequest::Status(Command::ClearNnn { pod: pod.clone() }));
        }
        self.removals.next(now)
    }

    /// Returns true if the nomination of the pod is to be cleared.
    fn clears(&self, pod: &PodKey, memory: &BindingMemory<'_>) -> bool {
        let is_waiting = memory.pods.stage(&pod.uid).is_some_and(PodStage::is_waiting);
        let is_nominated = self.cleared > 0 || memory.pods.nomination(&pod.uid).is_some();
        is_waiting && is_nominated && self.cleared < CLEARING_ATTEMPTS
    }

    /// Takes the answer to a call about a claim.
    pub(super) fn answer_claim(
        &mut self,
        claims: Option<&mut BoundClaims>,
        memory: &mut BindingMemory<'_>,
        answer: ApiResponse,
        now: Timestamp,
    ) {
        let Some(write) = self.calls.next() else {
            return self.removals.answer_reading(memory.claims, answer, now);
        };
        self.removals.record(&write, &answer, now);
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
        self.calls.errors().iter().chain(&self.problems).chain(&self.removals.refusal).cloned().collect()
    }
}

impl LostRemovals {
    /// Records an answer, if it is the one to a removal. A refusal does not tell what an earlier one has done.
    fn record(&mut self, write: &ClaimWrite, answer: &ApiResponse, now: Timestamp) {
        let ClaimWrite::PatchReservation { namespace, name, uid, .. } = write else { return };
        let [namespace, name, uid] = [namespace, name, uid].map(String::clone);
        let claim = ClaimId { namespace, name, uid };
        match answer {
            ApiResponse::Lost(_) | ApiResponse::Unavailable(_) => {
                self.since = Some(now);
                if !self.unread.contains(&claim) {
                    self.unread.push(claim);
                }
            }
            ApiResponse::Object(_) | ApiResponse::Pod(_) | ApiResponse::Done => {
                self.unread.retain(|known| *known != claim);
            }
            ApiResponse::Conflict(_) | ApiResponse::Failed(_) => {}
        }
    }

    fn next(&self, now: Timestamp) -> TakingBackStep {
        let settled = self.since.map(settled_from);
        match (self.unread.first(), settled) {
            (_, Some(settled)) if now < settled => TakingBackStep::Wait(settled),
            (Some(_), _) if now < self.read_from => TakingBackStep::Wait(self.read_from),
            (Some(claim), _) => {
                let [namespace, name] = [&claim.namespace, &claim.name].map(String::clone);
                TakingBackStep::Call(BindingRequest::Claim(ClaimWrite::Get { namespace, name }))
            }
            (None, _) => TakingBackStep::End,
        }
    }

    /// Takes the answer to the reading of a claim. One that does not show the claim is made again, less and less often: nothing else
    /// tells if the pod is in the claim.
    fn answer_reading(&mut self, claims: &mut ClaimTracker, answer: ApiResponse, now: Timestamp) {
        let Some(claim) = self.unread.first() else { return };
        match answer {
            ApiResponse::Object(read) => {
                // One that can't be counted holds nothing, here as in the watch.
                let _ = claims.assume(*read);
                self.unread.remove(0);
            }
            ApiResponse::Done | ApiResponse::Pod(_) => {
                claims.observe_deleted(claim);
                self.unread.remove(0);
            }
            ApiResponse::Lost(_) | ApiResponse::Unavailable(_) => self.read_again(now),
            ApiResponse::Conflict(text) | ApiResponse::Failed(text) => {
                self.refusal = Some(format!("get resourceclaim {claim}: {text}"));
                self.read_again(now);
            }
        }
    }

    fn read_again(&mut self, now: Timestamp) {
        self.in_vain = self.in_vain.saturating_add(1);
        self.read_from = again_at(now, self.in_vain);
    }
}
