//! Terms over pairs of devices: distance by attributes, and links.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::Scalar;
use dra_device::DeviceId;

use super::ground::Ground;
use super::groups::values;
use super::measure::{Facts, Measure, sum_of_smallest, wide};
use super::partial::Partial;
use super::term::{PairCost, PairScope, Pairs};
use crate::search::ix::{AlternativeIx, ByAlternative, ByDevice, ClaimIx, DeviceIx};
use crate::search::table::Table;

/// Costs of pairs of devices.
enum Costs {
    /// Numbers of the values of each device, by attribute.
    Distance(ByDevice<Vec<Vec<u32>>>),
    Links {
        costs: BTreeMap<(DeviceIx, DeviceIx), u64>,
        named: BTreeSet<DeviceIx>,
        otherwise: u64,
    },
}

/// Sum of the costs of pairs of new devices.
pub(super) struct PairCosts {
    costs: Costs,
    scope: PairScope,
    claims: ByAlternative<ClaimIx>,
}

impl PairCosts {
    pub(super) fn new(ground: &Ground<'_, '_>, pairs: &Pairs) -> Self {
        let costs = match &pairs.cost {
            PairCost::Distance { attributes } => distance(ground, attributes),
            PairCost::Links { scores, otherwise } => links(ground, scores, *otherwise),
        };
        let claims = ground.table.plan.alternatives.iter().map(|asked| asked.claim).collect();
        Self { costs, scope: pairs.within, claims }
    }

    fn cost(&self, left: DeviceIx, right: DeviceIx) -> u64 {
        match &self.costs {
            Costs::Distance(values) => {
                let (left, right) = (&values[left], &values[right]);
                let first = left.iter().zip(right).position(|(left, right)| intersects(left, right));
                wide(first.unwrap_or(left.len()))
            }
            Costs::Links { costs, otherwise, .. } => {
                costs.get(&(left.min(right), left.max(right))).copied().unwrap_or(*otherwise)
            }
        }
    }

    fn is_pair(&self, left: AlternativeIx, right: AlternativeIx) -> bool {
        self.scope == PairScope::AllClaims || self.claims[left] == self.claims[right]
    }

    /// Returns the cost of the pairs of a device with the chosen ones.
    fn with_chosen(&self, partial: &Partial<'_>, alternative: AlternativeIx, device: DeviceIx) -> u64 {
        let others = partial.chosen.iter().filter(|other| self.is_pair(alternative, other.alternative));
        others.map(|other| self.cost(device, other.device)).fold(0, u64::saturating_add)
    }
}

fn distance(ground: &Ground<'_, '_>, attributes: &[String]) -> Costs {
    let table = ground.table;
    let mut numbers: BTreeMap<(usize, Scalar<'_>), u32> = BTreeMap::new();
    let of = |device: DeviceIx| {
        let levels = attributes.iter().enumerate().map(|(level, name)| {
            let own = values(table, name, device);
            let number = |value: &_| {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                *numbers.entry((level, *value)).or_insert(next)
            };
            let mut own: Vec<u32> = own.values().iter().map(number).collect();
            own.sort_unstable();
            own
        });
        levels.collect()
    };
    Costs::Distance(table.candidates.all().into_iter().map(of).collect())
}

fn intersects(left: &[u32], right: &[u32]) -> bool {
    left.iter().any(|value| right.binary_search(value).is_ok())
}

fn links(ground: &Ground<'_, '_>, scores: &[(DeviceId, DeviceId, u32)], otherwise: u32) -> Costs {
    let best = scores.iter().map(|(_, _, score)| *score).max().unwrap_or(0).max(otherwise);
    let named = by_name(ground.table, &ground.reach);
    let place = |id: &DeviceId| named.get(&(id.driver.as_str(), id.pool.as_str(), id.device.as_str())).copied();
    let mut costs = BTreeMap::new();
    for (left, right, score) in scores {
        if let (Some(left), Some(right)) = (place(left), place(right)) {
            costs.insert((left.min(right), left.max(right)), u64::from(best - score));
        }
    }
    let named = costs.keys().flat_map(|(left, right)| [*left, *right]).collect();
    Costs::Links { costs, named, otherwise: u64::from(best - otherwise) }
}

/// Returns devices by driver, pool and name.
fn by_name<'s>(table: &Table<'s>, devices: &[DeviceIx]) -> BTreeMap<(&'s str, &'s str, &'s str), DeviceIx> {
    let name = |device: &DeviceIx| {
        let candidate = table.candidate(*device);
        let spec = &candidate.slice.spec;
        ((spec.driver.as_str(), spec.pool.name.as_str(), candidate.device.name.as_str()), *device)
    };
    devices.iter().map(name).collect()
}

impl Measure for PairCosts {
    fn at_least(&self, partial: &Partial<'_>) -> u64 {
        let mut sum: u64 = 0;
        for (number, chosen) in partial.chosen.iter().enumerate() {
            let before = partial.chosen.iter().take(number);
            for other in before.filter(|other| self.is_pair(chosen.alternative, other.alternative)) {
                sum = sum.saturating_add(self.cost(chosen.device, other.device));
            }
        }
        let further = partial.at_least(|open| {
            let with_chosen = |device| self.with_chosen(partial, open.alternative, device);
            sum_of_smallest(open.devices.iter().map(with_chosen), open.missing)
        });
        sum.saturating_add(further)
    }

    fn tell(&self, device: DeviceIx, facts: &mut Facts) {
        match &self.costs {
            Costs::Distance(values) => {
                for own in &values[device] {
                    facts.number(wide(own.len()));
                    facts.labels(own);
                }
            }
            // A device with a score is like no other.
            Costs::Links { named, .. } => {
                facts.number(if named.contains(&device) { wide(usize::from(device)) } else { u64::MAX });
            }
        }
    }

    fn tell_node(&self, facts: &mut Facts) -> bool {
        if let Costs::Links { costs, otherwise, .. } = &self.costs {
            facts.number(wide(costs.len()));
            facts.number(*otherwise);
            for ((left, right), cost) in costs {
                facts.number(wide(usize::from(*left)));
                facts.number(wide(usize::from(*right)));
                facts.number(*cost);
            }
        }
        true
    }
}
