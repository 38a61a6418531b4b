//! Disruption budgets: which pods they cover, and which victims they do not allow.
//!
//! Source: `filterPodsWithPDBViolation` of kube-scheduler 1.37.

use std::collections::BTreeMap;

use dra_attrs::label_selector_matches;
use dra_device::internal::PodFields;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use smallvec::SmallVec;

/// Treatment of disruption budgets by a choice of victims with the least harm. kube-scheduler has the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "budgets are broken last, never, or not looked at")]
pub enum BudgetPolicy {
    /// Victims that a budget does not allow are taken only where no others suffice.
    #[default]
    LastResort,
    /// Victims that a budget does not allow are not taken.
    Never,
    /// Budgets do not count.
    Ignore,
}

/// Disruption budgets of a cluster, by namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct DisruptionBudgets<'c> {
    budgets: Vec<&'c PodDisruptionBudget>,
    by_namespace: BTreeMap<&'c str, Vec<usize>>,
}

/// Positions of the budgets that cover a pod.
pub(crate) type Covering = SmallVec<[usize; 2]>;

impl<'c> DisruptionBudgets<'c> {
    pub(crate) fn new(budgets: impl IntoIterator<Item = &'c PodDisruptionBudget>) -> Self {
        let mut all = Self::default();
        for budget in budgets {
            let namespace = budget.metadata.namespace.as_deref().unwrap_or_default();
            all.by_namespace.entry(namespace).or_default().push(all.budgets.len());
            all.budgets.push(budget);
        }
        all
    }

    /// Returns the budgets that cover a pod: those of its namespace that select its labels, but for those that count the
    /// pod as disrupted already.
    pub(crate) fn covering(&self, pod: &Pod) -> Covering {
        let Some(labels) = pod.metadata.labels.as_ref().filter(|labels| !labels.is_empty()) else {
            return Covering::new();
        };
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let in_namespace = self.by_namespace.get(pod.namespace()).into_iter().flatten().copied();
        let covers = |budget: &PodDisruptionBudget| {
            let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            let mut disrupted = budget.status.iter().flat_map(|status| status.disrupted_pods.iter().flatten());
            selector.is_some_and(|selector| selects(selector, labels)) && !disrupted.any(|(pod, _)| pod == name)
        };
        in_namespace.filter(|position| self.budgets.get(*position).is_some_and(|budget| covers(budget))).collect()
    }

    /// Returns a charge of these budgets from which nothing is taken yet.
    pub(crate) fn charge(&self) -> Charge<'_> {
        Charge { budgets: &self.budgets, taken: BTreeMap::new() }
    }

    /// Returns a budget by its position.
    pub(crate) fn budget(&self, position: usize) -> Option<&'c PodDisruptionBudget> {
        self.budgets.get(position).copied()
    }
}

/// Disruptions charged to budgets.
pub(crate) struct Charge<'b> {
    budgets: &'b [&'b PodDisruptionBudget],
    taken: BTreeMap<usize, i64>,
}

impl Charge<'_> {
    /// Charges a victim to the budgets that cover it. Returns those that do not allow it, and are charged nevertheless.
    pub(crate) fn add(&mut self, covering: &Covering) -> Covering {
        let exceeded = covering.iter().filter(|position| {
            let status = self.budgets.get(**position).and_then(|budget| budget.status.as_ref());
            let allowed = i64::from(status.and_then(|status| status.disruptions_allowed).unwrap_or_default());
            let taken = self.taken.entry(**position).or_default();
            *taken += 1;
            *taken > allowed
        });
        exceeded.copied().collect()
    }
}

/// Returns true if a selector matches labels. An empty selector and an invalid one match nothing.
fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let expressions = selector.match_expressions.as_deref().unwrap_or_default();
    let is_empty = expressions.is_empty() && selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty);
    !is_empty && expressions.iter().all(has_right_values) && label_selector_matches(selector, labels).unwrap_or(false)
}

/// Returns true if a requirement has values exactly where its operator needs them.
fn has_right_values(requirement: &LabelSelectorRequirement) -> bool {
    let needs_values = matches!(requirement.operator.as_str(), "In" | "NotIn");
    requirement.values.as_ref().is_some_and(|values| !values.is_empty()) == needs_values
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn pod(namespace: &str, name: &str, labels: &Value) -> Pod {
        from_value(json!({"metadata": {"namespace": namespace, "name": name, "labels": labels}})).unwrap()
    }

    #[test]
    fn selectors_cover_as_in_kube_scheduler() {
        let app = json!({"app": "x"});
        let table = [
            ("matching labels", json!({"matchLabels": {"app": "x"}}), app.clone(), true),
            ("other labels", json!({"matchLabels": {"app": "y"}}), app.clone(), false),
            ("empty selector", json!({}), app.clone(), false),
            ("no selector", Value::Null, app.clone(), false),
            ("no labels", json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}), Value::Null, false),
            ("exists", json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), app.clone(), true),
            ("not in nothing", json!({"matchExpressions": [{"key": "app", "operator": "NotIn"}]}), app.clone(), false),
            ("unknown operator", json!({"matchExpressions": [{"key": "app", "operator": "Like"}]}), app, false),
        ];
        for (name, selector, labels, expected) in table {
            let budget: PodDisruptionBudget = from_value(json!({
                "metadata": {"namespace": "ml", "name": "b"}, "spec": {"selector": selector},
            }))
            .unwrap();
            let budgets = DisruptionBudgets::new([&budget]);
            assert_eq!(!budgets.covering(&pod("ml", "p", &labels)).is_empty(), expected, "{name}");
            assert!(budgets.covering(&pod("other", "p", &labels)).is_empty(), "{name} in another namespace");
        }
    }

    #[test]
    fn a_budget_is_charged_beyond_what_it_allows() {
        let budget: PodDisruptionBudget = from_value(json!({
            "metadata": {"namespace": "ml", "name": "b"}, "spec": {"selector": {"matchLabels": {"app": "x"}}},
            "status": {"disruptionsAllowed": 1, "disruptedPods": {"gone": "2026-01-01T00:00:00Z"}, "currentHealthy": 0,
                "desiredHealthy": 0, "expectedPods": 0},
        }))
        .unwrap();
        let budgets = DisruptionBudgets::new([&budget]);
        assert!(budgets.covering(&pod("ml", "gone", &json!({"app": "x"}))).is_empty());
        let covering = budgets.covering(&pod("ml", "p", &json!({"app": "x"})));
        let mut charge = budgets.charge();
        assert!(charge.add(&covering).is_empty());
        assert_eq!(charge.add(&covering).as_slice(), [0]);
        assert_eq!(charge.add(&covering).as_slice(), [0]);
    }
}
