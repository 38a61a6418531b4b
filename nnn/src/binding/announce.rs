//! Commands that make the reservation of an assumed pod visible.

use super::assumed::Assumed;
use super::claims::claim_writes;
use crate::commands::Command;

impl Assumed {
    /// Returns the commands that make a pod's reservation visible: the PATCH of its nomination, then the claim allocations
    /// and reservations that are not written yet.
    ///
    /// A pod that waits on permit gets [`Command::Deferred`] instead of the latter; the tracker returns them on
    /// [`TrackerInput::PermitGranted`](crate::TrackerInput::PermitGranted).
    ///
    /// ```
    /// use nnn::{Assumed, BindingClaim, Command, PodKey};
    /// let pod = PodKey::new("default", "train", "1");
    /// let assumed = Assumed::new(&pod, "node-1").with_claims(vec![BindingClaim::Chosen("claim".to_owned())]);
    /// assert!(matches!(assumed.announce()[..], [Command::PatchNnn { .. }, Command::PersistAllocation { .. }]));
    /// assert!(matches!(assumed.with_permit_wait().announce()[..], [Command::PatchNnn { .. }, Command::Deferred { .. }]));
    /// ```
    #[must_use]
    pub fn announce(&self) -> Vec<Command> {
        let patch = Command::PatchNnn { pod: self.pod.clone(), node: self.node.clone() };
        std::iter::once(patch).chain(persist(self)).collect()
    }
}

/// Returns the commands that write the pending claim allocations and reservations, or [`Command::Deferred`] if `Permit`
/// plugins wait.
pub(crate) fn persist(assumed: &Assumed) -> Vec<Command> {
    let writes = claim_writes(&assumed.pod, &assumed.claims);
    if assumed.waits_on_permit && !writes.is_empty() {
        return vec![Command::Deferred { pod: assumed.pod.clone() }];
    }
    writes
}
