//! Errors of preemption, and other ends of its work.

use dra_device::claims::{ClaimKey, PodClaimError};

use crate::cluster::state::StateError;
use crate::search::allocate_error::AllocateError;
use crate::search::stopped::Limit;

/// Error in the input of a preemption.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PreemptionError {
    /// An entry of the pod names no claim, or one that is not made yet.
    #[error(transparent)]
    Claim(#[from] PodClaimError),
    /// A claim of the pod is not there.
    #[error("claim {claim} of the pod is not there")]
    ClaimNotFound {
        /// The claim.
        claim: ClaimKey,
    },
    /// A gang has fewer members than have to fit, or none.
    #[error("quorum: {quorum} of {members} members have to fit")]
    TooFewMembers {
        /// Number of members.
        members: usize,
        /// Number of members that have to fit.
        quorum: usize,
    },
    /// A pod is a member of a gang twice.
    #[error("members: pod {namespace}/{name} is there twice")]
    MemberTwice {
        /// Namespace of the pod.
        namespace: String,
        /// Name of the pod.
        name: String,
    },
    /// The claims can't be allocated on any node that was tried, since something in them or in a device is invalid.
    #[error(transparent)]
    Allocate(Box<AllocateError>),
    /// The allocation of a claim can't be read.
    #[error(transparent)]
    State(#[from] StateError),
}

impl From<AllocateError> for PreemptionError {
    fn from(error: AllocateError) -> Self {
        Self::Allocate(Box::new(error))
    }
}

/// End of work on a node before it has an answer.
#[derive(Debug)]
pub(super) enum Halt {
    Failed(PreemptionError),
    Stopped(Limit),
    /// No places were found, and others may be there.
    Open,
}

impl<E: Into<PreemptionError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Nodes that gave no answer.
#[derive(Debug, Default)]
pub(super) struct Unanswered {
    /// First error of a node.
    error: Option<PreemptionError>,
    /// True if the work on a node was stopped.
    pub(super) is_stopped: bool,
    /// True if no places were found on nodes, and others may be there.
    pub(super) is_open: bool,
}

impl Unanswered {
    /// Notes the end of work on one node, so that the others are asked. Fails if the work of the call is used up, or the
    /// caller stops it.
    pub(super) fn add(&mut self, halt: Halt) -> Result<(), Limit> {
        match halt {
            Halt::Failed(error) => {
                self.error.get_or_insert(error);
                Ok(())
            }
            Halt::Stopped(Limit::Node) => {
                self.is_stopped = true;
                Ok(())
            }
            Halt::Open => {
                self.is_open = true;
                Ok(())
            }
            Halt::Stopped(limit) => Err(limit),
        }
    }

    /// Returns the first error of a node.
    pub(super) fn into_error(self) -> Option<PreemptionError> {
        self.error
    }
}
