//! Room of nodes apart from devices, with the pods that are there, by the rules of `dra_alloc::fit`.
//!
//! A node is a manifest: CPU, memory and the number of pods are unlimited where it does not state them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use dra_alloc::fit::{Allocatable, AllocatableError};
use dra_alloc::pods::{CycleClaim, PodCycle, PodNodeResources};
use dra_alloc::{Classes, Inventory};
use k8s_openapi::api::core::v1::{Node, Pod, PodExtendedResourceClaimStatus};
use nnn::PodError;
use nnn::memory::{NodeUsage, PodUsage};

use crate::manifest::name_of;

/// Room of the nodes of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Room {
    nodes: BTreeMap<String, (Allocatable, NodeUsage)>,
}

/// Error of an object with an amount that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RoomError {
    /// A node.
    #[error(transparent)]
    Node(#[from] AllocatableError),
    /// A pod that is bound to a node.
    #[error("pod {pod}: {source}")]
    Pod {
        /// Namespace and name of the pod.
        pod: String,
        /// Reason why the pod can't be read.
        source: PodError,
    },
}

impl Room {
    /// Finds the room of nodes with the pods that are bound to them.
    ///
    /// # Errors
    /// An amount that is not a quantity.
    pub fn new<'p>(nodes: &[Node], pods: impl IntoIterator<Item = &'p Pod>) -> Result<Self, RoomError> {
        let mut room = Self::default();
        for node in nodes {
            let has = Allocatable::new(node)?.without_unstated_limits();
            room.nodes.insert(node.metadata.name.clone().unwrap_or_default(), (has, NodeUsage::default()));
        }
        for pod in pods {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            if let Some(node) = node.filter(|_| !matches!(phase, Some("Succeeded" | "Failed"))) {
                let name = || name_of(&pod.metadata);
                let usage = PodUsage::held_by(pod).map_err(|source| RoomError::Pod { pod: name(), source })?;
                room.take(node, &usage);
            }
        }
        Ok(room)
    }

    /// Counts what one more pod takes of a node.
    pub fn take(&mut self, node: &str, pod: &PodUsage) {
        if let Some((_, usage)) = self.nodes.get_mut(node) {
            usage.add(pod);
        }
    }

    /// Returns the first reason why a node has no room for a pod, in kube-scheduler's words.
    ///
    /// ```
    /// use dra_alloc::Classes;
    /// use examples::room::Room;
    /// use k8s_openapi::api::core::v1::{Node, Pod};
    /// use nnn::memory::PodUsage;
    /// let node: Node = serde_json::from_str(r#"{"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "2"}}}"#)?;
    /// let pod: Pod = serde_json::from_str(r#"{"spec": {"containers": [
    ///     {"name": "c", "resources": {"requests": {"cpu": "3"}}}]}}"#)?;
    /// let room = Room::new(&[node], [])?;
    /// let refusal = room.refusal("n", &PodUsage::wanted_by(&pod)?, &Classes::default());
    /// assert_eq!(refusal.as_deref(), Some("Insufficient cpu"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn refusal(&self, node: &str, pod: &PodUsage, classes: &Classes) -> Option<String> {
        let (has, usage) = self.nodes.get(node)?;
        has.misfits(pod, usage, classes).first().map(ToString::to_string)
    }
}

/// Returns what a pod takes of a node together with the devices that its cycle has found there (KEP-5517).
///
/// # Errors
/// The amounts can't be determined, in kube-scheduler's words.
pub fn usage_with_devices(pod: &Pod, cycle: &PodCycle, inventory: &Inventory, node: &Node) -> Result<PodUsage, String> {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let pod = &with_extended_resources(pod, cycle, name);
    let taken = PodNodeResources::new(pod, cycle.allocations_on(name), inventory, node);
    let taken = taken.map_err(|error| error.to_string())?;
    let wanted = PodUsage::wanted_by(pod).map_err(|error| error.to_string())?;
    Ok(wanted.with_resources(&taken.demand))
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
