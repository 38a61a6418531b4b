//! A cluster as its watches show it, in the values that the libraries decide from.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dra_alloc::pods::ClaimTracker;
use dra_alloc::{Classes, DraGate, GateSet, Inventory, InventoryEvent};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::runtime::watcher::{Config, Event};

use super::connect::Cluster;
use super::failure::LiveError;
use super::watching::{Change, Watches};
use crate::output::say;

/// Silence after which the state of long lists is told.
const PROGRESS: Duration = Duration::from_secs(5);

/// Kinds that a view consists of.
const KINDS: usize = 6;

/// Cluster as a scheduler sees it.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClusterView {
    /// Nodes by name.
    pub nodes: BTreeMap<String, Node>,
    /// Pods by namespace and name.
    pub pods: BTreeMap<(String, String), Pod>,
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
    nodes: Vec<Node>,
    pods: Vec<Pod>,
    slices: Vec<ResourceSlice>,
    classes: Vec<DeviceClass>,
    rules: Vec<DeviceTaintRule>,
    claims: Vec<ResourceClaim>,
}

/// Begins the watches that a view needs.
#[must_use]
pub fn watch_cluster(cluster: &Cluster) -> Watches {
    let client = || cluster.client.clone();
    let mut watches = Watches::default();
    watches.add("nodes", Api::all(client()), Config::default(), Change::Node);
    watches.add("pods", Api::all(client()), Config::default(), Change::Pod);
    watches.add("resourceslices", Api::all(client()), Config::default(), Change::Slice);
    watches.add("deviceclasses", Api::all(client()), Config::default(), Change::Class);
    watches.add("devicetaintrules", Api::all(client()), Config::default(), Change::TaintRule);
    watches.add("resourceclaims", Api::all(client()), Config::default(), Change::Claim);
    watches
}

impl ClusterView {
    /// Creates the view of a scheduler with the gates `gates` that has seen nothing.
    #[must_use]
    pub fn new(gates: GateSet<DraGate>) -> Self {
        Self {
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            inventory: Inventory::default(),
            classes: Classes::default(),
            claims: ClaimTracker::new(gates),
            listed: BTreeSet::new(),
            new: NewLists::default(),
        }
    }

    /// Returns true once every kind has been listed: before that, nothing may be decided.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.listed.len() == KINDS
    }

    /// Reads until the view is complete.
    ///
    /// # Errors
    /// A kind can't be listed.
    pub async fn complete(&mut self, watches: &mut Watches) -> Result<(), LiveError> {
        while !self.is_complete() {
            match tokio::time::timeout(PROGRESS, watches.next()).await {
                Ok(Some(change)) => self.apply(change)?,
                Ok(None) => {}
                Err(_) => {
                    say(&format_args!("waiting for the lists of the cluster: {} of {KINDS} kinds", self.listed.len()));
                }
            }
        }
        Ok(())
    }

    /// Takes a change into the view. An object that can't be read is left out, and named.
    ///
    /// # Errors
    /// A watch has ended for good.
    pub fn apply(&mut self, change: Change) -> Result<(), LiveError> {
        match change {
            Change::Node(event) => self.node(event),
            Change::Pod(event) => self.pod(event),
            Change::Slice(event) => self.slice(event),
            Change::Class(event) => self.class(event),
            Change::TaintRule(event) => self.rule(event),
            Change::Claim(event) => self.claim(event),
            Change::PoolStatusRequest(_) => {}
            Change::Failed(error) => return Err(error),
        }
        Ok(())
    }

    fn node(&mut self, event: Event<Node>) {
        match event {
            Event::Init => self.new.nodes.clear(),
            Event::InitApply(node) => self.new.nodes.push(node),
            Event::InitDone => {
                let nodes = std::mem::take(&mut self.new.nodes).into_iter();
                self.nodes = nodes.map(|node| (name(&node.metadata), node)).collect();
                self.listed.insert("nodes");
            }
            Event::Apply(node) => drop(self.nodes.insert(name(&node.metadata), node)),
            Event::Delete(node) => drop(self.nodes.remove(&name(&node.metadata))),
        }
    }

    fn pod(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.new.pods.clear(),
            Event::InitApply(pod) => self.new.pods.push(pod),
            Event::InitDone => {
                let pods = std::mem::take(&mut self.new.pods).into_iter();
                self.pods = pods.map(|pod| (place(&pod.metadata), pod)).collect();
                self.listed.insert("pods");
            }
            Event::Apply(pod) => drop(self.pods.insert(place(&pod.metadata), pod)),
            Event::Delete(pod) => drop(self.pods.remove(&place(&pod.metadata))),
        }
    }

    fn slice(&mut self, event: Event<ResourceSlice>) {
        let applied = match event {
            Event::Init => return self.new.slices.clear(),
            Event::InitApply(slice) => return self.new.slices.push(slice),
            Event::InitDone => {
                self.inventory.replace(std::mem::take(&mut self.new.slices));
                self.listed.insert("slices");
                return;
            }
            Event::Apply(slice) => self.inventory.apply(InventoryEvent::Slice(slice.into())),
            Event::Delete(slice) => self.inventory.apply(InventoryEvent::SliceDeleted(name(&slice.metadata))),
        };
        applied.unwrap_or_else(|error| say(&error));
    }

    fn rule(&mut self, event: Event<DeviceTaintRule>) {
        let applied = match event {
            Event::Init => return self.new.rules.clear(),
            Event::InitApply(rule) => return self.new.rules.push(rule),
            Event::InitDone => {
                self.inventory.replace_taint_rules(std::mem::take(&mut self.new.rules));
                self.listed.insert("rules");
                return;
            }
            Event::Apply(rule) => self.inventory.apply(InventoryEvent::TaintRule(rule.into())),
            Event::Delete(rule) => self.inventory.apply(InventoryEvent::TaintRuleDeleted(name(&rule.metadata))),
        };
        applied.unwrap_or_else(|error| say(&error));
    }

    fn class(&mut self, event: Event<DeviceClass>) {
        match event {
            Event::Init => self.new.classes.clear(),
            Event::InitApply(class) => self.new.classes.push(class),
            Event::InitDone => {
                self.classes = Classes::new(std::mem::take(&mut self.new.classes));
                self.listed.insert("classes");
            }
            Event::Apply(class) => self.classes.set(class),
            Event::Delete(class) => self.classes.remove(&name(&class.metadata)),
        }
    }

    fn claim(&mut self, event: Event<ResourceClaim>) {
        let observed = match event {
            Event::Init => return self.new.claims.clear(),
            Event::InitApply(claim) => return self.new.claims.push(claim),
            Event::InitDone => {
                self.listed.insert("claims");
                self.claims.replace(std::mem::take(&mut self.new.claims))
            }
            Event::Apply(claim) => self.claims.observe(claim),
            Event::Delete(claim) => {
                let (namespace, name) = place(&claim.metadata);
                self.claims.observe_deleted(&namespace, &name);
                Ok(())
            }
        };
        observed.unwrap_or_else(|error| say(&error));
    }
}

fn name(metadata: &ObjectMeta) -> String {
    metadata.name.clone().unwrap_or_default()
}

fn place(metadata: &ObjectMeta) -> (String, String) {
    (metadata.namespace.clone().unwrap_or_default(), name(metadata))
}
