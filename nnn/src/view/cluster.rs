//! State of a cluster as an autoscaler sees it, built from API objects.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::{Index, QuantityError, Resources, node_selector_matches};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::claims::{Claims, allocation, devices, uid};
use super::classify::{PodClass, classify_pod};
use super::node::{AutoscalerNode, AutoscalerNodePresence, BlockingPodReason, NodeWarning, PodUse, ReservedBy};
use crate::pod::{PodError, PodKey, PodPlacement, PodSnapshot, claim_amounts};

/// Time after the end of its grace period at which a terminating pod becomes overdue.
const OVERDUE_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// Grace period of a pod that does not set one, in seconds.
const DEFAULT_GRACE: i64 = 30;

/// Error of an object that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterViewError {
    /// A pod can't be read.
    #[error("pods[{index}]: {source}")]
    Pod {
        /// Position of the pod in the pods of [`ClusterObjects::new`].
        index: Index<Pod>,
        /// Reason why the pod can't be read.
        source: PodError,
    },
    /// A node has no name.
    #[error("nodes[{index}]: metadata.name: must be set")]
    NodeName {
        /// Position of the node in the nodes of [`ClusterObjects::new`].
        index: Index<Node>,
    },
    /// A resource in `status.allocatable` of a node is not a valid quantity.
    #[error("nodes[{index}]: status.allocatable: {source}")]
    Allocatable {
        /// Position of the node in the nodes of [`ClusterObjects::new`].
        index: Index<Node>,
        /// Reason why the quantity is not valid.
        source: QuantityError,
    },
}

/// API objects from which a [`ClusterView`] is built.
///
/// They are borrowed, whatever holds them: `&[Pod]`, `&Vec<Arc<Pod>>` and the values of a map of a watch cache all do.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::{Node, Pod};
/// use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
/// use nnn::view::{ClusterObjects, ClusterView, ClusterViewOptions};
/// use serde_json::{from_value, json};
///
/// let mut nodes: BTreeMap<&str, Arc<Node>> = BTreeMap::new();
/// nodes.insert("node-1", Arc::new(from_value(json!({"metadata": {"name": "node-1"}}))?));
/// let mut pods: BTreeMap<&str, Arc<Pod>> = BTreeMap::new();
/// pods.insert("default/p", Arc::new(from_value(json!({
///     "metadata": {"namespace": "default", "name": "p", "uid": "1"},
///     "spec": {"nodeName": "node-1", "containers": []},
/// }))?));
/// let (slices, claims): (Vec<Arc<ResourceSlice>>, Vec<Arc<ResourceClaim>>) = Default::default();
/// let objects = ClusterObjects::new(nodes.values(), pods.values()).with_devices(&slices, &claims);
/// let view = ClusterView::new(objects, &ClusterViewOptions::default())?;
/// assert_eq!(view.node("node-1").ok_or("no such node")?.pods.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClusterObjects<'a> {
    /// Nodes of the cluster.
    nodes: Vec<&'a Node>,
    /// Pods of all namespaces.
    pods: Vec<&'a Pod>,
    /// Resource claims of all namespaces.
    claims: Vec<&'a ResourceClaim>,
    /// Resource slices of the cluster.
    slices: Vec<&'a ResourceSlice>,
    /// Nodes of assumed pods, by pod UID, from a scheduler's own memory. Empty for readers of the API.
    assumed: &'a BTreeMap<String, String>,
    /// Current time, at which terminating pods are checked for being overdue; without it no pod is overdue.
    now: Option<Timestamp>,
}

impl<'a> ClusterObjects<'a> {
    /// Collects the nodes and pods of a cluster, without slices and claims.
    #[must_use]
    pub fn new<N, P>(nodes: impl IntoIterator<Item = &'a N>, pods: impl IntoIterator<Item = &'a P>) -> Self
    where
        N: Borrow<Node> + 'a,
        P: Borrow<Pod> + 'a,
    {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        let nodes = nodes.into_iter().map(Borrow::borrow).collect();
        let pods = pods.into_iter().map(Borrow::borrow).collect();
        let (claims, slices) = (Vec::new(), Vec::new());
        Self { nodes, pods, claims, slices, assumed: &NONE, now: None }
    }

    /// Sets the resource slices and resource claims of the cluster.
    #[must_use]
    pub fn with_devices<S, C>(
        self,
        slices: impl IntoIterator<Item = &'a S>,
        claims: impl IntoIterator<Item = &'a C>,
    ) -> Self
    where
        S: Borrow<ResourceSlice> + 'a,
        C: Borrow<ResourceClaim> + 'a,
    {
        let slices = slices.into_iter().map(Borrow::borrow).collect();
        let claims = claims.into_iter().map(Borrow::borrow).collect();
        Self { claims, slices, ..self }
    }

    /// Sets the nodes of assumed pods, by pod UID.
    #[must_use]
    pub fn with_assumed(self, assumed: &'a BTreeMap<String, String>) -> Self {
        Self { assumed, ..self }
    }

    /// Sets the current time.
    #[must_use]
    pub fn with_now(self, now: Timestamp) -> Self {
        Self { now: Some(now), ..self }
    }
}

/// Options of a [`ClusterView`]. The defaults are those of cluster-autoscaler.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterViewOptions {
    /// Names of schedulers whose pods count; all schedulers if empty.
    pub schedulers: BTreeSet<String>,
    /// Names of schedulers whose decision on a pod the autoscaler does not wait for (`--bypassed-scheduler-names`).
    pub bypassed: BTreeSet<String>,
    /// Priority below which pods are expendable and ignored (`--expendable-pods-priority-cutoff`).
    pub expendable_below: i32,
    /// Utilisation at or above which a node is not removed, in thousandths.
    pub threshold_permille: u32,
    /// Resources that alone determine the utilisation of a node that has any of them, such as GPUs.
    pub accelerators: Vec<String>,
    /// Names of nodes that are being created.
    pub upcoming: BTreeSet<String>,
}

impl Default for ClusterViewOptions {
    fn default() -> Self {
        Self {
            schedulers: BTreeSet::new(),
            bypassed: BTreeSet::new(),
            expendable_below: -10,
            threshold_permille: 500,
            accelerators: vec!["nvidia.com/gpu".to_owned(), "amd.com/gpu".to_owned()],
            upcoming: BTreeSet::new(),
        }
    }
}

/// Nodes and pods as an autoscaler sees them through the API.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterView {
    nodes: BTreeMap<String, AutoscalerNode>,
    classes: BTreeMap<PodKey, PodClass>,
}

impl ClusterView {
    /// Builds a view. If several pods or claims have one UID, the last one counts.
    ///
    /// # Complexity
    /// Linear in the input, besides look-ups.
    ///
    /// # Errors
    /// The first object that can't be read.
    pub fn new(objects: ClusterObjects<'_>, options: &ClusterViewOptions) -> Result<Self, ClusterViewError> {
        let mut view = Self { nodes: read_nodes(&objects, options)?, classes: BTreeMap::new() };
        let nodes: BTreeMap<&str, &Node> =
            objects.nodes.into_iter().map(|node| (node.metadata.name.as_deref().unwrap_or_default(), node)).collect();
        let mut counter = Counter {
            now: objects.now,
            nodes,
            claims: Claims::new(&objects.claims),
            counted: BTreeSet::new(),
            mapped: BTreeSet::new(),
        };
        let mut held: BTreeMap<(ReservedBy, String), (String, ReadPod<'_>)> = BTreeMap::new();
        for read in read_pods(&objects.pods)?.into_values() {
            let pod = &read.snapshot;
            let class = if is_expendable(read.pod, options) {
                PodClass::Dropped
            } else {
                classify_pod(pod, &options.schedulers, &options.bypassed)
            };
            view.classes.insert(pod.key.clone(), class);
            if let Some((reserved_by, node)) = hold(pod, class, objects.assumed) {
                held.insert((reserved_by, pod.key.uid.clone()), (node, read));
            }
        }
        for ((reserved_by, _), (node, read)) in held {
            let at = view
                .nodes
                .entry(node.clone())
                .or_insert_with(|| AutoscalerNode::empty(&node, AutoscalerNodePresence::Missing));
            counter.count(at, reserved_by, &read.snapshot, read.pod).map_err(|source| ClusterViewError::Pod {
                index: read.index,
                source: PodError::ClaimResource { source },
            })?;
        }
        Ok(view)
    }

    /// Returns the nodes by name: existing and upcoming nodes, and missing nodes to which pods are nominated.
    pub fn nodes(&self) -> impl Iterator<Item = &AutoscalerNode> {
        self.nodes.values()
    }

    /// Returns the node with the given name; `None` if the view has no such node.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&AutoscalerNode> {
        self.nodes.get(name)
    }

    /// Returns every pod with its class.
    pub fn pod_classes(&self) -> impl Iterator<Item = (&PodKey, PodClass)> {
        self.classes.iter().map(|(pod, class)| (pod, *class))
    }

    /// Returns the pods that need a new node. Excludes nominated pods, even if their node does not exist yet.
    pub fn pods_needing_nodes(&self) -> impl Iterator<Item = &PodKey> {
        self.pod_classes().filter(|(_, class)| class.needs_node()).map(|(pod, _)| pod)
    }
}

/// A pod object with its snapshot.
struct ReadPod<'a> {
    /// Position of the pod in the input.
    index: Index<Pod>,
    snapshot: PodSnapshot,
    pod: &'a Pod,
}

fn read_nodes(
    objects: &ClusterObjects<'_>,
    options: &ClusterViewOptions,
) -> Result<BTreeMap<String, AutoscalerNode>, ClusterViewError> {
    let mut nodes = BTreeMap::new();
    for name in &options.upcoming {
        nodes.insert(name.clone(), AutoscalerNode::empty(name, AutoscalerNodePresence::Upcoming));
    }
    for (index, node) in objects.nodes.iter().enumerate() {
        let index = Index::from(index);
        let name =
            node.metadata.name.clone().filter(|name| !name.is_empty()).ok_or(ClusterViewError::NodeName { index })?;
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        let allocatable = allocatable.map_or_else(|| Ok(Resources::default()), Resources::parse);
        let allocatable = allocatable.map_err(|source| ClusterViewError::Allocatable { index, source })?;
        let (accelerators, threshold) = (options.accelerators.clone(), options.threshold_permille);
        let view = AutoscalerNode {
            allocatable,
            accelerators,
            threshold,
            ..AutoscalerNode::empty(&name, AutoscalerNodePresence::Present)
        };
        nodes.insert(name, view);
    }
    note_local_devices(&objects.slices, &mut nodes);
    Ok(nodes)
}

/// Adds to each node its local devices, from the latest generation of each pool.
fn note_local_devices(slices: &[&ResourceSlice], nodes: &mut BTreeMap<String, AutoscalerNode>) {
    let mut newest: BTreeMap<(&str, &str, &str), (i64, BTreeSet<String>)> = BTreeMap::new();
    for slice in slices {
        let spec = &slice.spec;
        let Some(node) = spec.node_name.as_deref().filter(|name| !name.is_empty()) else { continue };
        let place = (node, spec.driver.as_str(), spec.pool.name.as_str());
        let (generation, devices) = newest.entry(place).or_insert((i64::MIN, BTreeSet::new()));
        if spec.pool.generation > *generation {
            (*generation, *devices) = (spec.pool.generation, BTreeSet::new());
        }
        if spec.pool.generation == *generation {
            devices.extend(spec.devices.iter().flatten().map(|device| device.name.clone()));
        }
    }
    for ((node, driver, pool), (_, devices)) in newest {
        if let Some(view) = nodes.get_mut(node) {
            view.local_devices.insert((driver.to_owned(), pool.to_owned()), devices);
        }
    }
}

/// Builds the snapshots of pod objects, by UID.
fn read_pods<'a>(pods: &[&'a Pod]) -> Result<BTreeMap<String, ReadPod<'a>>, ClusterViewError> {
    let read = pods.iter().enumerate().map(|(index, &pod)| {
        let index = Index::from(index);
        let snapshot = PodSnapshot::from_pod(pod).map_err(|source| ClusterViewError::Pod { index, source })?;
        Ok((snapshot.key.uid.clone(), ReadPod { index, snapshot, pod }))
    });
    read.collect()
}

fn is_expendable(pod: &Pod, options: &ClusterViewOptions) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.priority).is_some_and(|priority| priority < options.expendable_below)
}

/// Returns the node whose room a pod takes, and the reason (bound, assumed or nominated); `None` if the pod takes room
/// on no node.
fn hold(pod: &PodSnapshot, class: PodClass, assumed: &BTreeMap<String, String>) -> Option<(ReservedBy, String)> {
    match (pod.placement(), assumed.get(&pod.key.uid)) {
        _ if class == PodClass::Dropped => None,
        (PodPlacement::Bound(node), _) => Some((ReservedBy::Bound, node.to_owned())),
        (_, Some(node)) => Some((ReservedBy::Assumed, node.clone())),
        (PodPlacement::Nominated(node), None) => Some((ReservedBy::Nominated, node.to_owned())),
        (PodPlacement::None, None) => None,
    }
}

/// Counter of pods and claims on nodes, which counts a shared claim only once.
struct Counter<'a> {
    now: Option<Timestamp>,
    nodes: BTreeMap<&'a str, &'a Node>,
    claims: Claims<'a>,
    /// UIDs of claims whose devices are counted.
    counted: BTreeSet<&'a str>,
    /// Namespaces and names of claims whose shared node resources are counted.
    mapped: BTreeSet<(String, String)>,
}

impl Counter<'_> {
    fn count(
        &mut self,
        node: &mut AutoscalerNode,
        reserved_by: ReservedBy,
        pod: &PodSnapshot,
        raw: &Pod,
    ) -> Result<(), QuantityError> {
        let requests = self.requests(pod, raw)?;
        if reserved_by == ReservedBy::Bound
            && let Some(nominated) = pod.nnn.clone().filter(|nominated| *nominated != node.name)
        {
            node.warnings.push(NodeWarning::StaleNomination { pod: pod.key.clone(), nominated });
        }
        self.count_claims(node, reserved_by, pod, raw);
        node.pods.push(PodUse {
            pod: pod.key.clone(),
            reserved_by,
            priority: pod.priority,
            requests,
            is_victim: pod.deleting && pod.preempted,
            is_node_owned: is_node_owned(raw),
            is_overdue: self.is_overdue(raw),
            blocking_reason: blocking_reason(raw),
        });
        Ok(())
    }

    /// Returns the requests of a pod plus the node resources of its claims. A claim shared by several pods counts for
    /// the first pod only.
    fn requests(&mut self, pod: &PodSnapshot, raw: &Pod) -> Result<Resources, QuantityError> {
        let amounts = raw.status.as_ref().map(claim_amounts).transpose()?.unwrap_or_default();
        let mut of_claims = Resources::default();
        for claim in amounts {
            of_claims.add(&claim.own());
            if self.mapped.insert((pod.key.namespace.clone(), claim.claim.clone())) {
                of_claims.add(&claim.shared());
            }
        }
        match &raw.spec {
            Some(spec) if of_claims.iter().next().is_some() => Resources::requested_with_claims(spec, &of_claims),
            _ => Ok(pod.requests.clone()),
        }
    }

    fn count_claims(&mut self, node: &mut AutoscalerNode, reserved_by: ReservedBy, pod: &PodSnapshot, raw: &Pod) {
        let claims = self.claims.for_pod(raw);
        let is_allocated = |claim: Option<&ResourceClaim>| claim.is_some_and(|claim| allocation(claim).is_some());
        if reserved_by != ReservedBy::Bound && !claims.iter().copied().all(is_allocated) {
            node.warnings.push(NodeWarning::DraUnknown { pod: pod.key.clone() });
        }
        for claim in claims.into_iter().flatten() {
            let selector = allocation(claim).and_then(|allocation| allocation.node_selector.as_ref());
            let excludes = |object: &&Node| {
                selector.is_some_and(|selector| !node_selector_matches(selector, object).unwrap_or(false))
            };
            if self.nodes.get(node.name.as_str()).is_some_and(excludes) {
                let claim = uid(claim).to_owned();
                node.warnings.push(NodeWarning::Inconsistent { pod: pod.key.clone(), claim });
            }
            let (is_new, is_own) = (self.counted.insert(uid(claim)), is_node_owned(raw));
            if is_new {
                node.devices.extend(devices(claim));
            }
            if is_own && is_new {
                node.own_devices.extend(devices(claim));
            } else if !is_own {
                node.own_devices.retain(|own| !devices(claim).any(|device| device == *own));
            }
        }
    }

    fn is_overdue(&self, raw: &Pod) -> bool {
        let Some(now) = self.now else { return false };
        let grace = raw.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(DEFAULT_GRACE);
        let time = SignedDuration::from_secs(grace).saturating_add(OVERDUE_AFTER);
        let deadline = raw.metadata.deletion_timestamp.as_ref().and_then(|begin| begin.0.checked_add(time).ok());
        deadline.is_some_and(|deadline| deadline < now)
    }
}

fn is_node_owned(pod: &Pod) -> bool {
    let is_mirror = annotation(pod, "kubernetes.io/config.mirror").is_some();
    is_mirror || controller_kind(pod) == Some("DaemonSet")
}

fn blocking_reason(pod: &Pod) -> Option<BlockingPodReason> {
    match annotation(pod, "cluster-autoscaler.kubernetes.io/safe-to-evict") {
        Some("false") => Some(BlockingPodReason::NotSafeToEvict),
        Some("true") => None,
        _ => controller_kind(pod).is_none().then_some(BlockingPodReason::NoController),
    }
}

fn annotation<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

fn controller_kind(pod: &Pod) -> Option<&str> {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true)).map(|owner| owner.kind.as_str())
}
