//! Steps of searches that have to know when to stop. Steps do not depend on the machine.

use dra_alloc::{Gate, GateSet, Outcome};
use dra_attrs::Profile;
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NUMA, ROOT, claim, node, pool, request};

const GPU: &str = "gpu.example.com";
const NIC: &str = "nic.example.com";

/// Claims over `n` devices, and the most steps that the search may need at 128 devices.
struct Shape {
    name: &'static str,
    sizes: &'static [u64],
    most_steps: u64,
    make: fn(u64) -> (Vec<Value>, Vec<ResourceClaim>),
}

const SIZES: &[u64] = &[16, 32, 64, 128];

const NEVER: &[Shape] = &[
    Shape { name: "a distinct attribute that NICs lack", sizes: SIZES, most_steps: 2_000, make: lacking },
    Shape { name: "the second claim fails", sizes: SIZES, most_steps: 1_000, make: second_claim },
    Shape { name: "the claim of another class fails", sizes: SIZES, most_steps: 2_000, make: other_class },
    Shape { name: "seven over six", sizes: SIZES, most_steps: 2_000, make: seven_over_six },
    Shape { name: "three and three over five", sizes: SIZES, most_steps: 1_000, make: pairs_over_five },
    Shape { name: "all devices beside too many of a NUMA node", sizes: SIZES, most_steps: 2_000, make: with_all },
    Shape { name: "claims in racks", sizes: SIZES, most_steps: 20_000, make: rack_claims },
    Shape { name: "requests in racks", sizes: SIZES, most_steps: 20_000, make: rack_requests },
    Shape { name: "claims of two sizes in racks", sizes: SIZES, most_steps: 20_000, make: racks_of_two_sizes },
    Shape { name: "one share more", sizes: SIZES, most_steps: 20_000, make: one_share_more },
    Shape { name: "limit of results", sizes: &[72, 128], most_steps: 2_000, make: |n| around_32(n, &[20]) },
];

#[test]
fn claims_that_cannot_be_met_end_in_few_steps() {
    for shape in NEVER {
        for (n, gates) in shape.sizes.iter().flat_map(|n| gates().map(|gates| (*n, gates))) {
            let (steps, outcome) = search(shape, n, gates);
            assert_eq!(outcome, Outcome::Unsatisfied, "{}, {n} devices", shape.name);
            assert!(steps <= shape.most_steps, "{}, {n} devices: {steps} steps", shape.name);
        }
    }
}

#[test]
fn a_late_solution_around_the_limit_of_results_is_found() {
    let shape = Shape { name: "fits", sizes: &[72, 128], most_steps: 2_000, make: |n| around_32(n, &[]) };
    for (n, gates) in shape.sizes.iter().flat_map(|n| gates().map(|gates| (*n, gates))) {
        let (steps, outcome) = search(&shape, n, gates);
        let Outcome::Allocated(results) = outcome else { panic!("{outcome:?}") };
        let devices = results[0].devices.as_ref().unwrap().results.as_ref().unwrap();
        assert_eq!((devices.len(), &*devices[0].request, &*devices[10].request), (13, "r0/a1", "r1/a0"));
        assert!(steps <= shape.most_steps, "{n} devices: {steps} steps");
    }
}

/// Four GPUs of one root in a pool of 1,024, four of a root, of which each root has one held but the last.
#[test]
fn a_match_in_a_large_pool_is_found_in_few_steps() {
    let roots = gpus(1_024, |number| json!({ROOT: {"string": format!("pci0000:{:02x}", number / 4)}}));
    let mut cluster = Cluster::new(roots);
    for root in 0..255 {
        cluster.state.hold(&format!("{GPU}/node-1/gpu-{}", root * 4 + root % 4).parse().unwrap());
    }
    let constraint = json!([{"requests": ["r"], "matchAttribute": ROOT}]);
    let verdict = cluster
        .try_allocate(&node("node-1"), &[claim("claim", json!([request("r", "gpu", json!({"count": 4}))]), constraint)])
        .unwrap();
    assert!(matches!(verdict.outcome, Outcome::Allocated(_)));
    assert!(verdict.steps <= 120, "the pool is looked at once: {} steps", verdict.steps);
}

/// Four alternatives on a node whose devices are all held.
#[test]
fn a_full_node_is_known_at_once() {
    let alternatives: Vec<Value> = (1..=4).map(|count| asked("gpu", count, None)).collect();
    let requests = json!([first_available("r", &alternatives)]);
    let mut cluster = Cluster::new(gpus(8, |_| json!({})));
    for index in 0..8 {
        cluster.state.hold(&format!("{GPU}/node-1/gpu-{index}").parse().unwrap());
    }
    let verdict = cluster.try_allocate(&node("node-1"), &[claim("claim", requests, json!([]))]).unwrap();
    assert_eq!(verdict.outcome, Outcome::Unsatisfied);
    assert!(verdict.steps <= 10, "{} steps", verdict.steps);
}

/// The gate for lists, on and off.
fn gates() -> [GateSet; 2] {
    [GateSet::all(), GateSet::all().without(Gate::ListTypeAttributes)]
}

fn search(shape: &Shape, n: u64, gates: GateSet) -> (u64, Outcome) {
    let (slices, claims) = (shape.make)(n);
    let cluster = Cluster { gates, profile: Profile::V1_37, ..Cluster::new(slices) };
    let verdict = cluster.try_allocate(&node("node-1"), &claims).unwrap();
    (verdict.steps, verdict.outcome)
}

fn devices(prefix: &str, count: u64, attributes: impl Fn(u64) -> Value) -> Value {
    let device = |index| json!({"name": format!("{prefix}-{index}"), "attributes": attributes(index)});
    (0..count).map(device).collect()
}

fn gpus(count: u64, attributes: impl Fn(u64) -> Value) -> Vec<Value> {
    vec![pool(GPU, "node-1", devices("gpu", count, attributes))]
}

fn gpus_and_nics(gpus: (u64, impl Fn(u64) -> Value), nics: (u64, impl Fn(u64) -> Value)) -> Vec<Value> {
    let gpus = pool(GPU, "node-1", devices("gpu", gpus.0, gpus.1));
    vec![gpus, pool(NIC, "node-1", devices("nic", nics.0, nics.1))]
}

fn some(name: &str, class: &str, count: u64) -> Value {
    request(name, class, json!({"count": count}))
}

fn on_root(index: u64) -> Value {
    json!({ROOT: {"string": format!("pci{}", index / 2)}})
}

fn in_rack(index: u64) -> Value {
    json!({"rack": {"int": index / 8}})
}

fn lacking(n: u64) -> (Vec<Value>, Vec<ResourceClaim>) {
    let uuid = |index| json!({"uuid": {"string": format!("GPU-{index}")}});
    let requests = json!([some("gpus", "gpu", 4), some("nic", "nic", 1)]);
    let distinct = json!([{"distinctAttribute": format!("{GPU}/uuid")}]);
    (gpus_and_nics((n, uuid), (n / 2, |_| json!({}))), vec![claim("claim", requests, distinct)])
}

fn three_on_a_root() -> ResourceClaim {
    claim("second", json!([some("r", "gpu", 3)]), json!([{"matchAttribute": ROOT}]))
}

fn second_claim(n: u64) -> (Vec<Value>, Vec<ResourceClaim>) {
    (gpus(n, on_root), vec![claim("first", json!([some("r", "gpu", 2)]), json!([])), three_on_a_root()])
}

fn other_class(n: u64) -> (Vec<Value>, Vec<ResourceClaim>) {
    let first = claim("first", json!([some("r", "nic", 2)]), json!([]));
    (gpus_and_nics((n, on_root), (n / 2, on_root)), vec![first, three_on_a_root()])
}

fn seven_over_six(n: u64) -> (Vec<Value>, Vec<ResourceClaim>) {
    let but = |kind: u64| {
        let expression = format!("device.attributes['{GPU}'].kind != {kind}");
        request(&format!("r{kind}"), "gpu", json!({"selectors": [{"cel": {"expression": expression}}]}))
    };
    let requests: Vec<Value> = (0..6).map(but).chain([some("any", "gpu", 1)]).collect();
    let distinct = json!([{"distinctAttribute": format!("{GPU}/kind")}]);
    (gpus(n, |index| json!({"kind": {"int": index % 6}})), vec![claim("claim", json!(requests), distinct)])
}

fn pairs_over_five(n: u64) -> (Vec<Value>, Vec<ResourceClaim>) {
    let distinct = json!([{"distinctAttribute": format!("{GPU}/side")}]);
    let requests = json!([some("left", "gpu", 3), some("right", "gpu", 3)]);
    (gpus(n, |index| json!({"side": {"int": index % 5}})), vec![claim("claim", requests, distinct)])
}

fn with_all(n: u64) -> (Vec<Value>, Vec<ResourceClaim>) {
    let size = (n / 2).min(16);
    let numa = move |index: u64| json!({NUMA: {"int": index / size}});
    let requests = json!([some("gpus", "gpu", size + 1), request("nics", "nic", json!({"allocationMode": "All"}))]);
    let slices = gpus_and_nics((n, numa), (2, |_| json!({NUMA: {"int": 0}})));
    (slices, vec![claim("claim", requests, json!([{"matchAttribute": NUMA}]))])
}

fn of_one_rack(name: &str, count: u64) -> ResourceClaim {
    claim(name, json!([some("r", "gpu", count)]), json!([{"matchAttribute": format!("{GPU}/rack")}]))
}

fn rack_claims(n: u64) -> (Vec<Value>, Vec<ResourceClaim>) {
    (gpus(n, in_rack), (0..=n / 8).map(|index| of_one_rack(&format!("claim-{index}"), 5)).collect())
}

/// A claim of 5, 2 of 3 each, for every two racks of 8, and 5 at the end: a rack serves 5 and 3, and one serves 3 and 3.
fn racks_of_two_sizes(n: u64) -> (Vec<Value>, Vec<ResourceClaim>) {
    let sizes = (0..n / 16).flat_map(|_| [5, 3, 5]).chain([5, 5]);
    (
        gpus(n, in_rack),
        sizes.zip(0..).map(|(size, index): (u64, u64)| of_one_rack(&format!("claim-{index}"), size)).collect(),
    )
}

fn rack_requests(n: u64) -> (Vec<Value>, Vec<ResourceClaim>) {
    let all: Vec<String> = (0..=n / 4).map(|index| format!("r{index}")).collect();
    let part = |names: &[String]| {
        let requests: Vec<Value> = names.iter().map(|name| some(name, "gpu", 3)).collect();
        let constraint = |name| json!({"matchAttribute": format!("{GPU}/rack"), "requests": [name]});
        claim(&names[0], json!(requests), names.iter().map(constraint).collect())
    };
    (gpus(n, in_rack), all.chunks(9).map(part).collect())
}

fn one_share_more(n: u64) -> (Vec<Value>, Vec<ResourceClaim>) {
    let nic = |index: u64| {
        json!({
            "name": format!("nic-{index}"), "allowMultipleAllocations": true, "capacity": {"bandwidth": {"value": "10"}},
            "attributes": {"slot": {"int": index}},
        })
    };
    let nics: Value = (0..n).map(nic).collect();
    let all: Vec<String> = (0..=n).map(|index| format!("r{index}")).collect();
    let share = |name: &String| request(name, "nic", json!({"capacity": {"requests": {"bandwidth": "6"}}}));
    let part = |names: &[String]| claim(&names[0], names.iter().map(share).collect(), json!([]));
    (vec![pool(NIC, "node-1", nics)], all.chunks(32).map(part).collect())
}

/// An alternative: a number of devices of a kind, or all of it.
fn asked(class: &str, count: u64, kind: Option<&str>) -> Value {
    let expression = kind.map(|kind| format!("device.attributes['{GPU}'].kind == '{kind}'"));
    let selectors: Vec<Value> = expression.iter().map(|text| json!({"cel": {"expression": text}})).collect();
    json!({"deviceClassName": class, "count": count, "selectors": selectors})
}

fn first_available(name: &str, alternatives: &[Value]) -> Value {
    let named = alternatives.iter().enumerate().map(|(index, alternative)| {
        let mut named = alternative.clone();
        named["name"] = json!(format!("a{index}"));
        named
    });
    json!({"name": name, "firstAvailable": named.collect::<Vec<_>>()})
}

/// 32 of kind b leave no room for any alternative of the second request, of which one finds nothing.
fn around_32(n: u64, rest: &[u64]) -> (Vec<Value>, Vec<ResourceClaim>) {
    let attributes = |index: u64| {
        let kind = if index.is_multiple_of(2) { "a" } else { "b" };
        json!({"kind": {"string": kind}, "uuid": {"string": format!("GPU-{index}")}})
    };
    let of = |kind, count| asked("gpu", count, Some(kind));
    let mut all = of("c", 1);
    all.as_object_mut().unwrap().remove("count");
    all["allocationMode"] = json!("All");
    let mut requests = vec![
        first_available("r0", &[of("b", 32), of("b", 10)]),
        first_available("r1", &[of("a", 3), all, of("a", 10)]),
    ];
    for (count, index) in rest.iter().zip(2..) {
        requests.push(json!({"name": format!("r{index}"), "exactly": of("a", *count)}));
    }
    let distinct = json!([{"distinctAttribute": format!("{GPU}/uuid"), "requests": ["r0"]}]);
    (gpus(n, attributes), vec![claim("claim", json!(requests), distinct)])
}
