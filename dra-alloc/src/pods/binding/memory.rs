//! The memories that all bindings of a scheduler share.

use nnn::memory::PodMemory;

use crate::pods::tracker::ClaimTracker;

/// Memories of one scheduler, which all its bindings read and write: pods and claims.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a binding writes pods and claims")]
pub struct BindingMemory<'m> {
    /// Pods of the cluster.
    pub pods: &'m mut PodMemory,
    /// Claims of the cluster, and the devices in use.
    pub claims: &'m mut ClaimTracker,
}
