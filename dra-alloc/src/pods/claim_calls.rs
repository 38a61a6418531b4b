//! Calls to the API server that take something back, each decided by the answer to the one before.
//!
//! Source: `deleteClaim` of the plugin's `extendeddynamicresources.go`.

use std::collections::VecDeque;

use k8s_openapi::api::resource::v1::ResourceClaim;

use super::lookup::uid_of;
use super::tracker::ClaimTracker;
use super::write::{ATTEMPTS, ApiAnswer, ClaimWrite, FINALIZER};
use crate::kubelet::ClaimKey;

/// Calls that [`PodCycle::unreserve`](super::PodCycle::unreserve) and [`PostFilter`](super::PostFilter) decide on: writes of
/// single claims, and the removal of the claim for a pod's extended resources, which takes several calls.
///
/// [`ClaimCalls::next`] returns the call to make, and does so again until [`ClaimCalls::answer`] was called. A failed call
/// ends what is done with its claim, and the next claim follows.
///
/// ```
/// use dra_alloc::GateSet;
/// use dra_alloc::pods::{ApiAnswer, ClaimCalls, ClaimTracker};
/// # fn send(_: dra_alloc::pods::ClaimWrite) -> ApiAnswer { ApiAnswer::Done }
/// # let (mut calls, mut tracker) = (ClaimCalls::default(), ClaimTracker::new(GateSet::default()));
/// while let Some(write) = calls.next() {
///     calls.answer(&mut tracker, send(write));
/// }
/// assert!(calls.errors().is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClaimCalls {
    open: VecDeque<Call>,
    /// Number of conflicts of the current claim.
    conflicts: u32,
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
    /// The claim is deleted. Nothing keeps it if it has no finalizers.
    Delete(Box<ResourceClaim>),
}

impl ClaimCalls {
    /// Returns the next call; `None` if all are answered.
    #[must_use]
    pub fn next(&self) -> Option<ClaimWrite> {
        Some(match self.open.front()? {
            Call::Write(write) => write.clone(),
            Call::Unprotect(claim) => ClaimWrite::Update { claim: claim.clone() },
            Call::Refresh(ClaimKey { namespace, name }) => {
                ClaimWrite::Get { namespace: namespace.clone(), name: name.clone() }
            }
            Call::Delete(claim) => {
                let ClaimKey { namespace, name } = ClaimKey::from_metadata(&claim.metadata);
                ClaimWrite::Delete { namespace, name, uid: uid_of(claim).to_owned() }
            }
        })
    }

    /// Takes the answer to the call that [`ClaimCalls::next`] has returned, and tells `tracker` what it shows: until the watch
    /// shows the write, memory would have the claim as it was before. Without an open call it does nothing.
    pub fn answer(&mut self, tracker: &mut ClaimTracker, answer: ApiAnswer) {
        let Some(call) = self.open.pop_front() else { return };
        let (claim, error) = match answer {
            ApiAnswer::Object(claim) => (Some(claim), None),
            ApiAnswer::Done => (None, None),
            ApiAnswer::Conflict(_) if matches!(call, Call::Unprotect(_)) && self.conflicts + 1 < ATTEMPTS => {
                let Call::Unprotect(claim) = call else { return };
                self.conflicts += 1;
                return self.open.push_front(Call::Refresh(ClaimKey::from_metadata(&claim.metadata)));
            }
            ApiAnswer::Conflict(text) | ApiAnswer::Unavailable(text) | ApiAnswer::Failed(text) => (None, Some(text)),
        };
        if let Some(text) = error {
            self.conflicts = 0;
            return self.errors.push(call.error(&text));
        }
        match (call, claim) {
            (Call::Write(_), Some(claim)) => self.remember(tracker, &claim),
            (Call::Unprotect(_), Some(claim)) => {
                self.remember(tracker, &claim);
                self.open.push_front(Call::Delete(claim));
            }
            (Call::Unprotect(claim), None) => self.open.push_front(Call::Delete(claim)),
            (Call::Refresh(_), Some(claim)) => self.open.push_front(unprotect(*claim)),
            (Call::Delete(claim), _) => {
                self.conflicts = 0;
                if claim.metadata.finalizers.iter().flatten().next().is_none() {
                    let ClaimKey { namespace, name } = ClaimKey::from_metadata(&claim.metadata);
                    tracker.observe_deleted(&namespace, &name);
                }
            }
            (Call::Write(_) | Call::Refresh(_), None) => {}
        }
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

    pub(super) fn push(&mut self, write: ClaimWrite) {
        self.open.push_back(Call::Write(write));
    }

    /// Adds the removal of a claim: its finalizer is taken off, with up to four repetitions after conflicts, and it is deleted.
    pub(super) fn push_removal(&mut self, claim: ResourceClaim) {
        self.open.push_back(unprotect(claim));
    }

    fn remember(&mut self, tracker: &mut ClaimTracker, claim: &ResourceClaim) {
        if let Err(error) = tracker.assume(claim.clone()) {
            self.errors.push(error.to_string());
        }
    }
}

impl Call {
    /// Returns kube-scheduler's words for an error of the call.
    fn error(&self, text: &str) -> String {
        match self {
            Self::Write(_) | Self::Delete(_) => text.to_owned(),
            Self::Unprotect(claim) => {
                format!("update resourceclaim {}: {text}", ClaimKey::from_metadata(&claim.metadata))
            }
            Self::Refresh(claim) => format!("get resourceclaim {claim}: {text}"),
        }
    }
}

fn unprotect(mut claim: ResourceClaim) -> Call {
    if let Some(finalizers) = &mut claim.metadata.finalizers {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
    }
    Call::Unprotect(Box::new(claim))
}
