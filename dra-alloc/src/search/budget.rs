//! Budgets: limits on the work of one call.

use std::fmt;

use super::allocate_error::AllocateError;
use super::outcome::NodeFailure;
use super::stopped::Limit;
use crate::selector::{EvaluationError, Stop};

/// Amount of work between two calls of the caller's stop function.
const WORK_PER_QUESTION: u64 = 16;

/// Limit on the work of one call: work on each node, work of the whole call, and a function that can stop the search.
///
/// A unit of work is one look at a device, taken or free, for one request; one decision of the search; or, when the search
/// looks ahead, the examination of some dozens of devices or values at once. A walk over 10,000 devices is work of 10,000.
/// The evaluation of a selector is one unit too, since its cost is bounded by itself. When the budget is used up, the
/// outcome is [`crate::Stopped`].
///
/// An explanation of a failed allocation ([`crate::Allocator::with_explanation`]) adds at most a hundred searches with work
/// of 20,000 each, which the function can stop as well.
///
/// A budget is `Sync`, so that threads can share it.
///
/// ```
/// use std::time::{Duration, Instant};
/// use dra_alloc::Budget;
///
/// let deadline = Instant::now() + Duration::from_secs(10);
/// let is_over = || Instant::now() >= deadline;
/// // At most work of 100,000 on a node, of a million for all nodes of a call, and ten seconds.
/// let budget = Budget::work(100_000).with_work_per_call(1_000_000).with_stop(&is_over);
/// assert_eq!(budget.limit(), 100_000);
/// ```
#[derive(Clone, Copy)]
pub struct Budget<'b> {
    work: u64,
    work_per_call: u64,
    stop: Option<&'b (dyn Fn() -> bool + Sync)>,
}

impl Budget<'static> {
    /// Builds a budget of `work` on each node, without a limit for the whole call.
    #[must_use]
    pub const fn work(work: u64) -> Self {
        Self { work, work_per_call: u64::MAX, stop: None }
    }
}

impl<'b> Budget<'b> {
    /// Limits the work of a whole call over all of its nodes. After that, the outcome of every further node is
    /// [`crate::Outcome::Stopped`].
    #[must_use]
    pub const fn with_work_per_call(self, work: u64) -> Self {
        Self { work_per_call: work, ..self }
    }

    /// Sets a function that is called every 16 units of work, and within long evaluations of selectors; the search stops
    /// when the function returns true.
    #[must_use]
    pub const fn with_stop(self, stop: &'b (dyn Fn() -> bool + Sync)) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Returns the budget with another limit for each node and no limit for the call, but the same stop function.
    pub(crate) const fn with_work(self, work: u64) -> Self {
        Self { work, work_per_call: u64::MAX, ..self }
    }

    /// Returns the budget for the rest of the call, after the search on a node did `used` work.
    pub(crate) const fn after(self, used: u64) -> Self {
        Self { work_per_call: self.work_per_call.saturating_sub(used), ..self }
    }

    /// Returns the stop function, for evaluations of selectors.
    pub(crate) fn stop(self) -> Option<Stop<'b>> {
        self.stop.map(|stop| stop as Stop<'b>)
    }

    /// Returns the largest amount of work on one node.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        if self.work < self.work_per_call { self.work } else { self.work_per_call }
    }
}

impl Default for Budget<'_> {
    /// Returns a budget of ten million units of work on each node: about a second. Schedulers use less, such as 100,000.
    fn default() -> Self {
        Self { work: 10_000_000, work_per_call: u64::MAX, stop: None }
    }
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("work", &self.work)
            .field("work_per_call", &self.work_per_call)
            .finish_non_exhaustive()
    }
}

/// Reason why the search on a node ends without a result for the claims.
#[derive(Debug)]
pub(crate) enum Halt {
    Stopped(Limit),
    OnNode(NodeFailure),
    Failed(AllocateError),
}

impl From<AllocateError> for Halt {
    fn from(error: AllocateError) -> Self {
        match error {
            AllocateError::SelectorEvaluation { source: EvaluationError::Interrupted, .. }
            | AllocateError::DerivedEvaluation { source: EvaluationError::Interrupted, .. } => {
                Self::Stopped(Limit::Caller)
            }
            error => Self::Failed(error),
        }
    }
}

/// Counter of the steps and the work of a search, whose work is limited by a budget.
#[derive(Debug)]
pub(crate) struct Meter<'b> {
    budget: Budget<'b>,
    steps: u64,
    work: u64,
    is_counted: bool,
}

/// Steps and work of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effort {
    pub(crate) steps: u64,
    pub(crate) work: u64,
    /// True if nothing was searched, since counting the devices was an answer.
    pub(crate) is_counted: bool,
}

impl<'b> Meter<'b> {
    pub(crate) const fn new(budget: Budget<'b>) -> Self {
        Self { budget, steps: 0, work: 0, is_counted: false }
    }

    /// Returns the stop function of the budget.
    pub(crate) fn stop(&self) -> Option<Stop<'b>> {
        self.budget.stop()
    }

    /// Returns a counter for a part of the search, with at most `work` of what is left.
    pub(crate) fn part(&self, work: u64) -> Self {
        let left = self.budget.limit().saturating_sub(self.work);
        Self::new(self.budget.with_work(work.min(left)))
    }

    /// Adds the effort of a part.
    pub(crate) const fn add(&mut self, part: Effort) {
        self.steps = self.steps.saturating_add(part.steps);
        self.work = self.work.saturating_add(part.work);
    }

    /// Counts the effort of a search that need not be repeated, and asks the stop function once. Returns false, and counts
    /// nothing, if the search would exceed the budget.
    pub(crate) fn spare(&mut self, search: Effort) -> Result<bool, Halt> {
        if self.work.saturating_add(search.work) > self.budget.limit() {
            return Ok(false);
        }
        if self.budget.stop.is_some_and(|stop| stop()) {
            return Err(Halt::Stopped(Limit::Caller));
        }
        self.add(search);
        Ok(true)
    }

    pub(crate) const fn effort(&self) -> Effort {
        Effort { steps: self.steps, work: self.work, is_counted: self.is_counted }
    }

    /// Counts one step, which is one unit of work.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<(), Halt> {
        self.work(1)?;
        self.steps += 1;
        Ok(())
    }

    /// Counts the step of a count that was an answer.
    pub(crate) fn count(&mut self) -> Result<(), Halt> {
        self.step()?;
        self.is_counted = true;
        Ok(())
    }

    /// Counts work, and every 16 units calls the stop function. Fails when the budget is exhausted.
    #[inline]
    pub(crate) fn work(&mut self, amount: usize) -> Result<(), Halt> {
        let before = self.work;
        let after = before.saturating_add(u64::try_from(amount).unwrap_or(u64::MAX));
        if after > self.budget.limit() {
            self.work = self.budget.limit();
            let is_node = self.budget.work <= self.budget.work_per_call;
            return Err(Halt::Stopped(if is_node { Limit::Node } else { Limit::Call }));
        }
        if let Some(stop) = self.budget.stop {
            let asks = before.is_multiple_of(WORK_PER_QUESTION)
                || before / WORK_PER_QUESTION != after.saturating_sub(1) / WORK_PER_QUESTION;
            if amount > 0 && asks && stop() {
                return Err(Halt::Stopped(Limit::Caller));
            }
        }
        self.work = after;
        Ok(())
    }
}
