//! Verdict: result of an allocation on one node, with its cost and explanation.

use std::sync::Arc;

use crate::explain::Explanation;
use crate::objective::Score;
use crate::search::outcome::Outcome;

/// Result of an allocation on one node, with the work that it took.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Verdict {
    /// Result for the claims: allocated, or the kind of failure.
    pub outcome: Outcome,
    /// Number of steps that the search made: devices tried at a place, decisions, and runs of the pruning rules.
    pub steps: u64,
    /// Work of the search and of the explanation, which a [`crate::Budget`] limits: steps, devices passed over, evaluations of
    /// selectors, and what looking ahead costs.
    pub work: u64,
    /// Score of the devices, if claims were allocated and [`crate::Allocator::with_objective`] is set; `None` also if the budget
    /// ended before the terms could be read, so that these are the first devices.
    pub score: Option<Box<Score>>,
    /// Reasons of the failure, if the claims are not allocated and [`crate::Allocator::with_explanation`] is set. Without it,
    /// [`Verdict::explain`] finds them.
    /// Nodes in one state share it.
    pub explanation: Option<Arc<Explanation>>,
}
