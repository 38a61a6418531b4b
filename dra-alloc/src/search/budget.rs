//! Budgets: limits on the work of one call.

use std::cell::Cell;
use std::fmt;

use dra_selector::EvaluationError;

use super::allocate_error::AllocateError;
use super::outcome::NodeError;
use super::stopped::Limit;

/// Largest work on a node, and of a call, unless the caller sets another: at most two seconds.
const MOST_WORK: u64 = 5_000_000;

/// Work on a node in the ten seconds of a `Filter` of kube-scheduler's plugin.
const WORK_OF_FILTER: u64 = 50_000_000;

/// Largest work of an explanation beyond that of the search: a hundred questions with 20,000 each.
const WORK_OF_EXPLANATION: u64 = 2_000_000;

/// Amount of work between two calls of the caller's stop function.
const WORK_PER_QUESTION: u64 = 16;

/// Limit on the work of one call: work on each node, work of the whole call, and a function that can stop the search.
///
/// A unit of work takes 0.1 to 0.4 microseconds. These are one unit:
///
/// - one look at a device, taken or free, for one request: a walk over 10,000 devices is work of 10,000;
/// - one decision of the search; or, when the search looks ahead, the examination of some dozens of devices or values at once;
/// - eight units of the CEL cost of a selector or a derived attribute, or a fraction of a microsecond of an evaluation that the
///   cost does not show. What an evaluation takes counts in addition to the look at the device, so that a cheap one adds nothing:
///   one at the limit of costs, which takes some 20 ms, is work of about 200,000. Common forms of selectors, which need no
///   evaluation of CEL, add a unit for ten comparisons or so. An evaluation that is used for several devices counts for
///   each of them;
/// - for nodes that see many pools, or shared slices with node selectors: a pool, or eight comparisons; for devices with
///   several capacities and results with large configuration: a capacity, or four parts of configuration.
///
/// When the budget is used up, the outcome is [`crate::Stopped`].
///
/// An explanation of a failed allocation ([`crate::Allocator::with_explanation`]) counts in the same units. It takes at most
/// two million more than the search on the node took, and what is left of the limit for the call.
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

    /// Builds a budget of fifty million units of work on each node, without a limit for the whole call. That is about the ten
    /// seconds after which `Filter` of kube-scheduler's plugin times out on a node.
    ///
    /// ```
    /// use dra_alloc::Budget;
    /// assert!(Budget::filter().limit() > Budget::default().limit());
    /// ```
    #[must_use]
    pub const fn filter() -> Self {
        Self::work(WORK_OF_FILTER)
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

    /// Returns the budget of the explanation of a search that took some work on a node.
    pub(crate) const fn of_explanation(self, search: u64) -> Self {
        Self { work: search.saturating_add(WORK_OF_EXPLANATION), ..self.after(search) }
    }

    /// Returns the budget for the rest of the call, after the search on a node did `used` work.
    pub(crate) const fn after(self, used: u64) -> Self {
        Self { work_per_call: self.work_per_call.saturating_sub(used), ..self }
    }

    /// Returns the largest amount of work on one node.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        if self.work < self.work_per_call { self.work } else { self.work_per_call }
    }
}

impl Default for Budget<'_> {
    /// Returns a budget of five million units of work on each node, and of five million for the whole call: at most two seconds
    /// of processor time for a call on any cluster that an API server stores, explanations included. Schedulers use less on a
    /// node, such as 100,000, and their own limit for all nodes.
    fn default() -> Self {
        Self { work: MOST_WORK, work_per_call: MOST_WORK, stop: None }
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
    OnNode(NodeError),
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

/// Parts of a unit of work in which evaluations of selectors are priced.
const PARTS: u64 = 64;

/// Counter of the steps and the work of a search, whose work is limited by a budget.
///
/// It is shared by the search and by the table whose facts are read when they are needed: whoever comes to an evaluation
/// first pays for it.
///
/// The price of an evaluation is that of its cost or of its own work, whichever is more. Eight units of cost, or 32 of work (5 ns each
/// at most), are a unit. Prices are added in 64ths for all selectors of one look at a device, so that cheap ones add nothing. A
/// result that another device or node has found takes no time and counts the same work: the work of a verdict depends on its node
/// alone, not on earlier questions.
pub(crate) struct Meter<'b> {
    stop: Option<&'b (dyn Fn() -> bool + Sync)>,
    /// Limit that `most` comes from.
    limit: Limit,
    most: Cell<u64>,
    work: Cell<u64>,
    /// Work after which the stop function is called next.
    question: Cell<u64>,
    /// Parts of a unit that evaluations for one look at a device have taken.
    parts: Cell<u64>,
    steps: Cell<u64>,
    is_counted: Cell<bool>,
    /// Limit that has ended the search.
    ended: Cell<Option<Limit>>,
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
        Self {
            stop: budget.stop,
            limit: if budget.work <= budget.work_per_call { Limit::Node } else { Limit::Call },
            most: Cell::new(budget.limit()),
            work: Cell::new(0),
            question: Cell::new(0),
            parts: Cell::new(0),
            steps: Cell::new(0),
            is_counted: Cell::new(false),
            ended: Cell::new(None),
        }
    }

    /// Returns the stop function of the budget.
    pub(crate) fn stop(&self) -> Option<&'b dyn Fn() -> bool> {
        self.stop.map(|stop| stop as &'b dyn Fn() -> bool)
    }

    /// Calls a function for which the search has at most `work` of what is left. That it came to this limit does not end the
    /// search.
    pub(crate) fn limited<T>(&self, work: u64, search: impl FnOnce() -> T) -> T {
        let (most, ended) = (self.most.get(), self.ended.get());
        self.most.set(most.min(self.work.get().saturating_add(work)));
        let found = search();
        self.most.set(most);
        if self.ended.get() != Some(Limit::Caller) && self.work.get() < most {
            self.ended.set(ended);
        }
        found
    }

    /// Calls a function whose work does not count.
    pub(crate) fn aside(&self, look: impl FnOnce()) {
        let (most, work, ended) = (self.most.replace(u64::MAX), self.work.get(), self.ended.get());
        look();
        self.most.set(most);
        self.work.set(work);
        self.ended.set(ended);
    }

    /// Counts the effort of a search that need not be repeated, and asks the stop function once. Returns false, and counts
    /// nothing, if the search would exceed the budget.
    pub(crate) fn spare(&self, search: Effort) -> Result<bool, Halt> {
        let work = self.work.get().saturating_add(search.work);
        if work > self.most.get() {
            return Ok(false);
        }
        if self.stop.is_some_and(|stop| stop()) {
            return Err(self.end(Limit::Caller));
        }
        self.work.set(work);
        self.steps.set(self.steps.get().saturating_add(search.steps));
        Ok(true)
    }

    pub(crate) fn effort(&self) -> Effort {
        Effort { steps: self.steps.get(), work: self.work.get(), is_counted: self.is_counted.get() }
    }

    /// Counts one step, which is one unit of work.
    #[inline]
    pub(crate) fn step(&self) -> Result<(), Halt> {
        self.work(1)?;
        self.steps.set(self.steps.get() + 1);
        Ok(())
    }

    /// Counts the step of a count that was an answer.
    pub(crate) fn count(&self) -> Result<(), Halt> {
        self.step()?;
        self.is_counted.set(true);
        Ok(())
    }

    /// Counts work, and every 16 units calls the stop function. Fails when the budget is exhausted.
    #[inline]
    pub(crate) fn work(&self, amount: usize) -> Result<(), Halt> {
        let before = self.work.get();
        let after = before.saturating_add(u64::try_from(amount).unwrap_or(u64::MAX));
        if after > self.most.get() {
            self.work.set(self.most.get());
            return Err(self.end(self.limit));
        }
        if let Some(stop) = self.stop
            && after > self.question.get()
        {
            // The next multiple from which a unit begins: evaluations make jumps in between.
            self.question.set(after.div_ceil(WORK_PER_QUESTION).saturating_mul(WORK_PER_QUESTION));
            if stop() {
                return Err(self.end(Limit::Caller));
            }
        }
        self.work.set(after);
        Ok(())
    }

    /// Counts work that was done already. If it was too much, what comes next fails, and so does `check`.
    #[inline]
    pub(crate) fn add(&self, amount: usize) {
        if amount > 0 {
            self.done(u64::try_from(amount).unwrap_or(u64::MAX));
        }
    }

    /// Counts work that was done already. Returns false if it was too much.
    fn done(&self, amount: u64) -> bool {
        let (after, most) = (self.work.get().saturating_add(amount), self.most.get());
        self.work.set(after.min(most));
        if after > most {
            self.ended.set(Some(self.limit));
        }
        after <= most
    }

    /// Fails if nothing of the budget is left.
    pub(crate) fn has_left(&self) -> Result<(), Halt> {
        if self.left() > 0 { Ok(()) } else { Err(self.end(self.limit)) }
    }

    /// Returns the work so far.
    pub(crate) const fn spent(&self) -> u64 {
        self.work.get()
    }

    pub(crate) fn left(&self) -> u64 {
        self.most.get().saturating_sub(self.work.get())
    }

    /// Begins a look at a device, of whose evaluations whole units count.
    pub(crate) fn begin_look(&self) {
        self.parts.set(0);
    }

    /// Returns the parts of units that the next evaluation may take.
    pub(crate) fn parts_left(&self) -> u64 {
        self.left().saturating_add(1).saturating_mul(PARTS).saturating_sub(self.parts.get()).saturating_sub(1)
    }

    /// Counts parts of a unit. Returns false if that was too much.
    #[inline]
    fn count_parts(&self, parts: u64) -> bool {
        let parts = self.parts.get().saturating_add(parts);
        self.parts.set(parts % PARTS);
        parts < PARTS || self.done(parts / PARTS)
    }

    /// Counts parts of a unit. Returns false, and counts nothing, if that would be too much.
    #[inline]
    pub(crate) fn may_count_parts(&self, parts: u64) -> bool {
        self.parts.get().saturating_add(parts) / PARTS <= self.left() && self.count_parts(parts)
    }

    /// Counts an evaluation by its price in parts of a unit.
    pub(crate) fn evaluated<T>(&self, result: Result<T, EvaluationError>, parts: u64) -> Result<T, EvaluationError> {
        if !self.count_parts(parts) {
            return Err(EvaluationError::Interrupted);
        }
        if matches!(result, Err(EvaluationError::Interrupted)) {
            self.ended.set(Some(Limit::Caller));
        }
        result
    }

    /// Returns an error if the search has been ended by a limit, also where the error of an evaluation was taken for a fact.
    pub(crate) fn check(&self) -> Result<(), Halt> {
        self.ended.get().map_or(Ok(()), |limit| Err(Halt::Stopped(limit)))
    }

    /// Returns the limit that has ended the search.
    pub(crate) const fn ended(&self) -> Option<Limit> {
        self.ended.get()
    }

    /// Names the limit that has ended the search, which an interrupted evaluation does not.
    pub(crate) fn resolve(&self, halt: Halt) -> Halt {
        match (&halt, self.ended.get()) {
            (Halt::Stopped(_), Some(limit)) => Halt::Stopped(limit),
            _ => halt,
        }
    }

    #[cold]
    fn end(&self, limit: Limit) -> Halt {
        self.ended.set(Some(limit));
        Halt::Stopped(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_part_does_not_end_the_search() {
        let meter = Meter::new(Budget::work(100));
        assert!(meter.limited(10, || meter.work(20)).is_err());
        assert_eq!((meter.spent(), meter.check().is_ok()), (10, true));
        assert!(meter.limited(1_000, || meter.work(91)).is_err());
        assert_eq!((meter.spent(), meter.check().is_ok()), (100, false));
    }
}
