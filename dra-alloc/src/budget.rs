//! How much work a call may do.

use std::fmt;

use crate::error::AllocateError;
use crate::outcome::NodeFailure;

/// Steps between two questions to the caller's stop function.
const STEPS_PER_QUESTION: u64 = 16;

/// The work that one call on one node may do: a number of steps, and a function that can stop it.
///
/// A step is the examination of one device for one request, one descent of the search, or, in a search that has turned
/// back, one look at what the devices that are left are still good for, which is linear in their number. The evaluation of
/// a selector is one step too, since it is bounded itself. When the budget is used up, the outcome is `Stopped`.
///
/// An explanation of a "no" ([`crate::allocator::Allocator::explaining`]) adds at most a hundred searches of 20,000 steps
/// each, which the function can stop as well.
///
/// ```
/// use std::time::{Duration, Instant};
/// use dra_alloc::budget::Budget;
///
/// let deadline = Instant::now() + Duration::from_secs(10);
/// let is_over = || Instant::now() >= deadline;
/// let budget = Budget::steps(100_000).stopped_by(&is_over);
/// assert_eq!(budget.limit(), 100_000);
/// ```
#[derive(Clone, Copy)]
pub struct Budget<'b> {
    steps: u64,
    stop: Option<&'b dyn Fn() -> bool>,
}

impl Budget<'static> {
    /// A number of steps.
    #[must_use]
    pub const fn steps(steps: u64) -> Self {
        Self { steps, stop: None }
    }
}

impl<'b> Budget<'b> {
    /// Asks a function every few steps; `true` stops the search.
    #[must_use]
    pub const fn stopped_by(self, stop: &'b dyn Fn() -> bool) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// The same function with another number of steps.
    pub(crate) const fn with_steps(self, steps: u64) -> Self {
        Self { steps, ..self }
    }

    /// The number of steps.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.steps
    }
}

impl Default for Budget<'_> {
    /// Ten million steps: a second or so for a claim on a node, and up to half a minute where each step looks at hundreds of
    /// devices for hundreds of requests.
    fn default() -> Self {
        Self { steps: 10_000_000, stop: None }
    }
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("steps", &self.steps).finish_non_exhaustive()
    }
}

/// Why a search on a node ends before it has an answer.
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

/// Counts steps against a budget.
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

    /// Counts one step.
    pub(crate) fn step(&mut self) -> Result<(), Halt> {
        let asks = self.used.is_multiple_of(STEPS_PER_QUESTION);
        if self.used >= self.budget.steps || (asks && self.budget.stop.is_some_and(|stop| stop())) {
            return Err(Halt::Stopped);
        }
        self.used += 1;
        Ok(())
    }
}
