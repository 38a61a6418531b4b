//! Tests of the allocator: chosen devices, written allocations and errors.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use dra_alloc::explain::Detail;
use dra_alloc::selector::SelectorCache;
use dra_alloc::{
    AllocateError, AllocatedState, Allocator, Budget, Classes, DeviceId, Gate, Limit, NodeError, Outcome, Profile,
    Stopped,
};
use dra_attrs::Component;
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{Value, from_value, json, to_value};

use crate::cluster::{Cluster, claim, class, device, node, pool, request, with};

const GPU: &str = "gpu.example.com";

fn gpus(count: usize) -> Cluster {
    let devices: Vec<Value> = (0..count).map(|index| json!({"name": format!("gpu-{index}")})).collect();
    Cluster::new([pool(GPU, "node-1", json!(devices))])
}

fn some(count: u64) -> Vec<ResourceClaim> {
    vec![claim("claim", json!([request("r", "gpu", json!({"count": count}))]), json!([]))]
}

/// Returns a claim for more devices than a cluster has, with a selector that may fail, so that devices are looked at.
fn too_many(count: u64) -> Vec<ResourceClaim> {
    let selectors = json!([{"cel": {"expression": "size(device.driver) > 0"}}]);
    vec![claim("claim", json!([request("r", "gpu", json!({"count": count, "selectors": selectors}))]), json!([]))]
}

fn error(cluster: &Cluster, claims: &[ResourceClaim]) -> String {
    cluster.try_allocate(&node("node-1"), claims).unwrap_err().to_string()
}

/// Allocates `claims` and returns the only result as JSON.
fn result(cluster: &Cluster, claims: &[ResourceClaim]) -> Value {
    let Outcome::Allocated(results) = cluster.allocate("node-1", claims) else { panic!("not allocated") };
    assert_eq!(results.len(), claims.len());
    to_value(&results[0]).unwrap()
}

#[test]
fn a_budget_ends_a_search() {
    let (cluster, claims) = (gpus(20), too_many(21));
    let (inventory, selectors) = (cluster.inventory(), SelectorCache::default());
    let classes = Classes::new(cluster.classes.iter().cloned());
    let allocator = Allocator::new(Profile::Kep, &inventory, &classes).with_selector_cache(&selectors);
    let verdict = |budget| allocator.allocate(&cluster.state, &node("node-1"), &claims, budget).unwrap();
    let stopped = verdict(Budget::work(5));
    assert_eq!(stopped.work, 5);
    let Outcome::Stopped(stopped) = stopped.outcome else { panic!("{:?}", stopped.outcome) };
    assert_eq!((stopped.limit, &*stopped.claim, &*stopped.request), (Limit::Node, "default/claim", "r"));
    assert!(matches!(verdict(Budget::work(0)).outcome, Outcome::Stopped(_)));

    let questions = AtomicUsize::new(0);
    let stop = || {
        questions.fetch_add(1, Relaxed);
        true
    };
    let stopped = verdict(Budget::default().with_stop(&stop));
    assert_eq!((stopped.work, questions.load(Relaxed)), (0, 1));
    assert!(matches!(stopped.outcome, Outcome::Stopped(Stopped { limit: Limit::Caller, .. })));
    assert_eq!(verdict(Budget::default().with_stop(&|| false)).outcome, Outcome::Unsatisfied);
}

#[test]
fn a_node_with_too_few_devices_needs_no_search() {
    let verdict = |count, claims: Vec<ResourceClaim>| {
        let cluster = gpus(count);
        let (inventory, classes) = (cluster.inventory(), Classes::new(cluster.classes.iter().cloned()));
        let allocator = Allocator::new(Profile::Kep, &inventory, &classes);
        let verdict = allocator.allocate(&cluster.state, &node("node-1"), &claims, Budget::default()).unwrap();
        (verdict.outcome, verdict.steps)
    };
    assert_eq!(verdict(20, some(21)), (Outcome::Unsatisfied, 1));
    let (outcome, steps) = verdict(20, too_many(21));
    assert!(outcome == Outcome::Unsatisfied && steps > 20, "{steps}");
}

#[test]
fn a_long_evaluation_of_a_selector_is_stopped() {
    let (mut cluster, claims) = (gpus(1), some(1));
    let long = "lists.range(200).all(a, lists.range(200).all(b, a + b >= 0))";
    let selectors = json!([{"cel": {"expression": long}}]);
    cluster.classes = vec![from_value(json!({"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}})).unwrap()];
    let (inventory, selectors) = (cluster.inventory(), SelectorCache::default());
    let classes = Classes::new(cluster.classes.iter().cloned());
    let allocator = Allocator::new(Profile::Kep, &inventory, &classes).with_selector_cache(&selectors);
    let questions = AtomicUsize::new(0);
    let asked = |limit: usize| {
        questions.store(0, Relaxed);
        let stop = || questions.fetch_add(1, Relaxed) >= limit;
        let verdict = allocator.allocate(&cluster.state, &node("node-1"), &claims, Budget::default().with_stop(&stop));
        (verdict.unwrap().outcome, questions.load(Relaxed))
    };
    let (outcome, all) = asked(usize::MAX);
    assert!(matches!(outcome, Outcome::Allocated(_)));
    // The search has a few steps; all the other questions come from the evaluation.
    assert!(all > 20, "{all}");
    for limit in [1, all / 2, all - 1] {
        let (outcome, questions) = asked(limit);
        assert!(matches!(outcome, Outcome::Stopped(Stopped { limit: Limit::Caller, .. })), "{outcome:?}");
        assert_eq!(questions, limit + 1);
    }
}

#[test]
fn a_look_at_the_devices_that_are_left_is_work_too() {
    let (cluster, claims) = (gpus(20), too_many(21));
    let (inventory, selectors) = (cluster.inventory(), SelectorCache::default());
    let classes = Classes::new(cluster.classes.iter().cloned());
    let allocator = Allocator::new(Profile::Kep, &inventory, &classes).with_selector_cache(&selectors);
    let steps = |budget| allocator.allocate(&cluster.state, &node("node-1"), &claims, budget).unwrap();
    let whole = steps(Budget::default()).work;
    // The search reaches the last device and backtracks a few times; then each device is visited again.
    assert!(whole >= 20 + 20, "{whole}");
    for limit in 0..whole {
        let stopped = steps(Budget::work(limit));
        assert_eq!(stopped.work, limit);
        assert!(matches!(stopped.outcome, Outcome::Stopped(_)));
    }
    assert_eq!(steps(Budget::work(whole)).outcome, Outcome::Unsatisfied);
}

#[test]
fn the_function_that_stops_a_search_stops_its_explanation() {
    let (cluster, claims) = (gpus(20), too_many(21));
    let (inventory, selectors) = (cluster.inventory(), SelectorCache::default());
    let classes = Classes::new(cluster.classes.iter().cloned());
    let allocator = Allocator::new(Profile::Kep, &inventory, &classes).with_selector_cache(&selectors);
    let asked = AtomicUsize::new(0);
    let questions = |detail, limit| {
        asked.store(0, Relaxed);
        let stop = || asked.fetch_add(1, Relaxed) + 1 > limit;
        let verdict = allocator.clone().with_explanation(detail).allocate(
            &cluster.state,
            &node("node-1"),
            &claims,
            Budget::default().with_stop(&stop),
        );
        (verdict.unwrap().outcome, asked.load(Relaxed))
    };
    let (plain, without) = questions(Detail::Off, usize::MAX);
    let (explained, with) = questions(Detail::Full, usize::MAX);
    assert_eq!((&plain, &explained), (&Outcome::Unsatisfied, &Outcome::Unsatisfied));
    assert!(with > without + 4, "{with} {without}");
    // If the stop comes at the end of the search, every what-if search of the explanation ends at once.
    let (outcome, asked) = questions(Detail::Full, without);
    assert_eq!(outcome, Outcome::Unsatisfied);
    assert!(asked < with, "{asked} {with}");
}

#[test]
fn no_claims_are_allocated_at_once() {
    assert_eq!(gpus(1).allocate("node-1", &[]), Outcome::Allocated(vec![]));
    let without_requests = from_value(json!({"metadata": {"name": "empty"}})).unwrap();
    let Outcome::Allocated(results) = gpus(1).allocate("node-1", &[without_requests]) else { panic!() };
    assert_eq!(to_value(&results).unwrap(), json!([{"devices": {}}]));
}

#[test]
fn a_mode_or_count_left_out_is_one_device() {
    assert_eq!(
        gpus(3).devices("node-1", &[claim("c", json!([request("r", "gpu", json!({}))]), json!([]))]).unwrap(),
        ["r gpu-0"]
    );
    let exact = request("r", "gpu", json!({"allocationMode": "ExactCount"}));
    assert_eq!(gpus(3).devices("node-1", &[claim("c", json!([exact]), json!([]))]).unwrap(), ["r gpu-0"]);
}

#[test]
fn a_claim_has_at_most_32_devices() {
    assert_eq!(gpus(40).devices("node-1", &some(32)).unwrap().len(), 32);
    assert_eq!(
        error(&gpus(40), &some(33)),
        "claim default/claim: number of requested devices 33 exceeds the claim limit of 32"
    );
    let all = claim("claim", json!([request("r", "gpu", json!({"allocationMode": "All"}))]), json!([]));
    assert!(error(&gpus(33), &[all]).contains("33 exceeds"));
    // The alternative with fewer devices is within the limit and is chosen.
    let list = json!([{"name": "r", "firstAvailable": [
        {"name": "many", "deviceClassName": "gpu", "count": 33}, {"name": "few", "deviceClassName": "gpu"},
    ]}]);
    assert_eq!(gpus(40).devices("node-1", &[claim("c", list, json!([]))]).unwrap(), ["r/few gpu-0"]);
}

#[test]
fn requests_that_can_not_be_used() {
    let rows = [
        (json!({"name": "r"}), "missing device class name (unsupported request type?)"),
        (request("r", "none", json!({})), "could not retrieve device class none: not found"),
        (request("r", "gpu", json!({"allocationMode": "Some"})), "unsupported count mode Some"),
        (
            request("r", "gpu", json!({"selectors": [{}]})),
            "selector #0: CEL expression empty (unsupported selector type?)",
        ),
        (
            request("r", "gpu", json!({"capacity": {"requests": {"memory": "much"}}})),
            r#"capacity.requests[memory]: quantity "much": not a number with an optional suffix"#,
        ),
    ];
    for (request, reason) in rows {
        let text = error(&gpus(1), &[claim("claim", json!([request]), json!([]))]);
        assert_eq!(text, format!("claim default/claim, request r: {reason}"));
    }
    let empty = claim("claim", json!([request("r", "gpu", json!({}))]), json!([{"requests": ["r"]}]));
    assert_eq!(
        error(&gpus(1), &[empty]),
        "claim default/claim, constraint #0: empty constraint (unsupported constraint type?)"
    );
}

#[test]
fn gates_that_are_off_refuse_requests() {
    let list = json!({"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]});
    let derived = json!([{"name": "d/a", "expression": "1"}]);
    let rows = [
        (Gate::PrioritizedList, list, "DRAPrioritizedList"),
        (Gate::ConsumableCapacity, request("r", "gpu", json!({"capacity": {}})), "DRAConsumableCapacity"),
        (Gate::AdminAccess, request("r", "gpu", json!({"adminAccess": false})), "admin access"),
        (Gate::DerivedAttributes, request("r", "gpu", json!({"derivedAttributes": derived})), "derived attributes"),
    ];
    for (feature, request, text) in rows {
        let mut cluster = gpus(1);
        let claims = [claim("claim", json!([request]), json!([]))];
        assert!(cluster.devices("node-1", &claims).is_some(), "{feature:?}");
        cluster.gates = cluster.gates.without(feature);
        assert!(error(&cluster, &claims).contains(text), "{feature:?}");
    }
}

#[test]
fn fields_of_slices_that_can_not_be_used_are_named() {
    let capacity = json!([{"name": "gpu-0", "capacity": {"memory": {"value": "80Gx"}}}]);
    let counters = json!([{"name": "card", "counters": {"memory": {"value": "?"}}}]);
    let consumer =
        json!([{"name": "part", "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": "1"}}}]}]);
    let mut sets = with(pool(GPU, "node-1", json!([])), "sharedCounters", counters);
    sets["metadata"]["name"] = json!("sets");
    let mut parts = pool(GPU, "node-1", consumer);
    for slice in [&mut sets, &mut parts] {
        slice["spec"]["pool"]["resourceSliceCount"] = json!(2);
    }
    let term = json!({"matchExpressions": [{"key": "zone", "operator": "Near"}]});
    let mut odd = with(pool(GPU, "node-1", json!([])), "nodeSelector", json!({"nodeSelectorTerms": [term]}));
    odd["spec"].as_object_mut().unwrap().remove("nodeName");
    let rows = [
        (vec![pool(GPU, "node-1", capacity)], "node-1-gpu.example.com: spec.devices[gpu-0].capacity[memory].value: "),
        (vec![sets, parts], "sets: spec.sharedCounters[0].counters[memory].value: "),
        (
            vec![odd],
            "node-1-gpu.example.com: spec.nodeSelector: nodeSelector.nodeSelectorTerms[0].matchExpressions[0]: ",
        ),
    ];
    for (slices, text) in rows {
        let text = format!("ResourceSlice {text}");
        let mut cluster = Cluster::new(slices);
        // Without selectors: evaluating one would report the first problem earlier.
        cluster.classes = vec![from_value(json!({"metadata": {"name": "gpu"}, "spec": {}})).unwrap()];
        let error = error(&cluster, &some(1));
        assert!(error.starts_with(&text), "{text}\n{error}");
    }
}

#[test]
fn all_devices_need_all_pools() {
    let all = [claim("claim", json!([request("r", "gpu", json!({"allocationMode": "All"}))]), json!([]))];
    let mut unrelated = pool("nic.example.com", "node-1", json!([]));
    unrelated["spec"]["pool"]["resourceSliceCount"] = json!(2);
    let mut slices = vec![pool(GPU, "node-1", json!([{"name": "gpu-0"}])), unrelated];
    let outcome = Cluster::new(slices.clone()).allocate("node-1", &all);
    let Outcome::FailedOnNode(failure) = outcome else { panic!("{outcome:?}") };
    assert!(failure.to_string().ends_with("resource pool nic.example.com/node-1 is currently being updated"));

    slices[1] = pool("nic.example.com", "node-1", json!([{"name": "nic"}, {"name": "nic"}]));
    let cluster = Cluster::new(slices);
    let outcome = cluster.allocate("node-1", &all);
    assert!(matches!(outcome, Outcome::FailedOnNode(NodeError::PoolInvalid { .. })), "{outcome:?}");
    assert!(cluster.devices("node-1", &some(1)).is_some(), "other requests do without the pool");
    let outcome = cluster.allocate("node-1", &some(2));
    let Outcome::FailedOnNode(failure) = outcome else { panic!("{outcome:?}") };
    let text = "invalid resource pools were encountered: nic.example.com/node-1: duplicate device name nic";
    assert_eq!(failure.to_string(), text);
}

#[test]
fn a_constraint_that_refuses_one_of_all_devices_is_an_error() {
    let devices = json!([
        {"name": "a", "attributes": {"model": {"string": "x"}}}, {"name": "b", "attributes": {"model": {"string": "y"}}},
    ]);
    let cluster = Cluster::new([pool(GPU, "node-1", devices)]);
    let all = request("r", "gpu", json!({"allocationMode": "All"}));
    let claims = [claim("claim", json!([all]), json!([{"matchAttribute": "gpu.example.com/model"}]))];
    let error = cluster.try_allocate(&node("node-1"), &claims).unwrap_err();
    assert!(matches!(error, AllocateError::ConstraintOnAll { .. }), "{error}");
}

#[test]
fn configuration_of_classes_comes_first_and_names_its_requests() {
    let opaque = |text: &str| json!({"driver": GPU, "parameters": {"from": text}});
    let mut cluster = gpus(4);
    let mut own = to_value(class(GPU)).unwrap();
    own["spec"]["config"] = json!([{"opaque": opaque("class")}]);
    cluster.classes = vec![from_value(own).unwrap()];
    let requests = json!([request("a", "gpu", json!({})), {"name": "b", "firstAvailable": [
        {"name": "two", "deviceClassName": "gpu", "count": 9}, {"name": "one", "deviceClassName": "gpu"},
    ]}, request("c", "gpu", json!({}))]);
    let configs = [
        (json!(["a"]), json!(["a"])),
        (json!(["b/one"]), json!(["b/one"])),
        (json!(["b/two"]), Value::Null),
        (json!(["a", "b", "c"]), json!([])),
        (json!([]), json!([])),
    ];
    let mut with_config = to_value(claim("claim", requests, json!([]))).unwrap();
    let entries = configs.iter().map(|(names, _)| json!({"requests": names, "opaque": opaque("claim")}));
    with_config["spec"]["devices"]["config"] = entries.collect();
    let result = result(&cluster, &[from_value(with_config).unwrap()]);
    let config = result["devices"]["config"].as_array().unwrap();
    // All requests have the class: its entry applies to all of them and lists no request names.
    assert_eq!(config[0], json!({"source": "FromClass", "opaque": opaque("class")}));
    let kept: Vec<_> = configs.iter().map(|(_, kept)| kept).filter(|kept| !kept.is_null()).collect();
    assert_eq!(config.len(), 1 + kept.len());
    for (entry, names) in config[1..].iter().zip(kept) {
        let expected = if names == &json!([]) { Value::Null } else { names.clone() };
        assert_eq!((&entry["source"], &entry["requests"]), (&json!("FromClaim"), &expected));
    }
}

#[test]
fn node_selectors_of_all_devices_hold_together() {
    let near = |key: &str, values: Value| json!({"key": key, "operator": "In", "values": values});
    let network = |driver: &str, requirements: Value| {
        let mut slice = pool(driver, "network", json!([{"name": "fabric"}]));
        slice["spec"].as_object_mut().unwrap().remove("nodeName");
        with(slice, "nodeSelector", json!({"nodeSelectorTerms": [{"matchExpressions": requirements}]}))
    };
    let (name, twice) = (near("name", json!(["node-1", "node-9"])), near("name", json!(["node-9", "node-1"])));
    let other = json!({"key": "name", "operator": "Exists"});
    let slices = [network("a.example.com", json!([name])), network("b.example.com", json!([twice, other]))];
    let cluster = Cluster::new(slices.clone());
    let both = claim("c", json!([request("a", "a", json!({})), request("b", "b", json!({}))]), json!([]));
    let term = json!({"matchExpressions": [name, other]});
    assert_eq!(result(&cluster, &[both])["nodeSelector"], json!({"nodeSelectorTerms": [term]}));

    // A device with a node name restricts the allocation to the node.
    let local = Cluster::new(slices.into_iter().chain([pool(GPU, "node-1", json!([{"name": "gpu"}]))]));
    let all = ["a", "b", "gpu"].map(|class| request(class, class, json!({})));
    let field = json!({"key": "metadata.name", "operator": "In", "values": ["node-1"]});
    let expected = json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
    assert_eq!(result(&local, &[claim("c", json!(all), json!([]))])["nodeSelector"], expected);

    // Devices for all nodes add no node selector.
    let mut anywhere = pool(GPU, "network", json!([{"name": "gpu"}]));
    anywhere["spec"].as_object_mut().unwrap().remove("nodeName");
    let anywhere = Cluster::new([with(anywhere, "allNodes", json!(true))]);
    assert_eq!(result(&anywhere, &some(1))["nodeSelector"], Value::Null);
}

#[test]
fn several_terms_can_not_be_merged() {
    let term = |name: &str| json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]});
    let terms = json!({"nodeSelectorTerms": [term("node-1"), term("node-2")]});
    let mut slice = with(pool(GPU, "network", json!([{"name": "gpu"}])), "nodeSelector", terms);
    slice["spec"].as_object_mut().unwrap().remove("nodeName");
    let text = error(&Cluster::new([slice]), &some(1));
    assert!(text.ends_with("unsupported ResourceSlice.NodeSelector with 2 terms"), "{text}");
}

#[test]
fn admin_access_shares_devices_with_everybody_but_the_same_claim() {
    let admin = request("r", "gpu", json!({"adminAccess": true}));
    let mut cluster = gpus(1);
    let held = cluster.allocate_in_turn("node-1", &some(1));
    assert!(held[0].is_some());
    let one = claim("admin", json!([admin]), json!([]));
    let result = result(&cluster, std::slice::from_ref(&one));
    assert_eq!(result["devices"]["results"][0]["adminAccess"], json!(true));
    let twice = request("r", "gpu", json!({"adminAccess": true, "count": 2}));
    assert_eq!(cluster.devices("node-1", &[claim("admin", json!([twice]), json!([]))]), None);
    assert_eq!(cluster.devices("node-1", &[one.clone(), one]).unwrap(), ["r gpu-0", "r gpu-0"]);
}

#[test]
fn a_selector_error_names_selector_and_device() {
    let wrong =
        json!({"selectors": [{"cel": {"expression": "true"}}, {"cel": {"expression": "device.attributes['x'].y"}}]});
    let text = error(&gpus(1), &[claim("claim", json!([request("r", "gpu", wrong)]), json!([]))]);
    let place = "claim default/claim: selector #1 on device gpu.example.com/node-1/gpu-0: CEL runtime error: ";
    assert!(text.starts_with(place), "{text}");
    assert!(text.contains("no such key: y"), "{text}");
    let broken = json!({"selectors": [{"cel": {"expression": "device."}}]});
    let claims = [claim("claim", json!([request("r", "gpu", broken)]), json!([]))];
    assert!(
        error(&gpus(1), &claims)
            .starts_with("claim default/claim: selector #0: CEL compile error: compilation failed: ")
    );
    // A selector that is evaluated on no device is not compiled.
    assert_eq!(gpus(0).allocate("node-1", &claims), Outcome::Unsatisfied);
}

#[test]
fn each_node_gets_the_answer_that_it_gets_alone() {
    // All nodes see the devices, and the selector has no direct form, so that it needs the interpreter.
    let fabric = |index: usize| {
        let mut device = json!({"name": format!("port-{index}"), "attributes": {"speed": {"int": 100 * index}}});
        let (field, value) = if index.is_multiple_of(2) {
            ("allNodes", json!(true))
        } else {
            ("nodeName", json!(format!("node-{index}")))
        };
        device[field] = value;
        device
    };
    let mut slice = pool(GPU, "fabric", (0..6).map(fabric).collect());
    slice["spec"].as_object_mut().unwrap().remove("nodeName");
    let cluster = Cluster::new([with(slice, "perDeviceNodeSelection", json!(true))]);
    let selector =
        json!({"selectors": [{"cel": {"expression": "device.attributes['gpu.example.com'].speed / 100 > 0"}}]});
    let claims = [claim("claim", json!([request("r", "gpu", selector)]), json!([]))];
    let (inventory, selectors) = (cluster.inventory(), SelectorCache::default());
    let classes = Classes::new(cluster.classes.iter().cloned());
    let allocator = Allocator::new(Component::new(Profile::Kep, cluster.gates), &inventory, &classes)
        .with_selector_cache(&selectors);
    let nodes: Vec<_> = (0..6).map(|index| node(&format!("node-{index}"))).collect();
    let together: Vec<_> =
        allocator.allocate_each(&cluster.state, &nodes, &claims, Budget::default()).map(Result::unwrap).collect();
    let alone = nodes.iter().map(|node| allocator.allocate(&cluster.state, node, &claims, Budget::default()).unwrap());
    assert_eq!(together, alone.collect::<Vec<_>>());
    assert_eq!(cluster.devices("node-1", &claims).unwrap(), ["r port-1"]);
    assert_eq!(cluster.devices("node-2", &claims).unwrap(), ["r port-2"]);
}

#[test]
fn lists_are_packed_with_what_each_takes_in_view() {
    // Each of 16 devices has four consecutive values of a ring of 16 values, so that at most four devices have distinct
    // values.
    let ring = |first: i64| json!({"ints": (first..first + 4).map(|value| value % 16).collect::<Vec<_>>()});
    let devices: Vec<Value> = (0..16).map(|index| device(&format!("gpu-{index}"), "a", ring(index))).collect();
    let cluster = Cluster::new([pool(GPU, "node-1", json!(devices))]);
    let distinct = json!([{"distinctAttribute": format!("{GPU}/a")}]);
    let claims = |count: u64| [claim("claim", json!([request("r", "gpu", json!({"count": count}))]), distinct.clone())];
    assert_eq!(cluster.devices("node-1", &claims(4)).unwrap(), ["r gpu-0", "r gpu-4", "r gpu-8", "r gpu-12"]);
    let verdict = cluster.try_allocate(&node("node-1"), &claims(5)).unwrap();
    assert_eq!(verdict.outcome, Outcome::Unsatisfied);
    assert!(verdict.steps < 200, "20 values are wanted of 16: {}", verdict.steps);
}

// The next tests backtrack often enough to start pruning, which must not cut off the branch with the solution.

#[test]
fn requests_that_ask_the_same_look_at_a_device_once() {
    let cluster = gpus(64);
    let requests: Vec<Value> = (0..32).map(|number| request(&format!("r-{number}"), "gpu", json!({}))).collect();
    let verdict = cluster.try_allocate(&node("node-1"), &[claim("claim", json!(requests), json!([]))]).unwrap();
    assert!(matches!(verdict.outcome, Outcome::Allocated(_)));
    assert!(verdict.steps <= 100, "32 devices of 64, one a request: {}", verdict.steps);
}

/// Request `b` asks the same as `a`, but no constraint holds for it: it gets the device that `a` gave back.
#[test]
fn a_device_that_a_request_gave_back_is_looked_at_again() {
    let devices: Vec<Value> = ["x", "y", "y"]
        .iter()
        .zip(0..)
        .map(|(rack, n)| device(&format!("gpu-{n}"), "rack", json!({"string": rack})))
        .collect();
    let cluster = Cluster::new([pool(GPU, "node-1", json!(devices))]);
    let requests: Vec<Value> = ["a", "b", "c"].iter().map(|name| request(name, "gpu", json!({}))).collect();
    let constraints = json!([{"requests": ["a", "c"], "matchAttribute": format!("{GPU}/rack")}]);
    let claims = [claim("claim", json!(requests), constraints)];
    assert_eq!(cluster.devices("node-1", &claims).unwrap(), ["a gpu-1", "b gpu-0", "c gpu-2"]);
}

#[test]
fn a_device_that_was_shared_is_not_like_one_that_is_free() {
    let part = |name: &str| json!({"name": name, "capacity": {"memory": {"value": "10"}}});
    let mut cluster = Cluster::new([pool(GPU, "node-1", json!([part("gpu-0"), part("gpu-1"), part("gpu-2")]))]);
    let used = DeviceId::new(GPU, "node-1", "gpu-2");
    cluster.state.share(&used, "share");
    cluster.state.consume(&used, "memory", "5".parse().unwrap());
    let wants = |name: &str, amount: &str| request(name, "gpu", json!({"capacity": {"requests": {"memory": amount}}}));
    let claims = [claim("claim", json!([wants("a", "5"), wants("b", "10"), wants("c", "10")]), json!([]))];
    assert_eq!(cluster.devices("node-1", &claims).unwrap(), ["a gpu-2", "b gpu-0", "c gpu-1"]);
}

#[test]
fn without_lists_the_first_device_of_a_constraint_is_special() {
    let mut devices: Vec<Value> =
        (0..4).map(|index| device(&format!("gpu-{index}"), "a", json!({"string": "x"}))).collect();
    devices.push(device("gpu-4", "a", json!({"strings": ["q"]})));
    let mut cluster = Cluster::new([pool(GPU, "node-1", json!(devices))]);
    cluster.gates = cluster.gates.without(Gate::ListTypeAttributes);
    let requests = json!([request("a", "gpu", json!({})), request("b", "gpu", json!({}))]);
    let claims = [claim("claim", requests, json!([{"distinctAttribute": format!("{GPU}/a")}]))];
    assert_eq!(cluster.devices("node-1", &claims).unwrap(), ["a gpu-4", "b gpu-0"]);
}

#[test]
fn a_device_that_gives_back_makes_room_for_another() {
    let takes = |name: &str, kind: &str, amount: &str| {
        let mut device = device(name, "kind", json!({"string": kind}));
        device["consumesCounters"] = json!([{"counterSet": "s", "counters": {"x": {"value": amount}}}]);
        device
    };
    let plain = ["gpu-0", "gpu-1", "gpu-2", "gpu-3"].map(|name| takes(name, "small", "0"));
    let devices: Vec<Value> =
        plain.into_iter().chain([takes("gpu-4", "small", "-1"), takes("gpu-5", "large", "2")]).collect();
    let mut slices = [pool(GPU, "node-1", json!(devices)), pool(GPU, "node-1", json!(null))];
    slices[1]["metadata"]["name"] = json!("counters");
    slices[1]["spec"]["sharedCounters"] = json!([{"name": "s", "counters": {"x": {"value": "1"}}}]);
    for slice in &mut slices {
        slice["spec"]["pool"]["resourceSliceCount"] = json!(2);
    }
    let wants = |name: &str| {
        let expression = format!("device.attributes['{GPU}'].kind == '{name}'");
        request(name, "gpu", json!({"selectors": [{"cel": {"expression": expression}}]}))
    };
    let claims = [claim("claim", json!([wants("small"), wants("large")]), json!([]))];
    assert_eq!(Cluster::new(slices).devices("node-1", &claims).unwrap(), ["small gpu-4", "large gpu-5"]);
}

#[test]
fn a_budget_can_bound_a_whole_call() {
    let cluster = gpus_on_nodes(4);
    let (inventory, classes) = (cluster.inventory(), Classes::new(cluster.classes.iter().cloned()));
    let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
    let nodes: Vec<_> = (0..4).map(|index| node(&format!("node-{index}"))).collect();
    let claims = [claim("claim", json!([request("r", "gpu", json!({}))]), json!([]))];
    let each = |budget| -> Vec<_> {
        allocator.allocate_each(&cluster.state, &nodes, &claims, budget).map(Result::unwrap).collect()
    };
    let free = each(Budget::default());
    assert!(free.iter().all(|verdict| matches!(verdict.outcome, Outcome::Allocated(_))));
    let total: u64 = free.iter().map(|verdict| verdict.work).sum();
    let bounded = each(Budget::default().with_work_per_call(total - 1));
    assert_eq!(bounded[..3], free[..3]);
    assert!(matches!(bounded[3].outcome, Outcome::Stopped(Stopped { limit: Limit::Call, .. })));
    assert_eq!(bounded.iter().map(|verdict| verdict.work).sum::<u64>(), total - 1);
    assert_eq!(each(Budget::default().with_work_per_call(total)), free);
}

fn gpus_on_nodes(nodes: usize) -> Cluster {
    Cluster::new((0..nodes).map(|index| pool(GPU, &format!("node-{index}"), json!([{"name": "gpu-0"}]))))
}

/// Returns the claim with an allocation of the device of `node_name`, usable on that node only.
fn allocated(mut claim: ResourceClaim, node_name: &str) -> ResourceClaim {
    claim.status = Some(
        from_value(json!({"allocation": {
            "devices": {"results": [
                {"request": "r", "driver": GPU, "pool": node_name, "device": "gpu-0", "adminAccess": null},
            ]},
            "nodeSelector": {"nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]},
            ]},
        }}))
        .unwrap(),
    );
    claim
}

#[test]
fn an_allocated_claim_keeps_its_allocation() {
    let mut cluster = gpus_on_nodes(2);
    let ask = |name: &str| claim(name, json!([request("r", "gpu", json!({}))]), json!([]));
    let held = allocated(ask("held"), "node-0");
    cluster.state = AllocatedState::from_claims([&held], Component::new(Profile::V1_37, cluster.gates)).unwrap();
    let stored = held.status.as_ref().unwrap().allocation.clone().unwrap();

    let alone = cluster.try_allocate(&node("node-0"), std::slice::from_ref(&held)).unwrap();
    assert_eq!((alone.outcome, alone.steps), (Outcome::Allocated(vec![stored.clone()]), 0), "no device is examined");
    assert_eq!(cluster.allocate("node-1", std::slice::from_ref(&held)), Outcome::Unsatisfied);

    // With its device gone from the slices, and its class too, the claim is still as it is.
    let bare = Cluster { slices: Vec::new(), classes: Vec::new(), ..cluster.clone() };
    assert_eq!(bare.allocate("node-0", std::slice::from_ref(&held)), Outcome::Allocated(vec![stored]));

    // Without a node selector the allocation is usable everywhere, and results keep the order of the claims.
    let mut anywhere = held;
    anywhere.status.as_mut().unwrap().allocation.as_mut().unwrap().node_selector = None;
    let free = anywhere.status.as_ref().unwrap().allocation.clone().unwrap();
    let claims = [ask("first"), anywhere, ask("last")];
    assert_eq!(cluster.allocate("node-1", &claims), Outcome::Unsatisfied, "one device for two pending claims");
    let Outcome::Allocated(results) = cluster.allocate("node-1", &claims[..2]) else { panic!("not allocated") };
    assert_eq!(results[1], free);
    assert_eq!(crate::cluster::devices(&results[..1]), ["r gpu-0"]);
}

#[test]
fn allocated_elsewhere_is_said_beside_the_reasons_of_pending_claims() {
    let cluster = gpus_on_nodes(2);
    let ask = |name: &str, count: i64| claim(name, json!([request("r", "gpu", json!({"count": count}))]), json!([]));
    let (inventory, classes) = (cluster.inventory(), Classes::new(cluster.classes.iter().cloned()));
    let allocator = Allocator::new(Profile::V1_37, &inventory, &classes).with_explanation(Detail::Summary);
    let explained = |claims: &[ResourceClaim]| {
        let verdict = allocator.allocate(&cluster.state, &node("node-1"), claims, Budget::default()).unwrap();
        assert_eq!(verdict.outcome, Outcome::Unsatisfied);
        verdict.explanation.unwrap().to_string()
    };
    let held = allocated(ask("held", 1), "node-0");
    let elsewhere = "claim default/held is allocated already, for other nodes";
    assert_eq!(explained(std::slice::from_ref(&held)), elsewhere);
    assert_eq!(explained(&[held.clone(), ask("fits", 1)]), elsewhere);
    let both = explained(&[held.clone(), ask("too-many", 2)]);
    assert!(
        both.contains(elsewhere) && both.contains("1 of 1 device of class gpu can be used, 2 are wanted"),
        "{both}"
    );

    let mut odd = held;
    let selector = json!({"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "Near"}]}]});
    odd.status.as_mut().unwrap().allocation.as_mut().unwrap().node_selector = from_value(selector).unwrap();
    let error = allocator.allocate(&cluster.state, &node("node-1"), &[odd], Budget::default()).unwrap_err();
    assert!(error.to_string().starts_with("claim default/held: status.allocation.nodeSelector.nodeSelectorTerms[0]"));
}
