//! A cluster as its watches show it, in the values that the libraries decide from.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::{ClaimLookup, ClaimTracker};
use dra_alloc::{ClaimId, Classes, GateSet, Inventory, InventoryEvent, allocated_devices};
use dra_attrs::{Component, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceRequestAllocationResult, DeviceTaintRule, ResourceClaim, ResourceSlice,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::{Config, Event};
use nnn::PodKey;
use nnn::memory::PodMemory;

use super::connect::Cluster;
use super::failure::LiveError;
use super::lists::{List, Step};
use super::touched::{Nodes, Place, Touched};
use super::watching::{Change, Watches};
use crate::output::say;

/// Silence after which the state of long lists is told.
const PROGRESS: Duration = Duration::from_secs(5);

/// Longest time that a question which is asked once waits for lists.
const ONCE: Duration = Duration::from_secs(30);

/// Kinds that a view consists of.
const KINDS: usize = 6;

/// Cluster as a scheduler sees it.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClusterView {
    /// Nodes by name.
    pub nodes: BTreeMap<String, Node>,
    /// Pods, with what they have of their nodes.
    pub pods: PodMemory,
    /// Slices and taint rules.
    pub inventory: Inventory,
    /// Device classes.
    pub classes: Classes,
    /// Claims, with what they hold.
    pub claims: ClaimTracker,
    /// Kinds of which a list is complete.
    listed: BTreeSet<&'static str>,
    new: NewLists,
}

/// Lists that are being read.
#[derive(Debug, Default)]
struct NewLists {
    nodes: List<Node>,
    pods: List<Pod>,
    slices: List<ResourceSlice>,
    classes: List<DeviceClass>,
    rules: List<DeviceTaintRule>,
    claims: List<ResourceClaim>,
}

/// Begins the watches that a view needs.
#[must_use]
pub fn watch_cluster(cluster: &Cluster) -> Watches {
    let client = &cluster.client;
    let mut watches = Watches::default();
    watches.add("nodes", client, Config::default(), Change::Node);
    watches.add("pods", client, Config::default(), Change::Pod);
    watches.add("resourceslices", client, Config::default(), Change::Slice);
    watches.add("deviceclasses", client, Config::default(), Change::Class);
    watches.add_taint_rules(client);
    watches.add("resourceclaims", client, Config::default(), Change::Claim);
    watches
}

impl ClusterView {
    /// Creates the view of a scheduler with the gates `gates` that has seen nothing.
    #[must_use]
    pub fn new(gates: GateSet) -> Self {
        Self {
            nodes: BTreeMap::new(),
            pods: PodMemory::default(),
            inventory: Inventory::default(),
            classes: Classes::default(),
            claims: ClaimTracker::new(Component::new(Profile::V1_37, gates)),
            listed: BTreeSet::new(),
            new: NewLists::default(),
        }
    }

    /// Returns true once every kind has been listed: before that, nothing may be decided.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.listed.len() == KINDS
    }

    /// Reads until the view is complete, for who answers once: not for ever.
    ///
    /// # Errors
    /// A kind can't be listed, or not in half a minute.
    pub async fn complete_once(&mut self, watches: &mut Watches) -> Result<(), LiveError> {
        let completed = tokio::time::timeout(ONCE, self.complete(watches)).await;
        completed.unwrap_or(Err(LiveError::NotListed { listed: self.listed.len(), kinds: KINDS }))
    }

    /// Reads until the view is complete.
    ///
    /// # Errors
    /// A kind can't be listed.
    pub async fn complete(&mut self, watches: &mut Watches) -> Result<(), LiveError> {
        while !self.is_complete() {
            match tokio::time::timeout(PROGRESS, watches.next()).await {
                Ok(Some(change)) => drop(self.apply(change)?),
                Ok(None) => {}
                Err(_) => {
                    say(&format_args!("waiting for the lists of the cluster: {} of {KINDS} kinds", self.listed.len()));
                }
            }
        }
        Ok(())
    }

    /// Takes a change into the view, and says what it touches. An object that can't be read is left out, and named.
    ///
    /// # Errors
    /// A watch has ended for good.
    ///
    /// # Complexity
    /// Of one object: linear in the slices of the pools that it is about. Of a list: linear in the list.
    pub fn apply(&mut self, change: Change) -> Result<Touched, LiveError> {
        Ok(match change {
            Change::Node(event) => self.node(event),
            Change::Pod(event) => self.pod(event),
            Change::Slice(event) => self.slice(event),
            Change::Class(event) => self.class(event),
            Change::TaintRule(event) => self.rule(event),
            Change::Claim(event) => self.claim(event),
            Change::LeftOut("resourceclaims", metadata) => {
                // What it holds is not free.
                let ClaimKey { namespace, name } = ClaimKey::from_metadata(&metadata);
                if let Some(known) = self.claims.claim(&namespace, &name) {
                    self.new.claims.keep(ResourceClaim::clone(known));
                }
                Touched::Nothing
            }
            Change::PoolStatusRequest(_) | Change::KepPoolStatusRequest(_) | Change::LeftOut(..) => Touched::Nothing,
            Change::Failed(error) => return Err(error),
        })
    }

    /// Returns the pod of a namespace and name.
    #[must_use]
    pub fn pod_at(&self, (namespace, name): &Place) -> Option<&Pod> {
        self.pods.pod(namespace, name).map(|pod| &**pod)
    }

    /// Returns all pods, by namespace and name.
    pub fn all_pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.pods().map(|(pod, _)| &**pod)
    }

    /// Returns the nodes that see the pools of some devices.
    pub fn nodes_of<'d>(&self, devices: impl IntoIterator<Item = &'d DeviceRequestAllocationResult>) -> Nodes {
        let pools: BTreeSet<(&str, &str)> =
            devices.into_iter().map(|device| (device.driver.as_str(), device.pool.as_str())).collect();
        pools.into_iter().map(|(driver, pool)| self.nodes_of_pool(driver, pool)).fold(Nodes::default(), Nodes::and)
    }

    fn nodes_of_pool(&self, driver: &str, pool: &str) -> Nodes {
        let slices = self.inventory.slices_of_pool(driver, pool);
        slices
            .map(|slice| slice.spec.node_name.clone().map_or(Nodes::All, Nodes::from))
            .fold(Nodes::default(), Nodes::and)
    }

    fn node(&mut self, event: Event<Node>) -> Touched {
        match self.new.nodes.take(event) {
            Step::More => Touched::Nothing,
            Step::All(nodes) => {
                self.nodes = nodes.into_iter().map(|node| (name(&node.metadata), node)).collect();
                self.listed.insert("nodes");
                Touched::Nodes(Nodes::All)
            }
            Step::One(node) => {
                let name = name(&node.metadata);
                let is_alive = self.nodes.get(&name).is_some_and(|known| differ_by_signs_of_life(known, &node));
                self.nodes.insert(name.clone(), *node);
                if is_alive { Touched::Nothing } else { Touched::Nodes(name.into()) }
            }
            Step::Gone(node) => {
                let name = name(&node.metadata);
                self.nodes.remove(&name);
                Touched::Nodes(name.into())
            }
        }
    }

    fn pod(&mut self, event: Event<Pod>) -> Touched {
        match self.new.pods.take(event) {
            Step::More => Touched::Nothing,
            Step::All(pods) => {
                self.pods.replace(pods, None).unwrap_or_else(|error| say(&error));
                self.listed.insert("pods");
                Touched::Pods
            }
            Step::One(pod) => {
                let place = place(&pod.metadata);
                self.pods
                    .observe(*pod)
                    .map_or_else(|error| say(&format_args!("pod {}/{}: {error}", place.0, place.1)), drop);
                Touched::Pod(place)
            }
            Step::Gone(pod) => {
                let place = place(&pod.metadata);
                let uid = pod.metadata.uid.unwrap_or_default();
                self.pods.observe_deleted(&PodKey::new(&place.0, &place.1, &uid));
                Touched::Pod(place)
            }
        }
    }

    /// Takes a change of a slice. Its driver, its pool and its node never change.
    fn slice(&mut self, event: Event<ResourceSlice>) -> Touched {
        let (slice, is_there) = match self.new.slices.take(event) {
            Step::More => return Touched::Nothing,
            Step::All(slices) => {
                self.inventory.replace(slices);
                self.listed.insert("slices");
                return Touched::Nodes(Nodes::All);
            }
            Step::One(slice) => (slice, true),
            Step::Gone(slice) => (slice, false),
        };
        let (driver, pool) = (slice.spec.driver.clone(), slice.spec.pool.name.clone());
        // Of a slice that can't be read the name is known, and nothing else.
        let is_identity = driver.is_empty();
        let before = self.nodes_of_pool(&driver, &pool);
        self.input(if is_there {
            InventoryEvent::Slice((*slice).into())
        } else {
            InventoryEvent::SliceDeleted { name: name(&slice.metadata), uid: slice.metadata.uid }
        });
        Touched::Nodes(if is_identity { Nodes::All } else { before.and(self.nodes_of_pool(&driver, &pool)) })
    }

    fn rule(&mut self, event: Event<DeviceTaintRule>) -> Touched {
        match self.new.rules.take(event) {
            Step::More => return Touched::Nothing,
            Step::All(rules) => {
                self.inventory.replace_taint_rules(rules);
                self.listed.insert("rules");
            }
            Step::One(rule) => self.input(InventoryEvent::TaintRule((*rule).into())),
            Step::Gone(rule) => {
                self.input(InventoryEvent::TaintRuleDeleted { name: name(&rule.metadata), uid: rule.metadata.uid });
            }
        }
        Touched::Nodes(Nodes::All)
    }

    fn input(&mut self, event: InventoryEvent) {
        self.inventory.apply(event).map_or_else(|error| say(&error), drop);
    }

    fn class(&mut self, event: Event<DeviceClass>) -> Touched {
        match self.new.classes.take(event) {
            Step::More => return Touched::Nothing,
            Step::All(classes) => {
                self.classes = Classes::new(classes);
                self.listed.insert("classes");
            }
            Step::One(class) => drop(self.classes.set(*class)),
            Step::Gone(class) => drop(self.classes.remove(&name(&class.metadata), class.metadata.uid.as_deref())),
        }
        Touched::Nodes(Nodes::All)
    }

    fn claim(&mut self, event: Event<ResourceClaim>) -> Touched {
        let (claim, is_there) = match self.new.claims.take(event) {
            Step::More => return Touched::Nothing,
            Step::All(claims) => {
                self.listed.insert("claims");
                self.claims.replace(claims, None).unwrap_or_else(|error| say(&error));
                return Touched::Nodes(Nodes::All);
            }
            Step::One(claim) => (claim, true),
            Step::Gone(claim) => (claim, false),
        };
        let key = ClaimKey::from_metadata(&claim.metadata);
        let known = |claims: &ClaimTracker| claims.claim(&key.namespace, &key.name).cloned();
        let (before, mut held_twice) = (known(&self.claims), Vec::new());
        if is_there {
            match self.claims.observe(*claim) {
                Ok(observed) => held_twice = observed.held_twice,
                Err(error) => say(&error),
            }
        } else {
            self.claims.observe_deleted(&ClaimId::from(&*claim));
        }
        let after = known(&self.claims);
        let [before, after] =
            [&before, &after].map(|claim| claim.as_deref().map(allocated_devices).unwrap_or_default());
        let nodes = if before == after { Nodes::default() } else { self.nodes_of(before.iter().chain(after)) };
        if before != after {
            for device in &held_twice {
                say(&format_args!("{device}: held by another claim than {key} as well"));
            }
        }
        Touched::Claim(key, nodes)
    }
}

/// Returns true if two versions of a node differ by nothing but what a kubelet writes to say that it is alive: conditions,
/// images and volumes.
fn differ_by_signs_of_life(known: &Node, node: &Node) -> bool {
    let without = |node: &Node| {
        let mut node = node.clone();
        (node.metadata.resource_version, node.metadata.managed_fields) = (None, None);
        if let Some(status) = &mut node.status {
            (status.conditions, status.images) = (None, None);
            (status.volumes_attached, status.volumes_in_use) = (None, None);
        }
        node
    };
    without(known) == without(node)
}

fn name(metadata: &ObjectMeta) -> String {
    metadata.name.clone().unwrap_or_default()
}

/// Returns namespace and name of an object.
#[must_use]
pub fn place(metadata: &ObjectMeta) -> Place {
    (metadata.namespace.clone().unwrap_or_default(), name(metadata))
}
