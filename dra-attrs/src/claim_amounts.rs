//! Node resources that a claim takes for a pod (KEP-5517).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::quantity::{Quantity, QuantityFormat};
use crate::resources::Resources;

/// Node resources that one claim takes for one pod, as the pod's status reports them (KEP-5517).
///
/// ```
/// use dra_attrs::{ClaimAmounts, DeviceOverhead, Quantity, QuantityFormat};
/// let cpus = |number| Quantity::from_units(number, QuantityFormat::DecimalSi);
/// let mut amounts = ClaimAmounts::new("gpu");
/// amounts.containers = vec!["a".to_owned(), "b".to_owned()];
/// amounts.mapping.insert("cpu".to_owned(), cpus(4));
/// amounts.overhead.insert("cpu".to_owned(), DeviceOverhead { per_pod: Some(cpus(1)), per_container: Some(cpus(2)) });
/// assert_eq!(amounts.shared().quantity("cpu"), cpus(4));
/// assert_eq!(amounts.own().quantity("cpu"), cpus(5));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClaimAmounts {
    /// Name of the claim.
    pub claim: String,
    /// Names of the containers that use the claim.
    pub containers: Vec<String>,
    /// Amounts that the devices stand for, by resource. They count once, however many containers use the claim.
    pub mapping: BTreeMap<String, Quantity>,
    /// Amounts that the devices cost in addition, by resource. They count for each pod.
    pub overhead: BTreeMap<String, DeviceOverhead>,
}

/// Amount of one node resource that devices cost a pod which uses them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "the two fields of the API type")]
pub struct DeviceOverhead {
    /// Amount that each pod pays once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_pod: Option<Quantity>,
    /// Amount that each container pays which uses the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_container: Option<Quantity>,
}

impl DeviceOverhead {
    /// Adds another overhead. Sums saturate.
    pub fn add(&mut self, other: Self) {
        let sum = |one: Option<Quantity>, other: Option<Quantity>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        self.per_pod = sum(self.per_pod, other.per_pod);
        self.per_container = sum(self.per_container, other.per_container);
    }

    /// Returns the amount for a pod in which `containers` containers use the claim.
    fn of_pod(&self, containers: usize) -> Quantity {
        let containers = i64::try_from(containers).unwrap_or(i64::MAX);
        let containers = Quantity::from_units(containers, QuantityFormat::DecimalSi);
        let of_containers = self.per_container.unwrap_or_default().saturating_mul(containers);
        self.per_pod.unwrap_or_default().saturating_add(of_containers)
    }
}

impl ClaimAmounts {
    /// Creates the amounts of a claim that takes nothing.
    #[must_use]
    pub fn new(claim: impl Into<String>) -> Self {
        Self { claim: claim.into(), ..Self::default() }
    }

    /// Returns true if the claim takes nothing of the node.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mapping.is_empty() && self.overhead.is_empty()
    }

    /// Returns the amounts that the claim takes once, however many pods use it.
    #[must_use]
    pub fn shared(&self) -> Resources {
        Resources::new(self.mapping.iter().map(|(name, amount)| (name.as_str(), *amount)))
    }

    /// Returns the amounts that the claim takes for this pod alone, in addition to [`ClaimAmounts::shared`].
    #[must_use]
    pub fn own(&self) -> Resources {
        let of_pod = |overhead: &DeviceOverhead| overhead.of_pod(self.containers.len());
        Resources::new(self.overhead.iter().map(|(name, overhead)| (name.as_str(), of_pod(overhead))))
    }
}
