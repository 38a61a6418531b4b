//! Budgets: what counts as work, and that a call ends by it. Counts decide, never time.

use dra_alloc::explain::{Cause, Detail};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Allocator, Budget, Classes, Inventory, Limit, Outcome, Stopped, Verdict};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{Value, from_value, json};

use crate::cluster::{Cluster, claim, device, node, pool, request, with as with_field};

const GPU: &str = "gpu.example.com";
/// False for each device. An evaluation costs 81,000, and its work is more than that.
const DEAR: &str = "lists.range(100).all(i, lists.range(100).all(j, i + j < 300)) && device.attributes['gpu.example.com'].model == 'a'";
/// Least work of one evaluation: an eighth of its cost.
const OF_DEAR: u64 = 10_000;

fn ask(selectors: &[&str]) -> Vec<ResourceClaim> {
    let selectors: Vec<Value> = selectors.iter().map(|text| json!({"cel": {"expression": text}})).collect();
    vec![claim("claim", json!([request("r", "gpu", json!({"selectors": selectors}))]), json!([]))]
}

fn models(count: usize) -> Value {
    let model = |index| device(&format!("gpu-{index}"), "model", json!({"string": format!("m{}", index % 5)}));
    (0..count).map(model).collect()
}

/// A cluster of nodes with `count` devices each.
fn cluster(nodes: usize, count: usize) -> (Cluster, Vec<Node>) {
    let name = |number| format!("node-{number}");
    let slices = (0..nodes).map(|number| pool(GPU, &name(number), models(count)));
    (Cluster::new(slices), (0..nodes).map(|number| node(&name(number))).collect())
}

/// Asks about each node in one call.
fn each(
    cluster: &Cluster,
    nodes: &[Node],
    claims: &[ResourceClaim],
    detail: Detail,
    budget: Budget<'_>,
) -> Vec<Verdict> {
    let (inventory, classes) = (cluster.inventory(), Classes::new(cluster.classes.iter().cloned()));
    let selectors = SelectorCache::default();
    with(&inventory, &classes, &selectors, cluster, detail, |allocator| {
        allocator.allocate_each(&cluster.state, nodes, claims, budget).map(Result::unwrap).collect()
    })
}

fn with<T>(
    inventory: &Inventory,
    classes: &Classes,
    selectors: &SelectorCache,
    cluster: &Cluster,
    detail: Detail,
    ask: impl FnOnce(&Allocator<'_>) -> T,
) -> T {
    let scheduler = Component::new(cluster.profile, cluster.gates);
    let allocator = Allocator::new(scheduler, inventory, classes).with_selector_cache(selectors);
    ask(&allocator.with_explanation(detail))
}

fn total(verdicts: &[Verdict]) -> u64 {
    verdicts.iter().map(|verdict| verdict.work).sum()
}

/// Selectors, the number of devices, the steps of the search, and the least and the most work.
const SELECTORS: &[(&[&str], usize, u64, [u64; 2])] = &[
    // Direct forms are a part of the look at a device.
    (&["device.attributes['gpu.example.com'].model == 'a'"], 20, 21, [21, 21]),
    (&["device.attributes['gpu.example.com'].model != 'a'", "device.driver == 'x'"], 20, 21, [21, 21]),
    // Many of them count by their comparisons.
    (&["device.driver != 'x'"; 32], 20, 5, [6, 20]),
    // Cheap evaluations are, too.
    (&["device.attributes['gpu.example.com'].model.size() == 0"], 20, 21, [21, 21]),
    (&["lists.range(100).exists(i, i > 200)"], 20, 21, [20 * 40, 20 * 400]),
    (&[DEAR], 20, 21, [20 * OF_DEAR, 20 * 3 * OF_DEAR]),
    (&["device.attributes['gpu.example.com'].model != 'a'", DEAR], 5, 6, [5 * OF_DEAR, 5 * 3 * OF_DEAR]),
    // The cost of many cheap selectors adds up.
    (&["device.attributes['gpu.example.com'].model.size() == 2"; 32], 20, 5, [16, 80]),
];

#[test]
fn what_evaluations_take_is_work() {
    for (selectors, devices, steps, [least, most]) in SELECTORS {
        let (cluster, nodes) = cluster(1, *devices);
        let verdicts = each(&cluster, &nodes, &ask(selectors), Detail::Off, Budget::work(u64::MAX));
        assert_eq!(verdicts[0].steps, *steps, "{selectors:?}");
        assert!((*least..=*most).contains(&verdicts[0].work), "{selectors:?}: {}", verdicts[0].work);
    }
}

#[test]
fn evaluations_of_derived_attributes_are_work() {
    let verdict = |expression: &str| {
        let (cluster, nodes) = cluster(1, 4);
        let derived = json!({"count": 2, "derivedAttributes": [{"name": "example.com/x", "expression": expression}]});
        let constraints = json!([{"requests": ["r"], "distinctAttribute": "example.com/x"}]);
        let claims = [claim("claim", json!([request("r", "gpu", derived)]), constraints)];
        each(&cluster, &nodes, &claims, Detail::Off, Budget::work(u64::MAX)).remove(0)
    };
    let (cheap, dear) = (verdict("1"), verdict("lists.range(2000).filter(i, i > 5000).size()"));
    assert_eq!((&dear.outcome, dear.steps), (&Outcome::Unsatisfied, cheap.steps));
    assert!(dear.work >= cheap.work + 4 * 500, "{} {}", dear.work, cheap.work);
}

#[test]
fn requests_for_all_devices_are_counted_likewise() {
    let (cluster, nodes) = cluster(1, 20);
    let selectors = json!([{"cel": {"expression": DEAR}}]);
    let all = request("r", "gpu", json!({"allocationMode": "All", "selectors": selectors}));
    let claims = [claim("claim", json!([all]), json!([]))];
    let verdicts = each(&cluster, &nodes, &claims, Detail::Off, Budget::work(u64::MAX));
    assert!(verdicts[0].work >= 20 * OF_DEAR, "{}", verdicts[0].work);
    assert_eq!(verdicts[0].steps, 21);
}

#[test]
fn an_evaluation_ends_with_the_budget() {
    let (cluster, nodes) = cluster(1, 20);
    for limit in [1, 100, OF_DEAR, 5 * OF_DEAR] {
        let verdict = each(&cluster, &nodes, &ask(&[DEAR]), Detail::Off, Budget::work(limit)).remove(0);
        assert_eq!(verdict.work, limit);
        let Outcome::Stopped(Stopped { limit: Limit::Node, request, .. }) = verdict.outcome else {
            panic!("{:?}", verdict.outcome)
        };
        assert_eq!(request, "r");
    }
    // The stop function is not taken for the limit, nor the limit for it.
    let stop = || true;
    let budget = Budget::work(100).with_stop(&stop);
    let verdict = each(&cluster, &nodes, &ask(&[DEAR]), Detail::Off, budget).remove(0);
    assert!(matches!(verdict.outcome, Outcome::Stopped(Stopped { limit: Limit::Caller, .. })));
}

#[test]
fn the_default_budget_ends_a_call_over_many_nodes() {
    let (cluster, nodes) = cluster(200, 8);
    for detail in [Detail::Off, Detail::Full] {
        let verdicts = each(&cluster, &nodes, &ask(&[DEAR]), detail, Budget::default());
        let is_stopped = |verdict: &Verdict| matches!(verdict.outcome, Outcome::Stopped(_));
        let answered = verdicts.iter().take_while(|verdict| !is_stopped(verdict)).count();
        assert!((1..100).contains(&answered), "{answered}");
        assert!(verdicts[answered..].iter().all(is_stopped));
        let last = &verdicts[verdicts.len() - 1];
        assert!(matches!(last.outcome, Outcome::Stopped(Stopped { limit: Limit::Call, .. })));
        assert_eq!((total(&verdicts), last.work), (Budget::default().limit(), 0));
    }
    // The budget of kube-scheduler's `Filter` is for each node.
    let verdicts = each(&cluster, &nodes, &ask(&[DEAR]), Detail::Off, Budget::filter());
    assert!(verdicts.iter().all(|verdict| verdict.outcome == Outcome::Unsatisfied));
}

#[test]
fn explanations_are_work() {
    let (cluster, nodes) = cluster(20, 8);
    let claims = ask(&["device.attributes['gpu.example.com'].model.size() == 7"]);
    let asked = |detail, budget| each(&cluster, &nodes, &claims, detail, budget);
    let (plain, explained) = (asked(Detail::Off, Budget::default()), asked(Detail::Full, Budget::default()));
    for (plain, explained) in plain.iter().zip(&explained) {
        assert_eq!((plain.steps, &plain.outcome), (explained.steps, &explained.outcome));
        // At least a look at each device for the reasons.
        assert!(explained.work >= plain.work + 8, "{} {}", explained.work, plain.work);
    }
    let most = total(&explained) - 1;
    let bounded = asked(Detail::Full, Budget::default().with_work_per_call(most));
    assert!(total(&bounded) <= most);
    assert_eq!(bounded[..19], explained[..19]);

    // What is left after the search is not enough for the explanation.
    let bounded = asked(Detail::Full, Budget::default().with_work_per_call(plain[0].work + 1));
    assert_eq!(bounded[0].outcome, Outcome::Unsatisfied);
    let reasons = &bounded[0].explanation.as_ref().unwrap().reasons;
    let [Cause::Stopped { stopped }] = &*reasons.iter().map(|reason| &reason.cause).collect::<Vec<_>>() else {
        panic!("{reasons:?}")
    };
    assert_eq!((stopped.limit, bounded[0].work), (Limit::Call, plain[0].work + 1));
    assert!(matches!(bounded[1].outcome, Outcome::Stopped(Stopped { limit: Limit::Call, .. })));
}

/// Asks about each node alone, with new indexes.
fn alone(cluster: &Cluster, nodes: &[Node], claims: &[ResourceClaim]) -> Vec<Verdict> {
    let ask = |node| each(cluster, std::slice::from_ref(node), claims, Detail::Full, Budget::work(u64::MAX)).remove(0);
    nodes.iter().map(ask).collect()
}

#[test]
fn work_does_not_depend_on_what_was_asked_before() {
    let (mut cluster, nodes) = cluster(6, 8);
    // Devices that all nodes see, and evaluations of which some are dear and shared by equal values.
    let shared = pool(GPU, "shared", models(9));
    let shared = with_field(with_field(shared, "nodeName", Value::Null), "allNodes", json!(true));
    cluster.slices.extend(Cluster::new([shared]).slices);
    let claims = ask(&[
        "lists.range(50).all(i, i < 300) && device.attributes['gpu.example.com'].model.size() > 1",
        "device.attributes['gpu.example.com'].model.endsWith('9')",
    ]);
    let expected = alone(&cluster, &nodes, &claims);
    assert!(expected.iter().all(|verdict| verdict.work > 17 * 10 && verdict.explanation.is_some()));
    let (inventory, classes) = (cluster.inventory(), Classes::new(cluster.classes.iter().cloned()));
    let selectors = SelectorCache::default();
    for _ in 0..2 {
        let verdicts: Vec<Verdict> = with(&inventory, &classes, &selectors, &cluster, Detail::Full, |allocator| {
            let budget = Budget::work(u64::MAX);
            allocator.allocate_each(&cluster.state, &nodes, &claims, budget).map(Result::unwrap).collect()
        });
        assert_eq!(verdicts, expected);
    }
    let backwards: Vec<Node> = nodes.iter().rev().cloned().collect();
    let mut verdicts = each(&cluster, &backwards, &claims, Detail::Full, Budget::work(u64::MAX));
    verdicts.reverse();
    assert_eq!(verdicts, expected);
}

/// Many comparisons are a unit of work, and a budget can end between them.
#[test]
fn an_answer_that_a_pool_keeps_is_the_same_work_within_each_budget() {
    let (cluster, nodes) = cluster(1, 20);
    let classes = Classes::new(cluster.classes.iter().cloned());
    let claims = ask(&[
        &["device.attributes['gpu.example.com'].model != 'a'"; 31][..],
        &["device.attributes['gpu.example.com'].model == 'm4'"],
    ]
    .concat());
    let (inventory, selectors) = (cluster.inventory(), SelectorCache::default());
    let within = |inventory: &Inventory, work| {
        with(inventory, &classes, &selectors, &cluster, Detail::Off, |allocator| {
            allocator.allocate(&cluster.state, &nodes[0], &claims, Budget::work(work)).unwrap()
        })
    };
    let once: Vec<Verdict> = (0..60).map(|work| within(&cluster.inventory(), work)).collect();
    for _ in 0..2 {
        assert_eq!((0..60).map(|work| within(&inventory, work)).collect::<Vec<Verdict>>(), once);
    }
    assert!(once.iter().any(|verdict| matches!(verdict.outcome, Outcome::Stopped(_))));
    assert!(matches!(once[59].outcome, Outcome::Allocated(_)), "{:?}", once[59]);
}

/// Returns the work on a node that sees some pools beside its own.
fn work_beside(pools: impl IntoIterator<Item = Value>) -> u64 {
    let (mut cluster, nodes) = cluster(1, 1);
    cluster.slices.extend(Cluster::new(pools).slices);
    each(&cluster, &nodes, &ask(&[]), Detail::Off, Budget::default())[0].work
}

#[test]
fn finding_the_pools_of_a_node_is_work_where_there_are_many() {
    let shared = |number: usize, field: &str, value: Value| {
        let slice = pool(GPU, &format!("p{number}"), models(1));
        with_field(with_field(slice, "nodeName", Value::Null), field, value)
    };
    let requirement = json!({"key": "zone", "operator": "NotIn", "values": ["a"]});
    let elsewhere = json!({"key": "name", "operator": "NotIn", "values": ["node-0"]});
    let selector = json!({"nodeSelectorTerms": [{"matchExpressions": [requirement, elsewhere]}]});
    let few = work_beside([]);
    let seen = work_beside((0..300).map(|number| shared(number, "allNodes", json!(true))));
    assert!(seen >= few + 250, "{seen} {few}");
    let compared = work_beside((0..300).map(|number| shared(number, "nodeSelector", selector.clone())));
    assert!(compared >= few + 100, "{compared} {few}");
}

#[test]
fn what_is_copied_or_computed_for_a_device_is_work_where_it_is_much() {
    let work = |capacities: usize, numbers: usize| {
        let amounts: serde_json::Map<String, Value> =
            (0..capacities).map(|number| (format!("c{number}"), json!({"value": "1"}))).collect();
        let device = json!({"name": "gpu-0", "allowMultipleAllocations": true, "capacity": amounts});
        let cluster = Cluster::new([pool(GPU, "node-0", json!([device]))]);
        let mut claims = ask(&[]);
        let parameters: Vec<usize> = (0..numbers).collect();
        let config = json!([{"opaque": {"driver": GPU, "parameters": {"numbers": parameters}}}]);
        claims[0].spec.as_mut().unwrap().devices.as_mut().unwrap().config = from_value(config).unwrap();
        let verdict = each(&cluster, &[node("node-0")], &claims, Detail::Off, Budget::default()).remove(0);
        assert!(matches!(verdict.outcome, Outcome::Allocated(_)));
        verdict.work
    };
    assert!(work(32, 1) >= work(1, 1) + 31);
    assert!(work(1, 4_000) >= work(1, 1) + 900);
}
