//! Reason of a choice, in words.

use std::collections::BTreeSet;
use std::fmt;

use dra_device::DeviceId;

use super::groups::names;
use super::term::{GroupBy, PairCost, Pairs, Term};
use crate::search::ix::DeviceIx;
use crate::search::table::Table;

/// Reason why a solution is better than the first one: the first term that decides.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChoiceReason {
    /// Devices of the solution that the first one does not have, in their order.
    pub devices: Vec<DeviceId>,
    /// Devices of the first solution that this one does not have, in their order.
    pub instead_of: Vec<DeviceId>,
    /// Reason in words, such as `counter set card-1 is in use already`.
    pub words: String,
    /// Term, as the objective is shown.
    pub term: String,
    /// Value of the term.
    pub value: u64,
    /// Value of the term for the first solution.
    pub first_fit: u64,
}

/// Says in words why devices have less of a term than others. `reach` are all devices that the node sees.
pub(super) fn words(term: &Term, table: &Table<'_>, devices: &[DeviceIx], reach: &[DeviceIx]) -> String {
    match term {
        Term::Opened { by } => opened(by, table, devices, reach),
        Term::Room { .. } => "larger devices stay possible".to_owned(),
        Term::Options => "more devices stay possible".to_owned(),
        Term::Stranded => "less is left that no device can use".to_owned(),
        Term::Spread { .. } => "fewer devices are in use there".to_owned(),
        Term::Pairs(Pairs { cost: PairCost::Distance { .. }, .. }) => "they are closer together".to_owned(),
        Term::Pairs(Pairs { cost: PairCost::Links { .. }, .. }) => "they have better links".to_owned(),
        Term::Pairing { of, with, .. } => format!("more devices of {of} have a partner of {with}"),
        Term::Waste { capacity } => format!("less of {capacity} is wasted"),
        Term::Prefer { .. } => "a selector prefers them".to_owned(),
        Term::Tainted => "fewer of them have taints".to_owned(),
        Term::Conditions => "fewer of them wait for conditions".to_owned(),
        Term::Alternative => "an earlier alternative is served".to_owned(),
        Term::Displaced { .. } => "less has to be given back".to_owned(),
        Term::Outlook { .. } => "better pairs are left for further claims".to_owned(),
    }
}

/// Names the groups of devices that are in use already.
fn opened(by: &GroupBy, table: &Table<'_>, devices: &[DeviceIx], reach: &[DeviceIx]) -> String {
    let held = reach.iter().filter(|device| table.in_use(**device).is_some());
    let held: BTreeSet<_> = held.flat_map(|device| names(table, by, *device)).collect();
    let own: BTreeSet<_> = devices.iter().flat_map(|device| names(table, by, *device)).collect();
    let in_use: Vec<&str> = own.intersection(&held).map(|(_, name)| name.as_str()).collect();
    match in_use.as_slice() {
        [] => format!("they open fewer groups by {by}"),
        [one] => format!("{by} {one} is in use already"),
        more => format!("{by} {} are in use already", more.join(", ")),
    }
}

impl fmt::Display for ChoiceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { devices, instead_of, words, term, value, first_fit } = self;
        if devices.is_empty() && instead_of.is_empty() {
            f.write_str("the same devices for other requests")?;
        } else {
            write_names(f, devices)?;
            f.write_str(" rather than ")?;
            write_names(f, instead_of)?;
        }
        write!(f, ": {words} ({term} {value} instead of {first_fit})")
    }
}

/// Writes devices by pool and name.
fn write_names(f: &mut fmt::Formatter<'_>, devices: &[DeviceId]) -> fmt::Result {
    if devices.is_empty() {
        return f.write_str("none");
    }
    for (number, device) in devices.iter().enumerate() {
        let comma = if number > 0 { ", " } else { "" };
        write!(f, "{comma}{}/{}", device.pool, device.device)?;
    }
    Ok(())
}
