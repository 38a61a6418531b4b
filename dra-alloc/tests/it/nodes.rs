//! Nodes that are given once: the answers by state are those of the nodes themselves, asked one by one with an index built anew, on
//! random clusters of twins and random histories.

use std::collections::BTreeSet;
use std::sync::Arc;

use dra_alloc::explain::Detail;
use dra_alloc::pods::{ClaimTracker, GroupRound, PodCycle, PodOptions};
use dra_alloc::{
    AllocateError, AllocatedState, Allocator, Budget, Classes, Component, Fit, Index, Inventory, InventoryEvent, Nodes,
    Outcome,
};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

use crate::oracle::Case;
use crate::oracle::compare::numbered;
use crate::oracle::random::{self, Random};
use crate::oracle::twins::{changed, local};

/// Number of random clusters, lower without optimisation.
const SEEDS: u64 = if cfg!(debug_assertions) { 30 } else { 600 };
const NODES: usize = 9;
const EVENTS: usize = 12;
const WORK: u64 = 20_000;

/// Returns the slices of a case as those of another node, with names that come in the same order.
fn slices_on(number: usize, case: &Case, has_ids: bool) -> Vec<ResourceSlice> {
    let mut slices = case.to_json()["slices"].take();
    for slice in slices.as_array_mut().unwrap() {
        prefix(number, &mut slice["metadata"]["name"]);
        prefix(number, &mut slice["spec"]["pool"]["name"]);
        if slice["spec"]["nodeName"].is_string() {
            slice["spec"]["nodeName"] = json!(format!("node-{number}"));
        }
        for device in slice["spec"]["devices"].as_array_mut().into_iter().flatten() {
            if has_ids {
                device["attributes"]["id.example.com/uuid"] = json!({"string": format!("{number}-{}", device["name"])});
            }
            prefix(number, &mut device["name"]);
        }
    }
    from_value(slices).unwrap()
}

fn prefix(number: usize, name: &mut Value) {
    *name = format!("{number}{}", name.as_str().unwrap()).into();
}

/// Uses the devices of a node that a case says.
fn allocate_on(number: usize, case: &Case, state: &mut AllocatedState) {
    let id = |id: &crate::oracle::DeviceId| {
        dra_alloc::DeviceId::new(&id.driver, &format!("{number}{}", id.pool), &format!("{number}{}", id.device))
    };
    case.allocated.devices.iter().for_each(|device| state.hold(&id(device)));
    case.allocated.shared.iter().for_each(|(device, share)| state.share(&id(device), share));
    for (device, amounts) in &case.allocated.capacity {
        for (name, amount) in amounts {
            state.consume(&id(device), name, *amount);
        }
    }
}

/// Nodes and what they are asked for.
struct World {
    nodes: Vec<Node>,
    classes: Classes,
    claims: Vec<ResourceClaim>,
    scheduler: Component,
}

/// Numbers of comparisons.
#[derive(Default)]
struct Counts {
    nodes: usize,
    states: usize,
    yes: usize,
    errors: usize,
    filtered: usize,
    scored: usize,
    explained: usize,
}

impl World {
    /// Compares all answers of nodes with those of each node alone, over the same slices in an index of its own.
    fn compare(&self, told: &str, nodes: &mut Nodes<Node>, at: (&Inventory, &AllocatedState), counts: &mut Counts) {
        let (inventory, state) = at;
        let fresh = Inventory::new(inventory.slices().cloned()).with_taint_rules(inventory.taint_rules().cloned());
        let alone = Allocator::new(self.scheduler, &fresh, &self.classes).with_share_ids(&numbered);
        let allocator = Allocator::new(self.scheduler, inventory, &self.classes).with_share_ids(&numbered);
        let expected: Vec<Result<Fit, AllocateError>> = self
            .nodes
            .iter()
            .map(|node| {
                alone.allocate(state, node, &self.claims, Budget::work(WORK)).map(|verdict| match verdict.outcome {
                    Outcome::Allocated(_) => Fit::Yes,
                    Outcome::Stopped(stopped) => Fit::Stopped(stopped),
                    _ => Fit::No,
                })
            })
            .collect();
        if counts.nodes.is_multiple_of(4 * NODES) {
            // All of a verdict: the explanation, too, with the names of the node's own devices, and the work.
            let [alone, each] = [&alone, &allocator].map(|one| one.clone().with_explanation(Detail::Full));
            let budget = Budget::work(WORK);
            let verdicts = each.allocate_each(state, &self.nodes, &self.claims, budget);
            for (number, verdict) in verdicts.enumerate() {
                let own = alone.allocate(state, &self.nodes[number], &self.claims, budget);
                counts.explained += usize::from(own.as_ref().is_ok_and(|verdict| verdict.explanation.is_some()));
                assert_eq!(verdict, own, "{told}, verdict on node {number}");
            }
        }
        let asked = nodes.attempt(&allocator, state, &self.claims);
        let mut seen = BTreeSet::new();
        for answer in asked.by_state(Budget::work(WORK)) {
            counts.states += 1;
            assert_eq!(answer.number_of_nodes(), answer.nodes().count());
            for node in answer.nodes() {
                assert!(seen.insert(node), "{told}: node {node} twice");
                assert_eq!(answer.fit, expected[usize::from(node)], "{told}, node {node}");
            }
        }
        assert_eq!(seen.len(), self.nodes.len(), "{told}");
        for (number, expected) in expected.iter().enumerate() {
            assert_eq!(
                asked.fits(Index::from(number), Budget::work(WORK)),
                *expected,
                "{told}, node {number} by itself"
            );
            counts.nodes += 1;
            counts.yes += usize::from(*expected == Ok(Fit::Yes));
            counts.errors += usize::from(expected.is_err());
        }
        drop(asked);
        self.compare_filter(told, nodes, &allocator, state, counts);
    }

    /// Compares the filter of a pod with these claims with that of each node alone.
    fn compare_filter(
        &self,
        told: &str,
        nodes: &mut Nodes<Node>,
        allocator: &Allocator<'_>,
        state: &AllocatedState,
        counts: &mut Counts,
    ) {
        let mut tracker = ClaimTracker::new(self.scheduler);
        let entry =
            |claim: &ResourceClaim| json!({"name": claim.metadata.name, "resourceClaimName": claim.metadata.name});
        let entries: Vec<Value> = self.claims.iter().map(entry).collect();
        let pod: Pod = from_value(json!({"metadata": {"name": "p", "namespace": "default", "uid": "p"},
            "spec": {"containers": [], "resourceClaims": entries}}))
        .unwrap();
        for claim in &self.claims {
            tracker.observe(claim.clone()).unwrap();
        }
        let options = PodOptions::new(self.scheduler);
        let cycle = PodCycle::pre_filter(&pod, None, &tracker, &self.classes, &GroupRound::default(), options);
        let Ok(Some(mut cycle)) = cycle else { return };
        let (now, budget) = (Timestamp::UNIX_EPOCH, Budget::work(WORK));
        let alone: Vec<_> = self.nodes.iter().map(|node| cycle.filter(node, allocator, state, now, budget)).collect();
        let (refusals, scores): (Vec<_>, Vec<_>) = {
            let filter = cycle.filter_nodes(nodes, allocator, state);
            let all = (0..self.nodes.len()).map(Index::from);
            all.map(|node| (filter.refusal(node, now, budget), filter.score(node, now, budget))).unzip()
        };
        for (number, verdict) in alone.into_iter().enumerate() {
            assert_eq!(refusals[number].as_ref(), verdict.refusal(), "{told}, filter of node {number}");
            let name = format!("node-{number}");
            cycle.record(&name, verdict);
            assert_eq!(scores[number], cycle.score(&name), "{told}, score of node {number}");
            counts.filtered += 1;
            counts.scored += usize::from(scores[number].is_ok_and(|score| score > 0));
        }
    }
}

#[test]
fn answers_by_state_are_those_of_each_node() {
    let mut counts = Counts::default();
    for (seed, make) in (0..SEEDS).zip([random::case, random::tight, random::racks, random::risky].iter().cycle()) {
        let random = &mut Random::new(seed);
        let base = if random.percent(80) { local(&make(seed)) } else { make(seed) };
        let variants: Vec<Case> =
            (0..4).map(|at| if at == 0 { base.clone() } else { changed(random, &base) }).collect();
        let has_ids = random.percent(60);
        let node = |number: usize| {
            let mut node = base.node.clone();
            node.metadata.name = Some(format!("node-{number}"));
            node
        };
        let world = World {
            nodes: (0..NODES).map(node).collect(),
            classes: Classes::new(base.classes.iter().cloned()),
            claims: base.claims.clone(),
            scheduler: Component::new(base.profile, base.gates),
        };
        let (mut nodes, mut state) = (Nodes::new(world.nodes.clone()), AllocatedState::default());
        let mut slices = Vec::new();
        for number in 0..NODES {
            let variant = if random.percent(60) { &base } else { &random.pick(&variants) };
            slices.extend(slices_on(number, variant, has_ids));
            allocate_on(number, variant, &mut state);
        }
        let rules = base.taint_rules.iter().cloned();
        let mut inventory = Inventory::new(slices).with_taint_rules(rules.map(Arc::new));
        world.compare(&format!("seed {seed}"), &mut nodes, (&inventory, &state), &mut counts);
        for event in 0..EVENTS {
            let told = format!("seed {seed}, event {event}");
            let number = random.below(NODES);
            let variant = random.pick(&variants);
            match random.below(5) {
                0 => slices_on(number, &variant, has_ids).into_iter().for_each(|slice| {
                    inventory.apply(InventoryEvent::Slice(Arc::new(slice))).unwrap();
                }),
                1 => allocate_on(number, &variant, &mut state),
                2 => {
                    // A layer is asked, and kept or dropped.
                    let mut layer = state.layer();
                    allocate_on(number, &variant, &mut layer);
                    world.compare(&format!("{told}, layer"), &mut nodes, (&inventory, &layer), &mut counts);
                    if random.percent(50) {
                        layer.keep();
                    }
                }
                3 => {
                    let mut layer = inventory.layer();
                    for slice in slices_on(number, &variant, has_ids) {
                        layer.apply(InventoryEvent::Slice(Arc::new(slice))).unwrap();
                    }
                    world.compare(&format!("{told}, inventory"), &mut nodes, (&layer, &state), &mut counts);
                    if random.percent(50) {
                        layer.keep();
                    }
                }
                _ => state = AllocatedState::default(),
            }
            world.compare(&told, &mut nodes, (&inventory, &state), &mut counts);
        }
    }
    let Counts { nodes, states, yes, errors, filtered, scored, explained } = counts;
    assert!(filtered > nodes / 2 && scored > nodes / 100, "{filtered} filtered, {scored} scored");
    assert!(explained > nodes / 20, "{explained} explained");
    assert!(
        states * 3 < nodes * 2 && yes > nodes / 10 && errors > 0,
        "{nodes} in {states}, {yes} yes, {errors} errors"
    );
}
