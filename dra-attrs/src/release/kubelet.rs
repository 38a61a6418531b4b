//! Rules of the kubelet, as far as they differ between releases.

use super::behaviours::behaviours;

/// Decides what the kubelet prepares, gives to containers and remembers.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a row is written without `..`, and only in this crate")]
pub struct KubeletRules {
    /// Claims of a pod of which one is prepared already.
    pub prepared_claim: PreparedClaim,
    /// Requests that serve the extended resources of a container.
    pub extended_mappings: ExtendedMappings,
    /// Ids of shares in the checkpoint.
    pub checkpoint_shares: CheckpointShares,
}

behaviours! {
    /// Claims of a pod of which one is prepared already.
    PreparedClaim {
        /// Nothing else is prepared for the pod: a defect that 1.35 mended.
        EndsPreparation,
        /// The others are prepared.
        PassedOver,
    }
    /// Requests that serve the extended resources of a container.
    ExtendedMappings {
        /// Only the first is looked at: a defect that 1.35 mended.
        First,
        /// All are.
        All,
    }
    /// Ids of shares in the checkpoint.
    CheckpointShares {
        /// A device has none.
        Absent,
        /// Each device has one, or `null`.
        Written,
    }
}
