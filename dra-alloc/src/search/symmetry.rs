//! Symmetry of a search: devices and requests that can be exchanged in every solution.

use std::collections::BTreeMap;

use dra_attrs::{ListTypes, Scalar};

use super::allocate_error::AllocateError;
use super::counters::Consumption;
use super::device_set::DeviceSet;
use super::ix::{AlternativeIx, ByAlternative, ByDevice, CounterIx, DeviceIx, PoolIx, SetIx};
use super::request::{Alternative, Mode};
use super::table::Table;
use crate::cluster::state::DeviceUsage;
use crate::config::gates::DraGate;

/// Number of a symmetry class. Devices of one class are interchangeable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SymmetryClass(usize);

/// Properties of a device that must be equal in a symmetry class: the alternatives that can use it, its values under
/// every constraint, and its counter consumption.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Kind<'s> {
    usable: Vec<bool>,
    values: Vec<Vec<Scalar<'s>>>,
    /// For each column (attribute that constraints compare): the reason that the device has no value; empty if it has
    /// one.
    lacks: Vec<String>,
    /// The device itself if it is or was shared, since the remaining capacities of such devices differ.
    shared: Option<DeviceIx>,
    consumption: Option<(PoolIx, Vec<Taken<'s>>)>,
}

/// Consumption from one counter set: position of the set, compatibility groups of the device, and amount by counter.
type Taken<'s> = (SetIx, &'s [String], Vec<(CounterIx, i128)>);

/// Returns the symmetry class of each device.
pub(super) fn symmetry_classes<'s>(
    table: &Table<'s>,
    usable: &ByAlternative<DeviceSet>,
) -> Result<ByDevice<SymmetryClass>, AllocateError> {
    let mut known: BTreeMap<Kind<'s>, SymmetryClass> = BTreeMap::new();
    let mut symmetry_classes = ByDevice::default();
    for device in table.candidates.all() {
        let (mut values, mut lacks) = (Vec::new(), Vec::new());
        for column in table.plan.columns.range() {
            let set = table.values(column, device)?;
            lacks.push(if set.values().is_empty() { set.to_string() } else { String::new() });
            values.push(set.values().to_vec());
        }
        let candidate = table.candidate(device);
        let was_shared = table.in_use(device).is_some_and(DeviceUsage::is_shared);
        let consumes = candidate.device.consumes_counters.as_ref().is_some_and(|consumed| !consumed.is_empty());
        let consumption = consumes && table.has(DraGate::PartitionableDevices);
        let kind = Kind {
            usable: usable.iter().map(|usable| usable.contains(device)).collect(),
            values,
            lacks,
            shared: (table.is_shareable(device) || was_shared).then_some(device),
            consumption: if consumption { Some((candidate.pool, taken(table.consumption(device)?))) } else { None },
        };
        let class = SymmetryClass(known.len());
        symmetry_classes.push(*known.entry(kind).or_insert(class));
    }
    Ok(symmetry_classes)
}

fn taken<'s>(consumption: &[Consumption<'s>]) -> Vec<Taken<'s>> {
    consumption.iter().map(|consumed| (consumed.set, consumed.groups, consumed.amounts.clone())).collect()
}

/// Returns the nearest earlier request of the same claim that is interchangeable with `alternative`. Returns `None` if
/// a constraint treats the first device differently from later ones.
pub(super) fn predecessor(table: &Table<'_>, alternative: AlternativeIx) -> Option<AlternativeIx> {
    let asked = table.alternative(alternative);
    if table.lists() == ListTypes::Disabled && !asked.constraints.is_empty() {
        return None;
    }
    let requests = table.plan.claims.at(asked.claim)?.requests.iter().filter(|request| !request.is_list);
    let singles: Vec<AlternativeIx> = requests.flat_map(|request| request.alternatives).collect();
    if !singles.contains(&alternative) {
        return None;
    }
    singles.into_iter().rfind(|other| *other < alternative && is_same(table.alternative(*other), asked))
}

fn is_same(left: &Alternative<'_>, right: &Alternative<'_>) -> bool {
    let texts = |asked: &Alternative<'_>| -> Vec<Option<String>> {
        asked.selectors().map(|selector| selector.text.map(str::to_owned)).collect()
    };
    let amounts = |asked: &Alternative<'_>| -> Vec<(String, i128)> {
        asked.capacity.iter().map(|(name, amount)| ((*name).to_owned(), amount.quantity.nanos())).collect()
    };
    left.mode == right.mode
        && left.mode != Mode::All
        && left.class.name() == right.class.name()
        && left.admin_access == right.admin_access
        && left.tolerations == right.tolerations
        && left.constraints == right.constraints
        && texts(left) == texts(right)
        && amounts(left) == amounts(right)
}
