//! Table of the terms: the measure of each on the devices of one node, and values of parts of solutions.

use std::rc::Rc;

use smallvec::SmallVec;

use super::alternative::Alternative;
use super::displaced::{Displaced, Vacated};
use super::ground::Ground;
use super::groups::{Opened, Spread};
use super::levels::Objective;
use super::measure::Measure;
use super::outlook::Outlook;
use super::pair_costs::PairCosts;
use super::pairing::Pairing;
use super::partial::Partial;
use super::per_device::{conditions, prefer, tainted, waste};
use super::supply::{Options, Room, Stranded, Supply};
use super::term::Term;

/// Value of a solution: a number for each level.
pub(super) type Value = SmallVec<[u64; 4]>;

/// Values of the terms of a level, without weights.
type Terms = SmallVec<[u64; 4]>;

/// Measures of the terms of a level, with their weights.
type Level<'a> = Vec<(u64, Box<dyn Measure + 'a>)>;

/// Measures of the terms of an objective, by level.
pub(super) struct Measures<'a>(Vec<Level<'a>>);

impl<'a> Measures<'a> {
    pub(super) fn new<'t: 'a, 's: 'a>(
        ground: &'a Ground<'t, 's>,
        objective: &'a Objective,
        vacated: Option<&'a Vacated>,
    ) -> Self {
        let mut supply = None;
        let levels = objective.levels().iter().map(|level| {
            let measure = |term| measure(ground, term, vacated, &mut supply);
            let weights = level.iter().map(|weighted| u64::from(weighted.weight));
            weights.zip(level.iter().map(|weighted| &weighted.term).map(measure)).collect()
        });
        Self(levels.collect())
    }

    /// Returns a value that no solution with this part is below; of a whole solution, its value.
    pub(super) fn at_least(&self, partial: &Partial<'_>) -> Value {
        self.sums(&self.terms(partial))
    }

    /// Adds up the values of the terms of each level, with their weights.
    pub(super) fn sums(&self, terms: &[Terms]) -> Value {
        let level = |(level, values): (&Level<'a>, &Terms)| {
            let terms = level.iter().zip(values).map(|((weight, _), value)| weight.saturating_mul(*value));
            terms.fold(0, u64::saturating_add)
        };
        self.0.iter().zip(terms).map(level).collect()
    }

    /// Returns the values of the terms of a part of a solution, by level, without weights.
    pub(super) fn terms(&self, partial: &Partial<'_>) -> SmallVec<[Terms; 4]> {
        self.0.iter().map(|level| level.iter().map(|(_, measure)| measure.at_least(partial)).collect()).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &dyn Measure> {
        self.0.iter().flatten().map(|(_, measure)| &**measure as &dyn Measure)
    }

    /// Returns true if the value of a solution may have been too large.
    pub(super) fn is_rough(&self) -> bool {
        self.iter().any(Measure::is_rough)
    }

    /// Returns the names of the units that have to go for a solution.
    pub(super) fn displaced(&self, partial: &Partial<'_>) -> Vec<String> {
        self.iter().flat_map(|measure| measure.displaced(partial)).collect()
    }
}

fn measure<'a, 't: 'a, 's: 'a>(
    ground: &'a Ground<'t, 's>,
    term: &'a Term,
    vacated: Option<&'a Vacated>,
    supply: &mut Option<Rc<Supply>>,
) -> Box<dyn Measure + 'a> {
    let mut supply = || Rc::clone(supply.get_or_insert_with(|| Rc::new(Supply::new(ground))));
    match term {
        Term::Opened { by } => Box::new(Opened::new(ground, by)),
        Term::Room { size } => Box::new(Room::new(supply(), size.as_deref())),
        Term::Options => Box::new(Options::new(supply())),
        Term::Stranded => Box::new(Stranded::new(supply())),
        Term::Spread { by } => Box::new(Spread::new(ground, by)),
        Term::Pairs(pairs) => Box::new(PairCosts::new(ground, pairs)),
        Term::Pairing { of, with, attribute } => Box::new(Pairing::new(ground, of, with, attribute)),
        Term::Waste { capacity } => Box::new(waste(ground, capacity)),
        Term::Prefer { selectors } => Box::new(prefer(ground, selectors)),
        Term::Tainted => Box::new(tainted(ground)),
        Term::Conditions => Box::new(conditions(ground)),
        Term::Alternative => Box::new(Alternative::new(ground)),
        Term::Displaced { units } => Box::new(Displaced::new(ground, units, vacated)),
        Term::Outlook { of, times } => Box::new(Outlook::new(ground, of, *times)),
    }
}
