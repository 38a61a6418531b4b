//! Node resources that the devices of a pod's claims take, such as CPU and memory (KEP-5517).
//!
//! Source: `buildNodeAllocatableDRAInfo`, `nodeFitsResources` of the plugin's `nodeallocatabledynamicresources.go`, 1.37.

use std::collections::BTreeMap;
use std::fmt;

use dra_attrs::{ClaimAmounts, DeviceOverhead, Quantity, QuantityError, Resources, lookup_by_name};
use dra_device::DeviceId;
use dra_device::claims::{ClaimKey, PodClaim};
use dra_device::internal::of_allocation;
use dra_device::pool::slice_devices;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{
    AllocationResult, Device, DeviceRequestAllocationResult, NodeAllocatableMapping, NodeAllocatableOverhead,
    ResourceClaim,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;

use super::claims::entries;
use super::consumer::is_reserved_for;
use super::options::PodOptions;
use super::status_code::StatusCode;
use crate::cluster::inventory::Inventory;
use crate::cluster::scope::Scope;

/// Resources of a node that a pod's demand is checked against, besides huge pages.
const CHECKED: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const HUGE_PAGES: &str = "hugepages-";

/// Reason why the node resources of a pod's claims can't be determined. Displayed in kube-scheduler's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PodNodeResourcesError {
    /// A device of a claim that takes node resources is not published for the node.
    #[error(
        "claim {}, device {}, driver {}: device {} not found in pool {} for driver {}",
        at.claim, at.device.device, at.device.driver, at.device.device, at.device.pool, at.device.driver
    )]
    NoDevice {
        /// The device.
        at: Box<ClaimDevice>,
    },
    /// The amount depends on a capacity, but the allocation has no consumed capacity.
    #[error(
        "claim {}, device {}: ConsumedCapacity is nil, but Capacity key '{capacity}' is set in NodeAllocatableResources \
         for resource {resource}",
        at.claim, at.device.device
    )]
    NoConsumedCapacity {
        /// The device.
        at: Box<ClaimDevice>,
        /// Name of the capacity.
        capacity: String,
        /// Name of the node resource.
        resource: String,
    },
    /// An amount of a device or an allocation is not a quantity.
    #[error("claim {}, device {}, resource {resource}: {source}", at.claim, at.device.device)]
    Amount {
        /// The device.
        at: Box<ClaimDevice>,
        /// Name of the node resource.
        resource: String,
        /// Reason why the amount is not a quantity.
        source: QuantityError,
    },
    /// A request of the pod is not a quantity.
    #[error("pod requests: {0}")]
    Requests(#[from] QuantityError),
}

/// A device that is allocated to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimDevice {
    /// Namespace and name of the claim.
    pub claim: ClaimKey,
    /// The device.
    pub device: DeviceId,
}

impl ClaimDevice {
    fn new(claim: &ClaimKey, result: &DeviceRequestAllocationResult) -> Self {
        let device = DeviceId::new(&result.driver, &result.pool, &result.device);
        Self { claim: claim.clone(), device }
    }
}

/// Node resources that a pod takes on a node together with its claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PodNodeResources {
    /// Amounts of each claim that takes any, by the claim's name, as the pod's status reports them.
    pub amounts: Vec<ClaimAmounts>,
    /// Requests of the pod with what its claims take.
    pub demand: Resources,
}

/// Reason why a pod does not fit on a node together with what its claims take. Displayed in kube-scheduler's words.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeResourcesRefusal {
    /// A claim with a device that stands for node resources is reserved for another pod.
    Shared {
        /// Name of the claim.
        claim: String,
    },
    /// The pod-level request of a resource is below what containers and claims need together.
    PodLevelRequest {
        /// Name of the resource.
        resource: String,
    },
    /// The node has not enough of a resource left.
    Insufficient {
        /// Name of the resource.
        resource: String,
        /// True if the node would have too little of it even without other pods.
        is_unresolvable: bool,
    },
}

impl fmt::Display for NodeResourcesRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared { claim } => write!(
                f,
                "node allocatable resource claim {claim} has a mapped device and cannot be shared across pods"
            ),
            Self::PodLevelRequest { resource } => write!(
                f,
                "pod level request for {resource} is insufficient to cover the aggregated container and node-allocatable \
                 DRA requests"
            ),
            Self::Insufficient { resource, .. } => write!(f, "Insufficient {resource}"),
        }
    }
}

impl NodeResourcesRefusal {
    /// Returns the status of the extension point. That of several refusals is the largest.
    #[must_use]
    pub const fn code(&self) -> StatusCode {
        match self {
            Self::Insufficient { is_unresolvable: false, .. } => StatusCode::Unschedulable,
            _ => StatusCode::UnschedulableAndUnresolvable,
        }
    }
}

impl PodNodeResources {
    /// Computes the node resources that a pod takes on a node. `results` are the pod's claims with their allocations: those
    /// that they have, and those that [`PodCycle::filter`](super::PodCycle::filter) has found; see
    /// [`PodCycle::allocations_on`](super::PodCycle::allocations_on).
    ///
    /// A device is that of the latest generation of its pool on the node. A claim none of whose devices takes node resources
    /// counts nothing. The claim for extended resources is one of the claims: its containers are those of the pod's status.
    ///
    /// ```
    /// use dra_alloc::Inventory;
    /// use dra_alloc::pods::PodNodeResources;
    /// use k8s_openapi::api::core::v1::{Node, Pod};
    /// use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
    /// use serde_json::{from_value, json};
    /// let slice: ResourceSlice = from_value(json!({"metadata": {"name": "s"}, "spec": {"driver": "d.example.com",
    ///     "nodeName": "n", "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "cores",
    ///         "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "4"}}}}]}}))?;
    /// let claim: ResourceClaim = from_value(json!({"metadata": {"namespace": "ns", "name": "c"}, "status": {"allocation":
    ///     {"devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "n", "device": "cores"}]}}}}))?;
    /// let pod: Pod = from_value(json!({"metadata": {"namespace": "ns", "name": "p"}, "spec": {
    ///     "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "cpus"}]}}],
    ///     "resourceClaims": [{"name": "cpus", "resourceClaimName": "c"}]}}))?;
    /// let node: Node = from_value(json!({"metadata": {"name": "n"}}))?;
    /// let allocation = claim.status.as_ref().and_then(|status| status.allocation.as_ref()).ok_or("allocated")?;
    /// let taken = PodNodeResources::new(&pod, [(&claim, allocation)], &Inventory::new([slice]), &node)?;
    /// assert_eq!(taken.amounts[0].containers, ["a"]);
    /// assert_eq!(taken.demand.quantity("cpu"), "5".parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// An amount that can't be determined.
    ///
    /// # Complexity
    /// Linear in the devices of the pools of which the claims have devices, for each device result.
    pub fn new<'c>(
        pod: &Pod,
        results: impl IntoIterator<Item = (&'c ResourceClaim, &'c AllocationResult)>,
        inventory: &Inventory,
        node: &Node,
    ) -> Result<Self, PodNodeResourcesError> {
        let mut amounts = Vec::new();
        for (claim, allocation) in results {
            if let Some(mut taken) = amounts_of(claim, allocation, inventory, node)? {
                taken.containers = containers_of(pod, claim);
                amounts.push(taken);
            }
        }
        amounts.sort_by(|one, other| one.claim.cmp(&other.claim));
        let demand = pod.spec.as_ref().map(|spec| Resources::requested_with_claims(spec, &sum(&amounts)));
        Ok(Self { demand: demand.transpose()?.unwrap_or_default(), amounts })
    }

    /// Returns the reasons why the pod does not fit on a node with `allocatable`, of which other pods have `requested`; empty
    /// if it fits. A pod whose claims take nothing is not checked here.
    ///
    /// # Errors
    /// A request of the pod is not a quantity.
    pub fn refusals(
        &self,
        pod: &Pod,
        allocatable: &Resources,
        requested: &Resources,
    ) -> Result<Vec<NodeResourcesRefusal>, PodNodeResourcesError> {
        if self.amounts.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(refusal) = self.pod_level_refusal(pod)? {
            return Ok(vec![refusal]);
        }
        let free = allocatable.minus(requested);
        let huge_pages = self.demand.iter().map(|(name, _)| name).filter(|name| name.starts_with(HUGE_PAGES));
        let insufficient = CHECKED.into_iter().chain(huge_pages).filter_map(|resource| {
            let demand = self.demand.quantity(resource);
            let is_too_much = demand > Quantity::ZERO && demand > free.quantity(resource);
            is_too_much.then(|| NodeResourcesRefusal::Insufficient {
                resource: resource.to_owned(),
                is_unresolvable: demand > allocatable.quantity(resource),
            })
        });
        Ok(insufficient.collect())
    }

    fn pod_level_refusal(&self, pod: &Pod) -> Result<Option<NodeResourcesRefusal>, PodNodeResourcesError> {
        let Some(spec) = &pod.spec else { return Ok(None) };
        let stated = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let mut needed = Resources::of_containers(spec)?;
        needed.add(&sum(&self.amounts));
        let stated = Resources::parse(stated.unwrap_or(&BTreeMap::new()))?;
        let mut pod_level = stated.iter().filter(|(name, _)| Resources::is_pod_level(name));
        let short = pod_level.find(|(name, amount)| needed.quantity(name) > *amount);
        Ok(short.map(|(resource, _)| NodeResourcesRefusal::PodLevelRequest { resource: resource.to_owned() }))
    }

    /// Checks that no claim with a device that stands for node resources is reserved for another pod: such a device counts
    /// once for its claim, and so for one pod. Overhead is shared, each pod pays its own.
    ///
    /// # Errors
    /// The first such claim.
    pub fn check_sharing<'c>(
        &self,
        pod: &Pod,
        claims: impl IntoIterator<Item = &'c ResourceClaim>,
        options: PodOptions,
    ) -> Result<(), NodeResourcesRefusal> {
        for claim in claims {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            let is_mapped = self.amounts.iter().any(|amounts| amounts.claim == name && !amounts.mapping.is_empty());
            let consumers = claim.status.as_ref().and_then(|status| status.reserved_for.as_deref());
            if is_mapped && !consumers.unwrap_or_default().is_empty() && !is_reserved_for(pod, claim, options) {
                return Err(NodeResourcesRefusal::Shared { claim: name.to_owned() });
            }
        }
        Ok(())
    }
}

/// Returns what claims take together.
fn sum(amounts: &[ClaimAmounts]) -> Resources {
    let mut sum = Resources::default();
    for amounts in amounts {
        sum.add(&amounts.shared());
        sum.add(&amounts.own());
    }
    sum
}

/// Returns the names of a pod's containers that use a claim, init containers first. Those that the claim for extended resources
/// serves are in the pod's status.
fn containers_of(pod: &Pod, claim: &ResourceClaim) -> Vec<String> {
    let key = ClaimKey::from_metadata(&claim.metadata);
    let is_it = |entry: &&_| matches!(PodClaim::of_entry(pod, entry), Ok(Some(found)) if found.claim == key);
    let names: Vec<&str> = entries(pod).iter().filter(is_it).map(|entry| entry.name.as_str()).collect();
    let extended = pod.status.as_ref().and_then(|status| status.extended_resource_claim_status.as_ref());
    let is_same = pod.metadata.namespace.as_deref().unwrap_or_default() == key.namespace;
    let extended = extended.filter(|status| is_same && status.resource_claim_name == key.name);
    let is_served = |container: &str| {
        extended.is_some_and(|status| status.request_mappings.iter().any(|mapping| mapping.container_name == container))
    };
    let containers = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
    let users = containers.filter(|container| {
        let mut used = container.resources.iter().flat_map(|resources| resources.claims.iter().flatten());
        is_served(&container.name) || used.any(|used| names.contains(&used.name.as_str()))
    });
    users.map(|container| container.name.clone()).collect()
}

/// Returns what a claim takes, without its containers; `None` if nothing.
fn amounts_of(
    claim: &ResourceClaim,
    allocation: &AllocationResult,
    inventory: &Inventory,
    node: &Node,
) -> Result<Option<ClaimAmounts>, PodNodeResourcesError> {
    let key = ClaimKey::from_metadata(&claim.metadata);
    let results: Vec<_> =
        of_allocation(allocation).iter().map(|result| (result, device_on_node(result, inventory, node))).collect();
    let takes = |device: Option<&Device>| device.is_some_and(|device| resources_of(device).next().is_some());
    if !results.iter().any(|(_, device)| takes(*device)) {
        return Ok(None);
    }
    let mut amounts = ClaimAmounts::new(&key.name);
    for (result, device) in results {
        let no_device = || PodNodeResourcesError::NoDevice { at: Box::new(ClaimDevice::new(&key, result)) };
        let device = device.ok_or_else(no_device)?;
        for (resource, taken) in resources_of(device) {
            let place = Place { claim: &key, result, resource };
            let mapped = taken.mapping.as_ref().map(|mapping| place.mapping(mapping)).transpose()?.flatten();
            if let Some(mapped) = mapped {
                let sum = amounts.mapping.entry(resource.clone()).or_default();
                *sum = sum.saturating_add(mapped);
            }
            let overhead = taken.overhead.as_ref().map(|overhead| place.overhead(overhead)).transpose()?;
            if let Some(overhead) = overhead.filter(|overhead| *overhead != DeviceOverhead::default()) {
                amounts.overhead.entry(resource.clone()).or_default().add(overhead);
            }
        }
    }
    Ok(Some(amounts).filter(|amounts| !amounts.is_empty()))
}

fn resources_of(
    device: &Device,
) -> impl Iterator<Item = (&String, &k8s_openapi::api::resource::v1::NodeAllocatableResource)> {
    device.node_allocatable_resources.iter().flatten()
}

/// Returns an allocated device as its latest generation on the node publishes it.
fn device_on_node<'i>(
    result: &DeviceRequestAllocationResult,
    inventory: &'i Inventory,
    node: &Node,
) -> Option<&'i Device> {
    let is_for = |scope: Scope<'_>| scope.matches(node).unwrap_or(false);
    let seen = inventory
        .slices_of_pool(&result.driver, &result.pool)
        .filter(|slice| slice.spec.per_device_node_selection == Some(true) || is_for(Scope::from_slice(&slice.spec)));
    let seen: Vec<_> = seen.collect();
    let latest = seen.iter().map(|slice| slice.spec.pool.generation).max()?;
    let mut slices = seen.into_iter().filter(|slice| slice.spec.pool.generation == latest);
    let (slice, device) = slices
        .find_map(|slice| Some((slice, slice_devices(slice).iter().find(|device| device.name == result.device)?)))?;
    let by_device = slice.spec.per_device_node_selection == Some(true);
    (!by_device || is_for(Scope::from_device(device))).then_some(device)
}

/// One node resource of one device result.
struct Place<'p> {
    claim: &'p ClaimKey,
    result: &'p DeviceRequestAllocationResult,
    resource: &'p str,
}

impl Place<'_> {
    /// Returns the amount that a device stands for; `None` if it depends on a capacity that is not consumed.
    fn mapping(&self, mapping: &NodeAllocatableMapping) -> Result<Option<Quantity>, PodNodeResourcesError> {
        let Some(key) = mapping.capacity_key.as_deref().filter(|key| !key.is_empty()) else {
            return mapping.device_multiplier.as_ref().map(|multiplier| self.read(multiplier)).transpose();
        };
        let consumed =
            self.result.consumed_capacity.as_ref().ok_or_else(|| PodNodeResourcesError::NoConsumedCapacity {
                at: Box::new(ClaimDevice::new(self.claim, self.result)),
                capacity: key.to_owned(),
                resource: self.resource.to_owned(),
            })?;
        let Some(amount) = capacity_of(consumed, key, &self.result.driver) else { return Ok(None) };
        let amount = self.read(amount)?;
        let factor = mapping.capacity_multiplier.as_ref().map(|factor| self.read(factor)).transpose()?;
        Ok(Some(factor.map_or(amount, |factor| amount.saturating_mul(factor))))
    }

    fn overhead(&self, overhead: &NodeAllocatableOverhead) -> Result<DeviceOverhead, PodNodeResourcesError> {
        let read = |amount: &Option<KubeQuantity>| amount.as_ref().map(|amount| self.read(amount)).transpose();
        Ok(DeviceOverhead { per_pod: read(&overhead.per_pod)?, per_container: read(&overhead.per_container)? })
    }

    fn read(&self, amount: &KubeQuantity) -> Result<Quantity, PodNodeResourcesError> {
        Quantity::from_kube(amount).map_err(|source| PodNodeResourcesError::Amount {
            at: Box::new(ClaimDevice::new(self.claim, self.result)),
            resource: self.resource.to_owned(),
            source,
        })
    }
}

/// Returns a consumed capacity by its name, with or without the driver's domain on either side.
fn capacity_of<'c>(consumed: &'c BTreeMap<String, KubeQuantity>, key: &str, driver: &str) -> Option<&'c KubeQuantity> {
    consumed.get(key).or_else(|| match key.split_once('/') {
        Some((domain, name)) => consumed.get(name).filter(|_| domain == driver),
        None => lookup_by_name(consumed, &format!("{driver}/{key}"), driver),
    })
}
