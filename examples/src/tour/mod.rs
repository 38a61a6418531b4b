//! The story of a pod with devices, told step by step: what goes in, what is decided, and why.
//!
//! Two machines of real shape, three drivers, a pod that wants a GPU, a network card and CPUs near to each other. Each step
//! is the call of one crate on the objects that the step before has left.

mod allocate;
mod availability;
mod cluster;
mod hold_back;
pub mod machines;
mod nominate;
mod page;
mod prepare;
mod publish;
mod slow_volume;
mod validate;

use dra_alloc::error::AllocateError;
use dra_alloc::kubelet::{PrepareError, UnprepareError};
use dra_alloc::state::StateError;
use dra_attrs::field::FieldErrors;
use dra_attrs::numa::NumaError;
use dra_attrs::pci::PciAddressError;
use nnn::pod::PodError;
use nnn::state::IllegalTransition;

use crate::machine::MachineError;
use cluster::Cluster;
use page::Page;
pub use slow_volume::StoryError;

/// Why the story ends early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TourError {
    /// A captured machine can't be read.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The cluster can't be read.
    #[error("{0}")]
    Cluster(String),
    /// A device of a captured machine has no proper address.
    #[error(transparent)]
    Address(#[from] PciAddressError),
    /// A device of a captured machine has no NUMA node.
    #[error(transparent)]
    Numa(#[from] NumaError),
    /// A slice is not accepted.
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    /// The claims can't be read.
    #[error(transparent)]
    Allocate(#[from] AllocateError),
    /// What is allocated does not fit together.
    #[error(transparent)]
    State(#[from] StateError),
    /// The pod can't be read.
    #[error(transparent)]
    Pod(#[from] PodError),
    /// The scheduler does what it must not do.
    #[error(transparent)]
    Transition(#[from] IllegalTransition),
    /// The story of the slow volume is broken.
    #[error(transparent)]
    SlowVolume(#[from] StoryError),
    /// The pod can't start.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The pod can't go.
    #[error(transparent)]
    Unprepare(#[from] UnprepareError),
}

/// The whole story, with colours.
///
/// # Errors
/// Data of the examples that does not fit together.
pub fn story() -> Result<String, TourError> {
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
