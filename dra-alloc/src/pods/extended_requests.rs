//! Requests of the claim for a pod's extended resources, and the containers that they serve (KEP-5004).
//!
//! Containers have numbers, init containers first. *Long-lived* are the regular containers and the sidecars, *short-lived*
//! the other init containers, of which one runs at a time and before the later containers.
//!
//! Source: `createRequestsAndMappings` of the plugin's `extendeddynamicresources.go`.

use dra_attrs::internal::release::InitRequests;
use dra_attrs::{Profile, Quantity, QuantityError};
use dra_device::internal::MAX_REQUESTS_PER_CLAIM;
use k8s_openapi::api::core::v1::{Container, ContainerExtendedResourceRequest, Pod};
use k8s_openapi::api::resource::v1::{DeviceRequest, ExactDeviceRequest};

use crate::cluster::classes::Classes;

/// Requests of the claim for extended resources, and the containers that they serve.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ExtendedRequests {
    /// Requests of the claim, sorted by name as text: `container-10-request-0` before `container-2-request-0`.
    pub requests: Vec<DeviceRequest>,
    /// Requests that serve each container, as the pod's status has them.
    pub mappings: Vec<ContainerExtendedResourceRequest>,
}

/// Reason why the extended resources of a pod can't be provided on a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtendedResourceError {
    /// Neither the node nor a device class knows the resource.
    #[error("cannot fit resource")]
    NoProvider {
        /// Name of the resource.
        resource: String,
    },
    /// The node's amount of the resource is not a quantity.
    #[error("node allocatable, resource {resource}: {source}")]
    Allocatable {
        /// Name of the resource.
        resource: String,
        /// Reason why the amount is not a quantity.
        source: QuantityError,
    },
    /// An amount in a container's requests is not a quantity.
    #[error("container {container}, resource {resource}: {source}")]
    Quantity {
        /// Name of the container.
        container: String,
        /// Name of the resource.
        resource: String,
        /// Reason why the amount is not a quantity.
        source: QuantityError,
    },
    /// The claim would have more requests than a claim may have.
    #[error("resource {resource} would take more than {MAX_REQUESTS_PER_CLAIM} requests of a claim")]
    TooMany {
        /// Name of the resource.
        resource: String,
    },
}

impl ExtendedRequests {
    /// Annotation of a claim that a scheduler has made for a pod's extended resources; its value is `true`.
    pub const CLAIM_ANNOTATION: &str = "resource.kubernetes.io/extended-resource-claim";

    /// Makes the requests for extended resources of a pod that device classes serve. A resource without a device class is
    /// left out.
    ///
    /// Each long-lived container has a request for itself. A short-lived one uses the requests of the long-lived
    /// containers after it, in their order, and has one of its own for what is missing; of these only the largest is kept,
    /// since short-lived containers never run at the same time. Kubernetes 1.34 makes one for each container instead.
    ///
    /// ```
    /// use dra_alloc::{Classes, Profile};
    /// use dra_alloc::pods::ExtendedRequests;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use k8s_openapi::api::resource::v1::DeviceClass;
    /// use serde_json::{from_value, json};
    /// let class: DeviceClass =
    ///     from_value(json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}))?;
    /// let resources = |number: &str| json!({"requests": {"example.com/gpu": number}});
    /// let pod: Pod = from_value(json!({"spec": {
    ///     "initContainers": [{"name": "load", "resources": resources("3")}],
    ///     "containers": [{"name": "train", "resources": resources("2")}]}}))?;
    /// let made = ExtendedRequests::new(&pod, ["example.com/gpu"], &Classes::new([class]), Profile::V1_37)?;
    /// let names: Vec<&str> = made.requests.iter().map(|request| &*request.name).collect();
    /// assert_eq!(names, ["container-0-request-0", "container-1-request-0"]);
    /// let of_load = made.mappings.iter().filter(|mapping| mapping.container_name == "load");
    /// assert_eq!(of_load.count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// An amount that is not a quantity, or more requests than a claim may have (32).
    ///
    /// # Complexity
    /// Linear in the number of containers times that of their requests.
    pub fn new<'r>(
        pod: &Pod,
        resources: impl IntoIterator<Item = &'r str>,
        classes: &Classes,
        profile: Profile,
    ) -> Result<Self, ExtendedResourceError> {
        let mut resources: Vec<&str> = resources.into_iter().collect();
        resources.sort_unstable();
        resources.dedup();
        let mut made = Self::default();
        for resource in resources {
            let class = classes.of_extended_resource(resource).and_then(|class| class.metadata.name.as_deref());
            let Some(class) = class else { continue };
            made.add(&Self::for_resource(pod, resource, class, profile)?);
            if made.requests.len() > MAX_REQUESTS_PER_CLAIM {
                return Err(ExtendedResourceError::TooMany { resource: resource.to_owned() });
            }
        }
        Ok(made)
    }

    /// Makes the requests for one resource.
    pub(super) fn for_resource(
        pod: &Pod,
        resource: &str,
        class: &str,
        profile: Profile,
    ) -> Result<Self, ExtendedResourceError> {
        let mut users = users(pod, resource)?;
        match profile.rules().plugin.init_requests {
            InitRequests::Shared => {}
            InitRequests::Own => users.iter_mut().for_each(|user| user.is_long_lived = true),
        }
        let request = |user: &User<'_>, count: i64| DeviceRequest {
            name: user.request_name(resource),
            exactly: Some(ExactDeviceRequest {
                device_class_name: class.to_owned(),
                allocation_mode: Some("ExactCount".to_owned()),
                count: Some(count),
                ..ExactDeviceRequest::default()
            }),
            first_available: None,
        };
        let mapping = |user: &User<'_>, request: &str| ContainerExtendedResourceRequest {
            container_name: user.container.name.clone(),
            resource_name: resource.to_owned(),
            request_name: request.to_owned(),
        };
        let (long_lived, short_lived): (Vec<&User<'_>>, Vec<&User<'_>>) =
            users.iter().partition(|user| user.is_long_lived);
        if long_lived.len() > MAX_REQUESTS_PER_CLAIM {
            return Err(ExtendedResourceError::TooMany { resource: resource.to_owned() });
        }
        let missing = |user: &User<'_>| {
            user.shared(&long_lived).fold(user.wanted, |missing, other| missing.saturating_sub(other.wanted))
        };
        let mut largest: Option<(&User<'_>, i64)> = None;
        for user in &short_lived {
            let missing = missing(user);
            if missing > largest.map_or(0, |(_, count)| count) {
                largest = Some((user, missing));
            }
        }
        let own = largest.map(|(user, count)| request(user, count));
        let mut mappings: Vec<_> = long_lived.iter().map(|user| mapping(user, &user.request_name(resource))).collect();
        for user in &short_lived {
            mappings.extend(user.shared(&long_lived).map(|other| mapping(user, &other.request_name(resource))));
            mappings.extend(own.iter().filter(|_| missing(user) > 0).map(|own| mapping(user, &own.name)));
        }
        let requests = long_lived.iter().map(|user| request(user, user.wanted));
        let mut made = Self { requests: requests.chain(own).collect(), mappings };
        made.sort();
        Ok(made)
    }

    /// Adds the requests for another resource, whose name is later.
    pub(super) fn add(&mut self, other: &Self) {
        self.requests.extend(other.requests.iter().cloned());
        self.mappings.extend(other.mappings.iter().cloned());
        self.sort();
    }

    fn sort(&mut self) {
        self.requests.sort_by(|one, other| one.name.cmp(&other.name));
    }
}

/// A container that requests the resource.
struct User<'p> {
    /// Number of the container, init containers first.
    number: usize,
    container: &'p Container,
    is_long_lived: bool,
    wanted: i64,
}

impl User<'_> {
    /// Returns the name of the container's request: its number, and the position of the resource among the names of all
    /// resources that the container requests.
    fn request_name(&self, resource: &str) -> String {
        let requests = self.container.resources.iter().flat_map(|resources| resources.requests.iter().flatten());
        let position = requests.take_while(|(name, _)| *name != resource).count();
        format!("container-{}-request-{position}", self.number)
    }

    /// Returns the long-lived containers whose requests this short-lived one uses: those after it, until they have enough.
    fn shared<'u>(&self, long_lived: &'u [&'u Self]) -> impl Iterator<Item = &'u Self> {
        let (number, wanted) = (self.number, self.wanted);
        let mut found = 0_i64;
        let later = long_lived.iter().copied().skip_while(move |user| user.number < number);
        later.take_while(move |user| {
            let is_needed = found < wanted;
            found = found.saturating_add(user.wanted);
            is_needed
        })
    }
}

/// Returns the containers of a pod that request a resource, in the order of their numbers.
fn users<'p>(pod: &'p Pod, resource: &str) -> Result<Vec<User<'p>>, ExtendedResourceError> {
    let Some(spec) = &pod.spec else { return Ok(Vec::new()) };
    let init = spec.init_containers.iter().flatten();
    let init = init.map(|container| (container, container.restart_policy.as_deref() == Some("Always")));
    let containers = init.chain(spec.containers.iter().map(|container| (container, true)));
    let mut users = Vec::new();
    for (number, (container, is_long_lived)) in containers.enumerate() {
        let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let Some(amount) = requests.and_then(|requests| requests.get(resource)) else { continue };
        let amount = Quantity::from_kube(amount).map_err(|source| ExtendedResourceError::Quantity {
            container: container.name.clone(),
            resource: resource.to_owned(),
            source,
        })?;
        let wanted = amount.units_rounded_up();
        if wanted > 0 {
            users.push(User { number, container, is_long_lived, wanted });
        }
    }
    Ok(users)
}
