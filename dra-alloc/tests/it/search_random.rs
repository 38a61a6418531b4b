//! Random claims that are hard to decide: most of them end within the budget that docs/embedding.md shows.

use dra_alloc::{AllocatedState, Allocator, Budget, Classes, DraGate, GateSet, Inventory, Outcome, Profile};
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{Value, json};

use crate::cluster::{Cluster, claim, node, pool};
use crate::oracle::random::Random;

const GPU: &str = "gpu.example.com";

/// Work of one search.
const WORK: u64 = 100_000;

/// Claims with little room that take more work: four claims compete for most devices, under different constraints and with
/// alternatives. What is left after each choice of the first claims differs in the values, so that few failed states are equal.
const LITTLE_ROOM: [u64; 5] = [360, 1_150, 1_421, 1_783, 1_792];

/// A claim around the limit that takes more work.
const AROUND_THE_LIMIT: [u64; 1] = [688];

/// Number of random claims of each kind; all of them with `SEEDS=2000` or more.
fn seeds() -> u64 {
    let asked = std::option_env!("SEEDS").and_then(|seeds| seeds.parse().ok());
    asked.unwrap_or(if cfg!(debug_assertions) { 150 } else { 2_000 })
}

#[test]
fn claims_around_the_limit_of_results_are_decided() {
    let (stopped, allocated) = count(around_the_limit, &AROUND_THE_LIMIT);
    assert!(stopped.is_empty(), "seeds {stopped:?}");
    assert!(allocated * 5 >= seeds() && allocated * 10 <= seeds() * 9, "{allocated} of {}", seeds());
}

#[test]
fn claims_with_little_room_and_few_values_are_decided() {
    let (stopped, allocated) = count(little_room, &LITTLE_ROOM);
    assert!(stopped.is_empty(), "seeds {stopped:?}");
    assert!(allocated * 5 >= seeds() && allocated * 10 <= seeds() * 9, "{allocated} of {}", seeds());
}

/// Returns the seeds whose searches were stopped, but for known ones, and how many found a solution.
fn count(make: fn(&mut Random) -> (Value, Vec<ResourceClaim>), known: &[u64]) -> (Vec<u64>, u64) {
    let (mut stopped, mut allocated) = (Vec::new(), 0);
    for seed in 0..seeds() {
        let random = &mut Random::new(seed);
        let (devices, claims) = make(random);
        let cluster = Cluster::new([pool(GPU, "node-1", devices)]);
        let (inventory, classes) = (Inventory::new(cluster.slices), Classes::new(cluster.classes));
        let gates = GateSet::all().with_value(DraGate::ListTypeAttributes, random.percent(50));
        let allocator = Allocator::new(Profile::V1_37, &inventory, &classes).with_gates(gates);
        let state = AllocatedState::default();
        match allocator.allocate(&state, &node("node-1"), &claims, Budget::work(WORK)).map(|verdict| verdict.outcome) {
            Ok(Outcome::Stopped(_)) if !known.contains(&seed) => stopped.push(seed),
            Ok(Outcome::Allocated(_)) => allocated += 1,
            _ => {}
        }
    }
    (stopped, allocated)
}

fn devices(random: &mut Random, count: usize, kinds: &[&str], values: usize) -> Value {
    let rack = random.between(2, 8);
    let device = |index: usize| {
        let (kind, side) = (random.pick(kinds), random.below(values));
        json!({"name": format!("gpu-{index}"), "attributes": {
            "kind": {"string": kind}, "side": {"int": side}, "rack": {"int": index / rack},
            "uuid": {"string": format!("GPU-{index}")},
        }})
    };
    (0..count).map(device).collect()
}

fn asked(random: &mut Random, counts: &[usize], kinds: &[&str]) -> Value {
    let mut asked = json!({"deviceClassName": "gpu", "count": random.pick(counts)});
    if random.percent(70) {
        let expression = format!("device.attributes['{GPU}'].kind == '{}'", random.pick(kinds));
        asked["selectors"] = json!([{"cel": {"expression": expression}}]);
        if random.percent(10) {
            asked.as_object_mut().unwrap().remove("count");
            asked["allocationMode"] = json!("All");
        }
    }
    asked
}

fn request(random: &mut Random, index: usize, alternatives: u32, counts: &[usize], kinds: &[&str]) -> Value {
    let name = format!("r{index}");
    if !random.percent(alternatives) {
        return json!({"name": name, "exactly": asked(random, counts, kinds)});
    }
    let alternative = |index| {
        let mut asked = asked(random, counts, kinds);
        asked["name"] = json!(format!("a{index}"));
        asked
    };
    let alternatives: Vec<Value> = (0..3).map(alternative).collect();
    json!({"name": name, "firstAvailable": alternatives})
}

/// Alternatives whose counts add up to about 32, the most results of a claim, over devices that can't be exchanged.
fn around_the_limit(random: &mut Random) -> (Value, Vec<ResourceClaim>) {
    let kinds = ["a", "b", "c"];
    let count = random.between(36, 72);
    let devices = devices(random, count, &kinds, 4);
    let requests: Vec<Value> = (0..random.between(2, 5))
        .map(|index| request(random, index, 70, &[1, 3, 4, 8, 10, 16, 20, 31, 32], &kinds))
        .collect();
    let constraint = random.pick(&["distinctAttribute", "distinctAttribute", "matchAttribute"]);
    let attribute = if constraint == "matchAttribute" { "kind" } else { "uuid" };
    let constraints = json!([{constraint: format!("{GPU}/{attribute}"), "requests": ["r0"]}]);
    (devices, vec![claim("claim", json!(requests), constraints)])
}

/// Claims that need most devices of racks with few values.
fn little_room(random: &mut Random) -> (Value, Vec<ResourceClaim>) {
    let kinds = ["a", "b"];
    let (count, values) = (random.between(8, 24), random.between(2, 5));
    let devices = devices(random, count, &kinds, values);
    let claims = (0..random.between(1, 4)).map(|number| {
        let requests: Vec<Value> =
            (0..random.between(1, 3)).map(|index| request(random, index, 20, &[1, 1, 2, 2, 3, 4], &kinds)).collect();
        let constraint = random.pick(&[
            json!([]),
            json!([{"distinctAttribute": format!("{GPU}/side")}]),
            json!([{"matchAttribute": format!("{GPU}/side")}]),
            json!([{"matchAttribute": format!("{GPU}/rack")}]),
            json!([{"matchAttribute": format!("{GPU}/rack")}, {"distinctAttribute": format!("{GPU}/side")}]),
        ]);
        claim(&format!("claim-{number}"), json!(requests), constraint)
    });
    (devices, claims.collect())
}
