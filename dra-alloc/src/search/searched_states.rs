//! Searches whose result holds on other nodes: those in the state of the node that was searched.
//!
//! *Argument.* A search reads a node through its pools, their use, and whether the node may skip operations. The state of a node
//! ([`NodeState`]) has all of it but for names, which a search only compares with each other, and attributes that no selector and no
//! constraint of the plan reads ([`lens_of`]). So nodes in one state have the same solution, device by device, the same way to it, and
//! the same price. What reads names is done for each node: the results, and the errors of building them. Searches that ended in an
//! error, which names a device, or by the budget are not remembered.
//!
//! Only searches are remembered that took more work than there are devices to read, and states are read only as long as that has
//! saved work, or may: reading in vain never costs more than the searches themselves.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::budget::Effort;
use super::context::{Context, FailingSelectors};
use super::elisions::Elision;
use super::partial_assignment::Chosen;
use super::request::Plan;
use super::solution::{Selected, Solution};
use super::table::Table;
use crate::cluster::inventory::lens::Lens;
use crate::cluster::inventory::shape::KnownLens;
use crate::cluster::inventory::view::View;
use crate::cluster::known_states::KnownStates;
use crate::cluster::node_state::{NodeState, SharedUse};
use crate::cluster::set_uses::SetUses;

/// Largest number of searches that are remembered.
const MOST_SEARCHES: usize = 1_024;
/// Smallest work of a search that is remembered, and the same for each device of the node: reading one takes less than a unit.
const LEAST_WORK: (u64, u64) = (64, 1);

/// Searches of one attempt, with the states of the nodes that they were made on.
#[derive(Debug)]
pub(crate) struct SearchedStates {
    lens: OnceLock<KnownLens>,
    uses: SetUses,
    known: KnownStates<Search>,
    /// Number of devices that may still be read in vain.
    credit: AtomicU64,
    least_work: (u64, u64),
}

/// Search that has come to its end.
#[derive(Debug)]
pub(crate) struct Search {
    /// Solution, as positions of devices.
    found: Option<(Vec<Chosen>, Selected)>,
    pub(crate) effort: Effort,
}

impl Default for SearchedStates {
    fn default() -> Self {
        let (known, credit) = (KnownStates::new(MOST_SEARCHES), AtomicU64::new(0));
        Self { lens: OnceLock::new(), uses: SetUses::default(), known, credit, least_work: LEAST_WORK }
    }
}

impl SearchedStates {
    /// Reads the state of a node if a search is known that may have been made on a node in that state.
    pub(super) fn read(&self, view: &View<'_>, table: &Table<'_>) -> Option<NodeState> {
        if self.known.len() == 0 || !table.context.elisions.has(Elision::SearchedStates) || !self.pay(price(view)) {
            return None;
        }
        self.state(view, table)
    }

    /// Takes an amount from the credit. Returns false if there is less.
    fn pay(&self, amount: u64) -> bool {
        let rest = |credit: u64| credit.checked_sub(amount);
        self.credit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok()
    }

    fn state(&self, view: &View<'_>, table: &Table<'_>) -> Option<NodeState> {
        let context = table.context;
        // Nodes look alike through what selectors read; with this rule other attributes matter, too.
        if context.selectors.fails_on_lists {
            return None;
        }
        let lens = self.lens.get_or_init(|| context.inventory.shapes().lens(lens_of(context, table.plan)));
        let passes_over = context.failing == FailingSelectors::PassOver;
        let first = [table.skips_allowed(), passes_over].map(u64::from);
        NodeState::read(first, context.inventory, view, lens, context.state, SharedUse::Compared(&self.uses))
    }

    /// Returns the search that was made on a node in a state.
    pub(super) fn find(&self, state: &NodeState) -> Option<Arc<Search>> {
        self.known.find(state)
    }

    /// Adds the work of a search that was not repeated to the credit.
    pub(super) fn saved(&self, search: &Search) {
        self.credit.fetch_add(search.effort.work, Ordering::Relaxed);
    }

    /// Remembers a search that has come to its end, if it was long. `state` is that of the node if it was read.
    pub(super) fn remember(
        &self,
        state: Option<NodeState>,
        view: &View<'_>,
        table: &Table<'_>,
        effort: Effort,
        solution: Option<Solution<'_>>,
    ) {
        if !self.is_long(view, effort) || !table.context.elisions.has(Elision::SearchedStates) {
            return;
        }
        let Some(state) = state.or_else(|| self.state(view, table)) else { return };
        let found = solution.map(|Solution { chosen, selected }| (chosen.to_vec(), selected.clone()));
        self.saved(&self.known.keep(state, Search { found, effort }));
    }

    fn is_long(&self, view: &View<'_>, effort: Effort) -> bool {
        let (least, of_each) = self.least_work;
        effort.work >= least && effort.work >= price(view).saturating_mul(of_each)
    }
}

impl Search {
    /// Returns the solution; `None` if there is none.
    pub(super) fn solution(&self) -> Option<Solution<'_>> {
        self.found.as_ref().map(|(chosen, selected)| Solution { chosen, selected })
    }
}

/// Returns the number of pools and devices that are read for the state of a node. Of pools that many nodes see no device is read,
/// and a set of them is read once for all nodes.
fn price(view: &View<'_>) -> u64 {
    let (own, devices) = view.own_pools().fold((0, 0), |(pools, devices), (_, pool)| (pools + 1, devices + pool.len()));
    let shared = if view.set().is_some() { 1 } else { view.len() - own };
    u64::try_from(own + devices + shared).unwrap_or(u64::MAX)
}

/// Returns the lens that shows the attributes that selectors and constraints of a plan read.
pub(crate) fn lens_of(context: &Context<'_>, plan: &Plan<'_>) -> Lens {
    let Some(mut names) = read_by_selectors(context, plan) else { return Lens::ALL };
    for column in &plan.columns {
        match column.attribute.split_once('/') {
            Some(name) if column.derived.is_none() => drop(names.insert(name)),
            _ => return Lens::ALL,
        }
    }
    Lens::of(names)
}

/// Returns the lens that shows the attributes that selectors of a plan read.
pub(super) fn lens_of_selectors(context: &Context<'_>, plan: &Plan<'_>) -> Lens {
    read_by_selectors(context, plan).map_or(Lens::ALL, Lens::of)
}

/// Returns the attributes that selectors of a plan read, by domain and id; `None` if they are not known.
fn read_by_selectors<'p>(context: &Context<'p>, plan: &'p Plan<'_>) -> Option<BTreeSet<(&'p str, &'p str)>> {
    let mut names = BTreeSet::new();
    for asked in &plan.alternatives {
        for selector in asked.compiled(context.selectors)? {
            names.extend(selector.attributes_read()?.iter().map(|(domain, id)| (domain.as_str(), id.as_str())));
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests;
