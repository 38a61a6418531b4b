//! Rules of the scheduler, the kubelet and the controllers, as far as they differ between releases.

use super::behaviours::behaviours;

/// Decides how a release treats node operations that drivers do not need (KEP-5945).
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a row is written without `..`, and only in this crate")]
pub struct SkipRules {
    /// Form of the field in objects that are written.
    pub form: SkipForm,
    /// Answer of the API server to the field while the gate is off.
    pub sent_while_off: SentWhileOff,
    /// Devices with the field while the gate of the scheduler is off.
    pub chosen_while_off: SkipGateOff,
    /// Feature by which a node declares that its kubelet can skip node operations. Other nodes get no device that skips
    /// them.
    pub declared_feature: &'static str,
    /// Source from which a pod's need for that feature is inferred.
    pub inference: Inference,
    /// Operations of a claim whose checkpoint has none, as an older kubelet writes it.
    pub lost_operations: LostOperations,
}

behaviours! {
    /// Form of the field by which a device declares that it needs no node operations.
    SkipForm {
        /// A bool.
        Bool,
        /// A list of operations.
        List,
    }
    /// Answer to a field whose gate is off.
    SentWhileOff {
        /// A new value is an error; a stored one is preserved.
        Refused,
        /// The value is dropped, unless the stored object uses the feature.
        Dropped,
    }
    /// Treatment of devices that skip node operations while the gate is off.
    SkipGateOff {
        /// The search may choose the device; the allocation of its claim then fails on the node.
        FailClaim,
        /// The search never chooses the device.
        PassOver,
    }
    /// Source from which a pod's need for a node that can skip node operations is inferred.
    Inference {
        /// Allocations of the pod's claims.
        FromClaims,
        /// No source: allocations are not known early enough.
        Never,
    }
    /// Operations of a claim whose checkpoint has none.
    LostOperations {
        /// None is skipped: the driver is called.
        Called,
        /// They are read from the allocation again, which is immutable.
        ReadAgain,
    }
    /// Names of the metrics of the kubelet and of the controller for pool status.
    MetricNames {
        /// Those in the texts of the KEPs.
        Kep,
        /// Those of the releases.
        Shipped,
    }
    /// Form and counts of `ResourcePoolStatusRequest` (KEP-5677).
    PoolStatusForm {
        /// Version `v1alpha1`, in the text of the KEP: a pool's own devices are counted, and the numbers add up.
        Kep,
        /// Version `v1alpha3`: names in claims count as allocated, tainted devices as unavailable; incomplete pools are
        /// waited for.
        V1alpha3,
    }
    /// Nomination of a pod after a scheduling cycle that finds no node and does not preempt: where preemption is not
    /// allowed, where extenders leave no candidate, and where preemption fails (KEP-5278).
    NominationAfterCycle {
        /// The nomination stays.
        Kept,
        /// The nomination is cleared.
        Cleared,
    }
    /// Nomination of a pod after an error, or a failure after a node was found.
    NominationAfterFailure {
        /// The nomination stays while the gate `NominatedNodeNameForExpectation` is on.
        KeptByGate,
        /// The nomination is cleared.
        Cleared,
    }
}
