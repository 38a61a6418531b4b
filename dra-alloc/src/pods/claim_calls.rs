//! Calls to the API server that take something back, each decided by the answer to the one before.
//!
//! Source: `deleteClaim` of the plugin's `extendeddynamicresources.go`.

use std::collections::VecDeque;

use dra_device::claims::ClaimKey;
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::lookup::uid_of;
use super::tracker::ClaimTracker;
use super::write::{ATTEMPTS, ApiResponse, ClaimWrite};
use crate::cluster::state::ClaimId;

/// Calls that [`PodCycle::unreserve`](super::PodCycle::unreserve) and [`PostFilter`](super::PostFilter) decide on: writes of
/// single claims, and the removal of the claim for a pod's extended resources, which takes several calls.
///
/// [`ClaimCalls::next`] returns the call to make, and does so again until [`ClaimCalls::answer`] was called. A failed call
/// ends what is done with its claim, and the next claim follows.
///
/// ```
/// use dra_attrs::Component;
/// use dra_attrs::Profile;
/// use dra_alloc::GateSet;
/// use dra_alloc::pods::{ApiResponse, ClaimCalls, ClaimTracker};
/// # fn send(_: dra_alloc::pods::ClaimWrite) -> ApiResponse { ApiResponse::Done }
/// # let (mut calls, mut tracker) = (ClaimCalls::default(), ClaimTracker::new(Component::of(Profile::V1_37)));
/// while let Some(write) = calls.next() {
///     calls.answer(&mut tracker, send(write));
/// }
/// assert!(calls.errors().is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "calls that nobody makes leave claims reserved"]
pub struct ClaimCalls {
    open: VecDeque<Call>,
    /// Number of calls for the current claim that were made in vain.
    attempts: u32,
    errors: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Call {
    /// One write, and nothing after it.
    Write(ClaimWrite),
    /// The finalizer is taken off, so that a deletion removes the claim.
    Unprotect(Box<ResourceClaim>),
    /// The claim is read anew after a conflict.
    Refresh(ClaimKey),
    /// The claim is read to know if its allocation was stored.
    Settle(ClaimId),
    /// The finalizer is taken off a claim that is not allocated: a write of its allocation that is still on its way to the
    /// server conflicts with the new version, and so is never stored.
    Fence(Box<ResourceClaim>),
    /// The claim is deleted. Nothing keeps it if it has no finalizers.
    Delete(Box<ResourceClaim>),
}

impl ClaimCalls {
    /// Returns the next call; `None` if all are answered.
    #[must_use]
    pub fn next(&self) -> Option<ClaimWrite> {
        Some(match self.open.front()? {
            Call::Write(write) => write.clone(),
            Call::Unprotect(claim) | Call::Fence(claim) => ClaimWrite::Update { claim: claim.clone() },
            Call::Refresh(ClaimKey { namespace, name }) | Call::Settle(ClaimId { namespace, name, .. }) => {
                ClaimWrite::Get { namespace: namespace.clone(), name: name.clone() }
            }
            Call::Delete(claim) => {
                let ClaimKey { namespace, name } = ClaimKey::from_metadata(&claim.metadata);
                ClaimWrite::Delete { namespace, name, uid: uid_of(claim).to_owned() }
            }
        })
    }

    /// Takes the answer to the call that [`ClaimCalls::next`] has returned, and tells `tracker` what it shows: until the watch
    /// shows the write, memory would have the claim as it was before. A call of which nobody knows if it was carried out is made
    /// again, or the claim is read first, up to four times. Without an open call it does nothing.
    pub fn answer(&mut self, tracker: &mut ClaimTracker, answer: ApiResponse) {
        let Some(call) = self.open.pop_front() else { return };
        match answer {
            ApiResponse::Object(claim) => {
                self.remember(tracker, &claim);
                self.go_on(call, Some(claim), tracker);
            }
            ApiResponse::Done | ApiResponse::Pod(_) => self.go_on(call, None, tracker),
            ApiResponse::Conflict(text) => match call {
                call @ (Call::Unprotect(_) | Call::Fence(_)) => self.again(call, &text),
                call => self.end(&call, &text),
            },
            ApiResponse::Lost(text) | ApiResponse::Unavailable(text) => self.again(call, &text),
            ApiResponse::Failed(text) => self.end(&call, &text),
        }
    }

    /// Goes on after a call that was carried out.
    fn go_on(&mut self, call: Call, claim: Option<Box<ResourceClaim>>, tracker: &mut ClaimTracker) {
        match (call, claim) {
            (Call::Unprotect(_), Some(claim)) | (Call::Unprotect(claim), None) => {
                self.open.push_front(Call::Delete(claim));
            }
            (Call::Refresh(_), Some(claim)) => self.open.push_front(Call::Unprotect(without_finalizer(*claim))),
            (Call::Delete(claim), _) => {
                self.attempts = 0;
                if claim.metadata.finalizers.iter().flatten().next().is_none() {
                    tracker.observe_deleted(&ClaimId::from(&*claim));
                }
            }
            (Call::Settle(id), None) => {
                self.attempts = 0;
                tracker.observe_deleted(&id);
            }
            (Call::Settle(id), Some(claim)) => {
                // A claim with another UID, or in a later version, has settled it.
                if tracker.allocation_in_doubt(&id.uid).is_some() {
                    self.open.push_front(Call::Fence(without_finalizer(*claim)));
                } else {
                    self.attempts = 0;
                }
            }
            (Call::Fence(claim), None) => self.again(Call::Fence(claim), "the answer has no claim"),
            // The answer shows a later version.
            (Call::Fence(_), Some(_)) | (Call::Write(_), _) | (Call::Refresh(_), None) => self.attempts = 0,
        }
    }

    /// Makes a call again after a conflict or without an answer, up to a number of times; a claim is read before it is
    /// changed again.
    fn again(&mut self, call: Call, text: &str) {
        if self.attempts + 1 >= ATTEMPTS {
            return self.end(&call, text);
        }
        self.attempts += 1;
        self.open.push_front(match call {
            Call::Unprotect(claim) => Call::Refresh(ClaimKey::from_metadata(&claim.metadata)),
            Call::Fence(claim) => Call::Settle(ClaimId::from(&*claim)),
            call => call,
        });
    }

    /// Ends what is done with a claim.
    fn end(&mut self, call: &Call, text: &str) {
        self.attempts = 0;
        self.errors.push(call.error(text));
    }

    /// Returns the errors of calls that failed, as texts.
    #[must_use]
    pub fn errors(&self) -> &[String] {
        &self.errors
    }

    /// Returns the number of claims with open calls.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns true if no call is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn write(write: ClaimWrite) -> Self {
        Self { open: VecDeque::from([Call::Write(write)]), ..Self::default() }
    }

    pub(crate) fn push(&mut self, write: ClaimWrite) {
        self.open.push_back(Call::Write(write));
    }

    /// Adds calls after those that are open.
    pub(super) fn append(&mut self, mut calls: Self) {
        self.open.append(&mut calls.open);
    }

    /// Adds the removal of a claim: its finalizer is taken off, with up to four repetitions after conflicts, and it is deleted.
    pub(super) fn push_removal(&mut self, claim: ResourceClaim) {
        self.open.push_back(Call::Unprotect(without_finalizer(claim)));
    }

    /// Adds the call that reads a claim, to know if its allocation was stored.
    pub(super) fn push_settling(&mut self, claim: &ResourceClaim) {
        self.open.push_back(Call::Settle(ClaimId::from(claim)));
    }

    fn remember(&mut self, tracker: &mut ClaimTracker, claim: &ResourceClaim) {
        if let Err(error) = tracker.assume(claim.clone()) {
            self.errors.push(error.to_string());
        }
    }
}

impl ClaimTracker {
    /// Returns calls that read the claims of which nobody knows if their allocation was stored, and that no cycle has any more: the
    /// answers end the doubt. Where the claim has not changed since, a second call takes off its finalizer, so that the write, should
    /// it come after all, conflicts with a later version. A cycle that was dropped during its write leaves one, and so does a server that did not answer
    /// at all; [`PodCycle::unreserve`](super::PodCycle::unreserve) has the call among its own.
    pub fn calls_in_doubt(&self) -> ClaimCalls {
        let mut calls = ClaimCalls::default();
        self.in_doubt().for_each(|claim| calls.push_settling(claim));
        calls
    }
}

impl Call {
    /// Returns kube-scheduler's words for an error of the call.
    fn error(&self, text: &str) -> String {
        match self {
            Self::Write(_) | Self::Delete(_) => text.to_owned(),
            Self::Unprotect(claim) | Self::Fence(claim) => {
                format!("update resourceclaim {}: {text}", ClaimKey::from_metadata(&claim.metadata))
            }
            Self::Refresh(claim) => format!("get resourceclaim {claim}: {text}"),
            Self::Settle(claim) => format!("get resourceclaim {claim}: {text}"),
        }
    }
}

fn without_finalizer(mut claim: ResourceClaim) -> Box<ResourceClaim> {
    if let Some(finalizers) = &mut claim.metadata.finalizers {
        finalizers.retain(|finalizer| finalizer != ClaimWrite::FINALIZER);
    }
    Box::new(claim)
}
