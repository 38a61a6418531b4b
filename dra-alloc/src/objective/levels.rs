//! Objectives: levels of weighted terms.

use serde_json::Value;

use super::check::check;
use super::error::ObjectiveError;
use super::read::read;
use super::term::{Term, Unit, Weighted};

/// Search nodes that a search for the best solution visits at most, unless the objective says another number.
const STEPS: u64 = 20_000;

/// Levels of weighted terms, by which one solution is better than another.
///
/// The value of a solution has a number for each level, the sum of its terms times their weights. Values are compared as lists,
/// and less is better. Of solutions with equal values, the first in the order of the search is the best. Without levels that is
/// the first solution, as kube-scheduler takes it.
///
/// Kubernetes has no such scores. This is a rule of its own.
///
/// ```
/// use dra_alloc::objective::{GroupBy, Objective, Term};
/// use serde_json::json;
///
/// let opened = Term::Opened { by: GroupBy::CounterSet };
/// let objective = Objective::new([vec![opened.into()], vec![Term::Options.into()]])?;
/// let read = Objective::from_json(&json!([[{"term": "opened", "by": "counter_set"}], [{"term": "options"}]]))?;
/// assert_eq!(read, objective);
/// assert_eq!(objective.to_string(), "opened by counter set, then options");
/// let error = Objective::from_json(&json!([[{"term": "options", "by": "pool"}]])).unwrap_err();
/// assert_eq!(error.to_string(), "objective[0][0].by: term options has no such field");
/// # Ok::<(), dra_alloc::objective::ObjectiveError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objective {
    levels: Vec<Vec<Weighted>>,
    alternatives: Alternatives,
    steps: u64,
}

/// Alternatives of `firstAvailable` requests that compete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "those of the first solution, or all")]
pub enum Alternatives {
    /// The subrequests of the first solution alone: the order of `firstAvailable` comes before the objective.
    #[default]
    First,
    /// All subrequests. [`Term::Alternative`] makes an earlier one better.
    Scored,
}

impl Objective {
    /// Builds an objective of levels, the most important first.
    ///
    /// # Errors
    /// A weight is zero, a list is too long, a name is invalid, or a selector does not compile.
    pub fn new(levels: impl IntoIterator<Item = Vec<Weighted>>) -> Result<Self, ObjectiveError> {
        let objective = Self { levels: levels.into_iter().collect(), ..Self::default() };
        check(&objective.levels)?;
        Ok(objective)
    }

    /// Builds an objective of terms that are known to be valid, each a level.
    pub(super) fn of(terms: impl IntoIterator<Item = Term>) -> Self {
        Self { levels: terms.into_iter().map(|term| vec![term.into()]).collect(), ..Self::default() }
    }

    /// Reads an objective: a list of levels, each a list of terms `{"term": name, "weight": number, ..}` with the term's own
    /// fields. The weight is 1 if it is not there.
    ///
    /// | term | fields |
    /// |---|---|
    /// | `opened`, `spread` | `by`: `"pool"`, `"counter_set"` or `{"attribute": name}` |
    /// | `room` | `by`: `"counter_set"`; `size`: a counter, or absent |
    /// | `distance` | `levels`: attributes; `across_claims`: true for pairs of several claims |
    /// | `links` | `scores`: `[device, device, score]`; `default`: score of other pairs; `across_claims` |
    /// | `pairing` | `a`, `b`: requests; `attribute` |
    /// | `waste` | `capacity` |
    /// | `prefer` | `selectors` |
    /// | `displaced` | `units`: `{"id", "claims", "price"}` |
    /// | `outlook` | `of`: a term `distance` or `links`; `times`: a number or `"all"` |
    /// | `options`, `stranded`, `tainted`, `conditions`, `alternative` | none |
    ///
    /// # Errors
    /// Those of [`Objective::new`], and a field that has the wrong type, is missing or is not known.
    pub fn from_json(levels: &Value) -> Result<Self, ObjectiveError> {
        Self::new(read(levels)?)
    }

    /// Sets which subrequests compete.
    #[must_use]
    pub fn with_alternatives(self, alternatives: Alternatives) -> Self {
        Self { alternatives, ..self }
    }

    /// Sets the largest number of nodes that the search for the best solution visits, after the first solution was found: 20,000
    /// unless it is set. Each takes some microseconds. It also ends where the work of the call's [`crate::Budget`] does.
    #[must_use]
    pub fn with_steps(self, steps: u64) -> Self {
        Self { steps, ..self }
    }

    /// Returns the levels, the most important first.
    #[must_use]
    pub fn levels(&self) -> &[Vec<Weighted>] {
        &self.levels
    }

    /// Returns true if there are no terms, so that the first solution is the best.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.levels.iter().all(Vec::is_empty)
    }

    pub(crate) const fn alternatives(&self) -> Alternatives {
        self.alternatives
    }

    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the terms of all levels.
    pub(super) fn terms(&self) -> impl Iterator<Item = &Term> {
        self.levels.iter().flatten().map(|weighted| &weighted.term)
    }

    /// Returns the units whose claims may give back what they hold.
    pub(crate) fn units(&self) -> &[Unit] {
        let units =
            self.terms().find_map(|term| if let Term::Displaced { units } = term { Some(&**units) } else { None });
        units.unwrap_or_default()
    }
}

impl Default for Objective {
    /// Returns the objective without levels: the first solution is the best.
    fn default() -> Self {
        Self { levels: Vec::new(), alternatives: Alternatives::First, steps: STEPS }
    }
}
