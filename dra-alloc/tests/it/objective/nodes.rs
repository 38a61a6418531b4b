//! Best devices over nodes: an attempt searches equal nodes once, and gangs go where the value is least.

use std::sync::atomic::{AtomicU64, Ordering};

use dra_alloc::objective::{GroupBy, Objective, PairCost, PairScope, Pairs, Term};
use dra_alloc::pods::{ClaimTracker, GangSearch, PodOptions};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, DeviceId, Inventory, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

use super::cluster::{GPU, NIC, ROOT, request};
use crate::oracle::random::Random;

const NODES: usize = 6;
const CARDS: usize = 4;

/// Returns the slices of a node: cards of two halves or a whole, and a NIC at each card's root. Roots have the node's name.
fn slices(node: &str) -> Vec<ResourceSlice> {
    let at = |card: usize| json!({ROOT: {"string": format!("{node}-{card}")}, "size": {"int": card % 2}});
    let part = |card: usize, name: &str, slots: usize| {
        json!({"name": format!("card-{card}-{name}"), "attributes": at(card),
            "capacity": {"memory": {"value": format!("{slots}Gi")}},
            "consumesCounters": [{"counterSet": format!("card-{card}"), "counters": {"slots": {"value": slots.to_string()}}}]})
    };
    let gpus = (0..CARDS).flat_map(|card| [part(card, "a", 1), part(card, "b", 1), part(card, "whole", 2)]);
    let nics = (0..CARDS).map(|card| json!({"name": format!("nic-{card}"), "attributes": at(card)}));
    let sets = (0..CARDS).map(|card| json!({"name": format!("card-{card}"), "counters": {"slots": {"value": "2"}}}));
    let slice = |part: &str, driver: &str, count: usize, field: &str, list: Vec<Value>| {
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": count});
        let spec = json!({"driver": driver, "nodeName": node, "pool": pool, field: list});
        from_value(json!({"metadata": {"name": format!("{node}-{part}")}, "spec": spec})).unwrap()
    };
    vec![
        slice("gpus", GPU, 2, "devices", gpus.collect()),
        slice("sets", GPU, 2, "sharedCounters", sets.collect()),
        slice("nics", NIC, 1, "devices", nics.collect()),
    ]
}

struct Cluster {
    nodes: Vec<Node>,
    inventory: Inventory,
    classes: Classes,
}

impl Cluster {
    fn new() -> Self {
        let class = |name: &str, driver: &str| -> DeviceClass {
            let selectors = json!([{"cel": {"expression": format!("device.driver == '{driver}'")}}]);
            from_value(json!({"metadata": {"name": name}, "spec": {"selectors": selectors}})).unwrap()
        };
        let names: Vec<String> = (0..NODES).map(|number| format!("n{number}")).collect();
        let node = |name: &String| from_value(json!({"metadata": {"name": name}})).unwrap();
        Self {
            nodes: names.iter().map(node).collect(),
            inventory: Inventory::new(names.iter().flat_map(|name| slices(name))),
            classes: Classes::new([class("gpu", GPU), class("nic", NIC)]),
        }
    }

    fn allocator<'a>(&'a self, objective: &'a Objective) -> Allocator<'a> {
        Allocator::new(Profile::V1_37, &self.inventory, &self.classes).with_objective(objective)
    }
}

/// Holds one of four sets of devices on each node, so that some nodes are equal.
fn state(random: &mut Random) -> AllocatedState {
    let mut state = AllocatedState::default();
    for node in 0..NODES {
        let held: &[(&str, &str)] = match random.below(4) {
            0 => &[],
            1 => &[(GPU, "card-1-a")],
            2 => &[(GPU, "card-0-b"), (NIC, "nic-0")],
            _ => &[(GPU, "card-0-whole"), (GPU, "card-2-a")],
        };
        for (driver, device) in held {
            state.hold(&DeviceId::new(driver, &format!("n{node}"), device));
        }
    }
    state
}

fn objectives() -> Vec<Objective> {
    let links = |node: &str, left: &str, right: &str, score| {
        let id = |device: &str| DeviceId::new(GPU, node, device);
        (id(left), id(right), score)
    };
    let scores = vec![links("n0", "card-0-a", "card-1-a", 5), links("n1", "card-1-b", "card-2-a", 7)];
    let links = Pairs { cost: PairCost::Links { scores, otherwise: 1 }, within: PairScope::Claim };
    vec![
        Objective::pack_partitions(),
        Objective::keep_whole(),
        Objective::close_together(),
        Objective::pair_requests("gpus", "nics"),
        Objective::least_waste("gpu.example.com/memory").unwrap(),
        Objective::spread_over("gpu.example.com/size").unwrap(),
        Objective::new([vec![Term::Stranded.into(), Term::Options.into()]]).unwrap(),
        Objective::new([
            vec![Term::Pairs(links.clone()).into()],
            vec![Term::Outlook { of: links, times: Some(1) }.into()],
        ])
        .unwrap(),
    ]
}

fn claim(name: &str, requests: &Value) -> ResourceClaim {
    let metadata = json!({"namespace": "d", "name": name, "uid": name});
    from_value(json!({"metadata": metadata, "spec": {"devices": {"requests": requests}}})).unwrap()
}

#[test]
fn an_attempt_gives_the_best_devices_of_each_node() {
    let cluster = Cluster::new();
    let mut better = 0;
    for seed in 0..30 {
        let random = &mut Random::new(seed);
        let state = state(random);
        let claim = claim(
            "c",
            &json!([request("gpus", "gpu", random.between(1, 3)), request("nics", "nic", random.between(1, 2))]),
        );
        for objective in objectives() {
            // Few steps stop some of the searches.
            let objective = if random.percent(30) { objective.with_steps(9) } else { objective };
            let allocator = cluster.allocator(&objective);
            let attempt = allocator.attempt(&state, [&claim]);
            for node in &cluster.nodes {
                let together = attempt.allocate(node, Budget::default()).unwrap();
                let alone = allocator.allocate(&state, node, [&claim], Budget::default()).unwrap();
                assert_eq!(together, alone, "seed {seed}, {objective}, {node:?}");
                better += u64::from(alone.score.is_some_and(|score| score.value < score.first_fit));
            }
        }
    }
    assert!(better > 100, "{better} better than the first");
}

#[test]
fn equal_nodes_are_searched_once() {
    let cluster = Cluster::new();
    let mut state = AllocatedState::default();
    // The last node is unlike the others.
    state.hold(&DeviceId::new(GPU, "n5", "card-1-a"));
    let claim = claim("c", &json!([request("gpus", "gpu", 4), request("nics", "nic", 3)]));
    let spread = Term::Spread { by: GroupBy::CounterSet };
    let objective = Objective::new([vec![spread.into(), Term::Options.into()]]).unwrap();
    let allocator = cluster.allocator(&objective);
    let questions = AtomicU64::new(0);
    let stop = || questions.fetch_add(1, Ordering::Relaxed) == u64::MAX;
    let attempt = allocator.attempt(&state, [&claim]);
    let asked = cluster.nodes.iter().map(|node| {
        let before = questions.load(Ordering::Relaxed);
        attempt.allocate(node, Budget::default().with_stop(&stop)).unwrap();
        questions.load(Ordering::Relaxed) - before
    });
    let asked: Vec<u64> = asked.collect();
    let [first, equal @ .., last] = asked.as_slice() else { panic!("{asked:?}") };
    let is_recalled = |asked: &u64| asked + 3 < *first && asked + 3 < *last;
    assert!(equal.iter().all(is_recalled), "{asked:?}");
}

#[test]
fn a_gang_goes_where_the_value_is_least() {
    let cluster = Cluster::new();
    let half = json!([{"name": "r", "exactly": {"deviceClassName": "gpu",
        "selectors": [{"cel": {"expression": "device.capacity['gpu.example.com'].memory.isLessThan(quantity('2Gi'))"}}]}}]);
    let pod = |name: &str| -> Pod {
        from_value(json!({"metadata": {"namespace": "d", "name": name, "uid": format!("pod-{name}")}, "spec": {
            "containers": [], "resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}}))
        .unwrap()
    };
    let place = |objective: &Objective| {
        let mut tracker = ClaimTracker::new(Profile::V1_37);
        let held =
            json!({"devices": {"results": [{"request": "r", "driver": GPU, "pool": "n2", "device": "card-1-a"}]}});
        let mut other = claim("other", &half);
        other.status.get_or_insert_default().allocation = from_value(held).unwrap();
        for claim in [other, claim("x", &half), claim("y", &half)] {
            tracker.observe(claim).unwrap();
        }
        let allocator = cluster.allocator(objective);
        let options = PodOptions::new(Profile::V1_37);
        let search = GangSearch::new(&allocator, &cluster.nodes, options, Timestamp::UNIX_EPOCH);
        let placed = search.place(&[pod("x"), pod("y")], None, &mut tracker).unwrap();
        let shown = placed.pods.iter().map(|placement| {
            let choice = placement.cycle.as_ref().and_then(|cycle| cycle.choice_on(&placement.node));
            (placement.node.clone(), choice.map(|choice| choice.value.clone()))
        });
        shown.collect::<Vec<_>>()
    };
    let named = |node: &str, value: Option<[u64; 3]>| (node.to_owned(), value.map(Vec::from));
    assert_eq!(place(&Objective::default()), [named("n0", None), named("n0", None)]);
    // The cut card first; then a card has to be cut, on the first node.
    let (cut, uncut) = (named("n2", Some([0, 500, 0])), named("n0", Some([1, 500, 1])));
    assert_eq!(place(&Objective::pack_partitions()), [cut, uncut]);
}
