//! Error of the story.

use dra_alloc::kubelet::{PrepareError, UnprepareError};
use dra_alloc::{AllocateError, StateError};
use dra_attrs::numa::NumaError;
use dra_attrs::{FieldErrors, PciAddressError};
use examples::machine::MachineError;
use examples::output::OutputError;
use nnn::{PodError, TransitionError};

use super::slow_volume::StoryError;

/// Reason that the story ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TourError {
    /// A captured machine can't be read.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The cluster can't be read.
    #[error("{0}")]
    Cluster(String),
    /// A device of a captured machine has an invalid address.
    #[error(transparent)]
    Address(#[from] PciAddressError),
    /// A device of a captured machine has no NUMA node.
    #[error(transparent)]
    Numa(#[from] NumaError),
    /// A slice is invalid.
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    /// The claims can't be read.
    #[error(transparent)]
    Allocate(#[from] AllocateError),
    /// Existing allocations contradict each other.
    #[error(transparent)]
    State(#[from] StateError),
    /// The pod can't be read.
    #[error(transparent)]
    Pod(#[from] PodError),
    /// The scheduler's state machine reports an illegal transition.
    #[error(transparent)]
    Transition(#[from] TransitionError),
    /// The story of the slow volume failed.
    #[error(transparent)]
    SlowVolume(#[from] StoryError),
    /// The pod can't start.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The pod can't be removed.
    #[error(transparent)]
    Unprepare(#[from] UnprepareError),
    /// The tour can't be printed.
    #[error(transparent)]
    Output(#[from] OutputError),
}
