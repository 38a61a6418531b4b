//! Devices that nobody holds yet and that are kept for other pods.

use k8s_openapi::api::core::v1::Pod;

use crate::cluster::state::AllocatedState;

/// Devices that are kept for other pods, and count as in use for a pod that asks.
///
/// ```
/// use dra_alloc::AllocatedState;
/// use dra_alloc::pods::KeptDevices;
/// use dra_alloc::preemption::Holds;
/// use k8s_openapi::api::core::v1::Pod;
/// let (kept, state): (&dyn KeptDevices, _) = (&Holds::default(), AllocatedState::default());
/// assert!(kept.beside(&state, &Pod::default(), "node-1").is_none(), "no device is kept for anybody");
/// ```
pub trait KeptDevices {
    /// Returns the devices in use as a pod on a node has to see them; `None` if none are kept from it there, so that it sees
    /// `state`.
    fn beside(&self, state: &AllocatedState, pod: &Pod, node: &str) -> Option<AllocatedState>;
}
