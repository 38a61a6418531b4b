//! Resources that a pod holds on its node, also while it is resized in place (KEP-1287, KEP-5419).
//!
//! Source: `PodRequests` with `UseStatusResources`, `component-helpers/resource/helpers.go`, Kubernetes 1.37. Earlier releases
//! take the largest amount of each container, not of the sums.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodSpec, PodStatus, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

use crate::quantity::QuantityError;
use crate::resources::{Resources, requests, stated};

impl Resources {
    /// Returns the resources that a pod holds on its node, as the scheduler counts bound pods; `claims` is what its claims take
    /// in addition (KEP-5517).
    ///
    /// While the pod is resized in place, it holds the most of what it asks for, what the kubelet has allotted to it, and what
    /// its containers have; without what it asks for once the kubelet has called the resize infeasible. A pod that was never
    /// resized holds what it asks for: [`Resources::requested_with_claims`].
    ///
    /// # Errors
    /// An entry that is not a quantity.
    ///
    /// # Complexity
    /// Linear in the containers, times their statuses while the pod is resized.
    ///
    /// ```
    /// use dra_attrs::Resources;
    /// use k8s_openapi::api::core::v1::Pod;
    /// let pod: Pod = serde_json::from_str(r#"{
    ///     "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]},
    ///     "status": {"containerStatuses": [{"name": "a", "image": "", "imageID": "", "ready": true, "restartCount": 0,
    ///         "allocatedResources": {"cpu": "3"}}]}}"#)?;
    /// assert_eq!(Resources::held_by(&pod, &Resources::default())?.quantity("cpu"), "3".parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn held_by(pod: &Pod, claims: &Self) -> Result<Self, QuantityError> {
        let Some(spec) = &pod.spec else { return Ok(claims.clone()) };
        match pod.status.as_ref().filter(|status| is_resized(status)) {
            None => Self::requested_with_claims(spec, claims),
            Some(status) => Resizing { spec, status, wanted: !is_infeasible(status) }.held(claims),
        }
    }
}

/// Returns true if a status has amounts of its own, or takes those of the spec away.
fn is_resized(status: &PodStatus) -> bool {
    let has_amounts =
        |container: &ContainerStatus| container.allocated_resources.is_some() || container.resources.is_some();
    amounts_of_pod(status).1.is_some() || is_infeasible(status) || containers(status).any(has_amounts)
}

/// Returns true if the first condition about a resize that waits calls it infeasible.
fn is_infeasible(status: &PodStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    let pending = conditions.find(|condition| condition.type_ == "PodResizePending");
    pending.is_some_and(|condition| condition.reason.as_deref() == Some("Infeasible"))
}

fn containers(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    let lists = [&status.container_statuses, &status.init_container_statuses];
    lists.into_iter().flat_map(|list| list.iter().flatten())
}

/// Amounts in the status of a pod as a whole: those that the kubelet has allotted, and those that the pod has.
type OfPod<'p> = (Option<&'p BTreeMap<String, KubeQuantity>>, Option<&'p ResourceRequirements>);

k8s_openapi::k8s_if_ge_1_37! {
    const fn amounts_of_pod(status: &PodStatus) -> OfPod<'_> {
        (status.allocated_resources.as_ref(), status.resources.as_ref())
    }
}

k8s_openapi::k8s_if_le_1_36! {
    /// A stub for a build without the Kubernetes 1.37 types, which is refused.
    const fn amounts_of_pod(_: &PodStatus) -> OfPod<'_> {
        (None, None)
    }
}

/// Pod with amounts in its status.
struct Resizing<'p> {
    spec: &'p PodSpec,
    status: &'p PodStatus,
    /// True if what the spec asks for may still come.
    wanted: bool,
}

impl<'p> Resizing<'p> {
    fn held(&self, claims: &Resources) -> Result<Resources, QuantityError> {
        let (allotted, actual) = match self.of_pod() {
            Some(amounts) => amounts?,
            None => (self.sum(Self::allotted)?, self.sum(Self::actual)?),
        };
        let wanted = if self.wanted { Resources::of_containers(self.spec)? } else { Resources::default() };
        most(wanted, [&allotted, &actual]).of_pod(self.spec, claims, self.pod_level()?)
    }

    /// Returns what the kubelet has allotted to the pod as a whole, and what the pod has, if the status tells both.
    fn of_pod(&self) -> Option<Result<(Resources, Resources), QuantityError>> {
        let (allotted, resources) = amounts_of_pod(self.status);
        let (allotted, actual) = (allotted?, resources?.requests.as_ref()?);
        Some(Resources::parse(allotted).and_then(|allotted| Ok((allotted, Resources::parse(actual)?))))
    }

    /// Returns the amounts that the pod states as a whole; empty if it states none.
    fn pod_level(&self) -> Result<Resources, QuantityError> {
        let spec = stated(self.spec.resources.as_ref())?;
        let is_set = spec.iter().any(|(name, _)| Resources::is_pod_level(name));
        let (allotted, resources) = amounts_of_pod(self.status);
        let Some(actual) = resources.filter(|_| is_set) else { return Ok(spec) };
        let wanted = if self.wanted { spec } else { Resources::default() };
        Ok(most(wanted, [&parse(allotted)?, &stated(Some(actual))?]))
    }

    fn sum(
        &self,
        amount: impl Fn(&Self, &Container) -> Result<Resources, QuantityError>,
    ) -> Result<Resources, QuantityError> {
        Resources::of_containers_by(self.spec, |container| amount(self, container))
    }

    /// Returns what the kubelet has allotted to a container.
    fn allotted(&self, container: &Container) -> Result<Resources, QuantityError> {
        match self.status_of(container).and_then(|status| status.allocated_resources.as_ref()) {
            Some(allotted) => Resources::parse(allotted),
            None if self.wanted => requests(container),
            None => Ok(Resources::default()),
        }
    }

    /// Returns what a container has.
    fn actual(&self, container: &Container) -> Result<Resources, QuantityError> {
        let status = self.status_of(container).and_then(|status| status.resources.as_ref());
        match status.and_then(|resources| resources.requests.as_ref()) {
            Some(actual) => Resources::parse(actual),
            None => self.allotted(container),
        }
    }

    fn status_of(&self, container: &Container) -> Option<&'p ContainerStatus> {
        containers(self.status).find(|status| status.name == container.name)
    }
}

fn most<'r>(mut first: Resources, others: impl IntoIterator<Item = &'r Resources>) -> Resources {
    for other in others {
        first.raise_to(other);
    }
    first
}

fn parse(list: Option<&BTreeMap<String, KubeQuantity>>) -> Result<Resources, QuantityError> {
    list.map_or_else(|| Ok(Resources::default()), Resources::parse)
}
