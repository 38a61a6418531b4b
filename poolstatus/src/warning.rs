//! Warnings about a pool's objects, for which a status may have no field.
//!
//! A warning fails nothing, and names nobody who uses a device.

use std::fmt;

use dra_device::pool::PoolProblem;

/// A problem of one pool's slices, devices, claims or taints.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolWarning {
    /// Several slices list a device of the same name. The KEP's status has it as a validation error; Kubernetes 1.37
    /// does not check it.
    DuplicateDevice {
        /// Name of the device.
        device: String,
    },
    /// One slice lists a device name several times. The API server refuses such a slice.
    DuplicateInSlice {
        /// Name of the device.
        device: String,
    },
    /// The pool has fewer slices than `resourceSliceCount`, since the driver has not published all of them yet. The
    /// KEP's status has it as a validation error.
    MissingSlices {
        /// Number of slices that the pool has in its latest generation.
        observed: usize,
        /// `resourceSliceCount` of the first slice.
        expected_slice_count: i64,
        /// Latest generation of the pool.
        generation: i64,
    },
    /// The pool has more slices than `resourceSliceCount`. Kubernetes 1.37 reports the pool as complete; kube-scheduler
    /// allocates nothing from it.
    SurplusSlices {
        /// Number of slices that the pool has in its latest generation.
        observed: usize,
        /// `resourceSliceCount` of the first slice.
        expected_slice_count: i64,
    },
    /// Slices of the pool have different `resourceSliceCount`s. The KEP's status has it as a validation error.
    DisagreeingCounts {
        /// The distinct values of `resourceSliceCount`, sorted.
        expected_slice_counts: Vec<i64>,
    },
    /// Slices of the pool name different nodes, or only some name a node. The KEP's status has it as a validation
    /// error.
    DisagreeingNodes,
    /// Claims name devices that the pool does not have. Kubernetes 1.37 counts them as allocated.
    UnknownDevices {
        /// Number of unknown device names in claims.
        count: usize,
    },
    /// Devices are both allocated and tainted. Kubernetes 1.37 subtracts them twice from the available devices.
    AllocatedAndTainted {
        /// Number of devices that are both allocated and tainted.
        count: usize,
    },
    /// Counter sets contradict each other or the devices that consume them. kube-scheduler allocates nothing from the
    /// pool.
    Counters(PoolProblem),
    /// The generation of the pool is negative, or 0, which the API server of Kubernetes 1.37 reads as missing: no
    /// status with this pool can be written.
    Generation {
        /// The invalid generation.
        generation: i64,
    },
    /// Partitions of one type consume the same amounts from different counter sets, one for each card. Kubernetes 1.37
    /// reports `PartitionCostMismatch` instead of a summary.
    CounterSetPerCard {
        /// The partition type.
        partition_type: String,
    },
    /// Devices share counters, so that fewer may be allocatable together than the status counts as available, and no
    /// partition summary gives the possible numbers.
    PartitionsAsListed,
    /// Devices that several claims may share count as allocated as soon as one claim holds a part of them.
    ShareableInUse {
        /// Number of shareable devices that claims hold.
        count: usize,
    },
    /// Values in slices are not valid quantities, and count as zero.
    UnreadableQuantities {
        /// Number of invalid values.
        count: usize,
    },
    /// Consumed capacities in claims are not valid quantities, and count as zero.
    UnreadableConsumption {
        /// Number of invalid consumed capacities.
        count: usize,
    },
}

impl PoolWarning {
    /// Returns true if the KEP's status has the warning as a validation error.
    pub(crate) const fn is_validation_error(&self) -> bool {
        matches!(
            self,
            Self::DuplicateDevice { .. }
                | Self::MissingSlices { .. }
                | Self::DisagreeingCounts { .. }
                | Self::DisagreeingNodes
        )
    }
}

impl fmt::Display for PoolWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateDevice { device } => write!(f, "device {device} appears in multiple slices"),
            Self::DuplicateInSlice { device } => write!(f, "device {device} appears several times in one slice"),
            Self::MissingSlices { observed, expected_slice_count, generation } => {
                write!(f, "incomplete: observed {observed}/{expected_slice_count} slices at generation {generation}")
            }
            Self::SurplusSlices { observed, expected_slice_count } => {
                write!(f, "{observed} slices, although {expected_slice_count} are announced")
            }
            Self::DisagreeingCounts { expected_slice_counts } => {
                let counts: Vec<String> = expected_slice_counts.iter().map(ToString::to_string).collect();
                write!(f, "slices disagree on resourceSliceCount: {}", counts.join(", "))
            }
            Self::DisagreeingNodes => f.write_str("slices disagree on nodeName"),
            Self::UnknownDevices { count } => write!(f, "{count} allocated device(s) not found"),
            Self::AllocatedAndTainted { count } => write!(f, "{count} device(s) both allocated and tainted"),
            Self::Counters(problem) => problem.fmt(f),
            Self::Generation { generation } => {
                write!(f, "generation {generation}: Kubernetes 1.37 accepts no status with it")
            }
            Self::CounterSetPerCard { partition_type } => {
                write!(
                    f,
                    "partitions of type {partition_type:?} have a counter set for each card, which the partition \
                           summary can't group"
                )
            }
            Self::PartitionsAsListed => {
                f.write_str("devices share counters: the counts are of devices as listed and may mislead")
            }
            Self::ShareableInUse { count } => {
                write!(f, "{count} shareable device(s) in use count as allocated, though other claims may share them")
            }
            Self::UnreadableQuantities { count } => write!(f, "{count} quantity(s) in slices can't be read"),
            Self::UnreadableConsumption { count } => write!(f, "{count} consumed capacity(s) can't be read"),
        }
    }
}
