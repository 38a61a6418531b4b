//! Room of nodes: CPU, memory, pods and what device plugins offer, with the requests of the pods that are there.
//!
//! Sidecars and init containers count as kube-scheduler counts them. A node that does not say what it has is not checked for
//! CPU and memory; it has no extended resources.

use std::borrow::Cow;
use std::collections::BTreeMap;

use dra_alloc::pods::{CycleClaim, PodCycle, PodNodeResources};
use dra_alloc::{Classes, Inventory};
use dra_attrs::{Quantity, QuantityError, QuantityFormat, Resources};
use k8s_openapi::api::core::v1::{Node, Pod, PodExtendedResourceClaimStatus};

/// Resource that limits the number of pods.
const PODS: &str = "pods";

/// Room of the nodes of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Room {
    nodes: BTreeMap<String, NodeRoom>,
}

#[derive(Clone, Debug, Default)]
struct NodeRoom {
    allocatable: Resources,
    says_what_it_has: bool,
    requested: Resources,
    pods: u32,
}

impl Room {
    /// Finds the room of nodes with the pods that are bound to them.
    ///
    /// # Errors
    /// An amount that is not a quantity.
    pub fn new<'p>(nodes: &[Node], pods: impl IntoIterator<Item = &'p Pod>) -> Result<Self, QuantityError> {
        let mut room = Self::default();
        for node in nodes {
            let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
            let own = NodeRoom {
                allocatable: allocatable.map(Resources::parse).transpose()?.unwrap_or_default(),
                says_what_it_has: allocatable.is_some_and(|list| !list.is_empty()),
                ..NodeRoom::default()
            };
            room.nodes.insert(node.metadata.name.clone().unwrap_or_default(), own);
        }
        for pod in pods {
            let Some(spec) = pod.spec.as_ref() else { continue };
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            if let Some(node) = spec.node_name.as_deref().filter(|_| !matches!(phase, Some("Succeeded" | "Failed"))) {
                room.take(node, &Resources::requested_by(spec)?);
            }
        }
        Ok(room)
    }

    /// Counts the requests of one more pod on a node.
    pub fn take(&mut self, node: &str, demand: &Resources) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.requested.add(demand);
            node.pods = node.pods.saturating_add(1);
        }
    }

    /// Returns the reason why a node has no room for a pod with these requests, in kube-scheduler's words. Resources that a
    /// device class serves are left to the allocation of devices, unless the node has them from a device plugin.
    ///
    /// ```
    /// use dra_alloc::Classes;
    /// use dra_attrs::Resources;
    /// use examples::room::Room;
    /// use k8s_openapi::api::core::v1::Node;
    /// let node: Node = serde_json::from_str(r#"{"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "2"}}}"#)?;
    /// let room = Room::new(&[node], [])?;
    /// let demand = Resources::new([("cpu", "3".parse()?)]);
    /// assert_eq!(room.refusal("n", &demand, &Classes::default()).as_deref(), Some("Insufficient cpu"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn refusal(&self, node: &str, demand: &Resources, classes: &Classes) -> Option<String> {
        let node = self.nodes.get(node)?;
        let has = |resource: &str| node.allocatable.quantity(resource) > Quantity::ZERO;
        let pods = Quantity::from_units(node.pods.into(), QuantityFormat::DecimalSi);
        if has(PODS) && pods >= node.allocatable.quantity(PODS) {
            return Some("Too many pods".to_owned());
        }
        let is_short = |(resource, amount): &(&str, Quantity)| {
            let is_served = resource.contains('/') && classes.of_extended_resource(resource).is_some();
            let is_checked = if resource.contains('/') { has(resource) || !is_served } else { node.says_what_it_has };
            let left = node.allocatable.quantity(resource).saturating_sub(node.requested.quantity(resource));
            is_checked && *amount > Quantity::ZERO && *amount > left
        };
        demand.iter().find(is_short).map(|(resource, _)| format!("Insufficient {resource}"))
    }
}

/// Returns what a pod takes of a node together with the devices that its cycle has found there (KEP-5517).
///
/// # Errors
/// The amounts can't be determined, in kube-scheduler's words.
pub fn demand_with_devices(
    pod: &Pod,
    cycle: &PodCycle,
    inventory: &Inventory,
    node: &Node,
) -> Result<Resources, String> {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let pod = &with_extended_resources(pod, cycle, name);
    let taken = PodNodeResources::new(pod, cycle.allocations_on(name), inventory, node);
    taken.map(|taken| taken.demand).map_err(|error| error.to_string())
}

/// Returns a pod with the status that a scheduler writes for its extended resources on a node, before it is written.
fn with_extended_resources<'p>(pod: &'p Pod, cycle: &PodCycle, node: &str) -> Cow<'p, Pod> {
    let claim = cycle.claims().iter().find(|claim| claim.is_for_extended_resources()).map(CycleClaim::claim);
    let (Some(claim), Some(requests)) = (claim, cycle.extended_requests_on(node)) else { return Cow::Borrowed(pod) };
    let mut pod = pod.clone();
    pod.status.get_or_insert_default().extended_resource_claim_status = Some(PodExtendedResourceClaimStatus {
        resource_claim_name: claim.metadata.name.clone().unwrap_or_default(),
        request_mappings: requests.mappings.clone(),
    });
    Cow::Owned(pod)
}
