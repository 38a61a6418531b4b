//! Needs of a pod on its node apart from devices, and the verdict on a node.

use dra_attrs::{Resources, TolerationOperators};
use k8s_openapi::api::core::v1::{Node, Pod};
use nnn::PodError;
use nnn::memory::{NodeUsage, PodUsage};

use super::allocatable::Allocatable;
use super::misfit::Misfit;
use super::pod_rules::PodRules;
use crate::cluster::classes::Classes;

/// Needs of a pod on its node apart from devices, read once for all nodes: its rules, and the amounts that it takes.
///
/// ```
/// use dra_alloc::fit::PodNeeds;
/// let pod = serde_json::from_str(r#"{"spec": {"containers": [
///     {"name": "c", "resources": {"requests": {"memory": "one"}}}]}}"#)?;
/// assert_eq!(
///     PodNeeds::new(&pod).unwrap_err().to_string(),
///     "spec.containers: quantity \"one\": not a number with an optional suffix"
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PodNeeds<'p> {
    rules: PodRules<'p>,
    usage: PodUsage,
}

impl<'p> PodNeeds<'p> {
    /// Reads the needs of a pod that waits for a node.
    ///
    /// # Errors
    /// A request that is not a quantity.
    ///
    /// # Complexity
    /// Linear in the containers of the pod.
    pub fn new(pod: &'p Pod) -> Result<Self, PodError> {
        Ok(Self { rules: PodRules::new(pod), usage: PodUsage::wanted_by(pod)? })
    }

    /// Sets the resources, such as the demand of the pod together with the devices that were found for it on a node
    /// ([`PodNodeResources::demand`](crate::pods::PodNodeResources::demand)).
    #[must_use]
    pub fn with_resources(self, resources: &Resources) -> Self {
        Self { usage: self.usage.with_resources(resources), ..self }
    }

    /// Sets the operators of tolerations that the scheduler knows.
    #[must_use]
    pub fn with_toleration_operators(self, operators: TolerationOperators) -> Self {
        Self { rules: self.rules.with_toleration_operators(operators), ..self }
    }

    /// Returns what the pod takes of a node on which it is placed.
    #[must_use]
    pub const fn usage(&self) -> &PodUsage {
        &self.usage
    }

    /// Returns the reasons why the pod does not fit on a node that has `allocatable`, of which other pods have `usage`; empty if
    /// it fits. As in kube-scheduler they are the reasons of the first rule that refuses: the node is cordoned, a taint, labels,
    /// ports, resources. Of resources that are short, each is a reason.
    ///
    /// # Complexity
    /// That of [`PodRules::misfit`] and [`Allocatable::misfits`]. Nothing is allocated if the pod fits.
    #[must_use]
    pub fn misfits(&self, node: &Node, allocatable: &Allocatable, usage: &NodeUsage, classes: &Classes) -> Vec<Misfit> {
        match self.rules.misfit(node) {
            Some(misfit) => vec![misfit],
            None => allocatable.misfits(&self.usage, usage, classes),
        }
    }
}
