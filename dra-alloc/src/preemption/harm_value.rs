//! Harm of a set of victims, as numbers.

use serde::Serialize;

use super::asked::Asked;
use super::disruption::BudgetPolicy;
use super::occupant::Occupant;
use super::question::Harm;

/// Offset by which kube-scheduler makes the priority of a victim positive, so that one victim more is always more harm.
const PRIORITY_OFFSET: i64 = 1 << 31;

/// Harm of a set of victims: numbers that are compared from the first on, less is better. Nobody harmed is the least.
///
/// | rule | numbers |
/// |---|---|
/// | [`Harm::KubeExact`] | violated budgets, highest priority, sum of priority + 2³¹, number of pods, minus the start of the earliest of the highest priority, in seconds of the epoch; none if nobody is harmed |
/// | [`Harm::Cost`] | violated budgets ([`BudgetPolicy::LastResort`] alone), sum of costs, number of pods |
///
/// Pods that are being deleted go in any case, and count nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct HarmValue(Vec<i64>);

impl HarmValue {
    /// Returns the numbers, the one that counts first at the beginning.
    #[must_use]
    pub fn numbers(&self) -> &[i64] {
        &self.0
    }

    pub(super) const fn new(numbers: Vec<i64>) -> Self {
        Self(numbers)
    }

    /// Returns the harm of pods, of which `violations` are not allowed by a budget. None of the pods is being deleted.
    pub(super) fn of<'o>(
        asked: &Asked<'_>,
        policy: BudgetPolicy,
        pods: impl Iterator<Item = &'o Occupant<'o>> + Clone,
        violations: usize,
    ) -> Self {
        let (violations, count) = (number(violations), number(pods.clone().count()));
        match asked.rules.harm {
            Harm::Kube | Harm::KubeExact => {
                let Some(highest) = pods.clone().map(|pod| pod.priority).max() else { return Self::default() };
                let sum = pods.clone().map(weight).fold(0, i64::saturating_add);
                let starts = pods.filter(|pod| pod.priority == highest).map(|pod| start(asked, pod));
                Self(vec![violations, i64::from(highest), sum, count, -starts.min().unwrap_or_default()])
            }
            Harm::Cost => {
                let sum = pods.map(|pod| cost(asked, pod)).fold(0, i64::saturating_add);
                match policy {
                    BudgetPolicy::LastResort => Self(vec![violations, sum, count]),
                    BudgetPolicy::Never | BudgetPolicy::Ignore => Self(vec![sum, count]),
                }
            }
        }
    }
}

/// Returns the priority of a pod, made positive.
pub(super) fn weight(pod: &Occupant<'_>) -> i64 {
    i64::from(pod.priority) + PRIORITY_OFFSET
}

/// Returns the cost of a pod.
pub(super) fn cost(asked: &Asked<'_>, pod: &Occupant<'_>) -> i64 {
    asked.rules.cost.map_or(1, |cost| i64::try_from(cost(pod.pod)).unwrap_or(i64::MAX))
}

/// Returns the start of a pod in seconds of the epoch.
pub(super) fn start(asked: &Asked<'_>, pod: &Occupant<'_>) -> i64 {
    pod.start.unwrap_or(asked.rules.now).as_second()
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
