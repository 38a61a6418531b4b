//! Rules of the claim controller, as far as they differ between releases.

use super::behaviours::behaviours;

/// Decides which events give the claim controller something to do.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a row is written without `..`, and only in this crate")]
pub struct ControllerRules {
    /// Entry of a pod or group that needs no claim.
    pub unneeded_entry: UnneededEntry,
    /// Claim for the extended resources of a pod that has ended.
    pub special_claim: SpecialClaim,
    /// Template that comes after its pods.
    pub late_template: LateTemplate,
}

behaviours! {
    /// Entry of a pod or group that needs no claim.
    UnneededEntry {
        /// Later entries are not looked at: a defect that 1.36 mended.
        EndsTheLook,
        /// The next entry is looked at.
        PassedOver,
    }
    /// Claim for the extended resources of a pod that has ended.
    SpecialClaim {
        /// It stays until the pod is deleted: a defect that 1.35 mended.
        StaysWithPod,
        /// It is cleaned up as the pod's other claims are.
        CleanedUp,
    }
    /// Template that comes after its pods.
    LateTemplate {
        /// The pods that wait for it are tried again after a time.
        WaitsForRetry,
        /// The pods that wait for it are tried at once.
        WakesPods,
    }
}
