//! Outlook: what is left for further solutions of the same claims.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::alike::Alike;
use super::ground::Ground;
use super::measure::{Facts, Measure};
use super::pair_costs::PairCosts;
use super::partial::Partial;
use super::term::Pairs;
use super::tree::{At, Tree};
use crate::search::budget::Halt;
use crate::search::ix::{AlternativeIx, DeviceIx};
use crate::search::partial_assignment::{Chosen, PartialAssignment};

/// Largest number of further solutions.
const MOST_ROUNDS: u32 = 128;
/// Largest number of devices in all states whose outlook is kept.
const MOST_KNOWN: usize = 1 << 20;

/// Further solutions: how many fit, and their least total cost. More are better, then less cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Further {
    rounds: u32,
    total: u64,
}

impl Further {
    fn is_better_than(self, other: Self) -> bool {
        (other.rounds, self.total) < (self.rounds, other.total)
    }
}

/// Number of further solutions that are wanted, and the devices in use by all solutions so far, sorted.
type State = (u32, Vec<(DeviceIx, AlternativeIx)>);

/// Least total cost of pairs over further solutions.
pub(super) struct Outlook<'a, 't, 's> {
    ground: &'a Ground<'t, 's>,
    costs: PairCosts,
    alike: Alike,
    times: u32,
    known: RefCell<BTreeMap<State, Further>>,
    /// Number of devices in all known states.
    size: Cell<usize>,
    /// True if the search of an outlook was stopped, so that its value may be too large.
    is_rough: Cell<bool>,
}

impl<'a, 't, 's> Outlook<'a, 't, 's> {
    pub(super) fn new(ground: &'a Ground<'t, 's>, of: &Pairs, times: Option<u32>) -> Self {
        let costs = PairCosts::new(ground, of);
        let alike = Alike::new(ground, &[&costs]);
        let times = times.unwrap_or(MOST_ROUNDS).min(MOST_ROUNDS);
        Self { ground, costs, alike, times, known: RefCell::default(), size: Cell::new(0), is_rough: Cell::new(false) }
    }

    /// Places the devices of solutions anew but for those with admin access, which count nowhere in a further call, and looks for
    /// further solutions.
    fn after(&self, chosen: &[Chosen], times: u32) -> Further {
        let mut assignment = PartialAssignment::new(self.ground.table);
        for chosen in chosen.iter().filter(|chosen| self.ground.counts(chosen.alternative)) {
            // Constraints held within each solution; they say nothing about several.
            assignment.begin_round();
            if assignment.place(chosen.alternative, chosen.device).is_err() {
                return Further::default();
            }
        }
        self.further(&mut assignment, times)
    }

    /// Returns the best further solutions beside an assignment. The depth is at most the number of rounds.
    fn further(&self, assignment: &mut PartialAssignment<'t, 's>, times: u32) -> Further {
        if times == 0 {
            return Further::default();
        }
        let state = state(assignment, times);
        if let Some(known) = self.known.borrow().get(&state) {
            return *known;
        }
        let round = assignment.begin_round();
        let mut best = Further::default();
        let searched = self.search(assignment, times, &mut best);
        assignment.end_round(round);
        match searched {
            Ok(()) if self.size.get() < MOST_KNOWN => {
                self.size.set(self.size.get() + state.1.len() + 1);
                self.known.borrow_mut().insert(state, best);
            }
            Ok(()) => {}
            Err(_) => self.is_rough.set(true),
        }
        best
    }

    fn search(&self, assignment: &mut PartialAssignment<'t, 's>, times: u32, best: &mut Further) -> Result<(), Halt> {
        let mut tree = Tree::new(self.ground, &self.ground.requests, &self.alike, assignment);
        let searched = self.walk(&mut tree, times, best);
        if searched.is_err() {
            tree.rewind()?;
        }
        searched
    }

    fn walk(&self, tree: &mut Tree<'_, 't, 's>, times: u32, best: &mut Further) -> Result<(), Halt> {
        let mut is_below = true;
        while let Some(at) = tree.next(is_below)? {
            // As many rounds as there may be have their costs alone to be better.
            let most = if best.rounds == times { best.total } else { u64::MAX };
            let own = tree.partial().map(|partial| self.costs.at_least(&partial)).filter(|own| *own < most);
            is_below = own.is_some() && at == At::Branch;
            if let (At::Solution, Some(own)) = (at, own)
                && tree.holds()
            {
                let rest = if self.ground.has_admin {
                    self.after(&tree.assignment.chosen, times - 1)
                } else {
                    self.further(tree.assignment, times - 1)
                };
                let found = Further { rounds: rest.rounds + 1, total: rest.total.saturating_add(own) };
                if found.is_better_than(*best) {
                    *best = found;
                }
                if *best == (Further { rounds: times, total: 0 }) {
                    return tree.rewind();
                }
            }
        }
        Ok(())
    }
}

fn state(assignment: &PartialAssignment<'_, '_>, times: u32) -> State {
    let mut devices: Vec<_> = assignment.chosen.iter().map(|chosen| (chosen.device, chosen.alternative)).collect();
    devices.sort_unstable();
    (times, devices)
}

impl Measure for Outlook<'_, '_, '_> {
    fn at_least(&self, partial: &Partial<'_>) -> u64 {
        if partial.is_whole() { self.after(&partial.chosen, self.times).total } else { 0 }
    }

    fn is_rough(&self) -> bool {
        self.is_rough.get()
    }

    fn tell(&self, device: DeviceIx, facts: &mut Facts) {
        self.costs.tell(device, facts);
    }

    // What its own searches have counted is told by nothing.
    fn tell_node(&self, _: &mut Facts) -> bool {
        false
    }
}
