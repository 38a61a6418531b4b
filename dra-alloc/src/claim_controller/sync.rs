//! Work on one key, call by call.

use super::call::{ControllerAnswer, ControllerCall};
use super::clean_sync::CleanSync;
use super::controller::ClaimController;
use super::owner_sync::{ClaimMakingError, OwnerSync};
use super::queue::{QueueKey, QueueKind};
use crate::kubelet::{ClaimKey, PodClaimError};
use crate::pods::{ClaimFull, ConsumerError, OwnerError};

/// Reason why the work on a key has ended. The caller puts the key back into its queue, with a delay that grows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The claim of an entry can't be made. See [`SyncError::event`].
    #[error("{owner}, {entry}: {error}")]
    NotMade {
        /// Kind, namespace and name of the pod or pod group.
        owner: String,
        /// Kind and name of the entry.
        entry: String,
        /// Reason.
        #[source]
        error: ClaimMakingError,
    },
    /// The names of claims could not be recorded.
    #[error("update {owner} ResourceClaimStatuses: {text}")]
    NotRecorded {
        /// Kind, namespace and name of the pod or pod group.
        owner: String,
        /// Text of the server.
        text: String,
    },
    /// The name of a claim of a pod on a node can't be determined, or was recorded only now.
    #[error(transparent)]
    Name(#[from] PodClaimError),
    /// A claim of a pod on a node was not created for it.
    #[error(transparent)]
    Owner(#[from] OwnerError),
    /// The consumer of a claim can't be determined.
    #[error(transparent)]
    Consumer(#[from] ConsumerError),
    /// A claim can't be reserved for one more pod.
    #[error("reserve claim {claim} for pod: {full}")]
    Full {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Reason.
        #[source]
        full: ClaimFull,
    },
    /// A claim could not be reserved.
    #[error("reserve claim {claim} for pod: {text}")]
    NotReserved {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Text of the server.
        text: String,
    },
    /// A claim could not be deleted.
    #[error("delete claim {claim}: {text}")]
    NotDeleted {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Text of the server.
        text: String,
    },
    /// Another call failed.
    #[error("{text}")]
    Call {
        /// Text of the server.
        text: String,
    },
}

impl SyncError {
    /// Reason of the warning event about a claim that can't be made.
    pub const EVENT_REASON: &str = "FailedResourceClaimCreation";

    /// Returns the message of a warning event about the pod or group; `None` if there is none.
    #[must_use]
    pub fn event(&self) -> Option<String> {
        match self {
            Self::NotMade { entry, error, .. } => Some(format!("{entry}: {error}")),
            _ => None,
        }
    }
}

/// Next step of the work on a key.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SyncStep {
    /// Make this call, and return its answer with [`ControllerSync::answer`].
    Call(ControllerCall),
    /// Nothing is left to do.
    Done,
    /// The work has ended with an error.
    Failed(SyncError),
}

/// Work on one key. It is of the state of the controller at its begin.
#[derive(Clone, Debug)]
pub struct ControllerSync {
    work: Work,
}

#[derive(Clone, Debug)]
enum Work {
    Owner(OwnerSync),
    Claim(CleanSync),
    Nothing,
}

impl ClaimController {
    /// Looks at the object of a key. An object that is not known, or a pod or group that is being deleted, gives nothing to
    /// do.
    ///
    /// # Complexity
    /// Linear in the entries of the object, its consumers and the sizes of templates, times the logarithm of the number of
    /// objects. A claim of which n consumers are unknown costs n for each of them.
    #[must_use]
    pub fn sync(&self, key: &QueueKey) -> ControllerSync {
        let object = key.object();
        let work = match key.kind {
            QueueKind::Pod => {
                let pod = self.pods.get(&object).filter(|pod| pod.metadata.deletion_timestamp.is_none());
                pod.map(|pod| Work::Owner(OwnerSync::of_pod(self, key, pod)))
            }
            QueueKind::PodGroup => {
                let group = self.groups.get(&object).filter(|group| group.metadata.deletion_timestamp.is_none());
                let group = group.filter(|_| self.has_groups());
                group.map(|group| Work::Owner(OwnerSync::of_group(self, key, group)))
            }
            QueueKind::Claim => self.claims.get(&object).map(|claim| Work::Claim(CleanSync::new(self, claim))),
        };
        ControllerSync { work: work.unwrap_or(Work::Nothing) }
    }
}

impl ControllerSync {
    /// Returns the next step: the same until a call is answered.
    #[must_use]
    pub fn next_step(&mut self) -> SyncStep {
        match &mut self.work {
            Work::Owner(sync) => sync.next_step(),
            Work::Claim(sync) => sync.next_step(),
            Work::Nothing => SyncStep::Done,
        }
    }

    /// Returns the answer to the last call. Without a call it is ignored.
    pub fn answer(&mut self, answer: ControllerAnswer) {
        match &mut self.work {
            Work::Owner(sync) => sync.answer(answer),
            Work::Claim(sync) => sync.answer(answer),
            Work::Nothing => {}
        }
    }
}
