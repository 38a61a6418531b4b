//! The cluster as readers of the API see it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::claims::{Claims, allocation, devices, uid};
use super::classify::{Class, classify};
use super::node::{Finding, Holder, NodeView, PodUse, Presence, Stays};
use super::selector;
use crate::amount::{AmountError, Resources};
use crate::k8s::claim_resources;
use crate::pod::{Placement, PodError, PodKey, PodView};

/// How long after its grace period a terminating pod still counts.
const OVERDUE_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// The grace period of a pod that does not name one, in seconds.
const DEFAULT_GRACE: i64 = 30;

/// Why a view can't be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// A pod can't be read.
    #[error("pods[{index}]: {error}")]
    Pod {
        /// Its position.
        index: usize,
        /// What is wrong.
        error: PodError,
    },
    /// A node has no name.
    #[error("nodes[{index}]: metadata.name: must be set")]
    NodeName {
        /// Its position.
        index: usize,
    },
    /// What a node has is no quantity.
    #[error("nodes[{index}]: status.allocatable: {error}")]
    Allocatable {
        /// Its position.
        index: usize,
        /// What is wrong.
        error: AmountError,
    },
}

/// What a view is made of.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Inputs<'a> {
    /// The nodes.
    pub nodes: &'a [Node],
    /// The pods, of all namespaces.
    pub pods: &'a [Pod],
    /// The claims.
    pub claims: &'a [ResourceClaim],
    /// The slices.
    pub slices: &'a [ResourceSlice],
    /// Nodes of pods by UID, for a scheduler that looks at its own cluster. Readers of the API have none.
    pub assumed: &'a BTreeMap<String, String>,
    /// The present time, which tells terminating pods that are overdue; `None` if none is.
    pub now: Option<Timestamp>,
}

impl<'a> Inputs<'a> {
    /// Nodes and pods.
    #[must_use]
    pub const fn new(nodes: &'a [Node], pods: &'a [Pod]) -> Self {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        Self { nodes, pods, claims: &[], slices: &[], assumed: &NONE, now: None }
    }

    /// The same with slices and claims.
    #[must_use]
    pub const fn devices(self, slices: &'a [ResourceSlice], claims: &'a [ResourceClaim]) -> Self {
        Self { claims, slices, ..self }
    }

    /// The same with what a scheduler has assumed.
    #[must_use]
    pub const fn assumed(self, assumed: &'a BTreeMap<String, String>) -> Self {
        Self { assumed, ..self }
    }

    /// The same at a time.
    #[must_use]
    pub const fn at(self, now: Timestamp) -> Self {
        Self { now: Some(now), ..self }
    }
}

/// How a reader looks at a cluster. The defaults are those of cluster-autoscaler.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The schedulers whose pods count; all, if empty.
    pub schedulers: BTreeSet<String>,
    /// The schedulers that are not waited for.
    pub bypassed: BTreeSet<String>,
    /// Pods of a lower priority cost nothing and don't count.
    pub expendable_below: i32,
    /// The utilisation in thousandths from which on a node stays.
    pub threshold_permille: u32,
    /// Resources that decide alone about utilisation if a node has any.
    pub accelerators: Vec<String>,
    /// The names of nodes that are being created.
    pub upcoming: BTreeSet<String>,
}

impl Default for Settings {
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

/// The cluster as readers of the API see it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterView {
    nodes: BTreeMap<String, NodeView>,
    classes: BTreeMap<PodKey, Class>,
}

impl ClusterView {
    /// Counts every pod and every claim once. Of several objects with one UID the last counts.
    ///
    /// Linear in the input, besides look-ups.
    ///
    /// # Errors
    /// The first object that can't be read.
    pub fn new(inputs: Inputs<'_>, settings: &Settings) -> Result<Self, ViewError> {
        let mut view = Self { nodes: read_nodes(inputs, settings)?, classes: BTreeMap::new() };
        let nodes: BTreeMap<&str, &Node> =
            inputs.nodes.iter().map(|node| (node.metadata.name.as_deref().unwrap_or_default(), node)).collect();
        let mut counter = Counter {
            inputs,
            nodes,
            claims: Claims::new(inputs.claims),
            counted: BTreeSet::new(),
            mapped: BTreeSet::new(),
        };
        let mut held: BTreeMap<(Holder, String), (String, PodView, &Pod)> = BTreeMap::new();
        for (pod, raw) in read_pods(inputs.pods)?.into_values() {
            let class = if is_expendable(raw, settings) {
                Class::Dropped
            } else {
                classify(&pod, &settings.schedulers, &settings.bypassed)
            };
            view.classes.insert(pod.key.clone(), class);
            if let Some((holder, node)) = hold(&pod, class, inputs.assumed) {
                held.insert((holder, pod.key.uid.clone()), (node, pod, raw));
            }
        }
        for ((holder, _), (node, pod, raw)) in held {
            let at = view.nodes.entry(node.clone()).or_insert_with(|| NodeView::empty(&node, Presence::Missing));
            counter.count(at, holder, &pod, raw).map_err(|error| ViewError::Pod {
                index: position(inputs.pods, raw),
                error: PodError::ClaimResource { error },
            })?;
        }
        Ok(view)
    }

    /// The nodes by name: those that are there, and those that pods are nominated to.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeView> {
        self.nodes.values()
    }

    /// A node.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&NodeView> {
        self.nodes.get(name)
    }

    /// What each pod is to an autoscaler.
    pub fn classes(&self) -> impl Iterator<Item = (&PodKey, Class)> {
        self.classes.iter().map(|(pod, class)| (pod, *class))
    }

    /// The pods that are a reason to add a node. A pod that is expected on a node is none, even if the node is not there.
    pub fn need_nodes(&self) -> impl Iterator<Item = &PodKey> {
        self.classes()
            .filter(|(_, class)| matches!(class, Class::Unschedulable | Class::Unprocessed))
            .map(|(pod, _)| pod)
    }
}

fn position(pods: &[Pod], pod: &Pod) -> usize {
    pods.iter().position(|other| std::ptr::eq(other, pod)).unwrap_or_default()
}

fn read_nodes(inputs: Inputs<'_>, settings: &Settings) -> Result<BTreeMap<String, NodeView>, ViewError> {
    let mut nodes = BTreeMap::new();
    for name in &settings.upcoming {
        nodes.insert(name.clone(), NodeView::empty(name, Presence::Upcoming));
    }
    for (index, node) in inputs.nodes.iter().enumerate() {
        let name = node.metadata.name.clone().filter(|name| !name.is_empty()).ok_or(ViewError::NodeName { index })?;
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        let allocatable = allocatable.map_or_else(|| Ok(Resources::default()), Resources::parse);
        let allocatable = allocatable.map_err(|error| ViewError::Allocatable { index, error })?;
        let (accelerators, threshold) = (settings.accelerators.clone(), settings.threshold_permille);
        let view = NodeView { allocatable, accelerators, threshold, ..NodeView::empty(&name, Presence::Present) };
        nodes.insert(name, view);
    }
    note_local_devices(inputs.slices, &mut nodes);
    Ok(nodes)
}

/// Notes the devices of the newest generation of each pool on one node.
fn note_local_devices(slices: &[ResourceSlice], nodes: &mut BTreeMap<String, NodeView>) {
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

/// Pods by UID.
fn read_pods(pods: &[Pod]) -> Result<BTreeMap<String, (PodView, &Pod)>, ViewError> {
    let read = pods.iter().enumerate().map(|(index, pod)| {
        let view = PodView::from_pod(pod).map_err(|error| ViewError::Pod { index, error })?;
        Ok((view.key.uid.clone(), (view, pod)))
    });
    read.collect()
}

fn is_expendable(pod: &Pod, settings: &Settings) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.priority).is_some_and(|priority| priority < settings.expendable_below)
}

/// Where a pod counts, and why.
fn hold(pod: &PodView, class: Class, assumed: &BTreeMap<String, String>) -> Option<(Holder, String)> {
    match (pod.placement(), assumed.get(&pod.key.uid)) {
        _ if class == Class::Dropped => None,
        (Placement::Bound(node), _) => Some((Holder::Bound, node.to_owned())),
        (_, Some(node)) => Some((Holder::Assumed, node.clone())),
        (Placement::Nominated(node), None) => Some((Holder::Nominated, node.to_owned())),
        (Placement::None, None) => None,
    }
}

/// What has been counted so far.
struct Counter<'a> {
    inputs: Inputs<'a>,
    nodes: BTreeMap<&'a str, &'a Node>,
    claims: Claims<'a>,
    /// Claims by UID.
    counted: BTreeSet<&'a str>,
    /// Claims by namespace and name whose node resources are counted.
    mapped: BTreeSet<(String, String)>,
}

impl Counter<'_> {
    fn count(&mut self, node: &mut NodeView, holder: Holder, pod: &PodView, raw: &Pod) -> Result<(), AmountError> {
        let requests = self.requests(pod, raw)?;
        if holder == Holder::Bound
            && let Some(nominated) = pod.nnn.clone().filter(|nominated| *nominated != node.name)
        {
            node.findings.push(Finding::StaleNomination { pod: pod.key.clone(), nominated });
        }
        self.count_claims(node, holder, pod, raw);
        node.pods.push(PodUse {
            pod: pod.key.clone(),
            holder,
            priority: pod.priority,
            requests,
            is_victim: pod.deleting && pod.preempted,
            is_node_owned: is_node_owned(raw),
            is_overdue: self.is_overdue(raw),
            stays: stays(raw),
        });
        Ok(())
    }

    /// What the pod requests, with the node resources of its claims: of each claim at the first pod that counts.
    fn requests(&mut self, pod: &PodView, raw: &Pod) -> Result<Resources, AmountError> {
        let mut requests = pod.requests.clone();
        let Some(status) = &raw.status else { return Ok(requests) };
        for claim in claim_resources(status)? {
            requests.add(&claim.own);
            if self.mapped.insert((pod.key.namespace.clone(), claim.claim)) {
                requests.add(&claim.shared);
            }
        }
        Ok(requests)
    }

    fn count_claims(&mut self, node: &mut NodeView, holder: Holder, pod: &PodView, raw: &Pod) {
        let claims = self.claims.of(raw);
        let is_allocated = |claim: Option<&ResourceClaim>| claim.is_some_and(|claim| allocation(claim).is_some());
        if holder != Holder::Bound && !claims.iter().copied().all(is_allocated) {
            node.findings.push(Finding::DraUnknown { pod: pod.key.clone() });
        }
        for claim in claims.into_iter().flatten() {
            let selector = allocation(claim).and_then(|allocation| allocation.node_selector.as_ref());
            let excludes = |object: &&Node| selector.is_some_and(|selector| !selector::matches(selector, object));
            if self.nodes.get(node.name.as_str()).is_some_and(excludes) {
                let claim = uid(claim).to_owned();
                node.findings.push(Finding::Inconsistent { pod: pod.key.clone(), claim });
            }
            if self.counted.insert(uid(claim)) {
                node.devices.extend(devices(claim));
            }
        }
    }

    fn is_overdue(&self, raw: &Pod) -> bool {
        let Some(now) = self.inputs.now else { return false };
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

fn stays(pod: &Pod) -> Option<Stays> {
    match annotation(pod, "cluster-autoscaler.kubernetes.io/safe-to-evict") {
        Some("false") => Some(Stays::NotSafeToEvict),
        Some("true") => None,
        _ => controller_kind(pod).is_none().then_some(Stays::NoController),
    }
}

fn annotation<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

fn controller_kind(pod: &Pod) -> Option<&str> {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true)).map(|owner| owner.kind.as_str())
}
