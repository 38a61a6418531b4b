//! Work of one question, within its budget.

use std::cell::Cell;

use crate::search::budget::Budget;

/// Work of one question, within its budget.
pub(super) struct Work<'w> {
    budget: Budget<'w>,
    spent: Cell<u64>,
    /// True if a "no" may be wrong: a search was stopped, or devices that several nodes see could be divided in other ways.
    pub(super) is_open: Cell<bool>,
}

/// End of a search before it has an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The work is used up.
    Stopped,
    /// A claim or a device can't be read.
    Invalid,
}

impl<'w> Work<'w> {
    pub(super) const fn new(budget: Budget<'w>) -> Self {
        Self { budget, spent: Cell::new(0), is_open: Cell::new(false) }
    }

    /// Counts work.
    pub(super) fn count(&self, amount: usize) -> Result<(), Ended> {
        self.spent.set(self.spent.get().saturating_add(u64::try_from(amount).unwrap_or(u64::MAX)));
        if self.rest().limit() == 0 { Err(Ended::Stopped) } else { Ok(()) }
    }

    /// Returns what is left of the budget.
    pub(super) const fn rest(&self) -> Budget<'w> {
        self.budget.after(self.spent.get())
    }
}
