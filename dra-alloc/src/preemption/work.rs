//! Work of one question, within its budget.

use std::cell::Cell;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::AllocationResult;

use super::halt::Halt;
use crate::allocator::Attempt;
use crate::cluster::state::AllocatedState;
use crate::search::budget::{Budget, Meter};
use crate::search::outcome::{Fit, Outcome};
use crate::search::stopped::Limit;

/// Work of one question, within its budget.
pub(super) struct Work<'q> {
    budget: Budget<'q>,
    spent: Cell<u64>,
}

impl<'q> Work<'q> {
    pub(super) const fn new(budget: Budget<'q>) -> Self {
        Self { budget, spent: Cell::new(0) }
    }

    /// Tells if the claims of an attempt can be allocated on a node beside the devices in use.
    pub(super) fn fits(&self, attempt: &Attempt<'_>, state: &AllocatedState, node: &Node) -> Result<bool, Halt> {
        let meter = Meter::new(self.rest());
        let fit = attempt.fits_beside(state, node, &meter);
        self.spend(meter.spent());
        match fit? {
            Fit::Yes => Ok(true),
            Fit::No => Ok(false),
            Fit::Stopped(stopped) => Err(Halt::Stopped(stopped.limit)),
        }
    }

    /// Allocates the claims of an attempt on a node beside the devices in use; `None` if that can't be done.
    pub(super) fn allocate(
        &self,
        attempt: &Attempt<'_>,
        state: &AllocatedState,
        node: &Node,
    ) -> Result<Option<Vec<AllocationResult>>, Halt> {
        let (outcome, work) = attempt.allocate_beside(state, node, self.rest())?;
        self.spend(work);
        match outcome {
            Outcome::Allocated(results) => Ok(Some(results)),
            Outcome::Stopped(stopped) => Err(Halt::Stopped(stopped.limit)),
            Outcome::Unsatisfied | Outcome::FailedOnNode(_) => Ok(None),
        }
    }

    /// Counts work beside that of the allocator. Fails if the work of the call is used up.
    pub(super) fn count(&self, amount: usize) -> Result<(), Halt> {
        self.spend(u64::try_from(amount).unwrap_or(u64::MAX));
        if self.rest().limit() == 0 { Err(Halt::Stopped(Limit::Call)) } else { Ok(()) }
    }

    /// Returns the work so far.
    pub(super) const fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Returns the largest work on a node.
    pub(super) const fn of_node(&self) -> u64 {
        self.budget.limit()
    }

    fn spend(&self, work: u64) {
        self.spent.set(self.spent.get().saturating_add(work));
    }

    const fn rest(&self) -> Budget<'q> {
        self.budget.after(self.spent.get())
    }
}
