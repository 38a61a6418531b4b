//! Extended resources of a pod that device classes serve (KEP-5004): who provides them on a node.
//!
//! Source: `preFilterExtendedResources`, `filterExtendedResources` of the plugin; `shouldDelegateResourceToDRA` of
//! `noderesources`.

use std::collections::BTreeMap;

use dra_attrs::{Gate, Quantity, QuantityError, Resources};
use dra_device::internal::{MAX_REQUESTS_PER_CLAIM, is_extended_resource};
use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};
use serde::Serialize;

use super::blocked::BlockedError;
use super::extended_requests::{ExtendedRequests, ExtendedResourceError};
use super::options::PodOptions;
use crate::cluster::classes::Classes;

/// Provider of an extended resource on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_enums, reason = "a node has the resource, devices provide it, or neither")]
pub enum ResourceProvider {
    /// The node has the resource in `status.allocatable`, from a device plugin, and a check of node resources decides.
    Node,
    /// A device class provides the resource; a check of node resources leaves it out.
    DeviceClass,
    /// Neither the node nor a device class knows the resource.
    Nobody,
}

impl ResourceProvider {
    /// Finds the provider of an extended resource on a node: the node if it has any of it, a device class otherwise. A node
    /// whose device plugin has no healthy device left has zero of it, and then a device class serves there as well.
    ///
    /// Assumes that [`Gate::ExtendedResource`] is on; otherwise it is always the node.
    ///
    /// ```
    /// use dra_alloc::Classes;
    /// use dra_alloc::pods::ResourceProvider;
    /// use k8s_openapi::api::core::v1::Node;
    /// use k8s_openapi::api::resource::v1::DeviceClass;
    /// use serde_json::{from_value, json};
    /// let class: DeviceClass =
    ///     from_value(json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}))?;
    /// let classes = Classes::new([class]);
    /// let node: Node = from_value(json!({"status": {"allocatable": {"example.com/gpu": "4"}}}))?;
    /// assert_eq!(ResourceProvider::find("example.com/gpu", &node, &classes)?, ResourceProvider::Node);
    /// let provider = ResourceProvider::find("example.com/gpu", &Node::default(), &classes)?;
    /// assert_eq!(provider, ResourceProvider::DeviceClass);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The node's amount is not a quantity.
    pub fn find(resource: &str, node: &Node, classes: &Classes) -> Result<Self, QuantityError> {
        Self::of(resource, node, classes.of_extended_resource(resource).is_some())
    }

    fn of(resource: &str, node: &Node, has_class: bool) -> Result<Self, QuantityError> {
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        let allocatable = allocatable.and_then(|allocatable| allocatable.get(resource));
        let allocatable = allocatable.map(Quantity::from_kube).transpose()?;
        Ok(match allocatable {
            None if has_class => Self::DeviceClass,
            Some(amount) if has_class && amount == Quantity::ZERO => Self::DeviceClass,
            None => Self::Nobody,
            Some(_) => Self::Node,
        })
    }
}

/// Extended resources that a pod requests, of which a device class serves at least one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExtendedResources {
    needs: BTreeMap<String, Need>,
}

/// Requests with which a device class serves a resource; `None` without a class.
type Need = Option<Result<ExtendedRequests, ExtendedResourceError>>;

impl ExtendedResources {
    /// Returns the extended resources of a pod; `None` if no device class serves any of them.
    pub(super) fn of_pod(pod: &Pod, classes: &Classes, options: PodOptions) -> Result<Option<Self>, BlockedError> {
        let Some(spec) = pod.spec.as_ref().filter(|spec| options.has(Gate::ExtendedResource) && has_any(spec)) else {
            return Ok(None);
        };
        let requested = Resources::of_containers(spec).map_err(|source| BlockedError::Requests { source })?;
        let mut needs = BTreeMap::new();
        for (resource, amount) in requested.iter() {
            if amount <= Quantity::ZERO || !is_extended_resource(resource) {
                continue;
            }
            let class = classes.of_extended_resource(resource).and_then(|class| class.metadata.name.as_deref());
            let need = class.map(|class| ExtendedRequests::for_resource(pod, resource, class, options.profile()));
            needs.insert(resource.to_owned(), need);
        }
        let is_served = needs.values().any(Option::is_some);
        Ok(is_served.then_some(Self { needs }))
    }

    /// Returns the names of the resources.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.needs.keys().map(String::as_str)
    }

    /// Returns the requests of a claim that provides on a node what the node itself does not; `None` if nothing is left to
    /// provide.
    pub(super) fn requests_on(&self, node: &Node) -> Result<Option<ExtendedRequests>, ExtendedResourceError> {
        let mut made = ExtendedRequests::default();
        for (resource, need) in &self.needs {
            let resource = || resource.clone();
            let provider = ResourceProvider::of(&resource(), node, need.is_some())
                .map_err(|source| ExtendedResourceError::Allocatable { resource: resource(), source })?;
            match (provider, need) {
                (ResourceProvider::Nobody, _) => {
                    return Err(ExtendedResourceError::NoProvider { resource: resource() });
                }
                (ResourceProvider::DeviceClass, Some(requests)) => made.add(requests.as_ref().map_err(Clone::clone)?),
                (ResourceProvider::Node | ResourceProvider::DeviceClass, _) => {}
            }
            if made.requests.len() > MAX_REQUESTS_PER_CLAIM {
                return Err(ExtendedResourceError::TooMany { resource: resource() });
            }
        }
        Ok((!made.requests.is_empty()).then_some(made))
    }
}

/// Returns true if a container requests a resource that devices can provide.
fn has_any(spec: &PodSpec) -> bool {
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let mut requests = containers
        .flat_map(|container| container.resources.iter())
        .flat_map(|resources| resources.requests.iter().flatten());
    requests.any(|(resource, _)| is_extended_resource(resource))
}
