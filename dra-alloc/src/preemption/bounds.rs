//! Bounds: harm that every sufficient set of units has at least.
//!
//! Two facts make a bound. More units out never turn the preemptor's test from yes to no, and never make the harm less. And
//! where all devices are plain, so many devices as the preemptor needs have to be free: the units have to free what is missing.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::asked::Asked;
use super::disruption::{BudgetPolicy, Covering};
use super::harm_value::{HarmValue, cost, start, weight};
use super::occupant::Occupant;
use super::question::Harm;
use super::site::Site;

/// Harm of the units of a site, and bounds for sets of them.
pub(super) struct Bounds<'b, 'q> {
    asked: &'b Asked<'q>,
    policy: BudgetPolicy,
    units: Vec<UnitHarm<'q>>,
    /// Number of devices that have to become free; `None` if that is not known.
    missing: Option<usize>,
    /// Units by the harm for each device that they free, the least first.
    by_sum: Vec<usize>,
    /// Units by the number of pods for each device that they free, the least first.
    by_count: Vec<usize>,
    /// Units by their highest priority, the lowest first.
    by_priority: Vec<usize>,
}

/// Harm of one unit.
struct UnitHarm<'q> {
    /// Pods that are not being deleted, each with the budgets that cover it.
    pods: Vec<(&'q Occupant<'q>, Covering)>,
    /// Sum of what its pods weigh or cost.
    sum: i64,
    /// Number of its pods.
    count: i64,
    highest: i32,
    /// Largest number of devices that the unit frees, alone or with others.
    devices: usize,
}

/// Kind of a bound.
#[derive(Clone, Copy)]
pub(super) enum Missing {
    /// As many devices as counting says.
    Counted,
    /// One unit more, since the chosen ones do not suffice.
    OneUnit,
}

impl<'b, 'q> Bounds<'b, 'q> {
    pub(super) fn new(asked: &'b Asked<'q>, site: &Site<'q>, policy: BudgetPolicy) -> Self {
        let budgets = asked.rules.view.budgets();
        let devices = |claim: usize| site.claims.get(claim).map_or(0, |claim| claim.devices);
        let harms: Vec<UnitHarm<'_>> = site
            .units
            .iter()
            .map(|unit| {
                let staying = unit.pods.iter().filter(|pod| !pod.is_leaving());
                let pods: Vec<_> = staying.map(|pod| (*pod, budgets.covering(pod.pod))).collect();
                let of_pod = |pod: &Occupant<'_>| match asked.rules.harm {
                    Harm::Kube | Harm::KubeExact => weight(pod),
                    Harm::Cost => cost(asked, pod),
                };
                UnitHarm {
                    sum: pods.iter().map(|(pod, _)| of_pod(pod)).fold(0, i64::saturating_add),
                    count: i64::try_from(pods.len()).unwrap_or(i64::MAX),
                    highest: pods.iter().map(|(pod, _)| pod.priority).max().unwrap_or(i32::MIN),
                    devices: unit.claims.iter().map(|claim| devices(*claim)).sum(),
                    pods,
                }
            })
            .collect();
        let wanted = asked.wanted_devices();
        let of_nobody = harms.iter().filter(|unit| unit.pods.is_empty()).map(|unit| unit.devices).sum::<usize>();
        let missing = site.free.map(|free| wanted.saturating_sub(free.saturating_add(of_nobody)));
        let helps = |unit: &UnitHarm<'_>| unit.devices > 0 || asked.is_checked();
        let sorted = |harm: fn(&UnitHarm<'_>) -> i64| sorted_by_rate(&harms, helps, harm);
        let (by_sum, by_count) = (sorted(|unit| unit.sum), sorted(|unit| unit.count));
        let mut by_priority = by_sum.clone();
        by_priority.sort_by_key(|unit| harms.get(*unit).map(|unit| unit.highest));
        Self { asked, policy, units: harms, missing, by_sum, by_count, by_priority }
    }

    /// Returns the units that harm somebody, those first that should stay before the others.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.units.len()).filter(|unit| !self.is_free(*unit)).collect();
        if self.asked.rules.harm == Harm::Cost {
            order.sort_by_key(|unit| (Reverse(self.units.get(*unit).map(|unit| unit.sum)), Reverse(*unit)));
        }
        order
    }

    pub(super) fn is_free(&self, unit: usize) -> bool {
        self.units.get(unit).is_none_or(|unit| unit.pods.is_empty())
    }

    /// Returns true if counting proves that the chosen units do not suffice.
    pub(super) fn is_short(&self, chosen: &[usize]) -> bool {
        self.shortfall(chosen) > 0
    }

    /// Returns the harm of chosen units; `None` if a budget forbids it.
    pub(super) fn value(&self, chosen: &[usize]) -> Option<HarmValue> {
        let pods = self.pods(chosen);
        let violations = self.violations(&pods);
        let is_forbidden = self.policy == BudgetPolicy::Never && violations > 0;
        (!is_forbidden).then(|| HarmValue::of(self.asked, self.policy, pods.iter().map(|(pod, _)| *pod), violations))
    }

    /// Returns the number of victims of chosen units that a budget does not allow.
    pub(super) fn violations_of(&self, chosen: &[usize]) -> usize {
        self.violations(&self.pods(chosen))
    }

    /// Returns the budgets that do not allow the chosen units, by their positions.
    pub(super) fn exceeded(&self, chosen: &[usize]) -> BTreeSet<usize> {
        let mut charge = self.asked.rules.view.budgets().charge();
        self.pods(chosen).iter().flat_map(|(_, covering)| charge.add(covering)).collect()
    }

    /// Returns the pods of chosen units, the most important first.
    fn pods(&self, chosen: &[usize]) -> Vec<&(&'q Occupant<'q>, Covering)> {
        let units = chosen.iter().filter_map(|unit| self.units.get(*unit));
        let mut pods: Vec<_> = units.flat_map(|unit| &unit.pods).collect();
        pods.sort_by_cached_key(|(pod, _)| pod.importance());
        pods
    }

    fn violations(&self, pods: &[&(&Occupant<'_>, Covering)]) -> usize {
        if self.policy == BudgetPolicy::Ignore {
            return 0;
        }
        let mut charge = self.asked.rules.view.budgets().charge();
        pods.iter().filter(|(_, covering)| !charge.add(covering).is_empty()).count()
    }

    /// Returns harm that no sufficient set has less of, which has all chosen units and else only undecided ones; `None` if there
    /// is no such set.
    pub(super) fn lower(
        &self,
        chosen: &[usize],
        is_undecided: impl Fn(usize) -> bool,
        missing: Missing,
    ) -> Option<HarmValue> {
        let value = self.value(chosen)?;
        let need = match missing {
            Missing::Counted => self.shortfall(chosen),
            Missing::OneUnit => 1,
        };
        if need == 0 {
            return Some(value);
        }
        let open = |order: &[usize]| -> Vec<&UnitHarm<'q>> {
            let open = order.iter().filter(|unit| is_undecided(**unit) && !self.is_free(**unit));
            open.filter_map(|unit| self.units.get(*unit)).collect()
        };
        let least = |order: &[usize], harm: fn(&UnitHarm<'_>) -> i64| match missing {
            Missing::Counted => cover(&open(order), need, harm),
            Missing::OneUnit => open(order).into_iter().map(harm).min(),
        };
        let sum = least(&self.by_sum, |unit| unit.sum)?;
        let count = least(&self.by_count, |unit| unit.count)?;
        let numbers = value.numbers();
        match (self.asked.rules.harm, numbers) {
            (Harm::Cost, [before @ .., of_costs, pods]) => {
                let bound = before.iter().copied().chain([of_costs.saturating_add(sum), pods.saturating_add(count)]);
                Some(HarmValue::new(bound.collect()))
            }
            (_, numbers) => {
                let threshold = match missing {
                    Missing::Counted => threshold(&open(&self.by_priority), need)?,
                    Missing::OneUnit => open(&self.by_priority).first()?.highest,
                };
                let (violations, highest, of_pods, pods, latest) = match numbers {
                    [violations, highest, of_pods, pods, latest] => {
                        (*violations, *highest, *of_pods, *pods, Some(*latest))
                    }
                    _ => (0, i64::from(i32::MIN), 0, 0, None),
                };
                let latest = latest.filter(|_| i64::from(threshold) <= highest);
                let latest = latest.unwrap_or_else(|| -self.latest_start(threshold));
                let highest = highest.max(i64::from(threshold));
                Some(HarmValue::new(vec![violations, highest, of_pods + sum, pods + count, latest]))
            }
        }
    }

    /// Returns the number of devices that are missing once the chosen units are out, at least.
    fn shortfall(&self, chosen: &[usize]) -> usize {
        let freed = || chosen.iter().filter_map(|unit| self.units.get(*unit)).map(|unit| unit.devices).sum::<usize>();
        self.missing.map_or(0, |missing| missing.saturating_sub(freed()))
    }

    /// Returns the latest start of a pod of a priority.
    fn latest_start(&self, priority: i32) -> i64 {
        let pods = self.units.iter().flat_map(|unit| &unit.pods).filter(|(pod, _)| pod.priority == priority);
        pods.map(|(pod, _)| start(self.asked, pod)).max().unwrap_or(i64::MAX)
    }
}

/// Returns the units that may help, those first with the least harm for a device, and those last that free none.
fn sorted_by_rate<'q>(
    units: &[UnitHarm<'q>],
    helps: impl Fn(&UnitHarm<'q>) -> bool,
    harm: fn(&UnitHarm<'_>) -> i64,
) -> Vec<usize> {
    let mut sorted: Vec<(usize, &UnitHarm<'_>)> = units.iter().enumerate().filter(|(_, unit)| helps(unit)).collect();
    let product = |unit: &UnitHarm<'_>, other: &UnitHarm<'_>| i128::from(harm(unit)) * wide(other.devices);
    sorted.sort_by_key(|(_, unit)| unit.devices == 0);
    let freeing = sorted.partition_point(|(_, unit)| unit.devices > 0);
    if let Some(freeing) = sorted.get_mut(..freeing) {
        freeing.sort_by(|(_, left), (_, right)| product(left, right).cmp(&product(right, left)));
    }
    sorted.into_iter().map(|(unit, _)| unit).collect()
}

/// Returns harm that units have at least which free `need` devices together: the least for fractions of units, rounded up.
/// `None` if all units together free fewer.
fn cover(units: &[&UnitHarm<'_>], need: usize, harm: fn(&UnitHarm<'_>) -> i64) -> Option<i64> {
    let (mut total, mut left) = (0_i64, need);
    for unit in units.iter().filter(|unit| unit.devices > 0) {
        if unit.devices >= left {
            let devices = wide(unit.devices.max(1));
            let part = (i128::from(harm(unit)) * wide(left) + devices - 1) / devices;
            return Some(total.saturating_add(i64::try_from(part).unwrap_or(i64::MAX)));
        }
        left -= unit.devices;
        total = total.saturating_add(harm(unit));
    }
    None
}

/// Returns the priority up to which units free `need` devices together; `None` if all of them free fewer.
fn threshold(units: &[&UnitHarm<'_>], need: usize) -> Option<i32> {
    let mut left = need;
    units.iter().find_map(|unit| {
        left = left.saturating_sub(unit.devices);
        (left == 0).then_some(unit.highest)
    })
}

fn wide(count: usize) -> i128 {
    i128::try_from(count).unwrap_or(i128::MAX)
}
