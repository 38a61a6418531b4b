//! Searches on nodes that see the very same pools, and none of their own: the search of the first is that of all.
//!
//! *Argument.* Within an attempt the plan, the gates and the state are the same for all nodes. A search reads a node through its
//! pools, and reads three things of the node itself: whether it may skip node operations, which is a part of the key; the
//! selectors of devices that choose nodes themselves, without which a pool must be; and its name in the results, which are
//! built for each node. So the way to the solution, its devices and its price are equal if the pools are the same objects in
//! the same order. Pools are kept as long as a search is remembered, so that no other pool can have the address of one.
//! Searches that ended in an error or by the budget are not remembered.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::budget::Effort;
use super::elisions::Elision;
use super::partial_assignment::Chosen;
use super::solution::{Selected, Solution};
use super::table::Table;
use crate::cluster::inventory::pool::Pool;
use crate::cluster::inventory::view::View;

/// Largest number of searches that are remembered, and smallest work of one: it takes less to look a search up.
const MOST_SEARCHES: usize = 16;
const LEAST_WORK: u64 = 64;

/// Searches of one attempt on nodes without pools of their own.
#[derive(Debug)]
pub(crate) struct SamePools {
    known: Mutex<Vec<Arc<Search>>>,
    least_work: u64,
}

impl Default for SamePools {
    fn default() -> Self {
        Self { known: Mutex::default(), least_work: LEAST_WORK }
    }
}

/// Search that has come to its end.
#[derive(Debug)]
pub(super) struct Search {
    pools: Vec<Arc<Pool>>,
    skips_allowed: bool,
    found: Option<(Vec<Chosen>, Selected)>,
    pub(super) effort: Effort,
}

impl SamePools {
    /// Returns the search that was made on a node with the same pools.
    pub(super) fn find(&self, view: &View<'_>, table: &Table<'_>) -> Option<Arc<Search>> {
        let known = self.searches();
        if known.is_empty() || !table.context.elisions.has(Elision::SamePools) {
            return None;
        }
        let is_of = |search: &&Arc<Search>| {
            let is_same = |(one, other): (&Arc<Pool>, &Arc<Pool>)| Arc::ptr_eq(one, other);
            search.skips_allowed == table.skips_allowed()
                && search.pools.len() == view.len()
                && view.shared().is_some_and(|pools| pools.zip(&search.pools).all(is_same))
        };
        known.iter().find(is_of).cloned()
    }

    /// Remembers a search that has come to its end, if it was long, and if it is that of all nodes with the same pools.
    pub(super) fn remember(&self, view: &View<'_>, table: &Table<'_>, effort: Effort, solution: Option<Solution<'_>>) {
        let is_kept = effort.work >= self.least_work && table.context.elisions.has(Elision::SamePools);
        let Some(pools) = view.shared().filter(|_| is_kept) else { return };
        let pools: Vec<Arc<Pool>> = pools.cloned().collect();
        let mut known = self.searches();
        if known.len() < MOST_SEARCHES && pools.iter().all(|pool| pool.is_for_its_nodes()) {
            let found = solution.map(|Solution { chosen, selected }| (chosen.to_vec(), selected.clone()));
            known.push(Arc::new(Search { pools, skips_allowed: table.skips_allowed(), found, effort }));
        }
    }
}

impl SamePools {
    fn searches(&self) -> MutexGuard<'_, Vec<Arc<Search>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Search {
    /// Returns the solution; `None` if there is none.
    pub(super) fn solution(&self) -> Option<Solution<'_>> {
        self.found.as_ref().map(|(chosen, selected)| Solution { chosen, selected })
    }
}

#[cfg(test)]
mod tests;
