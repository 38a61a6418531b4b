//! Search for the best solution on a node: branch and bound over the tree of solutions, after the first one was found.
//!
//! The search for the first solution leaves out branches by arguments about the *first* one: a failed state, a symmetry after a
//! failure, the result of another node. For *all* solutions each would need a new argument. So first fit decides whether the claims
//! fit, and this search walks the same table from the first device on, with the two rules that hold for all solutions: devices that no
//! request can get, and the count of free devices. It has a table of all devices, since terms count the devices in use.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::AllocationResult;

use super::alike::Alike;
use super::displaced::Vacated;
use super::ground::{Ground, Start};
use super::known::{Found, KnownSearches, NodeFacts};
use super::levels::Objective;
use super::measures::{Measures, Value};
use super::partial::Partial;
use super::reason::{ChoiceReason, words};
use super::score::{Proof, Score};
use super::tree::{At, Tree};
use crate::search::SearchedStates;
use crate::search::all_devices::devices_of_all;
use crate::search::allocate_error::AllocateError;
use crate::search::budget::{Budget, Effort, Halt, Meter};
use crate::search::context::Context;
use crate::search::ix::{AlternativeIx, DeviceIx, PoolIx};
use crate::search::node_search::{first_on, with_table};
use crate::search::outcome::Outcome;
use crate::search::partial_assignment::{Chosen, PartialAssignment};
use crate::search::request::Plan;
use crate::search::results::results;
use crate::search::solution::{Selected, Solution};
use crate::search::table::Table;

/// Question of the best solution for claims on a node.
pub(crate) struct Question<'q> {
    pub(crate) context: &'q Context<'q>,
    pub(crate) plan: &'q Plan<'q>,
    pub(crate) node: &'q Node,
    pub(crate) like: Option<&'q SearchedStates>,
    /// Searches for the best solution on other nodes.
    pub(crate) known: Option<&'q KnownSearches>,
    pub(crate) budget: Budget<'q>,
    pub(crate) objective: &'q Objective,
    pub(crate) vacated: Option<&'q Vacated>,
}

/// The first solution, by the places of its devices in their pools.
struct FirstFit {
    results: Vec<AllocationResult>,
    chosen: Vec<(AlternativeIx, PoolIx, usize)>,
    picked: Selected,
}

/// Allocates the claims of a plan on one node, with the devices that are the best for an objective. A search that is stopped
/// has the best that was found, at least the first solution. There is no score if not even its terms could be read within the
/// budget.
pub(crate) fn best_on(question: &Question<'_>) -> Result<(Outcome, Effort, Option<Box<Score>>), AllocateError> {
    let Question { context, plan, node, like, budget, .. } = *question;
    let (first, effort) = first_on(context, plan, node, like, budget, FirstFit::new)?;
    let first = match first {
        Ok(first) => first,
        Err(outcome) => return Ok((outcome, effort, None)),
    };
    let meter = Meter::new(budget.after(effort.work));
    let improved = with_table(context, plan, node, &meter, |table| improve(question, table, &first))?;
    let effort = Effort { work: effort.work.saturating_add(meter.spent()), ..effort };
    match improved {
        Ok((results, score)) => {
            Ok((Outcome::Allocated(results.unwrap_or(first.results)), effort, Some(Box::new(score))))
        }
        Err(Halt::Failed(error)) => Err(error),
        Err(Halt::Stopped(_) | Halt::OnNode(_)) => Ok((Outcome::Allocated(first.results), effort, None)),
    }
}

impl FirstFit {
    fn new(table: &Table<'_>, solution: Solution<'_>) -> Result<Self, AllocateError> {
        let place = |chosen: &Chosen| {
            let candidate = table.candidate(chosen.device);
            (chosen.alternative, candidate.pool, candidate.number())
        };
        Ok(Self {
            results: results(table, solution)?,
            chosen: solution.chosen.iter().map(place).collect(),
            picked: solution.selected.clone(),
        })
    }

    /// Returns the chosen devices as those of a table of all devices.
    fn chosen_in(&self, table: &Table<'_>) -> Vec<Chosen> {
        let order = table.candidates.order();
        let device = |&(alternative, pool, number): &(AlternativeIx, PoolIx, usize)| {
            let (_, range) = order.iter().find(|(other, _)| *other == pool)?;
            Some(Chosen { alternative, device: DeviceIx::from(usize::from(range.start) + number) })
        };
        self.chosen.iter().filter_map(device).collect()
    }
}

/// Returns the results of a better solution than the first one, if there is one, and the score.
fn improve(
    question: &Question<'_>,
    table: &Table<'_>,
    first: &FirstFit,
) -> Result<(Option<Vec<AllocationResult>>, Score), Halt> {
    let all = devices_of_all(table, table.meter)?;
    let chosen = first.chosen_in(table);
    let start = Start { chosen: &chosen, picked: first.picked.alternatives() };
    let ground = Ground::new(table, &all, start, question.objective)?;
    let measures = Measures::new(&ground, question.objective, question.vacated);
    // An evaluation that the budget interrupted was taken for a fact.
    table.meter.check()?;
    let first_fit = measures.at_least(&Partial::new(&ground, start.chosen, start.picked));
    let search = Search { ground: &ground, measures: &measures, first: start, first_fit };
    let (found, proof) = search.run_or_recall(question.known)?;
    let score = search.score(found.as_ref(), proof, question.objective);
    let Some(found) = found else { return Ok((None, score)) };
    let selected = Selected::new(found.picked.iter().copied());
    let results = results(table, Solution { chosen: &found.chosen, selected: &selected })?;
    Ok((Some(results), score))
}

/// Returns the proof of a value, of which no solution is below the bound.
fn proof(value: &Value, bound: Value) -> Proof {
    if bound == *value { Proof::Least } else { Proof::Best { bound: bound.into_vec() } }
}

/// Search for a better solution than the first one.
struct Search<'g, 't, 's> {
    ground: &'g Ground<'t, 's>,
    measures: &'g Measures<'g>,
    first: Start<'g>,
    /// Value of the first solution.
    first_fit: Value,
}

impl Search<'_, '_, '_> {
    /// Returns what [`Search::run`] does. A node like another one takes the answer of that.
    fn run_or_recall(&self, known: Option<&KnownSearches>) -> Result<(Option<Found>, Proof), Halt> {
        let meter = self.ground.table.meter;
        let measures = || self.measures.iter().collect::<Vec<_>>();
        let Some((known, facts)) = known.zip(known.and_then(|_| NodeFacts::read(self.ground, &measures(), self.first)))
        else {
            return self.run();
        };
        if let Some(like) = known.find(&facts).filter(|like| like.work <= meter.left()) {
            meter.work(usize::try_from(like.work).unwrap_or(usize::MAX))?;
            self.ground.count_steps(like.steps);
            return Ok((like.found.clone(), like.proof.clone()));
        }
        let before = meter.spent();
        let (found, proof) = self.run()?;
        if proof == Proof::Least || self.ground.is_exhausted() {
            let effort = [self.ground.steps(), meter.spent().saturating_sub(before)];
            known.remember(facts, found.as_ref(), &proof, effort);
        }
        Ok((found, proof))
    }

    /// Returns the first of the best solutions if it is better than the first of all, and what is proved.
    fn run(&self) -> Result<(Option<Found>, Proof), Halt> {
        let alike = Alike::new(self.ground, &self.measures.iter().collect::<Vec<_>>());
        let mut assignment = PartialAssignment::new(self.ground.table);
        let mut tree = Tree::new(self.ground, &self.ground.competing, &alike, &mut assignment);
        let root = tree.partial().map(|partial| self.measures.at_least(&partial));
        let mut found = None;
        if !self.ground.is_searchable {
            let bound = self.first_fit.iter().map(|_| 0).collect();
            return Ok((None, proof(&self.first_fit, bound)));
        }
        let (value, is_over) = match self.walk(&mut tree, self.first_fit.clone(), &mut found) {
            (value, Ok(())) => (value, true),
            (value, Err(Halt::Stopped(_))) => (value, false),
            (_, Err(halt)) => return Err(halt),
        };
        if self.measures.is_rough() {
            let bound = root.unwrap_or_else(|| value.clone());
            return Ok((found, proof(&value, bound)));
        }
        if is_over {
            return Ok((found, Proof::Least));
        }
        let bound = self.bound(&mut tree, value.clone())?;
        Ok((found, proof(&value, bound)))
    }

    /// Walks through the tree, past parts that can't become better than the best so far. Returns the least value.
    fn walk(
        &self,
        tree: &mut Tree<'_, '_, '_>,
        mut least: Value,
        found: &mut Option<Found>,
    ) -> (Value, Result<(), Halt>) {
        let mut is_below = true;
        loop {
            let at = match tree.next(is_below) {
                Ok(Some(at)) => at,
                Ok(None) => return (least, Ok(())),
                Err(halt) => return (least, Err(halt)),
            };
            let partial = tree.partial();
            if let Some(partial) = &partial {
                let open = partial.wants.iter().flat_map(|want| &want.options).map(|open| open.devices.len());
                self.ground.count(open.sum(), partial.chosen.len());
            }
            let value = partial.map(|partial| self.measures.at_least(&partial));
            let value = value.filter(|value| *value < least);
            is_below = value.is_some() && at == At::Branch;
            if let (At::Solution, Some(value)) = (at, value)
                && let Some(better) = Self::found(tree, value)
            {
                least.clone_from(&better.value);
                *found = Some(better);
            }
        }
    }

    /// Returns the solution at the place; `None` if kube-scheduler would fail with it.
    fn found(tree: &Tree<'_, '_, '_>, value: Value) -> Option<Found> {
        tree.holds().then(|| Found {
            value,
            chosen: tree.chosen().to_vec(),
            picked: tree.picked().iter().copied().collect(),
        })
    }

    /// Returns a value below which there is no solution, after the walk was stopped: the least bound of what is left to try.
    fn bound(&self, tree: &mut Tree<'_, '_, '_>, value: Value) -> Result<Value, Halt> {
        let mut bound = value;
        loop {
            if let Some(partial) = tree.partial() {
                bound = bound.min(self.measures.at_least(&partial));
            }
            if !tree.back_out()? {
                return Ok(bound);
            }
        }
    }

    fn score(&self, found: Option<&Found>, proof: Proof, objective: &Objective) -> Score {
        let first = Partial::new(self.ground, self.first.chosen, self.first.picked);
        let best = found.map(|found| Partial::new(self.ground, &found.chosen, &found.picked));
        let value = found.map_or(&self.first_fit, |found| &found.value);
        Score {
            value: value.to_vec(),
            proof,
            first_fit: self.first_fit.to_vec(),
            displaced: self.measures.displaced(best.as_ref().unwrap_or(&first)),
            steps: self.ground.steps(),
            reason: best.and_then(|best| self.reason((&best, value), &first, objective)),
        }
    }

    /// Returns the first term that decides between the best solution, with its value, and the first one; `None` if a term can't be
    /// counted again within the budget.
    fn reason(
        &self,
        (best, value): (&Partial<'_>, &Value),
        first: &Partial<'_>,
        objective: &Objective,
    ) -> Option<ChoiceReason> {
        let (values, others) = (self.measures.terms(best), self.measures.terms(first));
        if self.measures.sums(&values) != *value || self.measures.sums(&others) != self.first_fit {
            return None;
        }
        let decisive = values.iter().zip(&others).zip(objective.levels()).find_map(|((values, others), level)| {
            let gains = values.iter().zip(others).zip(level).map(|((value, other), weighted)| {
                let gain = other.saturating_sub(*value).saturating_mul(u64::from(weighted.weight));
                (gain, &weighted.term, *value, *other)
            });
            // The first of the largest gains.
            gains.filter(|(gain, ..)| *gain > 0).rev().max_by_key(|(gain, ..)| *gain)
        });
        let (_, term, value, first_fit) = decisive?;
        let table = self.ground.table;
        let others = |these: &Partial<'_>, others: &Partial<'_>| -> Vec<DeviceIx> {
            let is_other = |chosen: &&Chosen| others.chosen.iter().all(|other| other.device != chosen.device);
            these.chosen.iter().filter(is_other).map(|chosen| chosen.device).collect()
        };
        let names = |devices: &[DeviceIx]| devices.iter().map(|device| table.id(*device)).collect();
        let (devices, instead_of) = (others(best, first), others(first, best));
        let words = words(term, table, &devices, &self.ground.reach);
        let (devices, instead_of) = (names(&devices), names(&instead_of));
        Some(ChoiceReason { devices, instead_of, words, term: term.to_string(), value, first_fit })
    }
}
