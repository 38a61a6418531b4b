//! Check of an objective: names, selectors, weights, and the size of its lists.

use std::collections::BTreeSet;

use dra_attrs::FullyQualifiedName;
use dra_selector::{Options, Selector};

use super::error::ObjectiveError;
use super::term::{GroupBy, PairCost, Term, Unit, Weighted};

/// Largest number of levels, and of terms of a level.
const LEVELS: usize = 16;
const TERMS: usize = 16;
/// Largest number of attributes of a distance, and of selectors of a preference.
const ATTRIBUTES: usize = 16;
const SELECTORS: usize = 32;
/// Largest number of pairs of devices with a score.
const LINKS: usize = 16_384;
/// Largest number of units, and of claims of a unit.
const UNITS: usize = 1_024;
const CLAIMS_OF_UNIT: usize = 256;

pub(super) fn check(levels: &[Vec<Weighted>]) -> Result<(), ObjectiveError> {
    within("", levels.len(), LEVELS)?;
    for (number, level) in levels.iter().enumerate() {
        within(&format!("[{number}]"), level.len(), TERMS)?;
        for (position, weighted) in level.iter().enumerate() {
            let field = format!("[{number}][{position}]");
            if weighted.weight == 0 {
                return Err(ObjectiveError::ZeroWeight { field: format!("{field}.weight") });
            }
            check_term(&field, &weighted.term)?;
        }
    }
    // Units decide which state is searched.
    let displaced = levels.iter().flatten().filter(|weighted| matches!(weighted.term, Term::Displaced { .. }));
    within("", displaced.count(), 1)
}

fn check_term(field: &str, term: &Term) -> Result<(), ObjectiveError> {
    match term {
        Term::Opened { by } | Term::Spread { by } => match by {
            GroupBy::Attribute(name) => qualified(format!("{field}.by.attribute"), name),
            GroupBy::Pool | GroupBy::CounterSet => Ok(()),
        },
        Term::Pairs(pairs) => check_cost(field, &pairs.cost),
        Term::Outlook { of, .. } => check_cost(&format!("{field}.of"), &of.cost),
        Term::Pairing { attribute, .. } => qualified(format!("{field}.attribute"), attribute),
        Term::Waste { capacity } => qualified(format!("{field}.capacity"), capacity),
        Term::Prefer { selectors } => check_selectors(field, selectors),
        Term::Displaced { units } => check_units(field, units),
        Term::Room { .. } | Term::Options | Term::Stranded | Term::Tainted | Term::Conditions | Term::Alternative => {
            Ok(())
        }
    }
}

fn check_cost(field: &str, cost: &PairCost) -> Result<(), ObjectiveError> {
    match cost {
        PairCost::Distance { attributes } => {
            let field = format!("{field}.levels");
            some(&field, attributes)?;
            within(&field, attributes.len(), ATTRIBUTES)?;
            let mut names = attributes.iter().enumerate();
            names.try_for_each(|(index, name)| qualified(format!("{field}[{index}]"), name))
        }
        PairCost::Links { scores, .. } => within(&format!("{field}.scores"), scores.len(), LINKS),
    }
}

fn check_selectors(field: &str, selectors: &[String]) -> Result<(), ObjectiveError> {
    let field = format!("{field}.selectors");
    some(&field, selectors)?;
    within(&field, selectors.len(), SELECTORS)?;
    for (index, selector) in selectors.iter().enumerate() {
        let failed = |source| ObjectiveError::Selector { field: format!("{field}[{index}]"), source };
        Selector::compile(selector, &Options::stored()).map_err(failed)?;
    }
    Ok(())
}

fn check_units(field: &str, units: &[Unit]) -> Result<(), ObjectiveError> {
    let field = format!("{field}.units");
    within(&field, units.len(), UNITS)?;
    let (mut ids, mut claims) = (BTreeSet::new(), BTreeSet::new());
    let twice = |field: String, name: &str| ObjectiveError::Twice { field, name: name.to_owned() };
    for (index, unit) in units.iter().enumerate() {
        if !ids.insert(&unit.id) {
            return Err(twice(format!("{field}[{index}].id"), &unit.id));
        }
        within(&format!("{field}[{index}].claims"), unit.claims.len(), CLAIMS_OF_UNIT)?;
        if let Some(claim) = unit.claims.iter().find(|claim| !claims.insert(*claim)) {
            return Err(twice(format!("{field}[{index}].claims"), claim));
        }
    }
    Ok(())
}

fn qualified(field: String, name: &str) -> Result<(), ObjectiveError> {
    FullyQualifiedName::parse(name).map(|_| ()).map_err(|source| ObjectiveError::Name { field, source })
}

fn some<T>(field: &str, list: &[T]) -> Result<(), ObjectiveError> {
    if list.is_empty() { Err(ObjectiveError::Empty { field: field.to_owned() }) } else { Ok(()) }
}

fn within(field: &str, number: usize, limit: usize) -> Result<(), ObjectiveError> {
    if number <= limit {
        return Ok(());
    }
    let wide = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    Err(ObjectiveError::TooMany { field: field.to_owned(), number: wide(number), limit: wide(limit) })
}
