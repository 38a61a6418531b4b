//! List of an autoscaler that is kept while a cluster changes: after any changes it is that of a new look at all objects, and
//! what is said to have changed makes one of the other.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fmt::Debug;

use dra_live::cluster_view::ClusterView as Objects;
use dra_live::watching::Change;
use examples::live::kept_list::{Changed, KeptList};
use examples::random::Random;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use kube::runtime::watcher::Event;
use nnn::PodKey;
use nnn::view::{AutoscalerNode, ClusterObjects, ClusterView, ClusterViewOptions, PodClass};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

const CLUSTERS: u64 = 200;
const STEPS: u64 = 60;
const NODES: u64 = 8;
const CLAIMS: u64 = 12;
const PODS: u64 = 12;
const DRIVERS: [&str; 2] = ["gpu.example.com", "nic.example.com"];

/// Cluster that changes, with a list that is kept and one that is made of what has changed.
struct World {
    random: Random,
    /// Number of the last version, and of the last UID.
    version: u64,
    seconds: i64,
    nodes: BTreeMap<String, Node>,
    slices: BTreeMap<String, ResourceSlice>,
    claims: BTreeMap<String, ResourceClaim>,
    pods: BTreeMap<String, Pod>,
    view: Objects,
    options: ClusterViewOptions,
    kept: KeptList,
    told_nodes: BTreeMap<String, AutoscalerNode>,
    told_pods: BTreeMap<PodKey, PodClass>,
}

fn read<K: DeserializeOwned>(object: Value) -> K {
    from_value(object).unwrap()
}

/// Takes an object into those of its kind, and returns the event.
fn set<K: Clone>(objects: &mut BTreeMap<String, K>, name: String, object: K) -> Event<K> {
    objects.insert(name, object.clone());
    Event::Apply(object)
}

/// Returns the events of a list.
fn list<K: Clone>(objects: &BTreeMap<String, K>) -> Vec<Event<K>> {
    let parts = objects.values().cloned().map(Event::InitApply);
    std::iter::once(Event::Init).chain(parts).chain([Event::InitDone]).collect()
}

impl World {
    fn new(seed: u64) -> Self {
        let mut options = ClusterViewOptions::default();
        options.upcoming.insert("node-0".to_owned());
        let mut world = Self {
            random: Random::new(seed),
            version: 0,
            seconds: 1_800_000_000,
            nodes: BTreeMap::new(),
            slices: BTreeMap::new(),
            claims: BTreeMap::new(),
            pods: BTreeMap::new(),
            view: Objects::new(dra_attrs::GateSet::of(dra_attrs::Profile::V1_37)),
            kept: KeptList::new(options.clone()),
            options,
            told_nodes: BTreeMap::new(),
            told_pods: BTreeMap::new(),
        };
        (0..4).for_each(|kind| world.list(kind));
        world
    }

    fn one_of(&mut self, times: u64) -> bool {
        self.random.below(times) == 0
    }

    fn name(&mut self, of: &str, number: u64) -> String {
        format!("{of}-{}", self.random.below(number))
    }

    /// Returns the next version, which is a UID too.
    fn next(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    fn time(&self) -> Timestamp {
        Timestamp::from_second(self.seconds).unwrap()
    }

    fn apply(&mut self, change: Change) {
        self.kept.take(self.view.apply(change).unwrap());
    }

    fn node(&mut self) -> Change {
        let (name, version) = (self.name("node", NODES), self.next());
        let mut status = json!({"allocatable": {"cpu": self.random.below(9).to_string()}});
        if self.one_of(4) {
            status["conditions"] = json!([{"type": "Ready", "status": "True"}]);
        }
        let metadata = json!({"name": name, "resourceVersion": version, "labels": {"zone": self.name("zone", 2)}});
        let node = read(json!({"metadata": metadata, "status": status}));
        Change::Node(set(&mut self.nodes, name, node))
    }

    /// Returns a slice of a node, or of all, in one of several generations of its pool.
    fn slice(&mut self) -> Change {
        let (driver, node) = (DRIVERS[usize::from(self.one_of(2))], self.name("node", NODES));
        let (is_local, part) = (!self.one_of(6), self.random.below(2));
        let (pool, place) = if is_local { (node.as_str(), json!(node)) } else { ("everywhere", Value::Null) };
        let name = format!("{driver}-{pool}-{part}");
        let devices: Vec<Value> =
            (0..self.random.below(4)).map(|device| json!({"name": format!("dev-{part}-{device}")})).collect();
        let pool = json!({"name": pool, "generation": 1 + self.random.below(3), "resourceSliceCount": 2});
        let mut spec = json!({"driver": driver, "pool": pool, "devices": devices});
        if is_local {
            spec["nodeName"] = place;
        } else {
            spec["allNodes"] = json!(true);
        }
        let slice = read(json!({"metadata": {"name": name, "resourceVersion": self.next()}, "spec": spec}));
        Change::Slice(set(&mut self.slices, name, slice))
    }

    /// Returns a claim that is new, or changed: allocated, given back, reserved.
    fn claim(&mut self) -> Change {
        let (name, version) = (self.name("claim", CLAIMS), self.next());
        let known = self.claims.get(&name).and_then(|claim| claim.metadata.uid.clone());
        let uid = known.unwrap_or_else(|| format!("uid-{version}"));
        let mut status = json!({});
        if !self.one_of(3) {
            let node = self.name("node", NODES);
            let results: Vec<Value> = (0..self.random.below(3))
                .map(|device| {
                    let driver = DRIVERS[usize::from(self.one_of(2))];
                    let pool = if self.one_of(5) { "everywhere" } else { node.as_str() };
                    json!({"request": "r", "driver": driver, "pool": pool, "device": format!("dev-0-{device}")})
                })
                .collect();
            let term = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
            status["allocation"] =
                json!({"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}});
        }
        if self.one_of(2) {
            let pod = self.name("pod", PODS);
            let uid = self.pods.get(&pod).and_then(|pod| pod.metadata.uid.clone()).unwrap_or_default();
            status["reservedFor"] = json!([{"resource": "pods", "name": pod, "uid": uid}]);
        }
        let metadata = json!({"namespace": "default", "name": name, "uid": uid, "resourceVersion": version});
        let spec = json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}});
        let claim = read(json!({"metadata": metadata, "spec": spec, "status": status}));
        Change::Claim(set(&mut self.claims, name, claim))
    }

    /// Returns a pod that is new, another one of the same name, or changed: bound, nominated, terminating, done.
    fn pod(&mut self) -> Change {
        let (name, version) = (self.name("pod", PODS), self.next());
        let is_another = self.one_of(6);
        let known = self.pods.get(&name).and_then(|pod| pod.metadata.uid.clone()).filter(|_| !is_another);
        let uid = known.unwrap_or_else(|| format!("uid-{version}"));
        let mut metadata = json!({"namespace": "default", "name": name, "uid": uid, "resourceVersion": version});
        if self.one_of(4) {
            metadata["deletionTimestamp"] = json!(self.time().to_string());
        }
        if self.one_of(2) {
            let owner =
                json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true});
            metadata["ownerReferences"] = json!([owner]);
        }
        let claims: Vec<Value> = (0..self.random.below(3))
            .map(|entry| json!({"name": format!("c{entry}"), "resourceClaimName": self.name("claim", CLAIMS)}))
            .collect();
        let requests = json!({"cpu": self.random.below(4).to_string()});
        let container = json!({"name": "c", "image": "none", "resources": {"requests": requests}});
        let mut spec = json!({"containers": [container], "resourceClaims": claims});
        if self.one_of(8) {
            spec["priority"] = json!(-20);
        }
        let mut status = json!({"phase": if self.one_of(8) { "Succeeded" } else { "Pending" }});
        match self.random.below(4) {
            0 | 1 => spec["nodeName"] = json!(self.name("node", NODES)),
            2 => status["nominatedNodeName"] = json!(self.name("node", NODES + 1)),
            _ => {
                let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
                status["conditions"] = json!([condition]);
            }
        }
        let pod = read(json!({"metadata": metadata, "spec": spec, "status": status}));
        Change::Pod(set(&mut self.pods, name, pod))
    }

    /// Deletes an object, if there is one of a random name.
    fn delete(&mut self) {
        let deleted = match self.random.below(4) {
            0 => self.random_name(self.nodes.len()).and_then(|at| take(&mut self.nodes, at)).map(Change::Node),
            1 => self.random_name(self.slices.len()).and_then(|at| take(&mut self.slices, at)).map(Change::Slice),
            2 => self.random_name(self.claims.len()).and_then(|at| take(&mut self.claims, at)).map(Change::Claim),
            _ => self.random_name(self.pods.len()).and_then(|at| take(&mut self.pods, at)).map(Change::Pod),
        };
        if let Some(change) = deleted {
            self.apply(change);
        }
    }

    fn random_name(&mut self, number: usize) -> Option<usize> {
        let number = u64::try_from(number).unwrap();
        (number > 0).then(|| usize::try_from(self.random.below(number)).unwrap())
    }

    /// Lists a kind anew, as after a watch that has expired: some objects went unseen.
    fn list(&mut self, kind: u64) {
        let keeps = self.random.below(4) > 0;
        let lost = format!("-{}", self.random.below(3));
        let keeps = |name: &String| keeps || !name.ends_with(&lost);
        self.nodes.retain(|name, _| kind != 0 || keeps(name));
        self.slices.retain(|name, _| kind != 1 || keeps(name));
        self.claims.retain(|name, _| kind != 2 || keeps(name));
        self.pods.retain(|name, _| kind != 3 || keeps(name));
        let changes: Vec<Change> = match kind {
            0 => list(&self.nodes).into_iter().map(Change::Node).collect(),
            1 => list(&self.slices).into_iter().map(Change::Slice).collect(),
            2 => list(&self.claims).into_iter().map(Change::Claim).collect(),
            _ => list(&self.pods).into_iter().map(Change::Pod).collect(),
        };
        for change in changes {
            self.apply(change);
        }
    }

    fn step(&mut self) {
        let change = match self.random.below(24) {
            0..3 => self.node(),
            3..7 => self.slice(),
            7..12 => self.claim(),
            12..19 => self.pod(),
            19..22 => return self.delete(),
            22 => {
                let kind = self.random.below(4);
                return self.list(kind);
            }
            _ => {
                self.seconds += i64::try_from(self.random.below(90)).unwrap();
                return;
            }
        };
        self.apply(change);
    }

    /// Renews the list, and compares it with a new one.
    fn check(&mut self) -> (usize, usize) {
        let now = self.time();
        let changed = self.kept.renew(&self.view, now).unwrap();
        let objects = ClusterObjects::new(self.nodes.values(), self.pods.values())
            .with_devices(self.slices.values(), self.claims.values())
            .with_now(now);
        let view = ClusterView::new(objects, &self.options).unwrap();
        let nodes: BTreeMap<String, AutoscalerNode> =
            view.nodes().map(|node| (node.name.clone(), node.clone())).collect();
        let pods: BTreeMap<PodKey, PodClass> = view.pod_classes().map(|(pod, class)| (pod.clone(), class)).collect();
        let kept = self.kept.nodes().map(|node| (node.name.clone(), node.clone())).collect();
        same("nodes", &nodes, &kept);
        same("pods", &pods, &self.kept.pods().map(|(pod, class)| (pod.clone(), class)).collect());
        let looked_at = changed.looked_at;
        self.tell(changed);
        same("nodes as told", &nodes, &self.told_nodes);
        same("pods as told", &pods, &self.told_pods);
        looked_at
    }

    /// Takes what is said to have changed into the list that is made of it.
    fn tell(&mut self, changed: Changed) {
        for pod in &changed.served {
            assert!(self.told_pods[pod].needs_node(), "it did not need a node: {pod}");
            assert!(!changed.pods.get(pod).is_some_and(|class| class.needs_node()), "it does need a node: {pod}");
        }
        for node in &changed.gone {
            assert!(self.told_nodes.remove(node).is_some(), "it was not there: {node}");
        }
        for pod in &changed.gone_pods {
            assert!(self.told_pods.remove(pod).is_some(), "it was not there: {pod}");
        }
        for (name, node) in changed.nodes {
            let before = self.told_nodes.insert(name, node.clone());
            assert_ne!(before, Some(node), "it is the same");
        }
        for (pod, class) in changed.pods {
            let before = self.told_pods.insert(pod, class);
            assert_ne!(before, Some(class), "it is the same");
        }
    }
}

fn take<K: Clone>(objects: &mut BTreeMap<String, K>, at: usize) -> Option<Event<K>> {
    let name = objects.keys().nth(at).cloned()?;
    objects.remove(&name).map(Event::Delete)
}

fn same<K: Ord + Debug, V: PartialEq + Debug>(what: &str, expected: &BTreeMap<K, V>, found: &BTreeMap<K, V>) {
    for (key, value) in expected {
        assert_eq!(found.get(key), Some(value), "{what}: {key:?}");
    }
    let more: Vec<&K> = found.keys().filter(|key| !expected.contains_key(key)).collect();
    assert!(more.is_empty(), "{what}: there are more: {more:?}");
}

#[test]
fn the_list_that_is_kept_is_that_of_a_new_look() {
    let (mut parts, mut looks) = (0, 0);
    for seed in 0..CLUSTERS {
        let mut world = World::new(seed);
        let mut told = false;
        for _ in 0..STEPS {
            world.step();
            // Changes come alone, or several together.
            if world.one_of(2) {
                let (nodes, _) = world.check();
                parts += usize::from(nodes < world.nodes.len());
                looks += 1;
            }
            told |= !world.told_pods.is_empty();
        }
        world.check();
        assert!(told, "seed {seed}: there was never a pod");
    }
    assert!(parts * 4 > looks, "{parts} of {looks} looks were at a part of the nodes");
}
