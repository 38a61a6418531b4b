//! Tests of the answers of the releases before Kubernetes 1.37, where they differ.

use std::collections::BTreeSet;

use dra_alloc::selector::SelectorCache;
use dra_alloc::{AllocateError, Allocator, Budget, Classes, Gate, GateSet, NodeError, Outcome};
use dra_attrs::{Component, Profile};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};
use serde_json::{Value, from_value, json};

use crate::cluster::{Cluster, NUMA, ROOT, claim, device, node, on_numa, pool, request, with};

/// A further release needs an answer in each row.
const RELEASES: [Profile; 4] = Profile::RELEASES;

/// Returns the answer of each release with all gates that it knows: the devices, or the kind of failure.
fn answers(cluster: &Cluster, claims: &[ResourceClaim]) -> [String; 4] {
    RELEASES.map(|profile| answer(cluster, claims, profile, known(profile)))
}

fn known(profile: Profile) -> GateSet {
    GateSet::NONE.with_values(Gate::ALL.iter().map(|gate| (*gate, gate.stage(profile).exists())))
}

fn answer(cluster: &Cluster, claims: &[ResourceClaim], profile: Profile, gates: GateSet) -> String {
    let cluster = Cluster { gates, profile, ..cluster.clone() };
    match cluster.try_allocate(&node("n"), claims) {
        Ok(verdict) => match verdict.outcome {
            Outcome::Allocated(results) => crate::cluster::devices(&results).join(", "),
            Outcome::Unsatisfied => "none".to_owned(),
            Outcome::FailedOnNode(_) => "node".to_owned(),
            other => panic!("{other:?}"),
        },
        Err(AllocateError::SchedulerStops { .. }) => "crash".to_owned(),
        Err(error) => format!("error: {error}"),
    }
}

/// Returns the results of a release with all gates that it knows.
fn results(cluster: &Cluster, claim: &ResourceClaim, profile: Profile) -> AllocationResult {
    let cluster = Cluster { profile, gates: known(profile), ..cluster.clone() };
    match cluster.allocate("n", std::slice::from_ref(claim)) {
        Outcome::Allocated(mut results) => results.remove(0),
        other => panic!("{other:?}"),
    }
}

fn plain(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

fn all(name: &str, class: &str) -> Value {
    request(name, class, json!({"allocationMode": "All"}))
}

fn one(fields: Value) -> ResourceClaim {
    claim("c", json!([request("r", "gpu", fields)]), json!([]))
}

#[test]
fn results_have_the_tolerations_and_names_that_the_release_writes() {
    let cluster = Cluster::new([pool("gpu.x", "n", plain(&["a"]))]);
    let mut asked = serde_json::to_value(one(json!({"tolerations": [{"operator": "Exists"}]}))).unwrap();
    let config = json!([{"requests": ["r"], "opaque": {"driver": "gpu.x", "parameters": {}}}]);
    asked["spec"]["devices"]["config"] = config;
    let asked: ResourceClaim = from_value(asked).unwrap();
    let written = RELEASES.map(|profile| {
        let devices = results(&cluster, &asked, profile).devices.unwrap();
        let (result, config) = (&devices.results.unwrap()[0], &devices.config.unwrap()[0]);
        (result.tolerations.is_some(), config.requests.is_some())
    });
    assert_eq!(written, [(false, true), (true, true), (true, true), (true, false)]);
}

#[test]
fn a_taint_without_a_known_effect_prevents_in_the_first_release_alone() {
    let devices = json!([{"name": "a", "taints": [{"key": "k", "effect": "None"}]}]);
    let cluster = Cluster::new([pool("gpu.x", "n", devices)]);
    assert_eq!(answers(&cluster, &[one(json!({}))]), ["none", "r a", "r a", "r a"]);
}

#[test]
fn a_list_ends_the_attempt_while_its_gate_is_off_even_if_no_selector_reads_it() {
    let cluster = Cluster::new([pool("gpu.x", "n", json!([on_numa("a", &[0, 1])]))]);
    let off = |profile| answer(&cluster, &[one(json!({}))], profile, GateSet::of(profile));
    assert!(off(Profile::V1_36).contains("attribute resource.kubernetes.io/numaNode: unsupported attribute value"));
    assert_eq!(off(Profile::V1_37), "r a");
    assert_eq!(answers(&cluster, &[one(json!({}))])[2], "r a", "the gate is on");
}

#[test]
fn the_gate_of_lists_reaches_constraints_in_the_last_release_alone() {
    let cluster = Cluster::new([pool("gpu.x", "n", json!([on_numa("a", &[0, 1]), on_numa("b", &[1, 2])]))]);
    let asked = claim("c", json!([request("r", "gpu", json!({"count": 2}))]), json!([{"matchAttribute": NUMA}]));
    assert_eq!(answers(&cluster, &[asked])[2..], ["none", "r a, r b"]);
}

#[test]
fn a_pool_of_several_nodes_is_incomplete_to_the_first_release_which_uses_its_devices() {
    let halves = ["n", "other"].map(|node| {
        let whole = json!({"name": "shared", "generation": 1, "resourceSliceCount": 3});
        with(pool("gpu.x", node, plain(&[node])), "pool", whole)
    });
    let cluster = Cluster::new(halves);
    assert_eq!(answers(&cluster, &[one(json!({}))]), ["r n", "none", "none", "none"]);
    let of_all = answers(&cluster, &[claim("c", json!([all("r", "gpu")]), json!([]))]);
    assert!(of_all[..3].iter().all(|answer| answer.ends_with("is currently being updated")), "{of_all:?}");
    assert_eq!(of_all[3], "node");
}

#[test]
fn an_invalid_pool_ends_the_attempt_in_the_first_release() {
    let cluster = Cluster::new([pool("gpu.x", "n", plain(&["a", "a"]))]);
    let [first, others @ ..] = answers(&cluster, &[one(json!({}))]);
    assert!(first.starts_with("error: invalid resource pools"), "{first}");
    assert_eq!(others, ["node", "node", "node"]);
    let cluster = Cluster { profile: Profile::V1_34, ..cluster };
    let error = cluster.try_allocate(&node("n"), &[one(json!({}))]).unwrap_err();
    assert!(matches!(error, AllocateError::Node { source } if matches!(*source, NodeError::InvalidPools { .. })));
}

#[test]
fn distinct_attributes_are_unknown_to_the_variants_for_few_gates() {
    let cluster = Cluster::new([pool("gpu.x", "n", json!([device("a", "model", json!({"string": "m"}))]))]);
    let constraints = json!([{"distinctAttribute": "gpu.x/model"}]);
    let asked = claim("c", json!([request("r", "gpu", json!({}))]), constraints);
    let with_gates = |gates: &[Gate]| {
        let gates = GateSet::NONE.with_values(gates.iter().map(|gate| (*gate, true)));
        RELEASES.map(|profile| answer(&cluster, std::slice::from_ref(&asked), profile, gates) == "r a")
    };
    assert_eq!(with_gates(&[]), [false, false, false, true]);
    assert_eq!(with_gates(&[Gate::AdminAccess]), [false, false, false, true]);
    assert_eq!(with_gates(&[Gate::ResourceClaimDeviceStatus]), [true, false, false, true]);
    assert_eq!(with_gates(&[Gate::ConsumableCapacity]), [true; 4]);
}

#[test]
fn distinct_attributes_of_a_request_were_compared_with_the_last_device_alone() {
    let model = |name: &str, value: &str| device(name, "model", json!({"string": value}));
    let cluster = Cluster::new([pool("gpu.x", "n", json!([model("a", "m"), model("b", "o"), model("c", "m")]))]);
    let constraints = json!([{"distinctAttribute": "gpu.x/model"}]);
    let asked = claim("c", json!([request("r", "gpu", json!({"count": 3}))]), constraints);
    assert_eq!(answers(&cluster, &[asked]), ["r a, r b, r c", "r a, r b, r c", "r a, r b, r c", "none"]);
}

#[test]
fn shares_of_one_device_and_full_devices() {
    let shared = |name: &str, value: &str| json!({"name": name, "allowMultipleAllocations": true, "capacity": {"memory": {"value": value}}});
    let of = |amount: &str, fields: Value| {
        let mut fields = fields;
        fields["capacity"] = json!({"requests": {"memory": amount}});
        one(fields)
    };
    let cluster = Cluster::new([pool("gpu.x", "n", json!([shared("a", "8")]))]);
    let twice = of("4", json!({"count": 2}));
    assert_eq!(answers(&cluster, &[twice]), ["r a, r a", "r a, r a", "none", "none"]);
    let mut cluster = Cluster::new([pool("gpu.x", "n", json!([shared("a", "8"), shared("b", "16")]))]);
    let before = claim("before", json!([request("q", "gpu", json!({}))]), json!([]));
    assert_eq!(cluster.allocate_in_turn("n", &[before])[0].as_deref().unwrap(), ["q a"]);
    let rest = of("4", json!({"allocationMode": "All"}));
    assert_eq!(answers(&cluster, &[rest]), ["none", "r b", "r b", "none"]);
}

#[test]
fn an_alternative_for_all_devices_after_the_first_is_lost_in_small_variants() {
    let cluster = Cluster::new([pool("gpu.x", "n", plain(&["a", "b"]))]);
    let list = json!([
        {"name": "many", "deviceClassName": "gpu", "count": 3},
        {"name": "all", "deviceClassName": "gpu", "allocationMode": "All"},
    ]);
    let asked = [claim("c", json!([{"name": "r", "firstAvailable": list}]), json!([]))];
    let gates = GateSet::NONE.with(Gate::PrioritizedList);
    let found = RELEASES.map(|profile| answer(&cluster, &asked, profile, gates));
    assert_eq!(found, ["none", "none", "r/all a, r/all b", "r/all a, r/all b"]);
}

/// A device with the counters that it consumes, all of the pool's set.
fn counting(name: &str, root: &str) -> Value {
    let consumed = json!([{"counterSet": "s", "counters": {"memory": {"value": "8"}}}]);
    json!({"name": name, "attributes": {ROOT: {"string": root}}, "consumesCounters": consumed})
}

fn partitions(devices: Value) -> Cluster {
    let whole = json!({"name": "n", "generation": 1, "resourceSliceCount": 2});
    let sets = json!([{"name": "s", "counters": {"memory": {"value": "8"}}}]);
    let mut counters = with(pool("gpu.x", "n", json!([])), "sharedCounters", sets);
    counters["metadata"]["name"] = json!("counters");
    Cluster::new([pool("gpu.x", "n", devices), counters].map(|slice| with(slice, "pool", whole.clone())))
}

#[test]
fn a_request_for_all_devices_with_counters_stops_one_release() {
    let asked = [claim("c", json!([all("r", "gpu")]), json!([]))];
    assert_eq!(answers(&partitions(json!([counting("a", "1")])), &asked), ["r a", "crash", "r a", "r a"]);
}

#[test]
fn an_update_mends_a_defect_and_leaves_the_gates() {
    let asked = [one(json!({"allocationMode": "All"}))];
    let cluster = partitions(json!([counting("a", "1")]));
    let scheduler = Component::new(Profile::V1_35, known(Profile::V1_35));
    let answer = |scheduler: Component| answer(&cluster, &asked, scheduler.profile(), scheduler.gates());
    assert_eq!((answer(scheduler), answer(scheduler.mended())), ("crash".to_owned(), "r a".to_owned()));
}

#[test]
fn devices_beside_their_counters_are_read_in_the_first_release_alone() {
    let devices = json!([counting("a", "1"), counting("b", "1")]);
    let sets = json!([{"name": "s", "counters": {"memory": {"value": "8"}}}]);
    let cluster = Cluster::new([with(pool("gpu.x", "n", devices), "sharedCounters", sets)]);
    assert_eq!(answers(&cluster, &[one(json!({}))]), ["r a", "none", "none", "none"]);
    // The set is enough for one of them.
    assert_eq!(answers(&cluster, &[one(json!({"count": 2}))])[0], "none");
}

#[test]
fn counters_of_a_refused_device_stayed_reserved() {
    let tainted = json!([{"key": "k", "effect": "NoSchedule"}]);
    let mut first = counting("a", "1");
    first["taints"] = tainted;
    let cluster = partitions(json!([first, counting("b", "2")]));
    assert_eq!(answers(&cluster, &[one(json!({}))]), ["none", "none", "r b", "r b"]);
}

#[test]
fn a_stored_selector_compiles_as_in_its_release() {
    let cluster = Cluster::new([pool("gpu.x", "n", json!([device("a", "index", json!({"int": 1}))]))]);
    let selected = |expression: &str| one(json!({"selectors": [{"cel": {"expression": expression}}]}));
    let ranges = selected("lists.range(3).exists(i, i == device.attributes['gpu.x'].index)");
    assert_eq!(answers(&cluster, &[ranges]), ["r a"; 4]);
    let lists = answers(&cluster, &[selected("device.attributes['gpu.x'].index.includes(1)")]);
    assert!(lists[..2].iter().all(|answer| answer.contains("undeclared reference to 'includes'")), "{lists:?}");
    assert_eq!(lists[2..], ["r a", "r a"]);
}

#[test]
fn one_index_answers_each_release_as_a_new_one_does() {
    let indexed = |name: &str, index: i64| device(name, "index", json!({"int": index}));
    let numbered = pool("gpu.x", "n", json!([indexed("a", 1), indexed("b", 2)]));
    let listed = pool("gpu.x", "n", json!([indexed("a", 2), on_numa("b", &[0, 1])]));
    let numa = format!("device.attributes['resource.kubernetes.io'].{}", NUMA.rsplit('/').next().unwrap());
    let expressions = [
        "device.attributes['gpu.x'].index == 2".to_owned(),
        "device.attributes['gpu.x'].index.includes(2)".to_owned(),
        format!("has({numa})"),
        format!("{numa}.includes(1)"),
    ];
    for slice in [numbered, listed] {
        let cluster = Cluster::new([slice]);
        let (inventory, selectors) = (cluster.inventory(), SelectorCache::default());
        let classes = Classes::new(cluster.classes.iter().cloned());
        let mut seen = BTreeSet::new();
        for expression in expressions.iter().cycle().take(3 * expressions.len()) {
            let asked = [one(json!({"selectors": [{"cel": {"expression": expression}}]}))];
            for (profile, gates) in RELEASES.iter().flat_map(|of| [(*of, known(*of)), (*of, GateSet::of(*of))]) {
                let allocator = Allocator::new(Component::new(profile, gates), &inventory, &classes);
                let allocator = allocator.with_selector_cache(&selectors);
                let again = allocator.allocate(&cluster.state, &node("n"), &asked, Budget::default());
                let fresh = Cluster { gates, profile, ..cluster.clone() }.try_allocate(&node("n"), &asked);
                assert_eq!(format!("{again:?}"), format!("{fresh:?}"), "{expression} in {profile:?}");
                seen.insert(format!("{again:?}"));
            }
        }
        assert!(seen.len() > 4, "{seen:?}");
    }
}
