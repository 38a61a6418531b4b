//! Reasons why a pool can't be split into slices.

/// Reason why a pool can't be split into slices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Before Kubernetes 1.35, a counter set and all devices that consume from it are in one slice, and a slice has at
    /// most 128 devices, 32 counters and 1024 consumed counters.
    #[error(
        "{device_count} devices share the counter sets {}, and are too many for one slice: before Kubernetes 1.35, a \
         device is in the slice of its counter sets",
        counter_sets.join(", ")
    )]
    CannotSplit {
        /// Names of the counter sets.
        counter_sets: Vec<String>,
        /// Number of devices that consume from the counter sets.
        device_count: usize,
    },
    /// Before Kubernetes 1.35, a device must be in the slice of its counter sets, but the pool has no such set.
    #[error("device {device} consumes from counter set {counter_set}, which the pool does not have")]
    CounterSetMissing {
        /// Name of the device.
        device: String,
        /// Name of the counter set.
        counter_set: String,
    },
}
