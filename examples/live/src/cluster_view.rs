//! A cluster as its watches show it, in the values that the libraries decide from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::{ClaimLookup, ClaimTracker};
use dra_alloc::queue::{ClusterEvent, ObjectChange};
use dra_alloc::{ClaimId, Classes, GateSet, Inventory, InventoryEvent, allocated_devices};
use dra_attrs::{Component, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceRequestAllocationResult, DeviceTaintRule, ResourceClaim, ResourceSlice,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::{Config, Event};
use nnn::memory::{PodChange, PodMemory};
use nnn::{PodError, PodKey};

use super::connect::Cluster;
use super::failure::LiveError;
use super::lists::{List, Step};
use super::touched::{Nodes, Place, Touched};
use super::watching::{Change, Watches};
use crate::say::say;

/// Silence after which the state of long lists is told.
const PROGRESS: Duration = Duration::from_secs(5);

/// Longest time that a question which is asked once waits for lists.
const ONCE: Duration = Duration::from_secs(30);

/// Kinds that each view consists of.
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
    /// Disruption budgets by namespace and name, if they are watched.
    pub budgets: BTreeMap<Place, PodDisruptionBudget>,
    /// Drivers whose slices are left out: another scheduler gives their devices away.
    pub without_drivers: BTreeSet<String>,
    /// Objects as they were seen last, by name.
    seen: Seen,
    /// Kinds of which a list is complete.
    listed: BTreeSet<&'static str>,
    /// Number of kinds that are watched.
    kinds: usize,
    new: NewLists,
}

/// Objects of which the indexes do not show the one of a name.
#[derive(Debug, Default)]
struct Seen {
    slices: ByName<ResourceSlice>,
    classes: ByName<DeviceClass>,
    rules: ByName<DeviceTaintRule>,
}

type ByName<K> = BTreeMap<String, Arc<K>>;

/// Listener of a view's events.
type Tell<'t> = &'t mut dyn FnMut(&ClusterEvent<'_>);

/// Lists that are being read.
#[derive(Debug, Default)]
struct NewLists {
    nodes: List<Node>,
    pods: List<Pod>,
    slices: List<ResourceSlice>,
    classes: List<DeviceClass>,
    rules: List<DeviceTaintRule>,
    claims: List<ResourceClaim>,
    budgets: List<PodDisruptionBudget>,
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
            budgets: BTreeMap::new(),
            without_drivers: BTreeSet::new(),
            seen: Seen::default(),
            listed: BTreeSet::new(),
            kinds: KINDS,
            new: NewLists::default(),
        }
    }

    /// Watches the disruption budgets, too. The view is complete once it has them.
    pub fn watch_budgets(&mut self, cluster: &Cluster, watches: &mut Watches) {
        self.kinds = self.kinds.saturating_add(1);
        watches.add("poddisruptionbudgets", &cluster.client, Config::default(), Change::Budget);
    }

    /// Returns true once every kind has been listed: before that, nothing may be decided.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.listed.len() == self.kinds
    }

    /// Reads until the view is complete, for who answers once: not for ever.
    ///
    /// # Errors
    /// A kind can't be listed, or not in half a minute.
    pub async fn complete_once(&mut self, watches: &mut Watches) -> Result<(), LiveError> {
        let completed = tokio::time::timeout(ONCE, self.complete(watches)).await;
        completed.unwrap_or(Err(LiveError::NotListed { listed: self.listed.len(), kinds: self.kinds }))
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
                    let (listed, kinds) = (self.listed.len(), self.kinds);
                    say(&format_args!("waiting for the lists of the cluster: {listed} of {kinds} kinds"));
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
        self.apply_and_tell(change, |_| {})
    }

    /// Takes a change into the view as [`ClusterView::apply`] does, and tells of each object that is new, another one or gone,
    /// once the view has it. Of a pod that the view knows in a newer version, nothing is told.
    ///
    /// # Errors
    /// A watch has ended for good.
    ///
    /// # Complexity
    /// That of [`ClusterView::apply`].
    pub fn apply_and_tell(
        &mut self,
        change: Change,
        mut tell: impl FnMut(&ClusterEvent<'_>),
    ) -> Result<Touched, LiveError> {
        Ok(match change {
            Change::Node(event) => self.node(event, &mut tell),
            Change::Pod(event) => self.pod(event, &mut tell),
            Change::Slice(event) => self.slice(event, &mut tell),
            Change::Class(event) => self.class(event, &mut tell),
            Change::TaintRule(event) => self.rule(event, &mut tell),
            Change::Claim(event) => self.claim(event, &mut tell),
            Change::Budget(event) => self.budget(event),
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

    /// Takes a pod that an answer of the server shows, since the watch may be behind, and tells of it as
    /// [`ClusterView::apply_and_tell`] does. A pod that is gone meanwhile stays gone.
    pub fn learn(&mut self, pod: Pod, mut tell: impl FnMut(&ClusterEvent<'_>)) {
        self.observe_pod(pod, PodMemory::observe_answer, &mut tell);
    }

    /// Changes what the view knows by `change`, as an answer of the server shows it, and tells of the pod and of the claim if they
    /// are others then.
    pub fn change<T>(
        &mut self,
        pod: Option<&PodKey>,
        claim: Option<&ClaimKey>,
        change: impl FnOnce(&mut PodMemory, &mut ClaimTracker) -> T,
        mut tell: impl FnMut(&ClusterEvent<'_>),
    ) -> T {
        let known_pod = |pods: &PodMemory| pods.pod(&pod?.namespace, &pod?.name).cloned();
        let known_claim = |claims: &ClaimTracker| claims.claim(&claim?.namespace, &claim?.name).cloned();
        let before = (known_pod(&self.pods), known_claim(&self.claims));
        let changed = change(&mut self.pods, &mut self.claims);
        let after = (known_pod(&self.pods), known_claim(&self.claims));
        tell_of(before.1.as_deref(), after.1.as_deref(), |change| tell(&ClusterEvent::Claim(change)));
        if before.0.as_deref().map(std::ptr::from_ref) != after.0.as_deref().map(std::ptr::from_ref) {
            tell_of(before.0.as_ref(), after.0.as_ref(), |change| tell(&ClusterEvent::Pod(change)));
        }
        changed
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

    fn node(&mut self, event: Event<Node>, tell: Tell<'_>) -> Touched {
        match self.new.nodes.take(event) {
            Step::More => Touched::Nothing,
            Step::All(nodes) => {
                let nodes = nodes.into_iter().map(|node| (name(&node.metadata), node)).collect();
                let old = std::mem::replace(&mut self.nodes, nodes);
                self.listed.insert("nodes");
                tell_of_list(&old, &self.nodes, |change| tell(&ClusterEvent::Node(change)));
                Touched::Nodes(Nodes::All)
            }
            Step::One(node) => {
                let name = name(&node.metadata);
                let old = self.nodes.insert(name.clone(), *node);
                let new = self.nodes.get(&name);
                tell_of(old.as_ref(), new, |change| tell(&ClusterEvent::Node(change)));
                let is_alive = old.as_ref().zip(new).is_some_and(|(old, new)| differ_by_signs_of_life(old, new));
                if is_alive { Touched::Nothing } else { Touched::Nodes(name.into()) }
            }
            Step::Gone(node) => {
                let name = name(&node.metadata);
                let old = self.nodes.remove(&name);
                tell_of(old.as_ref(), None, |change| tell(&ClusterEvent::Node(change)));
                Touched::Nodes(name.into())
            }
        }
    }

    fn pod(&mut self, event: Event<Pod>, tell: Tell<'_>) -> Touched {
        match self.new.pods.take(event) {
            Step::More => Touched::Nothing,
            Step::All(pods) => {
                let by_place = |pods: &PodMemory| -> BTreeMap<Place, Arc<Pod>> {
                    pods.pods().map(|(pod, _)| (place(&pod.metadata), Arc::clone(pod))).collect()
                };
                let old = by_place(&self.pods);
                self.pods.replace(pods, None).unwrap_or_else(|error| say(&error));
                self.listed.insert("pods");
                tell_of_list(&old, &by_place(&self.pods), |change| tell(&ClusterEvent::Pod(change)));
                Touched::Pods
            }
            Step::One(pod) => Touched::Pod(self.observe_pod(*pod, PodMemory::observe, tell)),
            Step::Gone(pod) => {
                let place = place(&pod.metadata);
                let old = self.pods.pod(&place.0, &place.1).cloned();
                let uid = pod.metadata.uid.unwrap_or_default();
                self.pods.observe_deleted(&PodKey::new(&place.0, &place.1, &uid));
                let new = self.pods.pod(&place.0, &place.1);
                tell_of(old.as_ref(), new, |change| tell(&ClusterEvent::Pod(change)));
                Touched::Pod(place)
            }
        }
    }

    fn observe_pod(
        &mut self,
        pod: Pod,
        observe: impl FnOnce(&mut PodMemory, Pod) -> Result<PodChange, PodError>,
        tell: Tell<'_>,
    ) -> Place {
        let place = place(&pod.metadata);
        let old = self.pods.pod(&place.0, &place.1).cloned();
        observe(&mut self.pods, pod)
            .map_or_else(|error| say(&format_args!("pod {}/{}: {error}", place.0, place.1)), drop);
        let new = self.pods.pod(&place.0, &place.1);
        tell_of(old.as_ref(), new, |change| tell(&ClusterEvent::Pod(change)));
        place
    }

    /// Takes a change of a slice. Its driver, its pool and its node never change.
    fn slice(&mut self, event: Event<ResourceSlice>, tell: Tell<'_>) -> Touched {
        let is_left_out = |slice: &ResourceSlice| self.without_drivers.contains(&slice.spec.driver);
        let (slice, is_there): (Arc<ResourceSlice>, bool) = match self.new.slices.take(event) {
            Step::More => return Touched::Nothing,
            Step::All(mut slices) => {
                slices.retain(|slice| !is_left_out(slice));
                let slices = by_name(slices, |slice| &slice.metadata);
                let old = std::mem::replace(&mut self.seen.slices, slices);
                self.inventory.replace(self.seen.slices.values().cloned());
                self.listed.insert("slices");
                let inventory = &self.inventory;
                tell_of_list(&old, &self.seen.slices, |change| {
                    tell(&ClusterEvent::Slice { change: of_object(&change), inventory });
                });
                return Touched::Nodes(Nodes::All);
            }
            Step::One(slice) | Step::Gone(slice) if is_left_out(&slice) => return Touched::Nothing,
            Step::One(slice) => (Arc::from(slice), true),
            Step::Gone(slice) => (Arc::from(slice), false),
        };
        let (driver, pool) = (slice.spec.driver.clone(), slice.spec.pool.name.clone());
        // Of a slice that can't be read the name is known, and nothing else.
        let is_identity = driver.is_empty();
        let before = self.nodes_of_pool(&driver, &pool);
        let name = name(&slice.metadata);
        let old = self.seen.slices.remove(&name);
        let new = is_there.then(|| Arc::clone(&slice));
        self.seen.slices.extend(new.iter().map(|new| (name.clone(), Arc::clone(new))));
        self.input(if is_there {
            InventoryEvent::Slice(slice)
        } else {
            InventoryEvent::SliceDeleted { name, uid: slice.metadata.uid.clone() }
        });
        let inventory = &self.inventory;
        tell_of(old.as_deref(), new.as_deref(), |change| tell(&ClusterEvent::Slice { change, inventory }));
        Touched::Nodes(if is_identity { Nodes::All } else { before.and(self.nodes_of_pool(&driver, &pool)) })
    }

    fn rule(&mut self, event: Event<DeviceTaintRule>, tell: Tell<'_>) -> Touched {
        let mut tell = |change: ObjectChange<'_, DeviceTaintRule>| tell(&ClusterEvent::TaintRule(change));
        match self.new.rules.take(event) {
            Step::More => return Touched::Nothing,
            Step::All(rules) => {
                let rules = by_name(rules, |rule| &rule.metadata);
                let old = std::mem::replace(&mut self.seen.rules, rules);
                self.inventory.replace_taint_rules(self.seen.rules.values().cloned());
                self.listed.insert("rules");
                tell_of_list(&old, &self.seen.rules, |change| tell(of_object(&change)));
            }
            Step::One(rule) => {
                let (name, rule) = (name(&rule.metadata), Arc::from(rule));
                let old = self.seen.rules.insert(name, Arc::clone(&rule));
                self.input(InventoryEvent::TaintRule(Arc::clone(&rule)));
                tell_of(old.as_deref(), Some(&*rule), tell);
            }
            Step::Gone(rule) => {
                let name = name(&rule.metadata);
                let old = self.seen.rules.remove(&name);
                self.input(InventoryEvent::TaintRuleDeleted { name, uid: rule.metadata.uid });
                tell_of(old.as_deref(), None, tell);
            }
        }
        Touched::Nodes(Nodes::All)
    }

    /// Takes a change of a disruption budget: other pods may be moved now.
    fn budget(&mut self, event: Event<PodDisruptionBudget>) -> Touched {
        match self.new.budgets.take(event) {
            Step::More => return Touched::Nothing,
            Step::All(budgets) => {
                self.budgets = budgets.into_iter().map(|budget| (place(&budget.metadata), budget)).collect();
                self.listed.insert("budgets");
            }
            Step::One(budget) => drop(self.budgets.insert(place(&budget.metadata), *budget)),
            Step::Gone(budget) => drop(self.budgets.remove(&place(&budget.metadata))),
        }
        Touched::Nodes(Nodes::All)
    }

    fn input(&mut self, event: InventoryEvent) {
        self.inventory.apply(event).map_or_else(|error| say(&error), drop);
    }

    fn class(&mut self, event: Event<DeviceClass>, tell: Tell<'_>) -> Touched {
        let mut tell = |change: ObjectChange<'_, DeviceClass>| tell(&ClusterEvent::Class(change));
        match self.new.classes.take(event) {
            Step::More => return Touched::Nothing,
            Step::All(classes) => {
                let classes = by_name(classes, |class| &class.metadata);
                let old = std::mem::replace(&mut self.seen.classes, classes);
                self.classes = Classes::new(self.seen.classes.values().cloned());
                self.listed.insert("classes");
                tell_of_list(&old, &self.seen.classes, |change| tell(of_object(&change)));
            }
            Step::One(class) => {
                let (name, class) = (name(&class.metadata), Arc::from(class));
                let old = self.seen.classes.insert(name, Arc::clone(&class));
                self.classes.set(Arc::clone(&class));
                tell_of(old.as_deref(), Some(&*class), tell);
            }
            Step::Gone(class) => {
                let name = name(&class.metadata);
                self.classes.remove(&name, class.metadata.uid.as_deref());
                tell_of(self.seen.classes.remove(&name).as_deref(), None, tell);
            }
        }
        Touched::Nodes(Nodes::All)
    }

    fn claim(&mut self, event: Event<ResourceClaim>, tell: Tell<'_>) -> Touched {
        let mut tell = |change: ObjectChange<'_, ResourceClaim>| tell(&ClusterEvent::Claim(change));
        let (claim, is_there) = match self.new.claims.take(event) {
            Step::More => return Touched::Nothing,
            Step::All(claims) => {
                let by_key = |claims: &ClaimTracker| -> BTreeMap<ClaimKey, Arc<ResourceClaim>> {
                    claims.claims().map(|claim| (ClaimKey::from_metadata(&claim.metadata), Arc::clone(claim))).collect()
                };
                let old = by_key(&self.claims);
                self.listed.insert("claims");
                self.claims.replace(claims, None).unwrap_or_else(|error| say(&error));
                tell_of_list(&old, &by_key(&self.claims), |change| tell(of_object(&change)));
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
        tell_of(before.as_deref(), after.as_deref(), tell);
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

fn by_name<K>(objects: Vec<K>, metadata: impl Fn(&K) -> &ObjectMeta) -> ByName<K> {
    objects.into_iter().map(|object| (name(metadata(&object)), Arc::new(object))).collect()
}

/// Tells of the change between two states of an object, if there is one.
fn tell_of<K>(old: Option<&K>, new: Option<&K>, tell: impl FnOnce(ObjectChange<'_, K>)) {
    match (old, new) {
        (None, Some(new)) => tell(ObjectChange::Added(new)),
        (Some(old), Some(new)) if !std::ptr::eq(old, new) => tell(ObjectChange::Updated { old, new }),
        (Some(old), None) => tell(ObjectChange::Deleted(old)),
        _ => {}
    }
}

/// Tells of each change between two lists.
fn tell_of_list<N: Ord, K>(old: &BTreeMap<N, K>, new: &BTreeMap<N, K>, mut tell: impl FnMut(ObjectChange<'_, K>)) {
    for (_, gone) in old.iter().filter(|(name, _)| !new.contains_key(name)) {
        tell(ObjectChange::Deleted(gone));
    }
    for (name, object) in new {
        tell_of(old.get(name), Some(object), &mut tell);
    }
}

/// Returns the change of the objects themselves.
fn of_object<'e, K>(change: &ObjectChange<'e, Arc<K>>) -> ObjectChange<'e, K> {
    match *change {
        ObjectChange::Added(new) => ObjectChange::Added(new),
        ObjectChange::Updated { old, new } => ObjectChange::Updated { old, new },
        ObjectChange::Deleted(old) => ObjectChange::Deleted(old),
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
