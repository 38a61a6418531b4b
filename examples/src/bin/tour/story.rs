//! Story of a pod with devices, step by step: inputs, decisions and reasons.
//!
//! Two real machines, three drivers, and a pod that needs a GPU, a network card and CPUs on one NUMA node. Each step
//! calls one crate on the objects that the step before has left.

mod allocate;
mod availability;
mod cluster;
mod hold_back;
pub(crate) mod machines;
mod nominate;
mod page;
mod prepare;
mod publish;
mod slow_volume;
mod validate;

use dra_alloc::kubelet::{PrepareError, UnprepareError};
use dra_alloc::{AllocateError, StateError};
use dra_attrs::numa::NumaError;
use dra_attrs::{FieldErrors, PciAddressError};
use nnn::{IllegalTransition, PodError};

use examples::machine::MachineError;
use cluster::Cluster;
use page::Page;
pub(crate) use slow_volume::StoryError;

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
    Transition(#[from] IllegalTransition),
    /// The story of the slow volume failed.
    #[error(transparent)]
    SlowVolume(#[from] StoryError),
    /// The pod can't start.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The pod can't be removed.
    #[error(transparent)]
    Unprepare(#[from] UnprepareError),
}

/// Returns the whole story, with colours.
///
/// # Errors
/// Inconsistent data of the examples.
pub(crate) fn story() -> Result<String, TourError> {
    let mut page = Page::default();
    let mut cluster = Cluster::load()?;
    publish::publish(&mut cluster, &mut page)?;
    validate::validate(&cluster, &mut page)?;
    allocate::allocate(&mut cluster, &mut page)?;
    nominate::nominate(&cluster, &mut page)?;
    prepare::prepare(&cluster, &mut page)?;
    availability::availability(&cluster, &mut page);
    hold_back::hold_back(&mut page)?;
    Ok(page.into_text())
}
