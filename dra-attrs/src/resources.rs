//! Resource lists: quantities of node resources by name, as in pod requests and node `allocatable`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;
use serde::Serialize;

use crate::quantity::{Quantity, QuantityError};

/// Quantities of resources by name. A resource without an entry is zero.
///
/// ```
/// use dra_attrs::{Quantity, QuantityFormat, Resources};
/// let two = Resources::new([("cpu", Quantity::from_units(2, QuantityFormat::DecimalSi))]);
/// let one = Resources::new([("cpu", Quantity::from_units(1, QuantityFormat::DecimalSi)), ("memory", Quantity::ZERO)]);
/// assert!(one.fits_into(&two) && !two.fits_into(&one));
/// assert!(two.minus(&one).quantity("cpu") == Quantity::from_units(1, QuantityFormat::DecimalSi));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Resources {
    amounts: BTreeMap<String, Quantity>,
}

impl Resources {
    /// Builds a list from names and quantities.
    #[must_use]
    pub fn new<'a>(amounts: impl IntoIterator<Item = (&'a str, Quantity)>) -> Self {
        Self { amounts: amounts.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect() }
    }

    /// Reads a list of quantities such as `allocatable` or `requests`.
    ///
    /// # Errors
    /// The first entry, in the order of names, that is not a quantity.
    pub fn parse(list: &BTreeMap<String, KubeQuantity>) -> Result<Self, QuantityError> {
        let read = list.iter().map(|(name, quantity)| Ok((name.clone(), Quantity::from_kube(quantity)?)));
        Ok(Self { amounts: read.collect::<Result<_, QuantityError>>()? })
    }

    /// Returns the resource requests of a pod as kube-scheduler computes them, from containers, init containers,
    /// sidecars, pod-level requests and overhead.
    ///
    /// The number of pods is not included; a caller that limits it does so in its filter.
    ///
    /// # Errors
    /// An entry that is not a quantity.
    pub fn requested_by(spec: &PodSpec) -> Result<Self, QuantityError> {
        Self::requested_with_claims(spec, &Self::default())
    }

    /// Returns the resource requests of a pod whose claims take `claims` in addition to its containers (KEP-5517).
    /// Pod-level requests include what the claims take.
    ///
    /// # Errors
    /// An entry that is not a quantity.
    pub fn requested_with_claims(spec: &PodSpec, claims: &Self) -> Result<Self, QuantityError> {
        let of_containers = Self::of_containers(spec)?;
        of_containers.of_pod(spec, claims, stated(spec.resources.as_ref())?)
    }

    /// Completes what the containers of a pod need to what the pod needs: with what its claims take, its pod-level amounts
    /// instead, and its overhead on top.
    pub(crate) fn of_pod(mut self, spec: &PodSpec, claims: &Self, pod_level: Self) -> Result<Self, QuantityError> {
        self.add(claims);
        let pod_level = pod_level.amounts.into_iter().filter(|(name, _)| Self::is_pod_level(name));
        self.amounts.extend(pod_level);
        if let Some(overhead) = &spec.overhead {
            self.add(&Self::parse(overhead)?);
        }
        Ok(self)
    }

    /// Returns what the containers of a pod request together: the sum of those that run at the same time, or the largest
    /// need of an init container if that is more.
    ///
    /// # Errors
    /// An entry that is not a quantity.
    pub fn of_containers(spec: &PodSpec) -> Result<Self, QuantityError> {
        Self::of_containers_by(spec, requests)
    }

    /// Returns what the containers of a pod need together, where `need` is that of one.
    pub(crate) fn of_containers_by(
        spec: &PodSpec,
        need: impl Fn(&Container) -> Result<Self, QuantityError>,
    ) -> Result<Self, QuantityError> {
        let mut running = Self::default();
        for container in &spec.containers {
            running.add(&need(container)?);
        }
        let (mut sidecars, mut starting) = (Self::default(), Self::default());
        for container in spec.init_containers.iter().flatten() {
            let mut now = need(container)?;
            if container.restart_policy.as_deref() == Some("Always") {
                running.add(&now);
                sidecars.add(&now);
                now.clone_from(&sidecars);
            } else {
                now.add(&sidecars);
            }
            starting.raise_to(&now);
        }
        running.raise_to(&starting);
        Ok(running)
    }

    /// Returns true for a resource that a pod can request as a whole.
    #[must_use]
    pub fn is_pod_level(resource: &str) -> bool {
        matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
    }

    /// Adds another list, resource by resource. Sums saturate.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.amounts {
            match self.amounts.get_mut(name) {
                Some(sum) => *sum = sum.saturating_add(*amount),
                None => drop(self.amounts.insert(name.clone(), *amount)),
            }
        }
    }

    /// Takes another list away again, resource by resource. A resource of which nothing is left has no entry afterwards.
    ///
    /// ```
    /// use dra_attrs::Resources;
    /// let mut used = Resources::new([("cpu", "3".parse()?), ("memory", "1Gi".parse()?)]);
    /// used.subtract(&Resources::new([("cpu", "1".parse()?), ("memory", "1Gi".parse()?)]));
    /// assert_eq!(used, Resources::new([("cpu", "2".parse()?)]));
    /// # Ok::<(), dra_attrs::QuantityError>(())
    /// ```
    pub fn subtract(&mut self, other: &Self) {
        for (name, amount) in &other.amounts {
            let rest = self.quantity(name).saturating_sub(*amount);
            if rest == Quantity::ZERO {
                self.amounts.remove(name);
            } else {
                self.amounts.insert(name.clone(), rest);
            }
        }
    }

    /// Returns the difference to another list. A resource may be negative.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut left = self.clone();
        for (name, amount) in &other.amounts {
            let rest = left.quantity(name).saturating_sub(*amount);
            left.amounts.insert(name.clone(), rest);
        }
        left
    }

    /// Returns the quantity of one resource.
    #[must_use]
    pub fn quantity(&self, name: &str) -> Quantity {
        self.amounts.get(name).copied().unwrap_or_default()
    }

    /// Returns every entry, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.amounts.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Returns true if `free` has enough of each resource. A request of zero always fits, as in kube-scheduler.
    #[must_use]
    pub fn fits_into(&self, free: &Self) -> bool {
        self.amounts.iter().all(|(name, amount)| *amount <= Quantity::ZERO || *amount <= free.quantity(name))
    }

    /// Raises each resource to the quantity that another list has of it, where that is more.
    ///
    /// ```
    /// use dra_attrs::Resources;
    /// let mut most = Resources::new([("cpu", "1".parse()?)]);
    /// most.raise_to(&Resources::new([("cpu", "3".parse()?), ("memory", "1Gi".parse()?)]));
    /// assert_eq!(most, Resources::new([("cpu", "3".parse()?), ("memory", "1Gi".parse()?)]));
    /// # Ok::<(), dra_attrs::QuantityError>(())
    /// ```
    pub fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.amounts {
            let larger = self.quantity(name).max(*amount);
            self.amounts.insert(name.clone(), larger);
        }
    }
}

/// Returns the requests of one container.
pub(crate) fn requests(container: &Container) -> Result<Resources, QuantityError> {
    stated(container.resources.as_ref())
}

/// Returns stated requests, of a container or of a pod.
pub(crate) fn stated(requirements: Option<&ResourceRequirements>) -> Result<Resources, QuantityError> {
    let requests = requirements.and_then(|requirements| requirements.requests.as_ref());
    requests.map_or_else(|| Ok(Resources::default()), Resources::parse)
}
