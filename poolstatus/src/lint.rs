//! What is odd about the objects of a pool, beyond what either status has room for.
//!
//! A lint never fails anything, and says nothing about who uses a device.

use std::fmt;

use dra_alloc::inventory::pool::PoolProblem;
use serde::Serialize;

/// What is odd about one pool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// A device name is in several slices. The KEP reports it as a validation error; the shipped controller does not look.
    DuplicateDevice {
        /// The name.
        device: String,
    },
    /// A device name is in one slice several times, which the API server refuses.
    DuplicateInSlice {
        /// The name.
        device: String,
    },
    /// There are fewer slices than announced: the driver is not done. Also a validation error of the KEP.
    MissingSlices {
        /// Slices of the newest generation.
        observed: usize,
        /// What the first of them announces.
        announced: i64,
        /// The newest generation.
        generation: i64,
    },
    /// There are more slices than announced. The shipped status takes the pool for complete, kube-scheduler does not.
    SurplusSlices {
        /// Slices of the newest generation.
        observed: usize,
        /// What the first of them announces.
        announced: i64,
    },
    /// Slices announce different numbers of slices. Also a validation error of the KEP.
    DisagreeingCounts {
        /// The numbers, sorted, each once.
        announced: Vec<i64>,
    },
    /// Slices name different nodes, or only some name one. Also a validation error of the KEP.
    DisagreeingNodes,
    /// Claims name devices that the pool does not have. The shipped status counts them as allocated.
    UnknownDevices {
        /// How many names.
        count: usize,
    },
    /// Devices are allocated and tainted. The shipped status takes them off the available ones twice.
    AllocatedAndTainted {
        /// How many devices.
        count: usize,
    },
    /// Counter sets do not fit together; kube-scheduler allocates nothing from the pool.
    Counters(PoolProblem),
    /// The generation is 0, which Kubernetes 1.37 takes for missing, or negative: its API server accepts no status with it.
    Generation {
        /// The generation.
        generation: i64,
    },
    /// Partitions of one type consume the same from different counter sets, one for each card. The shipped partition
    /// summary gives up on them.
    CounterSetPerCard {
        /// The type.
        partition_type: String,
    },
    /// Devices share counters, so that the available ones may not all be available at once, and no partition summary says
    /// what is.
    PartitionsAsListed,
    /// Quantities of the slices are none, and count as nothing.
    UnreadableQuantities {
        /// How many.
        count: usize,
    },
    /// Consumed capacities in claims are no quantities, and count as nothing.
    UnreadableConsumption {
        /// How many.
        count: usize,
    },
}

impl Finding {
    /// Whether the KEP's status has it among its validation errors.
    #[must_use]
    pub const fn is_validation_error(&self) -> bool {
        matches!(
            self,
            Self::DuplicateDevice { .. }
                | Self::MissingSlices { .. }
                | Self::DisagreeingCounts { .. }
                | Self::DisagreeingNodes
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateDevice { device } => write!(f, "device {device} appears in multiple slices"),
            Self::DuplicateInSlice { device } => write!(f, "device {device} appears several times in one slice"),
            Self::MissingSlices { observed, announced, generation } => {
                write!(f, "incomplete: observed {observed}/{announced} slices at generation {generation}")
            }
            Self::SurplusSlices { observed, announced } => {
                write!(f, "{observed} slices, although {announced} are announced")
            }
            Self::DisagreeingCounts { announced } => {
                let counts: Vec<String> = announced.iter().map(ToString::to_string).collect();
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
            Self::UnreadableQuantities { count } => write!(f, "{count} quantity(s) in slices can't be read"),
            Self::UnreadableConsumption { count } => write!(f, "{count} consumed capacity(s) can't be read"),
        }
    }
}

/// What is odd about a pool, with the pool's name. On the wire it is its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
#[non_exhaustive]
pub struct Lint {
    /// The pool.
    pub pool: String,
    /// What is odd.
    pub finding: Finding,
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pool {}: {}", self.pool, self.finding)
    }
}

impl From<Lint> for String {
    fn from(lint: Lint) -> Self {
        lint.to_string()
    }
}
