//! Clusters of nodes with equal devices, and pods that hold some of them.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::autoscaler::{ClusterSnapshot, ScaleSimulator};
use dra_alloc::consolidation::{MovePlan, MoveRules, MovesAnswer, PodMove};
use dra_alloc::pods::{ClaimTracker, PodOptions};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Budget, Classes, Inventory, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

pub(crate) const DRIVER: &str = "gpu.example.com";

/// Random number generator: splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    pub(crate) fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// Objects of a cluster.
#[derive(Clone, Default)]
pub(crate) struct World {
    pub(crate) nodes: Vec<Node>,
    pub(crate) slices: Vec<ResourceSlice>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) claims: Vec<ResourceClaim>,
}

pub(crate) fn name_of(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap()
}

pub(crate) fn pod_name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap()
}

pub(crate) fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().unwrap().node_name.as_deref().unwrap_or_default()
}

/// Returns the node of a pod; empty for a pod without a spec, too.
pub(crate) fn node_of_any(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

pub(crate) fn node(name: &str) -> Node {
    from_value(json!({"metadata": {"name": name}, "spec": {}})).unwrap()
}

pub(crate) fn slice(node: &str, devices: &[String]) -> ResourceSlice {
    let devices: Vec<Value> = devices.iter().map(|name| json!({"name": name})).collect();
    from_value(json!({"metadata": {"name": node}, "spec": {"driver": DRIVER, "nodeName": node, "devices": devices,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}}))
    .unwrap()
}

pub(crate) fn devices(count: usize) -> Vec<String> {
    (0..count).map(|device| format!("g{device}")).collect()
}

pub(crate) fn claim(name: &str, class: &str, count: usize) -> ResourceClaim {
    from_value(
        json!({"metadata": {"namespace": "ml", "name": name, "uid": format!("claim-{name}")}, "spec": {"devices": {
        "requests": [{"name": "r", "exactly": {"deviceClassName": class, "count": count}}]}}}),
    )
    .unwrap()
}

pub(crate) fn pod(name: &str, claim: &str) -> Pod {
    from_value(json!({"metadata": {"namespace": "ml", "name": name, "uid": name, "labels": {"name": name}}, "spec": {
        "containers": [], "resourceClaims": [{"name": "r", "resourceClaimName": claim}]}}))
    .unwrap()
}

/// Gives a claim devices of a node for some pods.
pub(crate) fn allocate(claim: &mut ResourceClaim, node: &str, devices: &[String], pods: &[&str]) {
    let results: Vec<Value> = devices
        .iter()
        .map(|device| json!({"request": "r", "driver": DRIVER, "pool": node, "device": device}))
        .collect();
    let here = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
    let users: Vec<Value> = pods.iter().map(|pod| json!({"resource": "pods", "name": pod, "uid": pod})).collect();
    claim.metadata.finalizers = Some(vec!["resource.kubernetes.io/delete-protection".to_owned()]);
    claim.status = from_value(json!({"reservedFor": users, "allocation": {
        "nodeSelector": {"nodeSelectorTerms": [here]}, "devices": {"results": results}}}))
    .unwrap();
}

impl World {
    /// Nodes `n1`, `n2` and so on with eight devices and a pod of each size: `n1-0`, `n1-1` and so on.
    pub(crate) fn of(units: &[&[usize]]) -> Self {
        Self::with_devices(&units.iter().map(|sizes| (8, sizes.to_vec())).collect::<Vec<_>>())
    }

    /// The same with the number of devices of each node.
    pub(crate) fn with_devices(units: &[(usize, Vec<usize>)]) -> Self {
        let mut world = Self::default();
        for ((count, sizes), number) in units.iter().zip(1..) {
            let name = format!("n{number}");
            world.nodes.push(node(&name));
            world.slices.push(slice(&name, &devices(*count)));
            let mut free = devices(*count);
            for (index, size) in sizes.iter().enumerate() {
                let taken: Vec<String> = free.drain(..*size).collect();
                world.run(&format!("{name}-{index}"), &name, &taken);
            }
        }
        world
    }

    /// Adds a pod on a node that holds devices.
    pub(crate) fn run(&mut self, name: &str, node: &str, devices: &[String]) {
        let mut object = claim(name, "gpu", devices.len());
        allocate(&mut object, node, devices, &[name]);
        self.claims.push(object);
        let mut pod = pod(name, name);
        pod.spec.as_mut().unwrap().node_name = Some(node.to_owned());
        self.pods.push(pod);
    }

    /// Adds a pod that waits.
    pub(crate) fn wait(&mut self, name: &str, count: usize) {
        self.claims.push(claim(name, "gpu", count));
        self.pods.push(pod(name, name));
    }

    pub(crate) fn pod(&self, name: &str) -> &Pod {
        self.pods.iter().find(|pod| pod_name(pod) == name).unwrap()
    }

    pub(crate) fn inventory(&self) -> Inventory {
        Inventory::new(self.slices.iter().cloned())
    }

    pub(crate) fn tracker(&self) -> ClaimTracker {
        let mut tracker = ClaimTracker::new(Profile::V1_37);
        tracker.replace(self.claims.iter().cloned(), None).unwrap();
        tracker
    }

    pub(crate) fn snapshot(&self) -> ClusterSnapshot<'_> {
        ClusterSnapshot::new(&self.nodes, &self.pods)
    }

    /// Returns the devices that each pod holds, by its name.
    pub(crate) fn held(&self) -> BTreeMap<String, BTreeSet<(String, String)>> {
        let held = |claim: &ResourceClaim| -> BTreeSet<(String, String)> {
            let results = dra_alloc::allocated_devices(claim).iter();
            results.map(|result| (result.pool.clone(), result.device.clone())).collect()
        };
        let of_pod = |pod: &Pod| {
            let name = pod.spec.as_ref()?.resource_claims.as_ref()?.first()?.resource_claim_name.clone()?;
            let claim = self.claims.iter().find(|claim| claim.metadata.name.as_deref() == Some(&name))?;
            Some((pod_name(pod).to_owned(), held(claim)))
        };
        self.pods.iter().filter_map(of_pod).collect()
    }

    pub(crate) fn moves(&self, pods: &[&str], rules: &MoveRules<'_>) -> MovesAnswer {
        let pods: Vec<&Pod> = pods.iter().map(|name| self.pod(name)).collect();
        with_simulator(|simulator| {
            let (inventory, tracker, snapshot) = (self.inventory(), self.tracker(), self.snapshot());
            simulator.make_moves(&inventory, &tracker, &snapshot, &pods, rules, Budget::default())
        })
    }

    /// Returns the moves after which a pod fits.
    pub(crate) fn plan(&self, pod: &str, rules: &MoveRules<'_>) -> MovePlan {
        match self.moves(&[pod], rules) {
            MovesAnswer::Moves(plan) => *plan,
            MovesAnswer::NoMoves(reason) => panic!("{reason}"),
        }
    }
}

/// Asks a simulator of release 1.37 with classes `gpu`, for each device, and others by names of devices: `a`, `b`, `t`.
pub(crate) fn with_simulator<R>(ask: impl FnOnce(&ScaleSimulator<'_>) -> R) -> R {
    let class = |name: &str, expression: &str| -> DeviceClass {
        from_value(json!({"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}))
            .unwrap()
    };
    let kind = |kinds: &str| format!("device.attributes['{DRIVER}'].kind in {kinds}");
    let classes = Classes::new([
        class("gpu", &format!("device.driver == '{DRIVER}'")),
        class("a", &kind("['h', 'g']")),
        class("t", &kind("['g']")),
    ]);
    let selectors = SelectorCache::default();
    ask(&ScaleSimulator::new(&classes, &selectors, PodOptions::new(Profile::V1_37), Timestamp::UNIX_EPOCH))
}

/// Returns the moves as `pod from>to`.
pub(crate) fn texts(wave: &[PodMove]) -> Vec<String> {
    let text = |moved: &PodMove| {
        let place = |node: &Option<String>| node.clone().unwrap_or_else(|| "-".to_owned());
        format!("{} {}>{}", moved.pod.name, place(&moved.from), place(&moved.to))
    };
    wave.iter().map(text).collect()
}

/// Carries a plan out, one move after the other. At each step every pod has its devices, and no device has two pods. Returns the
/// devices of each pod at the end.
pub(crate) fn carry_out(world: &World, plan: &MovePlan) -> BTreeMap<String, BTreeSet<(String, String)>> {
    let mut held = world.held();
    let moves: Vec<&PodMove> = plan.waves.iter().flatten().chain(&plan.placed).collect();
    for moved in moves {
        let before = held.remove(&moved.pod.name).unwrap();
        let results = moved.results.iter().flat_map(|(_, result)| result.devices.iter());
        let new: BTreeSet<(String, String)> = results
            .flat_map(|devices| devices.results.iter().flatten())
            .map(|result| (result.pool.clone(), result.device.clone()))
            .collect();
        if let Some(to) = &moved.to {
            assert!(new.iter().all(|(pool, _)| pool == to), "{moved:?}");
            assert!(moved.from.is_none() || new.len() == before.len(), "{moved:?}");
            for others in held.values() {
                assert!(others.is_disjoint(&new), "{moved:?} takes a device of another pod");
            }
        }
        held.insert(moved.pod.name.clone(), new);
    }
    held
}
