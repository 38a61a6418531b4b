//! The answer of the allocator for one node.

use k8s_openapi::api::resource::v1::AllocationResult;

use crate::explain::Explanation;
use crate::inventory::pool::PoolProblem;

/// The answer for one node, and the work that it took.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Verdict {
    /// The answer.
    pub outcome: Outcome,
    /// Steps of the budget that were used.
    pub steps: u64,
    /// Why it is a "no", if the allocator was told to explain.
    pub explanation: Option<Explanation>,
}

/// Whether claims can be allocated on a node.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// One result for each claim, in the order of the claims.
    Allocated(Vec<AllocationResult>),
    /// The devices of this node do not satisfy the claims.
    Unsatisfied,
    /// The node can't be judged now; others may.
    FailedOnNode(NodeFailure),
    /// The budget was used up before an answer was found.
    Stopped,
}

/// Why a node can't be used although others may.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeFailure {
    /// A request wants all devices, and a pool that the node sees is in the middle of an update.
    #[error(
        "claim {claim}, request {request}: asks for all devices, but resource pool {pool} is currently being updated"
    )]
    PoolIncomplete {
        /// Namespace and name of the claim.
        claim: String,
        /// The request, or `request/subrequest`.
        request: String,
        /// `driver/pool`.
        pool: String,
    },
    /// A request wants all devices, and a pool that the node sees contradicts itself.
    #[error(
        "claim {claim}, request {request}: asks for all devices, but resource pool {pool} is currently invalid: {problem}"
    )]
    PoolInvalid {
        /// Namespace and name of the claim.
        claim: String,
        /// The request, or `request/subrequest`.
        request: String,
        /// `driver/pool`.
        pool: String,
        /// What is wrong with the pool.
        problem: Box<PoolProblem>,
    },
    /// No devices were found, and there are pools that contradict themselves.
    #[error("invalid resource pools were encountered: {}", listed(pools))]
    InvalidPools {
        /// `driver/pool` and what is wrong with it.
        pools: Vec<(String, PoolProblem)>,
    },
    /// A chosen device skips node operations, and the gate for that is off (KEP-5945).
    #[error(
        "claim {claim}: device {device} was chosen, whose ResourceSlice {slice} sets skipNodeOperations, but the {gate} \
         feature is disabled"
    )]
    SkipNodeOperationsOff {
        /// Namespace and name of the claim.
        claim: String,
        /// `driver/pool/device`.
        device: String,
        /// Name of the slice.
        slice: String,
        /// The gate.
        gate: &'static str,
    },
}

fn listed(pools: &[(String, PoolProblem)]) -> String {
    let pools: Vec<String> = pools.iter().map(|(pool, problem)| format!("{pool}: {problem}")).collect();
    pools.join(", ")
}
