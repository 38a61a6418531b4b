//! Oracle: a second allocator for tests, as plain depth-first recursion over immutable state.
//!
//! Nothing is ever undone. Each call of the recursion gets the list of the devices chosen so far, and computes
//! counters, compatibility groups, constraints and capacities in use again from that list for every candidate. So a
//! failed branch can't leave state behind, and the code reads like the rules, at the price of speed.
#![allow(dead_code, unreachable_pub, reason = "several tests include these modules, each uses what it needs")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

pub mod capacity;
pub mod case;
pub mod compare;
pub mod constraints;
pub mod counters;
pub mod expressions;
pub mod history;
pub mod nodes;
pub mod plain;
pub mod pools;
pub mod random;
pub mod requests;
pub mod result;
pub mod search;
pub mod twins;

pub use case::{Case, DeviceId};
pub use search::allocate_counting;

use k8s_openapi::api::resource::v1::AllocationResult;

/// Answer of the oracle.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Results of the claims, in their order.
    Allocated(Vec<AllocationResult>),
    /// No solution on this node for now.
    Unsatisfied,
    /// Failure of this node, because of its objects.
    FailedOnNode(String),
    /// Invalid input, on every node.
    Failed(String),
    /// The limit of steps was exceeded.
    Stopped,
}

/// Reason that a search ended without an answer.
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

/// Returns a fatal error.
pub fn fatal<T>(reason: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Fatal(reason.into()))
}
