//! Search of the least harm on one node, or on the nodes of a gang: branch and bound over the units that go.
//!
//! Units are decided one after the other, the most important first: a unit stays if the preemptor can fit without it, and goes
//! otherwise; afterwards the search comes back and lets units go that could stay. A branch ends where its bound is no less than
//! the best set so far, and where the chosen units suffice. The first set is that of kube-scheduler's way to put pods back.
//!
//! That is right since the test never turns from yes to no with more units out: the allocator searches all choices, and
//! a device that becomes free adds choices. What could break it is not searched for: a device that is looked at only when it
//! is free, and whose selector then fails, is an error of the node. A search that is stopped counts as a no, and the answer then says
//! `Irreducible` in place of `Least`.

use super::asked::Asked;
use super::bounds::{Bounds, Missing};
use super::halt::Halt;
use super::harm_value::HarmValue;
use super::placing::Fitting;
use super::site::Site;
use super::trial::Trial;
use crate::cluster::bits::Bits;
use crate::search::stopped::Limit;

/// Share of the work on a node that the search may take, in eighths; the rest is for leaving out what is not needed.
const EIGHTHS: u64 = 7;

/// Search on one node.
pub(super) struct NodeSearch<'s, 'q> {
    asked: &'s Asked<'q>,
    bounds: &'s Bounds<'s, 'q>,
    trial: Trial<'s, 'q>,
    /// Units that harm nobody, which are out during the search.
    free: Vec<usize>,
    /// Units to decide, in their order.
    order: Vec<usize>,
    /// Decisions for the first of these.
    path: Vec<Decision>,
    /// Units that go.
    chosen: Vec<usize>,
    best: Option<(HarmValue, Vec<usize>)>,
    is_proven: bool,
}

/// Decision about a unit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decision {
    Stays,
    Goes,
}

/// Set of units of least harm on a node.
pub(super) struct LeastSet {
    pub(super) out: Bits,
    pub(super) value: HarmValue,
    pub(super) violations: usize,
    /// True if it is proved that no other set on the node has less harm.
    pub(super) is_proven: bool,
}

/// Searches the set of least harm on a node. Sets for which `is_worse` is true, and all of more harm, are not wanted.
pub(super) fn least_set<'q>(
    asked: &Asked<'q>,
    site: &Site<'q>,
    bounds: &Bounds<'_, 'q>,
    is_worse: &dyn Fn(&HarmValue) -> bool,
) -> Result<Option<LeastSet>, Halt> {
    let trial = Trial::new(asked, site)?;
    match trial.fits()? {
        Fitting::Yes => {}
        Fitting::No => return Ok(None),
        Fitting::Open => return Err(Halt::Open),
    }
    let (free, order) = ((0..site.units.len()).filter(|unit| bounds.is_free(*unit)).collect(), bounds.order());
    let (path, chosen) = (Vec::with_capacity(order.len()), Vec::new());
    let mut search = NodeSearch { asked, bounds, trial, free, order, path, chosen, best: None, is_proven: true };
    search.run(is_worse)?;
    search.irreducible()
}

impl NodeSearch<'_, '_> {
    fn run(&mut self, is_worse: &dyn Fn(&HarmValue) -> bool) -> Result<(), Halt> {
        let most = (self.asked.work.of_node() / 8).saturating_mul(EIGHTHS);
        let begin = self.asked.work.spent();
        loop {
            if self.asked.work.spent().saturating_sub(begin) > most {
                self.is_proven = false;
                return Ok(());
            }
            self.asked.work.count(1 + self.order.len() / 8)?;
            let goes_on = self.is_open(is_worse)? && self.decide()?;
            if !goes_on && !self.back() {
                return Ok(());
            }
        }
    }

    /// Returns true if more units have to be decided. Keeps the chosen units as the best set if they suffice.
    fn is_open(&mut self, is_worse: &dyn Fn(&HarmValue) -> bool) -> Result<bool, Halt> {
        if self.is_bounded(Missing::Counted, is_worse) {
            return Ok(false);
        }
        // With a unit more that stays, the chosen ones are those that were tested before.
        if self.path.last() == Some(&Decision::Stays) {
            return Ok(!self.is_bounded(Missing::OneUnit, is_worse));
        }
        if self.bounds.is_short(&self.chosen) || !self.suffices(self.order.len())? {
            return Ok(!self.is_bounded(Missing::OneUnit, is_worse));
        }
        if let Some(value) = self.bounds.value(&self.chosen) {
            self.best = Some((value, self.chosen.clone()));
        }
        Ok(false)
    }

    fn is_bounded(&self, missing: Missing, is_worse: &dyn Fn(&HarmValue) -> bool) -> bool {
        let mut undecided = Bits::none(self.free.len() + self.order.len());
        self.order.iter().skip(self.path.len()).for_each(|unit| undecided.set(*unit, true));
        let bound = self.bounds.lower(&self.chosen, |unit| undecided.contains(unit), missing);
        bound.is_none_or(|bound| match &self.best {
            Some((best, _)) => bound >= *best,
            None => is_worse(&bound),
        })
    }

    /// Decides the next unit: it stays if the later ones suffice with the chosen ones. Returns false if there is none.
    fn decide(&mut self) -> Result<bool, Halt> {
        let Some(unit) = self.order.get(self.path.len()).copied() else { return Ok(false) };
        if self.suffices(self.path.len() + 1)? {
            self.path.push(Decision::Stays);
        } else {
            self.path.push(Decision::Goes);
            self.chosen.push(unit);
        }
        Ok(true)
    }

    /// Goes back to the last unit that stays, and lets it go. Returns false if there is none.
    fn back(&mut self) -> bool {
        while let Some(decision) = self.path.pop() {
            if decision == Decision::Goes {
                self.chosen.pop();
            } else if let Some(unit) = self.order.get(self.path.len()) {
                self.chosen.push(*unit);
                self.path.push(Decision::Goes);
                return true;
            }
        }
        false
    }

    /// Tells if the chosen units suffice, with all that harm nobody and those from a place of the order on.
    fn suffices(&mut self, from: usize) -> Result<bool, Halt> {
        let later = self.order.get(from..).unwrap_or_default();
        let mut out = Bits::none(self.free.len() + self.order.len());
        self.free.iter().chain(&self.chosen).chain(later).for_each(|unit| out.set(*unit, true));
        self.test(&out)
    }

    /// Tests the members with some units out. A test without an answer counts as a no, and nothing is proved.
    fn test(&mut self, out: &Bits) -> Result<bool, Halt> {
        self.trial.set_to(out)?;
        match self.trial.fits() {
            Err(Halt::Stopped(Limit::Node)) | Ok(Fitting::Open) => {
                self.is_proven = false;
                Ok(false)
            }
            answer => Ok(answer? == Fitting::Yes),
        }
    }

    /// Returns the best set without what is not needed: first pods that are being deleted stay, then idle claims.
    fn irreducible(mut self) -> Result<Option<LeastSet>, Halt> {
        let Some((_, mut chosen)) = self.best.take() else { return Ok(None) };
        let mut out = Bits::none(self.free.len() + self.order.len());
        self.free.iter().chain(&chosen).for_each(|unit| out.set(*unit, true));
        let candidates: Vec<usize> = chosen.iter().chain(&self.free).copied().collect();
        for unit in candidates {
            out.set(unit, false);
            if !self.test(&out)? {
                out.set(unit, true);
            }
        }
        chosen.retain(|unit| out.contains(*unit));
        let Some(value) = self.bounds.value(&chosen) else { return Ok(None) };
        let violations = self.bounds.violations_of(&chosen);
        Ok(Some(LeastSet { out, value, violations, is_proven: self.is_proven }))
    }
}
