//! A second allocator, to test the first one against: plain depth-first recursion over immutable state.
//!
//! Nothing is ever taken back. Each call of the recursion gets the devices chosen so far as a list; counters, compatibility
//! groups, constraints and capacities in use are computed again from that list for every candidate. So no state can be
//! left behind by a branch that failed, and the code says what the rules say, at the price of speed.
#![allow(dead_code, unreachable_pub, reason = "several tests include these modules, each uses what it needs")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

pub mod capacity;
pub mod case;
pub mod constraints;
pub mod counters;
pub mod expressions;
pub mod nodes;
pub mod plain;
pub mod pools;
pub mod random;
pub mod requests;
pub mod result;
pub mod search;

pub use case::{Case, DeviceId};
pub use search::allocate_counting;

use k8s_openapi::api::resource::v1::AllocationResult;

/// What the allocator says.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// One result per claim, in their order.
    Allocated(Vec<AllocationResult>),
    /// Not on this node, for now.
    Unsatisfied,
    /// Not on this node, because something is wrong with it.
    FailedOnNode(String),
    /// The input is bad for every node.
    Failed(String),
    /// The number of steps was exceeded.
    Stopped,
}

/// Why a search ended without an answer of yes or no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    OnNode(String),
    Fatal(String),
    Stopped,
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::OnNode(reason) => Self::FailedOnNode(reason),
            Failure::Fatal(reason) => Self::Failed(reason),
            Failure::Stopped => Self::Stopped,
        }
    }
}

/// A fatal error.
pub fn fatal<T>(reason: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Fatal(reason.into()))
}
