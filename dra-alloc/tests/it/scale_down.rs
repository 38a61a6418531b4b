//! Nodes that can go: the removal is done, and each pod has its devices afterwards.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::autoscaler::{ClaimRelease, ClusterSnapshot, NodeRemoval, PlacementError, RemovalError, ScaleSimulator};
use dra_alloc::pods::{ClaimTracker, GroupRound, MemberError, PodCycle, PodOptions};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Allocator, Budget, ClaimId, Classes, DeviceId, Inventory, InventoryEvent, Profile, allocated_devices};
use dra_attrs::node_selector_matches;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

use crate::oracle::random::Random;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const KINDS: [&str; 4] = ["local", "fabric", "pair", "rack"];

/// A cluster with objects as an API server has them.
#[derive(Clone, Default)]
struct World {
    nodes: Vec<Node>,
    slices: Vec<ResourceSlice>,
    pods: Vec<Pod>,
    claims: BTreeMap<String, ResourceClaim>,
    /// Claims whose allocation a scheduler has chosen and not written.
    in_flight: Vec<ResourceClaim>,
}

fn name_of(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap()
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

fn is_of_daemon_set(pod: &Pod) -> bool {
    pod.metadata.owner_references.iter().flatten().any(|owner| owner.kind == "DaemonSet")
}

fn is_leaving(pod: &Pod) -> bool {
    pod.status.as_ref().is_some_and(|status| status.phase.is_some()) || pod.metadata.deletion_timestamp.is_some()
}

/// Claims of a pod by name, with true for those from templates.
fn claims_of(pod: &Pod) -> Vec<(String, bool)> {
    let statuses = pod.status.iter().flat_map(|status| status.resource_claim_statuses.iter().flatten());
    let made: BTreeMap<&str, String> =
        statuses.map(|status| (status.name.as_str(), status.resource_claim_name.clone().unwrap())).collect();
    let entries = pod.spec.as_ref().unwrap().resource_claims.iter().flatten();
    entries
        .map(|entry| match &entry.resource_claim_name {
            Some(name) => (name.clone(), false),
            None => (made[entry.name.as_str()].clone(), true),
        })
        .collect()
}

fn owner(kind: &str, name: &str) -> Value {
    json!([{"apiVersion": "v1", "kind": kind, "name": name, "uid": name, "controller": true}])
}

fn new_claim(name: &str, kind: &str, count: usize, owner: &Value) -> ResourceClaim {
    from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "ownerReferences": owner},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": kind, "count": count}}]}}}))
    .unwrap()
}

fn slice(name: &str, driver: &str, pool: (&str, usize), scope: (&str, Value), devices: usize) -> ResourceSlice {
    let devices: Vec<Value> = (0..devices).map(|index| json!({"name": format!("{name}-{index}")})).collect();
    let mut spec = json!({"driver": driver, "devices": devices,
        "pool": {"name": pool.0, "generation": 1, "resourceSliceCount": pool.1}});
    spec[scope.0] = scope.1;
    from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

fn classes() -> Classes {
    Classes::new(KINDS.map(|kind| -> DeviceClass {
        let expression = format!("device.driver == '{kind}.example.com'");
        from_value(json!({"metadata": {"name": kind}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}))
            .unwrap()
    }))
}

impl World {
    /// Nodes with devices of their own, beside pools of a rack, of two nodes together, and of all nodes; and pods that a
    /// scheduler has placed, some of them in part.
    fn random(random: &mut Random) -> Self {
        let mut world = Self::default();
        for index in 0..random.between(2, 5) {
            let (name, rack) = (format!("n{index}"), random.pick(&["a", "b"]));
            let is_cordoned = random.percent(5);
            world.nodes.push(
                from_value(json!({"metadata": {"name": name, "labels": {"rack": rack}}, "spec": {"unschedulable": is_cordoned}}))
                    .unwrap(),
            );
            let own = ("nodeName", json!(name));
            world.slices.push(slice(&name, "local.example.com", (&name, 1), own.clone(), random.below(4)));
            if index < 2 {
                world.slices.push(slice(
                    &format!("pair-{name}"),
                    "pair.example.com",
                    ("pair", 2),
                    own,
                    random.below(3),
                ));
            }
        }
        world.slices.push(slice(
            "fabric",
            "fabric.example.com",
            ("fabric", 1),
            ("allNodes", json!(true)),
            random.below(4),
        ));
        let rack =
            json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["a"]}]}]});
        world.slices.push(slice("rack", "rack.example.com", ("rack", 1), ("nodeSelector", rack), random.below(3)));
        for name in ["s0", "s1", "s2"] {
            let (kind, count) = (random.pick(&KINDS), random.between(1, 2));
            world.claims.insert(name.to_owned(), new_claim(name, kind, count, &json!([])));
        }
        for index in 0..random.between(1, 7) {
            world.add_pod(random, index);
        }
        world
    }

    fn add_pod(&mut self, random: &mut Random, index: usize) {
        let name = format!("p{index}");
        let (mut entries, mut statuses) = (Vec::new(), Vec::new());
        if random.percent(70) {
            let claim = format!("{name}-own");
            let kind = random.pick(&["local", "local", "fabric", "pair", "rack"]);
            self.claims.insert(claim.clone(), new_claim(&claim, kind, random.pick(&[1, 1, 2]), &owner("Pod", &name)));
            entries.push(json!({"name": "own", "resourceClaimTemplateName": "template"}));
            statuses.push(json!({"name": "own", "resourceClaimName": claim}));
        }
        if random.percent(35) {
            entries.push(json!({"name": "shared", "resourceClaimName": random.pick(&["s0", "s1", "s2"])}));
        }
        if random.percent(4) && index > 0 && self.claims.contains_key("p0-own") {
            entries.push(json!({"name": "of-another-pod", "resourceClaimName": "p0-own"}));
        }
        let mut pod: Pod = from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": name,
            "ownerReferences": owner(if random.percent(8) { "DaemonSet" } else { "ReplicaSet" }, "o")},
            "spec": {"resourceClaims": entries}, "status": {"resourceClaimStatuses": statuses}}))
        .unwrap();
        let (inventory, mut tracker) = (self.inventory(), self.tracker());
        let nodes: Vec<&Node> = self.nodes.iter().collect();
        if let Some((node, cycle)) = first_fit(&inventory, &mut tracker, &nodes, &pod) {
            match random.below(20) {
                0 => self.in_flight.extend(cycle.iter().flat_map(chosen).map(|(name, allocation)| {
                    let mut claim = self.claims[&name].clone();
                    claim.status.get_or_insert_default().allocation = Some(allocation);
                    claim
                })),
                1 => self.write(&pod, cycle.as_ref()),
                _ => {
                    self.write(&pod, cycle.as_ref());
                    pod.spec.as_mut().unwrap().node_name = Some(node);
                    match random.below(20) {
                        0 => pod.status.as_mut().unwrap().phase = Some("Succeeded".to_owned()),
                        1 => pod.metadata.deletion_timestamp = from_value(json!("2026-01-01T00:00:00Z")).unwrap(),
                        _ => {}
                    }
                }
            }
        }
        self.pods.push(pod);
    }

    fn inventory(&self) -> Inventory {
        Inventory::new(self.slices.iter().cloned())
    }

    fn tracker(&self) -> ClaimTracker {
        let mut tracker = ClaimTracker::new(Profile::V1_37);
        tracker.replace(self.claims.values().cloned(), None).unwrap();
        self.in_flight.iter().for_each(|claim| tracker.begin_allocation(claim.clone()).unwrap());
        tracker
    }

    /// Writes what a scheduler writes before it binds a pod.
    fn write(&mut self, pod: &Pod, cycle: Option<&PodCycle>) {
        for (name, allocation) in cycle.into_iter().flat_map(chosen) {
            let claim = self.claims.get_mut(&name).unwrap();
            claim.metadata.finalizers = Some(vec!["resource.kubernetes.io/delete-protection".to_owned()]);
            claim.status.get_or_insert_default().allocation = Some(allocation);
        }
        for (name, _) in claims_of(pod) {
            let reserved = &mut self.claims.get_mut(&name).unwrap().status.get_or_insert_default().reserved_for;
            let consumer = json!({"resource": "pods", "name": name_of(&pod.metadata), "uid": name_of(&pod.metadata)});
            reserved.get_or_insert_default().push(from_value(consumer).unwrap());
        }
    }

    /// Removes nodes with their slices and pods, as kubelets and controllers do. Returns the pods that come again.
    fn without(&self, gone: &BTreeSet<&str>) -> (Self, Vec<Pod>) {
        let mut left = self.clone();
        left.nodes.retain(|node| !gone.contains(name_of(&node.metadata)));
        left.slices.retain(|slice| slice.spec.node_name.as_deref().is_none_or(|node| !gone.contains(node)));
        let (going, staying): (Vec<Pod>, Vec<Pod>) =
            left.pods.drain(..).partition(|pod| node_of(pod).is_some_and(|node| gone.contains(node)));
        left.pods = staying;
        let mut again = Vec::new();
        for mut pod in going {
            let uid = name_of(&pod.metadata).to_owned();
            let ends = is_leaving(&pod) || is_of_daemon_set(&pod);
            for (name, is_made) in claims_of(&pod) {
                let Some(claim) = left.claims.get_mut(&name) else { continue };
                let status = claim.status.get_or_insert_default();
                status.reserved_for.iter_mut().for_each(|all| all.retain(|consumer| consumer.uid != uid));
                if status.reserved_for.iter().flatten().next().is_none() {
                    status.allocation = None;
                }
                match (is_made, ends) {
                    (true, true) => drop(left.claims.remove(&name)),
                    // The claim waits for its last user, whoever that is; a new one has another name.
                    (true, false) => claim.status = None,
                    (false, _) => {}
                }
            }
            if !ends {
                pod.spec.as_mut().unwrap().node_name = None;
                again.push(pod);
            }
        }
        (left, again)
    }

    /// Checks that each pod that runs has its devices, and each one that waits can still get them.
    fn check(&self) {
        let inventory = self.inventory();
        let mut held = BTreeSet::new();
        for claim in self.claims.values() {
            for result in allocated_devices(claim) {
                assert!(held.insert([&result.driver, &result.pool, &result.device]), "a device is given away twice");
            }
        }
        // A pod of a daemon set that waits belongs to a node, which may be gone.
        let is_alive = |pod: &&Pod| !is_leaving(pod) && (node_of(pod).is_some() || !is_of_daemon_set(pod));
        for pod in self.pods.iter().filter(is_alive) {
            for (name, _) in claims_of(pod) {
                let Some(claim) = self.claims.get(&name) else {
                    assert_eq!(node_of(pod), None, "a pod runs without {name}");
                    continue;
                };
                let Some(allocation) = claim.status.as_ref().and_then(|status| status.allocation.as_ref()) else {
                    assert_eq!(node_of(pod), None, "a pod runs without {name}");
                    continue;
                };
                let may_run = |node: &&Node| {
                    allocation
                        .node_selector
                        .as_ref()
                        .is_none_or(|selector| node_selector_matches(selector, node).unwrap())
                };
                let mut nodes = self.nodes.iter().filter(may_run).map(|node| name_of(&node.metadata));
                assert!(
                    nodes.any(|node| node_of(pod).is_none_or(|own| own == node)),
                    "{name} is for other nodes: {}",
                    json!([claim.status, self.nodes])
                );
                for result in allocated_devices(claim) {
                    let device = DeviceId::new(&result.driver, &result.pool, &result.device);
                    assert!(inventory.device(&device).is_some(), "{device} of {name} is gone");
                }
                let uid = name_of(&pod.metadata);
                let reserved = claim.status.as_ref().unwrap().reserved_for.iter().flatten();
                assert!(node_of(pod).is_none() || { reserved }.any(|consumer| consumer.uid == uid));
            }
        }
    }
}

/// Returns the claims to which a cycle gives an allocation.
fn chosen(cycle: &PodCycle) -> Vec<(String, AllocationResult)> {
    let chosen = cycle.claims().iter().filter(|claim| claim.has_allocation_in_flight());
    chosen.filter_map(|claim| Some((name_of(&claim.claim().metadata).to_owned(), claim.chosen()?.clone()))).collect()
}

/// Schedules a pod on the first node that fits.
fn first_fit(
    inventory: &Inventory,
    tracker: &mut ClaimTracker,
    nodes: &[&Node],
    pod: &Pod,
) -> Option<(String, Option<PodCycle>)> {
    let (classes, options, mut round) = (classes(), PodOptions::new(Profile::V1_37), GroupRound::default());
    let allocator = Allocator::new(Profile::V1_37, inventory, &classes);
    let nodes = nodes.iter().filter(|node| node.spec.as_ref().unwrap().unschedulable != Some(true));
    let mut cycle = PodCycle::pre_filter(pod, None, tracker, &classes, &round, options).ok()?;
    for node in nodes {
        let name = name_of(&node.metadata);
        if let Some(cycle) = &mut cycle {
            let verdict = cycle.filter(node, &allocator, tracker.state(), NOW, Budget::default());
            if verdict.refusal().is_some() {
                continue;
            }
            cycle.record(name, verdict);
            cycle.reserve(name, tracker, &mut round).unwrap();
        }
        return Some((name.to_owned(), cycle));
    }
    None
}

/// Removes nodes really, and schedules their pods anew with a scheduler that knows nothing of the plan but, if there is one,
/// its nodes and its order.
fn remove_really(world: &World, gone: &BTreeSet<&str>, plan: Option<&NodeRemoval>) -> Option<World> {
    let (mut left, mut again) = world.without(gone);
    if let Some(plan) = plan {
        let place = |pod: &Pod| plan.moved.iter().position(|moved| moved.pod.name == name_of(&pod.metadata)).unwrap();
        again.sort_by_key(place);
        assert_eq!(again.len(), plan.moved.len());
    } else {
        again.sort_by_key(|pod| {
            world.pods.iter().find(|old| old.metadata == pod.metadata).and_then(node_of).map(str::to_owned)
        });
    }
    let inventory = left.inventory();
    for (index, mut pod) in again.into_iter().enumerate() {
        let mut tracker = left.tracker();
        let planned = plan.map(|plan| &plan.moved[index]);
        let is_planned = |node: &&Node| planned.is_none_or(|planned| planned.node == name_of(&node.metadata));
        let nodes: Vec<&Node> = left.nodes.iter().filter(is_planned).collect();
        let (node, cycle) = first_fit(&inventory, &mut tracker, &nodes, &pod)?;
        if let Some(planned) = planned {
            let of = |cycle: &Option<PodCycle>| {
                cycle
                    .iter()
                    .flat_map(|cycle| {
                        cycle
                            .allocations_on(&node)
                            .map(|(claim, result)| (name_of(&claim.metadata).to_owned(), result.clone()))
                            .collect::<Vec<_>>()
                    })
                    .collect::<Vec<_>>()
            };
            assert_eq!(of(&cycle), of(&planned.cycle), "the devices are those of the plan");
        }
        left.write(&pod, cycle.as_ref());
        pod.spec.as_mut().unwrap().node_name = Some(node);
        left.pods.push(pod);
    }
    Some(left)
}

#[test]
fn what_can_go_leaves_every_pod_its_devices() {
    let (classes, selectors) = (classes(), SelectorCache::default());
    let simulator = ScaleSimulator::new(&classes, &selectors, PodOptions::new(Profile::V1_37), NOW)
        .with_explanation(dra_alloc::explain::Detail::Off);
    let (mut removed, mut moved, mut several, mut no_place) = (0, 0, 0, 0);
    let mut kept: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..700 {
        let random = &mut Random::new(seed);
        let world = World::random(random);
        world.check();
        let (mut inventory, tracker) = (world.inventory(), world.tracker());
        let snapshot = ClusterSnapshot::new(&world.nodes, &world.pods);
        let mut candidates: Vec<&str> = world.nodes.iter().map(|node| name_of(&node.metadata)).collect();
        if random.percent(50) {
            candidates.reverse();
        }
        let answer = simulator.scale_down(&mut inventory, &tracker, &snapshot, candidates.iter().copied());
        assert!(inventory.slices().eq(&world.slices), "the question leaves nothing behind");
        assert_eq!(answer.removable.len() + answer.kept.len(), candidates.len());
        let going = answer.removable.iter().map(String::as_str);
        let alone = simulator.scale_down(&mut inventory, &tracker, &snapshot, going);
        let told = (&alone.removable, &alone.removal, alone.kept.len());
        assert_eq!(told, (&answer.removable, &answer.removal, 0), "seed {seed}: a node that stays changes nothing");
        let gone: BTreeSet<&str> = answer.removable.iter().map(String::as_str).collect();
        let left =
            remove_really(&world, &gone, Some(&answer.removal)).unwrap_or_else(|| panic!("seed {seed}: no place"));
        left.check();
        removed += gone.len();
        several += usize::from(gone.len() > 1 && !answer.removal.moved.is_empty());
        moved += answer.removal.moved.iter().filter(|moved| moved.cycle.is_some()).count();
        for (_, obstacle) in &answer.kept {
            let kind = match obstacle {
                RemovalError::NoPlace { .. } => "no place",
                RemovalError::DeviceHeld { .. } => "held",
                RemovalError::ClaimStranded { .. } => "stranded",
                RemovalError::OwnedClaimShared { .. } => "owned",
                other => panic!("{other}"),
            };
            *kept.entry(kind).or_default() += 1;
        }
        // One node alone: where the kit finds no place, a scheduler finds none either.
        for node in &candidates {
            let obstacle = simulator.remove_nodes(&mut inventory, &tracker, &snapshot, [*node]);
            if let Err(obstacle) = obstacle
                && let RemovalError::NoPlace { reason, .. } = &*obstacle
            {
                assert!(matches!(
                    reason,
                    PlacementError::Unschedulable(MemberError::NoNode(_) | MemberError::Blocked(_))
                ));
                assert!(
                    remove_really(&world, &BTreeSet::from([*node]), None).is_none(),
                    "seed {seed}: {node}: {obstacle}"
                );
                no_place += 1;
            }
        }
    }
    assert!(removed > 700 && moved > 150 && several > 50 && no_place > 150, "{removed} {moved} {several} {no_place}");
    assert!(kept.len() == 4 && kept.values().all(|number| *number > 2), "{kept:?}");
}

/// Two nodes with a device each, and one pod with a claim on the first.
fn small() -> World {
    let node = |name: &str| from_value::<Node>(json!({"metadata": {"name": name}, "spec": {}})).unwrap();
    let own = |name: &str| slice(name, "local.example.com", (name, 1), ("nodeName", json!(name)), 1);
    let mut world =
        World { nodes: vec![node("n0"), node("n1")], slices: vec![own("n0"), own("n1")], ..World::default() };
    let pod = json!({"metadata": {"namespace": "ns", "name": "p", "uid": "p"}, "spec": {"nodeName": "n0",
        "resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}, "status": {}});
    let mut claim = new_claim("c", "local", 1, &json!([]));
    claim.status = from_value(json!({"reservedFor": [{"resource": "pods", "name": "p", "uid": "p"}], "allocation": {
        "devices": {"results": [{"request": "r", "driver": "local.example.com", "pool": "n0", "device": "n0-0"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}]}}}))
    .unwrap();
    claim.metadata.finalizers = Some(vec!["resource.kubernetes.io/delete-protection".to_owned()]);
    world.claims.insert("c".to_owned(), claim);
    world.pods.push(from_value(pod).unwrap());
    world
}

fn obstacle(world: &World, nodes: &[&str]) -> Result<NodeRemoval, String> {
    let (classes, selectors) = (classes(), SelectorCache::default());
    let simulator = ScaleSimulator::new(&classes, &selectors, PodOptions::new(Profile::V1_37), NOW);
    let snapshot = ClusterSnapshot::new(&world.nodes, &world.pods);
    let removed = simulator.remove_nodes(&mut world.inventory(), &world.tracker(), &snapshot, nodes.iter().copied());
    removed.map_err(|obstacle| obstacle.to_string())
}

#[test]
fn two_nodes_go_if_another_one_comes() {
    let world = small();
    let (classes, selectors) = (classes(), SelectorCache::default());
    let simulator = ScaleSimulator::new(&classes, &selectors, PodOptions::new(Profile::V1_37), NOW);
    let (mut inventory, tracker) = (world.inventory(), world.tracker());
    let mut nodes: Vec<Node> = vec![from_value(json!({"metadata": {"name": "new"}, "spec": {}})).unwrap()];
    nodes.extend(world.nodes.clone());
    let snapshot = ClusterSnapshot::new(&nodes, &world.pods);
    let both = || ["n0", "n1"].into_iter();
    assert!(simulator.remove_nodes(&mut inventory, &tracker, &snapshot, both()).is_err());
    let mut layer = inventory.layer();
    let new = slice("new", "local.example.com", ("new", 1), ("nodeName", json!("new")), 1);
    layer.apply(InventoryEvent::Slice(new.into())).unwrap();
    let removal = simulator.remove_nodes(&mut layer, &tracker, &snapshot, both()).unwrap();
    assert_eq!(removal.moved[0].node, "new");
    assert_eq!(removal.released, [(ClaimId::from(&world.claims["c"]), ClaimRelease::Deallocated)]);
    assert_eq!(simulator.scale_down(&mut layer, &tracker, &snapshot, both()).removable, ["n0", "n1"]);
    assert_eq!(layer.slices().count(), 3, "a question changes nothing");
    drop(layer);
    assert_eq!(inventory.slices().count(), 2);
}

#[test]
fn obstacles_say_what_is_in_the_way() {
    let world = small();
    let removal = obstacle(&world, &["n0"]).unwrap();
    assert_eq!((removal.moved[0].node.as_str(), removal.released.len()), ("n1", 1));
    assert!(obstacle(&world, &["n1"]).unwrap().moved.is_empty());
    assert_eq!(obstacle(&world, &["n9"]).unwrap_err(), "node \"n9\" not found");
    assert_eq!(obstacle(&world, &["n0", "n1"]).unwrap_err(), "pod ns/p on node n0: 0/0 nodes are available");

    let mut cordoned = world.clone();
    cordoned.nodes[1].spec.as_mut().unwrap().unschedulable = Some(true);
    assert!(obstacle(&cordoned, &["n0"]).is_err());

    let mut busy = world.clone();
    let mut in_flight = new_claim("other", "local", 1, &json!([]));
    busy.claims.insert("other".to_owned(), in_flight.clone());
    in_flight.status = serde_json::from_str(
        &json!(world.claims["c"].status).to_string().replace("n0", "n1").replace("reservedFor", "ignored"),
    )
    .unwrap();
    busy.in_flight.push(in_flight);
    assert_eq!(
        obstacle(&busy, &["n1"]).unwrap_err(),
        "claim ns/other, which stays, is allocated for none of the nodes that stay"
    );
    busy.in_flight[0].status.as_mut().unwrap().allocation.as_mut().unwrap().node_selector = None;
    assert_eq!(
        obstacle(&busy, &["n1"]).unwrap_err(),
        "claim ns/other, which stays, holds device local.example.com/n1/n1-0"
    );
    assert_eq!(
        obstacle(&busy, &["n0"]).unwrap_err(),
        "pod ns/p on node n0: 0/1 nodes are available: 1 no free device of class local; possible on 1 node once other claims \
         give back what they hold"
    );

    let mut owned = world.clone();
    let claim = owned.claims.get_mut("c").unwrap();
    claim.metadata.owner_references = from_value(owner("Pod", "p")).unwrap();
    assert_eq!(
        obstacle(&owned, &["n0"]).unwrap_err(),
        "pod ns/p on node n0: could not find resource claim \"ns/c\"",
        "no template makes the claim anew"
    );
    let other = json!({"resource": "pods", "name": "q", "uid": "q"});
    owned
        .claims
        .get_mut("c")
        .unwrap()
        .status
        .as_mut()
        .unwrap()
        .reserved_for
        .as_mut()
        .unwrap()
        .push(from_value(other).unwrap());
    assert_eq!(obstacle(&owned, &["n0"]).unwrap_err(), "claim ns/c goes with the pod that owns it, but others use it");

    // A pool of two nodes is not complete without one of them, and nothing new is allocated from it.
    let mut pair = world;
    for (index, slice) in pair.slices.iter_mut().enumerate() {
        slice.spec.pool = from_value(json!({"name": "both", "generation": 1, "resourceSliceCount": 2})).unwrap();
        slice.spec.devices.as_mut().unwrap()[0].name = format!("n{index}-0");
    }
    pair.claims
        .get_mut("c")
        .unwrap()
        .status
        .as_mut()
        .unwrap()
        .allocation
        .as_mut()
        .unwrap()
        .devices
        .as_mut()
        .unwrap()
        .results
        .as_mut()
        .unwrap()[0]
        .pool = "both".to_owned();
    let refused = obstacle(&pair, &["n0"]).unwrap_err();
    assert!(
        refused.starts_with("pod ns/p on node n0: 0/1 nodes are available: 1 resource pool being updated"),
        "{refused}"
    );
    assert!(obstacle(&pair, &["n1"]).is_ok(), "the device of n0 stays");
}
