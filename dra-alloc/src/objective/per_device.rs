//! Terms that are a sum over devices: waste, preference, taints and binding conditions.

use std::sync::Arc;

use dra_attrs::{Quantity, lookup_by_name};
use dra_device::taint::tolerates;
use dra_selector::Selector;

use super::ground::Ground;
use super::measure::{Facts, Measure, sum_of_smallest, thousandths, wide};
use super::partial::Partial;
use crate::search::ix::{AlternativeIx, ByAlternative, ByDevice, DeviceIx};
use crate::search::table::Table;

/// Sum over new devices of a cost, which may depend on the request.
pub(super) struct PerDevice {
    rows: Vec<ByDevice<u64>>,
    /// Row of each alternative.
    row_of: ByAlternative<usize>,
}

impl PerDevice {
    /// Reads a cost that is the same for all requests.
    fn of_device(ground: &Ground<'_, '_>, cost: impl Fn(DeviceIx) -> u64) -> Self {
        let row = ground.table.candidates.all().into_iter().map(cost).collect();
        Self { rows: vec![row], row_of: ground.table.plan.alternatives.iter().map(|_| 0).collect() }
    }

    fn cost(&self, alternative: AlternativeIx, device: DeviceIx) -> u64 {
        self.rows.get(self.row_of[alternative]).map_or(0, |row| row[device])
    }
}

impl Measure for PerDevice {
    fn at_least(&self, partial: &Partial<'_>) -> u64 {
        let further = partial.at_least(|open| {
            sum_of_smallest(open.devices.iter().map(|device| self.cost(open.alternative, device)), open.missing)
        });
        let chosen = partial.chosen.iter().map(|chosen| self.cost(chosen.alternative, chosen.device));
        chosen.fold(further, u64::saturating_add)
    }

    fn tell(&self, device: DeviceIx, facts: &mut Facts) {
        self.rows.iter().for_each(|row| facts.number(row[device]));
    }
}

/// Returns the measure of a capacity that is wasted: in thousandths of the largest one, of devices taken as a whole.
pub(super) fn waste(ground: &Ground<'_, '_>, capacity: &str) -> PerDevice {
    let table = ground.table;
    let amount = |device: DeviceIx| {
        let candidate = table.candidate(device);
        let all = candidate.device.capacity.as_ref();
        let named = all.and_then(|all| lookup_by_name(all, capacity, &candidate.slice.spec.driver));
        named.and_then(|capacity| Quantity::from_kube(&capacity.value).ok()).map_or(0, Quantity::nanos)
    };
    let largest = ground.reach.iter().map(|device| amount(*device)).max().unwrap_or(0);
    PerDevice::of_device(
        ground,
        |device| {
            if table.is_shareable(device) { 0 } else { thousandths(amount(device), largest) }
        },
    )
}

/// Returns the measure of preference: the position of the first selector that is true. Reads the devices that a request may
/// get.
pub(super) fn prefer(ground: &Ground<'_, '_>, selectors: &[String]) -> PerDevice {
    let (table, by) = (ground.table, ground.table.context.selectors);
    let compiled: Vec<Option<Arc<Selector>>> =
        selectors.iter().map(|text| by.cache.compile_in(text, table.context.profile).ok()).collect();
    let holds = |selector: &Option<Arc<Selector>>, device| {
        selector.as_ref().is_some_and(|selector| table.matches(selector, device) == Ok(true))
    };
    PerDevice::of_device(ground, |device| {
        if !ground.usable.iter().any(|usable| usable.contains(device)) {
            return 0;
        }
        table.meter.begin_look();
        wide(compiled.iter().position(|selector| holds(selector, device)).unwrap_or(compiled.len()))
    })
}

/// Returns the measure of tolerated taints.
pub(super) fn tainted(ground: &Ground<'_, '_>) -> PerDevice {
    let table = ground.table;
    let alternatives = || table.plan.alternatives.range().into_iter();
    let row = |alternative| {
        let cost =
            |device| if ground.usable[alternative].contains(device) { taints(table, alternative, device) } else { 0 };
        table.candidates.all().into_iter().map(cost).collect()
    };
    PerDevice { rows: alternatives().map(row).collect(), row_of: alternatives().map(usize::from).collect() }
}

/// Returns 2 if a taint that evicts is tolerated for some time only, 1 if there is another taint that has an effect.
fn taints(table: &Table<'_>, alternative: AlternativeIx, device: DeviceIx) -> u64 {
    let tolerations = table.alternative(alternative).tolerations.unwrap_or_default();
    let mut worst = 0;
    for taint in table.taints(device).filter(|taint| taint.effect != "None") {
        let mut tolerating = tolerations.iter().filter(|toleration| tolerates(toleration, taint));
        let evicts =
            taint.effect == "NoExecute" && tolerating.all(|toleration| toleration.toleration_seconds.is_some());
        worst = worst.max(if evicts { 2 } else { 1 });
    }
    worst
}

/// Returns the measure of binding conditions.
pub(super) fn conditions(ground: &Ground<'_, '_>) -> PerDevice {
    PerDevice::of_device(ground, |device| {
        let conditions = &ground.table.candidate(device).device.binding_conditions;
        u64::from(conditions.as_ref().is_some_and(|conditions| !conditions.is_empty()))
    })
}
