//! Budgets: limits on the work of one call.

use std::fmt;

use super::allocate_error::AllocateError;
use super::outcome::NodeFailure;
use crate::selector::{EvaluationError, Stop};

/// Number of steps between two calls of the caller's stop function.
const STEPS_PER_QUESTION: u64 = 16;

/// Limit on the work of one call: steps on each node, steps of the whole call, and a function that can stop the search.
///
/// A step is the examination of one device for one request, one decision of the search, or (after a few backtracks) one
/// run of the pruning rules, which is linear in the number of remaining devices. The evaluation of a selector is one
/// step too, since its cost is bounded by itself. When the budget is used up, the outcome is `Stopped`.
///
/// An explanation of a failed allocation ([`crate::Allocator::with_explanation`]) adds at most a hundred searches of 20,000
/// steps each, which the function can stop as well.
///
/// A budget is `Sync`, so that threads can share it.
///
/// ```
/// use std::time::{Duration, Instant};
/// use dra_alloc::Budget;
///
/// let deadline = Instant::now() + Duration::from_secs(10);
/// let is_over = || Instant::now() >= deadline;
/// // At most 100,000 steps on a node, a million for all nodes of a call, and ten seconds.
/// let budget = Budget::steps(100_000).with_steps_per_call(1_000_000).with_stop(&is_over);
/// assert_eq!(budget.limit(), 100_000);
/// ```
#[derive(Clone, Copy)]
pub struct Budget<'b> {
    steps: u64,
    steps_per_call: u64,
    stop: Option<&'b (dyn Fn() -> bool + Sync)>,
}

impl Budget<'static> {
    /// Builds a budget of `steps` on each node, without a limit for the whole call.
    #[must_use]
    pub const fn steps(steps: u64) -> Self {
        Self { steps, steps_per_call: u64::MAX, stop: None }
    }
}

impl<'b> Budget<'b> {
    /// Limits the steps of a whole call over all of its nodes. After that, the outcome of every further node is
    /// `Stopped`.
    #[must_use]
    pub const fn with_steps_per_call(self, steps: u64) -> Self {
        Self { steps_per_call: steps, ..self }
    }

    /// Sets a function that is called every 16 steps, and within long evaluations of selectors; the search stops when
    /// the function returns true.
    #[must_use]
    pub const fn with_stop(self, stop: &'b (dyn Fn() -> bool + Sync)) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Returns the budget with another number of steps on each node and no limit for the call, but the same stop
    /// function.
    pub(crate) const fn with_steps(self, steps: u64) -> Self {
        Self { steps, steps_per_call: u64::MAX, ..self }
    }

    /// Returns the budget for the rest of the call, after the search on a node made `used` steps.
    pub(crate) const fn after(self, used: u64) -> Self {
        Self { steps_per_call: self.steps_per_call.saturating_sub(used), ..self }
    }

    /// Returns the stop function, for evaluations of selectors.
    pub(crate) fn stop(self) -> Option<Stop<'b>> {
        self.stop.map(|stop| stop as Stop<'b>)
    }

    /// Returns the largest number of steps on one node.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        if self.steps < self.steps_per_call { self.steps } else { self.steps_per_call }
    }
}

impl Default for Budget<'_> {
    /// Returns a budget of ten million steps on each node: about a second for one claim, and up to half a minute if
    /// each step examines hundreds of devices for hundreds of requests. Schedulers use less, such as 100,000.
    fn default() -> Self {
        Self { steps: 10_000_000, steps_per_call: u64::MAX, stop: None }
    }
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("steps", &self.steps)
            .field("steps_per_call", &self.steps_per_call)
            .finish_non_exhaustive()
    }
}

/// Reason why the search on a node ends without a result for the claims.
#[derive(Debug)]
pub(crate) enum Halt {
    Stopped,
    OnNode(NodeFailure),
    Failed(AllocateError),
}

impl From<AllocateError> for Halt {
    fn from(error: AllocateError) -> Self {
        match error {
            AllocateError::SelectorEvaluation { source: EvaluationError::Interrupted, .. }
            | AllocateError::DerivedEvaluation { source: EvaluationError::Interrupted, .. } => Self::Stopped,
            error => Self::Failed(error),
        }
    }
}

/// Counter of the steps that a search has made, limited by a budget.
#[derive(Debug)]
pub(crate) struct Meter<'b> {
    budget: Budget<'b>,
    used: u64,
}

impl<'b> Meter<'b> {
    pub(crate) const fn new(budget: Budget<'b>) -> Self {
        Self { budget, used: 0 }
    }

    /// Returns the stop function of the budget.
    pub(crate) fn stop(&self) -> Option<Stop<'b>> {
        self.budget.stop()
    }

    pub(crate) const fn used(&self) -> u64 {
        self.used
    }

    /// Counts one step, and every 16 steps calls the stop function. Fails when the budget is exhausted.
    pub(crate) fn step(&mut self) -> Result<(), Halt> {
        let asks = self.used.is_multiple_of(STEPS_PER_QUESTION);
        if self.used >= self.budget.limit() || (asks && self.budget.stop.is_some_and(|stop| stop())) {
            return Err(Halt::Stopped);
        }
        self.used += 1;
        Ok(())
    }
}
