//! Rules of moves: which pods may move, and at which cost.

use std::collections::{BTreeMap, BTreeSet};

use dra_device::internal::PodFields;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::preemption::DisruptionBudgets;

/// Number of units that a plan may move, unless the caller sets another one.
const MOST_MOVES: usize = 8;

/// Rules of moving pods: disruption budgets, pods that must not move, and costs. Without any, each pod may move, and its cost is the
/// number of its devices.
///
/// ```
/// use dra_alloc::consolidation::MoveRules;
/// let rules = MoveRules::default().with_pinned(["uid-of-a-notebook"]).with_costs([("uid-of-a-server", 5)]);
/// assert!(format!("{rules:?}").contains("uid-of-a-notebook"));
/// ```
#[derive(Clone, Debug)]
pub struct MoveRules<'r> {
    budgets: DisruptionBudgets<'r>,
    pinned: BTreeSet<&'r str>,
    costs: BTreeMap<&'r str, u64>,
    eviction_costs: BTreeMap<&'r str, u64>,
    most_moves: usize,
}

impl Default for MoveRules<'_> {
    fn default() -> Self {
        Self {
            budgets: DisruptionBudgets::default(),
            pinned: BTreeSet::new(),
            costs: BTreeMap::new(),
            eviction_costs: BTreeMap::new(),
            most_moves: MOST_MOVES,
        }
    }
}

impl<'r> MoveRules<'r> {
    /// Sets the disruption budgets of the cluster. A pod that a budget does not allow to evict stays; a plan has as many waves as the
    /// budgets need.
    #[must_use]
    pub fn with_budgets(self, budgets: impl IntoIterator<Item = &'r PodDisruptionBudget>) -> Self {
        Self { budgets: DisruptionBudgets::new(budgets), ..self }
    }

    /// Sets the pods that must not move, by their UIDs: those with an annotation that says so, or without a controller.
    #[must_use]
    pub fn with_pinned(self, pods: impl IntoIterator<Item = &'r str>) -> Self {
        Self { pinned: pods.into_iter().collect(), ..self }
    }

    /// Sets what it costs to move pods, by their UIDs, in the caller's unit; the number of its devices for others, at least 1.
    #[must_use]
    pub fn with_costs(self, costs: impl IntoIterator<Item = (&'r str, u64)>) -> Self {
        Self { costs: costs.into_iter().collect(), ..self }
    }

    /// Sets the pods that may also be evicted without another place, by their UIDs, with what that costs. It counts for
    /// [`ScaleSimulator::make_moves`](crate::autoscaler::ScaleSimulator::make_moves), and only for pods of lower priority than all that
    /// are to fit.
    #[must_use]
    pub fn with_eviction_costs(self, costs: impl IntoIterator<Item = (&'r str, u64)>) -> Self {
        Self { eviction_costs: costs.into_iter().collect(), ..self }
    }

    /// Sets how many units a plan of [`ScaleSimulator::make_moves`](crate::autoscaler::ScaleSimulator::make_moves) may move: pods, or
    /// pods that share a claim; 8 by default.
    #[must_use]
    pub fn with_most_moves(self, most: usize) -> Self {
        Self { most_moves: most, ..self }
    }

    pub(super) const fn most_moves(&self) -> usize {
        self.most_moves
    }

    pub(super) fn is_pinned(&self, pod: &Pod) -> bool {
        self.pinned.contains(pod.uid())
    }

    pub(super) fn cost(&self, pod: &Pod, devices: usize) -> u64 {
        let by_devices = || u64::try_from(devices).unwrap_or(u64::MAX).max(1);
        self.costs.get(pod.uid()).copied().unwrap_or_else(by_devices)
    }

    pub(super) fn eviction_cost(&self, pod: &Pod) -> Option<u64> {
        self.eviction_costs.get(pod.uid()).copied()
    }

    /// Returns namespace and name of the budgets that do not allow some pods to be evicted at once.
    pub(super) fn exceeded<'p>(&self, pods: impl IntoIterator<Item = &'p Pod>) -> BTreeSet<[String; 2]> {
        let mut charge = self.budgets.charge();
        let positions: BTreeSet<usize> =
            pods.into_iter().flat_map(|pod| charge.add(&self.budgets.covering(pod))).collect();
        let named = positions.into_iter().filter_map(|position| self.budgets.budget(position));
        let texts = named.map(|budget| [&budget.metadata.namespace, &budget.metadata.name]);
        texts.map(|texts| texts.map(|text| text.clone().unwrap_or_default())).collect()
    }

    /// Splits units of pods that leave one after the other into waves that the budgets allow. `None` if a unit alone is too much.
    pub(super) fn waves<'p, T>(&self, units: Vec<T>, pods: impl Fn(&T) -> Vec<&'p Pod>) -> Option<Vec<Vec<T>>> {
        let mut waves: Vec<Vec<T>> = Vec::new();
        for unit in units {
            let is_allowed = |wave: &[T]| {
                let together = wave.iter().chain([&unit]).flat_map(&pods);
                self.exceeded(together.collect::<Vec<_>>()).is_empty()
            };
            match waves.last_mut() {
                Some(wave) if is_allowed(wave) => wave.push(unit),
                _ if is_allowed(&[]) => waves.push(vec![unit]),
                _ => return None,
            }
        }
        Some(waves)
    }
}
