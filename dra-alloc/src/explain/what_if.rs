//! What-if questions: searches with changed claims, gates or slices, limited in work and in number.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceClaim;

use crate::search::budget::Budget;
use crate::search::context::Context;
use crate::search::is_possible;

/// Largest work of one what-if question.
const WORK: u64 = 20_000;

/// Largest number of what-if questions of one explanation.
const QUESTIONS: usize = 100;

/// Answers what-if questions: "could the changed claims be allocated on the node?"
pub(super) struct WhatIf<'a> {
    /// Input of the original allocation. A question may use a changed copy.
    pub(super) context: Context<'a>,
    pub(super) node: &'a Node,
    /// Budget of each what-if question.
    budget: Budget<'a>,
    /// Number of what-if questions that may still be asked.
    left: usize,
}

impl<'a> WhatIf<'a> {
    pub(super) const fn new(context: Context<'a>, node: &'a Node, budget: Budget<'a>) -> Self {
        Self { context, node, budget: budget.with_work(WORK), left: QUESTIONS }
    }

    /// Returns true if another what-if question may be asked. Callers check first, because preparing a question can
    /// cost more than asking it.
    pub(super) const fn may_ask(&self) -> bool {
        self.left > 0
    }

    /// Returns true if the claims can be allocated in `context`; `None` if the search fails or runs out of budget.
    pub(super) fn is_possible(&mut self, context: &Context<'_>, claims: &[ResourceClaim]) -> Option<bool> {
        self.left = self.left.checked_sub(1)?;
        is_possible(context, claims, self.node, self.budget)
    }
}
