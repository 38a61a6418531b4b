//! Story of a pod with devices, step by step: inputs, decisions and reasons.
//!
//! Two real machines, three drivers, and a pod that needs a GPU, a network card and CPUs on one NUMA node. Each step
//! calls one crate on the objects that the step before has left.

use super::cluster::Cluster;
use super::error::TourError;
use super::page::Page;
use super::{allocate, availability, hold_back, nominate, prepare, publish, validate};

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
