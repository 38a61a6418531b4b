//! Result of the allocator for one node.

use dra_attrs::GateName;
use dra_device::DeviceId;
use dra_device::pool::PoolProblem;
use k8s_openapi::api::resource::v1::AllocationResult;
use serde::Serialize;

use super::stopped::Stopped;

/// Result for the claims on one node: allocated, or the kind of failure.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The claims can be allocated: one result for each claim, in the order of the claims.
    Allocated(Vec<AllocationResult>),
    /// The devices on the node do not satisfy the claims.
    Unsatisfied,
    /// The node can't be used at the moment, but other nodes may be.
    FailedOnNode(NodeError),
    /// The budget was exhausted before the search had a result.
    Stopped(Stopped),
}

/// Answer of a search that builds no results; see [`crate::Attempt::fits`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "yes, no, or not known")]
pub enum Fit {
    /// The claims can be allocated on the node.
    Yes,
    /// The claims can't be allocated on the node, or the node can't be used at the moment.
    No,
    /// The search was stopped before it had an answer, by the budget or by the caller: it is neither a yes nor a no.
    Stopped(Stopped),
}

/// Reason why a node can't be used although other nodes may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum NodeError {
    /// A request asks for all devices, but a pool of the node is incomplete: its driver is updating the slices.
    #[error(
        "claim {claim}, request {request}: asks for all devices, but resource pool {pool} is currently being updated"
    )]
    PoolIncomplete {
        /// Namespace and name of the claim.
        claim: String,
        /// Name of the request, as `request` or `request/subrequest`.
        request: String,
        /// Driver and name of the pool, as `driver/pool`.
        pool: String,
    },
    /// A request asks for all devices, but the slices of a pool of the node contradict each other.
    #[error(
        "claim {claim}, request {request}: asks for all devices, but resource pool {pool} is currently invalid: {problem}"
    )]
    PoolInvalid {
        /// Namespace and name of the claim.
        claim: String,
        /// Name of the request, as `request` or `request/subrequest`.
        request: String,
        /// Driver and name of the pool, as `driver/pool`.
        pool: String,
        /// Contradiction between the slices of the pool.
        problem: Box<PoolProblem>,
    },
    /// The claims are not satisfied, and in some pools of the node the slices contradict each other.
    #[error("invalid resource pools were encountered: {}", listed(pools))]
    InvalidPools {
        /// Each invalid pool as `driver/pool`, with the contradiction between its slices.
        pools: Vec<(String, PoolProblem)>,
    },
    /// The search chose a device that skips node operations, but the gate [`crate::Gate::OptionalNodeOperations`] is
    /// off (KEP-5945).
    #[error(
        "claim {claim}: device {device} was chosen, whose ResourceSlice {slice} sets skipNodeOperations, but the {gate} \
         feature is disabled"
    )]
    SkipNodeOperationsOff {
        /// Namespace and name of the claim.
        claim: String,
        /// The chosen device.
        device: Box<DeviceId>,
        /// Name of the slice.
        slice: String,
        /// The feature gate.
        gate: GateName,
    },
}

impl NodeError {
    /// Returns the feature gate whose absence is the failure.
    pub(crate) const fn gate_off(&self) -> Option<GateName> {
        match self {
            Self::SkipNodeOperationsOff { gate, .. } => Some(*gate),
            _ => None,
        }
    }
}

fn listed(pools: &[(String, PoolProblem)]) -> String {
    let pools: Vec<String> = pools.iter().map(|(pool, problem)| format!("{pool}: {problem}")).collect();
    pools.join(", ")
}
