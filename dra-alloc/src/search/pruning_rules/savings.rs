//! Work that each pruning rule saves, by the shape of claims and devices that shows it best.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{PruningRule, PruningRules};
use crate::cluster::inventory::Inventory;
use crate::oracle::compare::inventory;
use crate::oracle::{Case, random};
use crate::search::budget::Budget;
use crate::search::oracle_case;

const RULES: [PruningRule; 11] = [
    PruningRule::ForwardChecking,
    PruningRule::Pigeonhole,
    PruningRule::CommonValue,
    PruningRule::AllDifferent,
    PruningRule::CounterBound,
    PruningRule::Packing,
    PruningRule::ResultLimit,
    PruningRule::ValueSymmetry,
    PruningRule::LaterClaims,
    PruningRule::SettledRisks,
    PruningRule::FailedStates,
];

/// Work after which a search is stopped, which counts as its work.
const MOST_WORK: u64 = 100_000;
const SEEDS: u64 = 30;

/// Shape of claims and devices, with the cases that show it.
type Shape = (&'static str, fn() -> Vec<Case>);

const SHAPES: [Shape; 13] = [
    ("random nodes", || (0..SEEDS).map(random::case).collect()),
    ("random nodes, much nearly alike", || (0..SEEDS).map(random::tight).collect()),
    ("random racks", || (0..SEEDS).map(random::racks).collect()),
    ("random nodes, first device unchecked", || (0..SEEDS).map(random::unchecked).collect()),
    ("random nodes with errors", || (0..SEEDS).map(random::risky).collect()),
    ("5 claims of 5 in racks of 8", || vec![racks(32, &[5; 5])]),
    ("claims of 5 and 3 in racks of 8", || vec![racks(32, &[5, 3, 5, 5, 3, 5, 5, 5])]),
    ("3 and 3 that differ, of 5 sides", || vec![sides(16)]),
    ("the second claim fails", || vec![second_claim(16)]),
    ("9 shares of 6 of 8 NICs with 10", || vec![shares(8)]),
    ("32 devices or else 10, and 23 more", || vec![limit()]),
    ("6 partitions of 3 and 6 of 2 on 4 cards of 7", || vec![partitions(6, 6)]),
    ("10 partitions of 3 on 4 cards of 7", || vec![partitions(10, 0)]),
];

/// Builds a case of one node with all gates.
fn case(slices: &Value, claims: &[Value]) -> Case {
    let gates: BTreeMap<&str, bool> =
        dra_attrs::Gate::ALL.iter().map(|gate| (gate.name(dra_attrs::Profile::V1_37), true)).collect();
    let expression = json!([{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]);
    Case::from_json(json!({
        "features": gates, "node": {"metadata": {"name": "node"}}, "claims": claims, "slices": slices,
        "classes": [{"metadata": {"name": "gpu"}, "spec": {"selectors": expression}}],
        "allocated": {"devices": [], "shared": [], "capacity": {}},
    }))
}

fn slices(fields: &[Value]) -> Value {
    let slice = |(number, field): (usize, &Value)| {
        let mut spec = json!({"driver": "gpu.example.com", "nodeName": "node",
            "pool": {"name": "node", "generation": 1, "resourceSliceCount": fields.len()}});
        spec.as_object_mut().unwrap().extend(field.as_object().unwrap().clone());
        json!({"metadata": {"name": format!("slice-{number}")}, "spec": spec})
    };
    fields.iter().enumerate().map(slice).collect()
}

fn devices(count: usize, fields: impl Fn(usize) -> Value) -> Value {
    let device = |index: usize| {
        let mut device = fields(index);
        device["name"] = json!(format!("gpu-{index:03}"));
        device
    };
    slices(&[json!({"devices": (0..count).map(device).collect::<Vec<_>>()})])
}

fn claim(name: usize, requests: &Value, constraints: &Value) -> Value {
    let name = format!("claim-{name}");
    json!({"metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"devices": {"requests": requests, "constraints": constraints}}})
}

fn some(name: &str, count: usize) -> Value {
    json!({"name": name, "exactly": {"deviceClassName": "gpu", "count": count}})
}

fn racks(count: usize, sizes: &[usize]) -> Case {
    let of_rack = json!([{"matchAttribute": "gpu.example.com/rack"}]);
    let claims = sizes.iter().enumerate().map(|(number, size)| claim(number, &json!([some("r", *size)]), &of_rack));
    let in_rack = |index: usize| json!({"attributes": {"rack": {"int": index / 8}}});
    case(&devices(count, in_rack), &claims.collect::<Vec<_>>())
}

fn sides(count: usize) -> Case {
    let distinct = json!([{"distinctAttribute": "gpu.example.com/side"}]);
    let claims = [claim(0, &json!([some("left", 3), some("right", 3)]), &distinct)];
    case(&devices(count, |index| json!({"attributes": {"side": {"int": index % 5}}})), &claims)
}

fn second_claim(count: usize) -> Case {
    let of_root = json!([{"matchAttribute": "gpu.example.com/root"}]);
    let claims = [claim(0, &json!([some("r", 2)]), &json!([])), claim(1, &json!([some("r", 3)]), &of_root)];
    case(&devices(count, |index| json!({"attributes": {"root": {"int": index / 2}}})), &claims)
}

fn share(name: usize, amount: &str) -> Value {
    json!({"name": format!("r{name}"), "exactly": {
        "deviceClassName": "gpu", "capacity": {"requests": {"bandwidth": amount}}}})
}

fn nic(_: usize) -> Value {
    json!({"allowMultipleAllocations": true, "capacity": {"bandwidth": {"value": "10"}}})
}

fn shares(count: usize) -> Case {
    let requests: Vec<Value> = (0..=count).map(|name| share(name, "6")).collect();
    case(&devices(count, nic), &[claim(0, &json!(requests), &json!([]))])
}

/// A request for 32 devices, or else 10, leaves no room for the next one, of which one alternative finds nothing; the last one fails.
fn limit() -> Case {
    let of = |kind: &str| {
        let expression = format!("device.attributes['gpu.example.com'].kind == '{kind}'");
        json!({"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]})
    };
    let some_of = |kind: &str, count: usize| {
        let mut some = of(kind);
        some["count"] = json!(count);
        some
    };
    let mut all = of("c");
    all["allocationMode"] = json!("All");
    let list = |name: &str, alternatives: Vec<Value>| {
        let named = alternatives.into_iter().enumerate().map(|(index, mut alternative)| {
            alternative["name"] = json!(format!("a{index}"));
            alternative
        });
        json!({"name": name, "firstAvailable": named.collect::<Vec<_>>()})
    };
    let requests = json!([
        list("r0", vec![some_of("b", 32), some_of("b", 10)]),
        list("r1", vec![some_of("a", 3), all, some_of("a", 10)]),
        {"name": "r2", "exactly": some_of("a", 20)},
    ]);
    let distinct = json!([{"distinctAttribute": "gpu.example.com/uuid", "requests": ["r0"]}]);
    let fields = |index: usize| {
        let kind = if index.is_multiple_of(2) { "a" } else { "b" };
        json!({"attributes": {"kind": {"string": kind}, "uuid": {"string": format!("GPU-{index}")}}})
    };
    case(&devices(72, fields), &[claim(0, &requests, &distinct)])
}

/// Four cards with seven parts, cut into three devices of three parts and three of two, of which more are asked for than there is
/// room.
fn partitions(threes: usize, twos: usize) -> Case {
    let set = |card: usize| json!({"name": format!("card-{card}"), "counters": {"parts": {"value": "7"}}});
    let cut = |card: usize, number: usize, parts: usize| {
        json!({"name": format!("card-{card}-{parts}-{number}"), "attributes": {"parts": {"int": parts}},
            "consumesCounters": [{"counterSet": format!("card-{card}"), "counters": {"parts": {"value": parts.to_string()}}}]})
    };
    let of_card = |card: usize| (0..6).map(move |number| cut(card, number, 3 - number % 2));
    let sets: Vec<Value> = (0..4).map(set).collect();
    let all: Vec<Value> = (0..4).flat_map(of_card).collect();
    let of = |name: &str, count: usize, parts: usize| {
        let expression = format!("device.attributes['gpu.example.com'].parts == {parts}");
        json!({"name": name, "exactly": {"deviceClassName": "gpu", "count": count,
            "selectors": [{"cel": {"expression": expression}}]}})
    };
    let requests = [of("three", threes, 3), of("two", twos, 2)];
    let asked: Vec<&Value> = requests.iter().filter(|request| request["exactly"]["count"] != 0).collect();
    case(&slices(&[json!({"sharedCounters": sets}), json!({"devices": all})]), &[claim(0, &json!(asked), &json!([]))])
}

/// Searches all cases of a shape. Returns steps, work, and the least time of five searches.
fn cost(cases: &[(Case, Inventory)], pruning: PruningRules) -> (u64, u64, Duration) {
    (0..5).map(|_| cost_once(cases, pruning)).min().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the time is printed, and decides nothing")]
fn cost_once(cases: &[(Case, Inventory)], pruning: PruningRules) -> (u64, u64, Duration) {
    let begin = Instant::now();
    let searched = cases.iter().filter_map(|(case, inventory)| {
        oracle_case::allocate(case, inventory, pruning, None, Budget::work(MOST_WORK)).ok()
    });
    let (steps, work) = searched.fold((0, 0), |(steps, work), (_, effort)| (steps + effort.steps, work + effort.work));
    (steps, work, begin.elapsed())
}

/// With `--nocapture` the lines of the table in docs/design.md are printed, but for the lines of code.
#[test]
#[expect(clippy::disallowed_macros, reason = "the table is a result of the test")]
fn each_rule_saves_a_hundredth_somewhere() {
    let searched = |(name, make): &Shape| {
        let indexed = |case: Case| {
            let index = inventory(&case);
            (case, index)
        };
        let cases: Vec<(Case, Inventory)> = make().into_iter().map(indexed).collect();
        let with = cost(&cases, PruningRules::default());
        (*name, cases, with)
    };
    let all: Vec<_> = SHAPES.iter().map(searched).collect();
    let part = |with: u64, without: u64| without.saturating_sub(with) * 100 / without.max(1);
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    for rule in RULES {
        let saved = all.iter().map(|(name, cases, with)| {
            let without = cost(cases, PruningRules::default().without(rule));
            let time = part(micros(with.2), micros(without.2));
            (part(with.1, without.1), part(with.0, without.0), time, *name)
        });
        let (work, steps, time, shown_by) = saved.max().unwrap();
        println!("| `{rule:?}` | {steps} % | {work} % | {time} % | {shown_by} |");
        assert!(work.max(steps) > 0, "{rule:?} saves nothing");
    }
}
