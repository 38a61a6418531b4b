//! List of a cluster's nodes as an autoscaler sees them, which follows changes: what may be another one is made anew from the
//! objects that it consists of.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::ClaimLookup;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use nnn::PodKey;
use nnn::view::{AutoscalerNode, ClusterObjects, ClusterView, ClusterViewError, ClusterViewOptions, PodClass};

use crate::candidates::claims_of;
use dra_live::cluster_view::{ClusterView as Objects, place};
use dra_live::touched::{Nodes, Place, Touched};

/// List that is kept.
#[derive(Debug)]
pub struct KeptList {
    options: ClusterViewOptions,
    nodes: BTreeMap<String, AutoscalerNode>,
    pods: BTreeMap<Place, KnownPod>,
    by_node: BTreeMap<String, BTreeSet<Place>>,
    by_claim: BTreeMap<ClaimKey, BTreeSet<Place>>,
    /// Pods that are terminating: they become overdue without a change.
    terminating: BTreeSet<Place>,
    dirty: Dirty,
}

/// Pod as the list was made from it.
#[derive(Clone, Debug, Default, PartialEq)]
struct KnownPod {
    node: Option<String>,
    claims: BTreeSet<ClaimKey>,
    class: Option<(PodKey, PodClass)>,
}

/// Parts of the list that have to be made anew.
#[derive(Debug, Default)]
struct Dirty {
    all: bool,
    nodes: BTreeSet<String>,
    pods: BTreeSet<Place>,
}

/// Part of the list that is another one now.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Changed {
    /// Nodes that are new, or others than before.
    pub nodes: BTreeMap<String, AutoscalerNode>,
    /// Nodes that are gone.
    pub gone: Vec<String>,
    /// Pods that are new, or in another class than before.
    pub pods: BTreeMap<PodKey, PodClass>,
    /// Pods that need no node any more.
    pub served: BTreeSet<PodKey>,
    /// Pods that are gone.
    pub gone_pods: BTreeSet<PodKey>,
    /// Numbers of nodes and pods that were looked at.
    pub looked_at: (usize, usize),
}

impl KeptList {
    /// Creates a list that has seen nothing.
    #[must_use]
    pub fn new(options: ClusterViewOptions) -> Self {
        Self {
            options,
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            by_node: BTreeMap::new(),
            by_claim: BTreeMap::new(),
            terminating: BTreeSet::new(),
            dirty: Dirty { all: true, ..Dirty::default() },
        }
    }

    /// Notes what a change has touched.
    pub fn take(&mut self, touched: Touched) {
        match touched {
            Touched::Pods | Touched::Nodes(Nodes::All) | Touched::Claim(_, Nodes::All) => self.dirty.all = true,
            Touched::Pod(place) => drop(self.dirty.pods.insert(place)),
            Touched::Nodes(Nodes::These(nodes)) => self.dirty.nodes.extend(nodes),
            Touched::Claim(claim, Nodes::These(nodes)) => {
                self.dirty.nodes.extend(nodes);
                self.dirty.pods.extend(self.by_claim.get(&claim).into_iter().flatten().cloned());
            }
            _ => {}
        }
    }

    /// Makes anew what has changed, at a time, and returns what is another one now.
    ///
    /// # Errors
    /// An object can't be read.
    ///
    /// # Complexity
    /// Linear in the nodes that have changed, those of pods that have changed, and those that share claims with their pods.
    pub fn renew(&mut self, objects: &Objects, now: Timestamp) -> Result<Changed, ClusterViewError> {
        let mut dirty = std::mem::take(&mut self.dirty);
        if dirty.all {
            dirty.nodes.extend(objects.nodes.keys().chain(self.nodes.keys()).cloned());
            dirty.pods.extend(objects.all_pods().map(|pod| place(&pod.metadata)).chain(self.pods.keys().cloned()));
        }
        dirty.pods.extend(self.terminating.iter().cloned());
        let mut sharing = BTreeSet::new();
        for place in &dirty.pods {
            if let Some(known) = self.pods.get(place) {
                dirty.nodes.extend(known.node.clone());
                // A claim counts once: with the pod gone from it, another one.
                let users = known.claims.iter().filter_map(|claim| self.by_claim.get(claim));
                sharing.extend(users.flatten().cloned());
            }
            self.index(place, objects.pod_at(place));
            dirty.nodes.extend(self.pods.get(place).and_then(|known| known.node.clone()));
        }
        dirty.pods.append(&mut sharing);
        let (nodes, pods) = self.connected(dirty);
        let view = self.view(objects, &nodes, &pods, now)?;
        Ok(self.replaced(&view, &nodes, &pods, objects))
    }

    /// Returns the nodes by name.
    pub fn nodes(&self) -> impl Iterator<Item = &AutoscalerNode> {
        self.nodes.values()
    }

    /// Returns the pods by namespace and name, with their classes.
    pub fn pods(&self) -> impl Iterator<Item = (&PodKey, PodClass)> {
        self.pods.values().filter_map(|known| known.class.as_ref().map(|(key, class)| (key, *class)))
    }

    /// Keeps the indexes of pods.
    fn index(&mut self, place: &Place, pod: Option<&Pod>) {
        let known = self.pods.entry(place.clone()).or_default();
        if let Some(node) = &known.node {
            remove(&mut self.by_node, node, place);
        }
        for claim in &known.claims {
            remove(&mut self.by_claim, claim, place);
        }
        self.terminating.remove(place);
        known.node = pod.and_then(node_of).map(str::to_owned);
        known.claims = pod.map(claims_of).unwrap_or_default();
        if let Some(node) = &known.node {
            self.by_node.entry(node.clone()).or_default().insert(place.clone());
        }
        for claim in &known.claims {
            self.by_claim.entry(claim.clone()).or_default().insert(place.clone());
        }
        if pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_some()) {
            self.terminating.insert(place.clone());
        }
    }

    /// Adds the pods of nodes, and what shares claims with them: a claim counts once.
    fn connected(
        &self,
        Dirty { nodes: mut new_nodes, pods: mut new_pods, .. }: Dirty,
    ) -> (BTreeSet<String>, BTreeSet<Place>) {
        let (mut nodes, mut pods) = (BTreeSet::new(), BTreeSet::new());
        while !new_nodes.is_empty() || !new_pods.is_empty() {
            let of_nodes = new_nodes.iter().filter_map(|node| self.by_node.get(node)).flatten();
            let claims = new_pods.iter().filter_map(|place| self.pods.get(place)).flat_map(|known| &known.claims);
            let of_claims = claims.filter_map(|claim| self.by_claim.get(claim)).flatten();
            let more_pods: BTreeSet<Place> = of_nodes.chain(of_claims).cloned().collect();
            let of_pods = new_pods.iter().filter_map(|place| self.pods.get(place)?.node.clone());
            let more_nodes: BTreeSet<String> = of_pods.collect();
            nodes.append(&mut new_nodes);
            pods.append(&mut new_pods);
            new_nodes = more_nodes.difference(&nodes).cloned().collect();
            new_pods = more_pods.difference(&pods).cloned().collect();
        }
        (nodes, pods)
    }

    fn view(
        &self,
        objects: &Objects,
        nodes: &BTreeSet<String>,
        pods: &BTreeSet<Place>,
        now: Timestamp,
    ) -> Result<ClusterView, ClusterViewError> {
        let claims: BTreeSet<&ClaimKey> =
            pods.iter().filter_map(|place| self.pods.get(place)).flat_map(|known| &known.claims).collect();
        let claims = claims.into_iter().filter_map(|key| objects.claims.claim(&key.namespace, &key.name));
        let slices = nodes.iter().flat_map(|node| objects.inventory.slices_of_node(node));
        let parts = ClusterObjects::new(
            nodes.iter().filter_map(|node| objects.nodes.get(node)),
            pods.iter().filter_map(|place| objects.pod_at(place)),
        );
        ClusterView::new(parts.with_devices(slices, claims).with_now(now), &self.options)
    }

    /// Takes a part of the cluster into the list.
    fn replaced(
        &mut self,
        view: &ClusterView,
        nodes: &BTreeSet<String>,
        pods: &BTreeSet<Place>,
        objects: &Objects,
    ) -> Changed {
        let mut changed = Changed { looked_at: (nodes.len(), pods.len()), ..Changed::default() };
        let upcoming = self.options.upcoming.iter().filter(|name| !self.nodes.contains_key(*name));
        let names: BTreeSet<String> = nodes.iter().chain(upcoming).cloned().collect();
        for name in names {
            match view.node(&name) {
                Some(node) if self.nodes.get(&name) == Some(node) => {}
                Some(node) => {
                    self.nodes.insert(name.clone(), node.clone());
                    changed.nodes.insert(name, node.clone());
                }
                None if self.nodes.remove(&name).is_some() => changed.gone.push(name),
                None => {}
            }
        }
        let classes: BTreeMap<&PodKey, PodClass> = view.pod_classes().collect();
        let by_place: BTreeMap<(&str, &str), (&PodKey, PodClass)> = classes
            .into_iter()
            .map(|(key, class)| ((key.namespace.as_str(), key.name.as_str()), (key, class)))
            .collect();
        for place in pods {
            let class = by_place.get(&(place.0.as_str(), place.1.as_str()));
            let class = class.map(|(key, class)| (PodKey::clone(key), *class));
            let before = if objects.pod_at(place).is_some() {
                let known = self.pods.entry(place.clone()).or_default();
                std::mem::replace(&mut known.class, class.clone())
            } else {
                self.pods.remove(place).and_then(|known| known.class)
            };
            if before == class {
                continue;
            }
            let needs_node = class.as_ref().is_some_and(|(_, class)| class.needs_node());
            if let Some((key, before)) = before {
                // A pod of that name may be another one.
                if class.as_ref().is_none_or(|(now, _)| *now != key) {
                    changed.gone_pods.insert(key.clone());
                }
                if before.needs_node() && !needs_node {
                    changed.served.insert(key);
                }
            }
            changed.pods.extend(class);
        }
        changed
    }
}

fn remove<K: Ord>(index: &mut BTreeMap<K, BTreeSet<Place>>, key: &K, place: &Place) {
    let Some(places) = index.get_mut(key) else { return };
    places.remove(place);
    if places.is_empty() {
        index.remove(key);
    }
}

/// Returns the node that a pod is bound or nominated to.
fn node_of(pod: &Pod) -> Option<&str> {
    let bound = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let nominated = pod.status.as_ref().and_then(|status| status.nominated_node_name.as_deref());
    bound.filter(|node| !node.is_empty()).or(nominated).filter(|node| !node.is_empty())
}
