//! Result of the allocator for one node.

use k8s_openapi::api::resource::v1::AllocationResult;

use crate::explain::Explanation;
use crate::inventory::pool::PoolProblem;

/// Result of the allocator for one node, with the work that it took.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Verdict {
    /// The result for the claims.
    pub outcome: Outcome,
    /// Number of steps of the budget that were used.
    pub steps: u64,
    /// Explanation of the failure, if the claims are not satisfied and the allocator was configured to explain.
    pub explanation: Option<Explanation>,
}

/// Result for the claims on one node: allocated, or the kind of failure.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The claims can be allocated: one result for each claim, in the order of the claims.
    Allocated(Vec<AllocationResult>),
    /// The devices that the node can use do not satisfy the claims.
    Unsatisfied,
    /// The node can't be used now, but other nodes may be.
    FailedOnNode(NodeFailure),
    /// The budget was exhausted before the search ended.
    Stopped,
}

/// Reason why a node can't be used although other nodes may be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NodeFailure {
    /// A request asks for all devices, but a pool of the node is incomplete because its slices are being updated.
    #[error(
        "claim {claim}, request {request}: asks for all devices, but resource pool {pool} is currently being updated"
    )]
    PoolIncomplete {
        /// Namespace and name of the claim.
        claim: String,
        /// The request, or `request/subrequest`.
        request: String,
        /// Driver and name of the pool, as `driver/pool`.
        pool: String,
    },
    /// A request asks for all devices, but a pool of the node is inconsistent.
    #[error(
        "claim {claim}, request {request}: asks for all devices, but resource pool {pool} is currently invalid: {problem}"
    )]
    PoolInvalid {
        /// Namespace and name of the claim.
        claim: String,
        /// The request, or `request/subrequest`.
        request: String,
        /// Driver and name of the pool, as `driver/pool`.
        pool: String,
        /// The inconsistency of the pool.
        problem: Box<PoolProblem>,
    },
    /// The claims are not satisfied, and some pools are inconsistent.
    #[error("invalid resource pools were encountered: {}", listed(pools))]
    InvalidPools {
        /// Each inconsistent pool as `driver/pool`, with its inconsistency.
        pools: Vec<(String, PoolProblem)>,
    },
    /// A chosen device skips node operations, but the gate is off (KEP-5945).
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
        /// Name of the feature gate.
        gate: &'static str,
    },
}

fn listed(pools: &[(String, PoolProblem)]) -> String {
    let pools: Vec<String> = pools.iter().map(|(pool, problem)| format!("{pool}: {problem}")).collect();
    pools.join(", ")
}
