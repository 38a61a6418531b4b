//! Error of a pool's partition summary or shareable summary.

use dra_attrs::Quoted;

/// Maximum number of partition types in a partition summary.
pub(crate) const MAX_PARTITION_TYPES: usize = 32;

/// Maximum number of capacity names in a shareable summary.
pub(crate) const MAX_SHAREABLE_CAPACITIES: usize = 32;

/// The reason why `partitionSummary` or `shareableSummary` of a complete pool can't be computed. The device counts stay
/// valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// A slice or the request names a partition type attribute, but the pool has no counters. If the request names the
    /// attribute, every pool without counters has this error.
    #[error(
        "PartitionTypeMissing: pool {driver}/{pool} declares partitionTypeAttribute but publishes no sharedCounters"
    )]
    NoSharedCounters {
        /// Name of the driver.
        driver: String,
        /// Name of the pool.
        pool: String,
    },
    /// A device that consumes counters lacks the attribute that holds its partition type.
    #[error(
        "PartitionTypeMissing: device {} in pool {driver}/{pool} does not carry partition type attribute {}",
        Quoted(device),
        Quoted(attribute)
    )]
    NoPartitionType {
        /// Name of the driver.
        driver: String,
        /// Name of the pool.
        pool: String,
        /// Name of the device.
        device: String,
        /// Name of the partition type attribute.
        attribute: String,
    },
    /// Devices of one partition type consume different amounts, or from different counter sets.
    #[error(
        "PartitionCostMismatch: devices of partition type {} in pool {driver}/{pool} consume different counters",
        Quoted(partition_type)
    )]
    CostMismatch {
        /// Name of the driver.
        driver: String,
        /// Name of the pool.
        pool: String,
        /// The partition type.
        partition_type: String,
    },
    /// The pool has more partition types than `partitionSummary` may list.
    #[error(
        "PartitionSummaryOverCap: pool {driver}/{pool} has {count} partition types, exceeding the maximum of {}",
        MAX_PARTITION_TYPES
    )]
    TooManyPartitionTypes {
        /// Name of the driver.
        driver: String,
        /// Name of the pool.
        pool: String,
        /// Number of partition types.
        count: usize,
    },
    /// The pool has more capacity names than `shareableSummary` may list.
    #[error(
        "ShareableSummaryOverCap: pool {driver}/{pool} has {count} shareable capacity keys, exceeding the maximum of {}",
        MAX_SHAREABLE_CAPACITIES
    )]
    TooManyCapacities {
        /// Name of the driver.
        driver: String,
        /// Name of the pool.
        pool: String,
        /// Number of capacity names.
        count: usize,
    },
}
