//! Budgets: limits on the work of one call.

use std::fmt;

use crate::allocate_error::AllocateError;
use crate::outcome::NodeFailure;

/// Number of steps between two calls of the caller's stop function.
const STEPS_PER_QUESTION: u64 = 16;

/// Limit on the work of one call on one node: a number of steps, and a function that can stop the search.
///
/// A step is the examination of one device for one request, one decision of the search, or (after a few backtracks) one
/// run of the pruning rules, which is linear in the number of remaining devices. The evaluation of a selector is one
/// step too, since its cost is bounded by itself. When the budget is used up, the outcome is `Stopped`.
///
/// An explanation of a failed allocation ([`crate::allocator::Allocator::with_explanation`]) adds at most a hundred
/// searches of 20,000 steps each, which the function can stop as well.
///
/// ```
/// use std::time::{Duration, Instant};
/// use dra_alloc::Budget;
///
/// let deadline = Instant::now() + Duration::from_secs(10);
/// let is_over = || Instant::now() >= deadline;
/// let budget = Budget::steps(100_000).with_stop(&is_over);
/// assert_eq!(budget.limit(), 100_000);
/// ```
#[derive(Clone, Copy)]
pub struct Budget<'b> {
    steps: u64,
    stop: Option<&'b dyn Fn() -> bool>,
}

impl Budget<'static> {
    /// Builds a budget of a number of steps, without a stop function.
    #[must_use]
    pub const fn steps(steps: u64) -> Self {
        Self { steps, stop: None }
    }
}

impl<'b> Budget<'b> {
    /// Sets a function that is called every few steps; the search stops when it returns true.
    #[must_use]
    pub const fn with_stop(self, stop: &'b dyn Fn() -> bool) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Returns a budget with the stop function of this one and another number of steps.
    pub(crate) const fn with_steps(self, steps: u64) -> Self {
        Self { steps, ..self }
    }

    /// Returns the number of steps.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.steps
    }
}

impl Default for Budget<'_> {
    /// Returns a budget of ten million steps: about a second for a claim on a node, and up to half a minute if each
    /// step examines hundreds of devices for hundreds of requests.
    fn default() -> Self {
        Self { steps: 10_000_000, stop: None }
    }
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("steps", &self.steps).finish_non_exhaustive()
    }
}

/// Reason that a search on a node ends before it has an answer.
#[derive(Debug)]
pub(crate) enum Halt {
    Stopped,
    OnNode(NodeFailure),
    Failed(AllocateError),
}

impl From<AllocateError> for Halt {
    fn from(error: AllocateError) -> Self {
        Self::Failed(error)
    }
}

/// Counter of steps against a budget.
#[derive(Debug)]
pub(crate) struct Meter<'b> {
    budget: Budget<'b>,
    used: u64,
}

impl<'b> Meter<'b> {
    pub(crate) const fn new(budget: Budget<'b>) -> Self {
        Self { budget, used: 0 }
    }

    pub(crate) const fn used(&self) -> u64 {
        self.used
    }

    /// Counts one step and calls the stop function when due.
    pub(crate) fn step(&mut self) -> Result<(), Halt> {
        let asks = self.used.is_multiple_of(STEPS_PER_QUESTION);
        if self.used >= self.budget.steps || (asks && self.budget.stop.is_some_and(|stop| stop())) {
            return Err(Halt::Stopped);
        }
        self.used += 1;
        Ok(())
    }
}
