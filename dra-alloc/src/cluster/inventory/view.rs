//! Node views: the resource pools that a node sees, built from its slices.
//!
//! A node sees the same pools until one of its slices changes, so that the index keeps its view with the facts about
//! devices. A view is rebuilt for each call
//!
//! - if shared slices (visible to several nodes) are involved, since the node's labels decide about those;
//! - if a pool is incomplete by the slices that the node sees, since slices for other nodes decide about it.

use std::sync::OnceLock;

use dra_attrs::{GateSet, NodeSelectorError};
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};

use super::pool::Pool;
use crate::config::gates::DraGate;

/// Resource pools that a node sees, sorted by driver and pool name.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(super) gates: GateSet<DraGate>,
    pub(crate) pools: Box<[Pool]>,
    /// Number of devices in all pools.
    pub(crate) devices: usize,
}

/// Cached view of a node, set on first use; `None` inside if the view can't be cached.
pub(super) type CachedView = OnceLock<Option<Box<View>>>;

/// Error of an invalid node selector of a slice or of one of its devices.
#[derive(Clone, Debug)]
pub(crate) struct SliceError<'i> {
    pub(crate) slice: &'i ResourceSlice,
    pub(crate) device: Option<&'i Device>,
    pub(crate) error: NodeSelectorError,
}
