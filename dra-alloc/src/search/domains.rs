//! Domains: the devices that each alternative could get if nothing else were chosen.
//!
//! Every check of the search that does not depend on earlier choices is made here, in the search's order. A device on
//! which a check ends in an error is not left out, because the search must come to the error.

use dra_attrs::Gate;
use k8s_openapi::api::resource::v1::Device;

use super::allocate_error::AllocateError;
use super::budget::{Halt, Meter};
use super::capacity_check::CapacityCheck;
use super::column_values::ColumnValues;
use super::compare_pools::{is_looked_at_once, like_pools, looks_at_pools};
use super::device_set::DeviceSet;
use super::ix::{AlternativeIx, ByAlternative, ByColumn, DeviceIx, IxRange};
use super::like_pools::LikePool;
use super::request::Alternative;
use super::table::Table;
use crate::cluster::capacity::Amount;
use crate::cluster::inventory::pool_counters::Consumed;
use crate::cluster::state::DeviceUsage;

/// Number of devices of a pool whose look together is a unit of work.
const DEVICES_OF_UNIT: usize = 16;

/// Domains of all alternatives, and the attribute values of the devices in them.
pub(crate) struct Domains<'s> {
    pub(crate) devices: IxRange<Device>,
    /// For each alternative: the first one that asks the same question about a device.
    pub(crate) questions: ByAlternative<AlternativeIx>,
    /// For each alternative: the devices that pass every check.
    pub(crate) usable: ByAlternative<DeviceSet>,
    /// For each alternative: the devices on which a check may end in an error.
    pub(crate) unsure: ByAlternative<DeviceSet>,
    pub(crate) columns: ByColumn<ColumnValues<'s>>,
    pub(crate) shareable: DeviceSet,
}

impl<'s> Domains<'s> {
    /// Checks every device for every alternative, in work of the budget. Alternatives that ask the same question about a
    /// device are answered once. Returns `None` if a device consumes a negative amount: what is left must only shrink.
    pub(crate) fn new(table: &Table<'s>, meter: &Meter<'_>) -> Result<Option<Self>, Halt> {
        let devices = table.candidates.all();
        meter.work(devices.end.into())?;
        let mut shareable = DeviceSet::new(devices.end);
        devices.into_iter().filter(|device| table.is_shareable(*device)).for_each(|device| shareable.insert(device));
        let questions = questions(table);
        if gives_back(table, &questions) {
            return Ok(None);
        }
        let (mut usable, mut unsure): (ByAlternative<DeviceSet>, ByAlternative<DeviceSet>) = Default::default();
        for (alternative, question) in questions.enumerate() {
            let (sure, open) = if *question == alternative {
                looked_at(table, alternative, meter)?
            } else {
                (usable[*question].clone(), unsure[*question].clone())
            };
            usable.push(sure);
            unsure.push(open);
        }
        let columns = columns(table, &usable, &unsure, meter)?;
        let mut domains = Self { devices, questions, usable, unsure, columns, shareable };
        domains.apply_constraints(table);
        Ok(Some(domains))
    }

    /// Returns the devices that the search may come to for an alternative.
    pub(crate) fn reachable(&self, alternative: AlternativeIx) -> DeviceSet {
        let mut all = self.usable[alternative].clone();
        all.union(&self.unsure[alternative]);
        all
    }

    /// Leaves out devices without the attribute of a constraint.
    fn apply_constraints(&mut self, table: &Table<'_>) {
        for (alternative, asked) in table.plan.alternatives.enumerate() {
            for (_, column) in &asked.constraints {
                let values = &self.columns[*column];
                self.usable[alternative].subtract(&values.lacking);
                let failing = self.usable[alternative].and(&values.failing);
                self.usable[alternative].subtract(&failing);
                self.unsure[alternative].union(&failing);
            }
        }
    }
}

/// Returns for each alternative the first one that asks the same question about a device.
fn questions(table: &Table<'_>) -> ByAlternative<AlternativeIx> {
    let mut different: Vec<AlternativeIx> = Vec::new();
    let mut questions = ByAlternative::default();
    for (alternative, asked) in table.plan.alternatives.enumerate() {
        let known = different.iter().copied().find(|known| is_same_question(table.alternative(*known), asked));
        questions.push(known.unwrap_or_else(|| {
            different.push(alternative);
            alternative
        }));
    }
    questions
}

/// Returns true if the checks of a device, apart from those of constraints, are the same for both alternatives.
pub(crate) fn is_same_question(left: &Alternative<'_>, right: &Alternative<'_>) -> bool {
    let amount = |(name, amount): (&&'_ str, &Amount<'_>)| ((*name).to_owned(), amount.quantity.nanos());
    left.class.name() == right.class.name()
        && left.admin_access == right.admin_access
        && left.tolerations == right.tolerations
        && left.selectors().map(|selector| selector.text).eq(right.selectors().map(|selector| selector.text))
        && left.capacity.iter().map(amount).eq(right.capacity.iter().map(amount))
}

/// Returns the devices that are usable for an alternative, and those on which a check fails.
fn looked_at(table: &Table<'_>, alternative: AlternativeIx, meter: &Meter<'_>) -> Result<(DeviceSet, DeviceSet), Halt> {
    let none = || DeviceSet::new(table.candidates.end());
    let (mut usable, mut unsure) = (none(), none());
    let (is_admin, has_alike) = (table.alternative(alternative).admin_access, looks_at_pools(table, alternative));
    for LikePool { pool, devices, like } in like_pools(table).iter() {
        if let Some(like) = like {
            meter.step()?;
            meter.work(devices.len() / DEVICES_OF_UNIT)?;
            usable.repeat(like, devices);
            unsure.repeat(like, devices);
            continue;
        }
        let for_all = match devices.into_iter().next() {
            Some(first) if has_alike && is_looked_at_once(table, table.candidates.pool(pool)) => {
                meter.step()?;
                meter.work(devices.len() / DEVICES_OF_UNIT)?;
                Some(table.is_selectable(alternative, first)?)
            }
            _ => None,
        };
        for device in devices {
            if !is_admin && table.is_held(device) {
                meter.work(usize::from(for_all.is_none()))?;
                continue;
            }
            if let Some(is_selectable) = for_all.filter(|_| !table.candidate(device).is_used) {
                if is_selectable && table.may_skip(device) && table.taint(alternative, device).is_none() {
                    usable.insert(device);
                }
                continue;
            }
            meter.step()?;
            match look(table, alternative, device).map_err(Halt::from) {
                Ok(true) => usable.insert(device),
                Ok(false) => {}
                Err(halt @ Halt::Stopped(_)) => return Err(halt),
                Err(_) => unsure.insert(device),
            }
        }
    }
    Ok((usable, unsure))
}

/// Returns the largest number of looks at devices for one alternative.
pub(super) fn looks(table: &Table<'_>, alternative: AlternativeIx) -> usize {
    let has_alike = looks_at_pools(table, alternative);
    let of_pool = |LikePool { pool, like, .. }: LikePool| {
        let is_one = like.is_some() || has_alike && is_looked_at_once(table, table.candidates.pool(pool));
        if is_one { 1 } else { table.candidates.pool(pool).len() }
    };
    like_pools(table).iter().map(of_pool).sum()
}

/// Checks a device in the order of the search, up to the first check that decides. Returns true if it passes all.
fn look(table: &Table<'_>, alternative: AlternativeIx, device: DeviceIx) -> Result<bool, AllocateError> {
    let is_usable = table.is_selectable(alternative, device)?
        && has_capacity(table, alternative, device)?
        && table.may_skip(device)
        && has_counters(table, device)?
        && table.taint(alternative, device).is_none();
    Ok(is_usable)
}

/// Returns true if a selected device is refused whatever was chosen before, and before its values under constraints are
/// looked at.
pub(crate) fn is_refused(
    table: &Table<'_>,
    alternative: AlternativeIx,
    device: DeviceIx,
) -> Result<bool, AllocateError> {
    Ok((!table.alternative(alternative).admin_access && table.is_held(device))
        || !table.may_skip(device)
        || !has_counters(table, device)?
        || table.taint(alternative, device).is_some())
}

/// Returns true if the capacities that are left before the search suffice.
fn has_capacity(table: &Table<'_>, alternative: AlternativeIx, device: DeviceIx) -> Result<bool, AllocateError> {
    if !table.has(Gate::ConsumableCapacity) || table.has_room_for_one(alternative, device) {
        return Ok(true);
    }
    let CapacityCheck::Takes(amounts) = table.fit(alternative, device)? else { return Ok(false) };
    let mut capacities = table.capacities(device)?.iter().zip(amounts);
    Ok(capacities.all(|(capacity, amount)| {
        let left = capacity.value().checked_sub(table.consumed(device, capacity.name));
        left.is_some_and(|left| amount.quantity <= left)
    }))
}

/// Returns true if the counters that are left before the search suffice.
fn has_counters(table: &Table<'_>, device: DeviceIx) -> Result<bool, AllocateError> {
    if !table.candidate(device).consumes_counters() {
        return Ok(true);
    }
    if !table.has(Gate::PartitionableDevices) {
        return Ok(false);
    }
    if table.is_shareable(device) && table.in_use(device).is_some_and(DeviceUsage::is_shared) {
        return Ok(true);
    }
    let (consumption, counters) = (table.consumption(device)?, table.counters(table.candidate(device).pool)?);
    let lacks_gate = !table.has(Gate::DeviceCompatibilityGroups) && counters.needs_groups(consumption);
    Ok(!lacks_gate && counters.may_serve(consumption))
}

/// Returns the values of each column, for the devices that an alternative with the column may come to.
fn columns<'s>(
    table: &Table<'s>,
    usable: &ByAlternative<DeviceSet>,
    unsure: &ByAlternative<DeviceSet>,
    meter: &Meter<'_>,
) -> Result<ByColumn<ColumnValues<'s>>, Halt> {
    let mut columns = ByColumn::default();
    for column in table.plan.columns.range() {
        let mut devices = DeviceSet::new(table.candidates.end());
        for (alternative, asked) in table.plan.alternatives.enumerate() {
            if asked.constraints.iter().any(|(_, other)| *other == column) {
                devices.union(&usable[alternative]);
                devices.union(&unsure[alternative]);
            }
        }
        meter.work(devices.len())?;
        columns.push(ColumnValues::new(table, column, &devices));
    }
    Ok(columns)
}

/// Returns true if a device consumes a negative amount of a counter or a capacity.
fn gives_back(table: &Table<'_>, questions: &ByAlternative<AlternativeIx>) -> bool {
    let is_negative = |consumed: &Consumed| consumed.amounts.iter().any(|(_, amount)| *amount < 0);
    let counters = |device| table.consumption(device).is_ok_and(|consumed| consumed.iter().any(is_negative));
    let capacity = |device| {
        let different = questions.enumerate().filter(|(alternative, question)| alternative == *question);
        different.into_iter().any(|(alternative, _)| {
            let is_negative =
                |fit: &CapacityCheck<'_>| matches!(fit, CapacityCheck::Takes(all) if all.iter().any(is_below_zero));
            table.fit(alternative, device).is_ok_and(is_negative)
        })
    };
    let looked_at = like_pools(table).iter().filter(|pool| pool.like.is_none());
    looked_at.flat_map(|pool| pool.devices).any(|device| {
        let consumes = table.candidate(device).consumes_counters();
        (table.has(Gate::PartitionableDevices) && consumes && counters(device))
            || (table.is_shareable(device) && capacity(device))
    })
}

fn is_below_zero(amount: &Amount<'_>) -> bool {
    amount.quantity.nanos() < 0
}
