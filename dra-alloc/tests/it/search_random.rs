//! Random claims that are hard to decide: they end within the budget that docs/embedding.md shows.

use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Gate, GateSet, Inventory, Outcome, Profile};
use dra_attrs::Component;
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{Value, json};

use crate::cluster::{Cluster, claim, node, pool};
use crate::oracle::random::Random;

const GPU: &str = "gpu.example.com";

/// Work of one search.
const WORK: u64 = 100_000;

/// Claims that are decided only because a risk is settled, or an alternative is too large, in a debug build too.
const HARDEST: [u64; 6] = [360, 688, 1_150, 1_421, 1_783, 1_792];

/// Random claims of each kind; all of them with `SEEDS=2000` or more.
fn seeds() -> impl Iterator<Item = u64> {
    let asked = std::option_env!("SEEDS").and_then(|seeds| seeds.parse().ok());
    let count = asked.unwrap_or(if cfg!(debug_assertions) { 150 } else { 2_000 });
    (0..count).chain(HARDEST.into_iter().filter(move |seed| *seed >= count))
}

#[test]
fn claims_around_the_limit_of_results_are_decided() {
    assert_decided(around_the_limit);
}

#[test]
fn claims_with_little_room_and_few_values_are_decided() {
    assert_decided(little_room);
}

/// Asserts that no search is stopped, and that some claims can be met and some can't.
fn assert_decided(make: fn(&mut Random) -> (Value, Vec<ResourceClaim>)) {
    let (mut stopped, mut allocated) = (Vec::new(), 0);
    for seed in seeds() {
        let random = &mut Random::new(seed);
        let (devices, claims) = make(random);
        let cluster = Cluster::new([pool(GPU, "node-1", devices)]);
        let (inventory, classes) = (Inventory::new(cluster.slices), Classes::new(cluster.classes));
        let gates = GateSet::all().with_values([(Gate::ListTypeAttributes, random.percent(50))]);
        let allocator = Allocator::new(Component::new(Profile::V1_37, gates), &inventory, &classes);
        let state = AllocatedState::default();
        match allocator.allocate(&state, &node("node-1"), &claims, Budget::work(WORK)).map(|verdict| verdict.outcome) {
            Ok(Outcome::Stopped(_)) => stopped.push(seed),
            Ok(Outcome::Allocated(_)) => allocated += 1,
            _ => {}
        }
    }
    let all = seeds().count();
    assert!(stopped.is_empty(), "seeds {stopped:?}");
    assert!(allocated * 5 >= all && allocated * 10 <= all * 9, "{allocated} of {all}");
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
