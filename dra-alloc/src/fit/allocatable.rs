//! Resources that a node has for pods, and what is left of them.
//!
//! Source: the plugins `NodePorts` and `NodeResourcesFit` of kube-scheduler 1.37, in this order.

use dra_attrs::{Quantity, QuantityError, Resources};
use k8s_openapi::api::core::v1::Node;
use nnn::memory::{NodeUsage, PodUsage};

use super::misfit::Misfit;
use crate::cluster::classes::Classes;

/// Resource that limits the number of pods.
const PODS: &str = "pods";

/// Resources without a domain that are checked, and the beginnings of families of them. Others have no meaning to a scheduler.
const NATIVE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const NATIVE_FAMILIES: [&str; 2] = ["hugepages-", "attachable-volumes-"];

/// Error of a node that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocatableError {
    /// An amount that the node has for pods is not a quantity.
    #[error("node {node:?}: status.allocatable: {source}")]
    Amount {
        /// Name of the node.
        node: String,
        /// Reason why the amount is not a quantity.
        source: QuantityError,
    },
}

/// Resources that a node has for pods, read once: `status.allocatable`.
///
/// A resource that the node does not state it does not have, `pods` among them. A kubelet states all; manifests often do not:
/// [`Allocatable::without_unstated_limits`].
#[derive(Clone, Debug)]
pub struct Allocatable {
    amounts: Resources,
    unstated: Unstated,
}

/// Meaning of a resource without a domain that a node does not state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unstated {
    Absent,
    Unlimited,
}

impl Allocatable {
    /// Reads what a node has.
    ///
    /// # Errors
    /// An amount that is not a quantity.
    ///
    /// # Complexity
    /// Linear in the resources of the node.
    pub fn new(node: &Node) -> Result<Self, AllocatableError> {
        let stated = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        let name = || node.metadata.name.clone().unwrap_or_default();
        let amounts = stated.map(Resources::parse).transpose();
        let amounts = amounts.map_err(|source| AllocatableError::Amount { node: name(), source })?;
        Ok(Self { amounts: amounts.unwrap_or_default(), unstated: Unstated::Absent })
    }

    /// Takes CPU, memory, the number of pods and other resources without a domain as unlimited where the node does not state
    /// them, as suits a manifest. Extended resources have to be stated.
    ///
    /// ```
    /// use dra_alloc::Classes;
    /// use dra_alloc::fit::Allocatable;
    /// use k8s_openapi::api::core::v1::Node;
    /// use nnn::memory::{NodeUsage, PodUsage};
    /// let bare = Allocatable::new(&Node::default())?;
    /// let misfits = |has: &Allocatable| has.misfits(&PodUsage::default(), &NodeUsage::default(), &Classes::default());
    /// assert_eq!(misfits(&bare)[0].to_string(), "Too many pods");
    /// assert!(misfits(&bare.without_unstated_limits()).is_empty());
    /// # Ok::<(), dra_alloc::fit::AllocatableError>(())
    /// ```
    #[must_use]
    pub fn without_unstated_limits(self) -> Self {
        Self { unstated: Unstated::Unlimited, ..self }
    }

    /// Returns what a pod wants and can't have beside `usage`: a port that is taken, or else the resources of which not enough is
    /// left; empty if it fits.
    ///
    /// An extended resource that the node does not have is left to the allocation of devices if a class serves it.
    ///
    /// # Complexity
    /// A look-up for each resource and port of the pod. Nothing is allocated if the pod fits.
    #[must_use]
    pub fn misfits(&self, pod: &PodUsage, usage: &NodeUsage, classes: &Classes) -> Vec<Misfit> {
        match port_misfit(pod, usage) {
            Some(misfit) => vec![misfit],
            None => self.resource_misfits(pod, usage, classes),
        }
    }

    fn resource_misfits(&self, pod: &PodUsage, usage: &NodeUsage, classes: &Classes) -> Vec<Misfit> {
        let most = self.amounts.quantity(PODS).units_rounded_up();
        let is_full = i64::from(usage.pods) >= most && self.limits(PODS);
        let too_many = is_full.then_some(Misfit::TooManyPods { most });
        let short = pod.resources.iter().filter_map(|(resource, wanted)| {
            let allocatable = self.amounts.quantity(resource);
            let free = allocatable.saturating_sub(usage.resources.quantity(resource));
            let is_short = wanted > Quantity::ZERO && wanted > free;
            (is_short && self.counts(resource, classes)).then(|| Misfit::Insufficient {
                resource: resource.to_owned(),
                wanted,
                free,
                allocatable,
            })
        });
        too_many.into_iter().chain(short).collect()
    }

    /// Returns true if the node has to have a resource that a pod asks for.
    fn counts(&self, resource: &str, classes: &Classes) -> bool {
        if !resource.contains('/') {
            let is_native =
                NATIVE.contains(&resource) || NATIVE_FAMILIES.iter().any(|family| resource.starts_with(family));
            return is_native && self.limits(resource);
        }
        self.amounts.quantity(resource) > Quantity::ZERO || classes.of_extended_resource(resource).is_none()
    }

    /// Returns true if the node has only so much of a resource without a domain.
    fn limits(&self, resource: &str) -> bool {
        self.unstated == Unstated::Absent || self.amounts.iter().any(|(stated, _)| stated == resource)
    }
}

fn port_misfit(pod: &PodUsage, usage: &NodeUsage) -> Option<Misfit> {
    pod.ports.iter().find_map(|wanted| {
        let taken = usage.ports.conflict(wanted)?.clone();
        Some(Misfit::PortTaken { wanted: wanted.clone(), taken })
    })
}
