//! Tests of rare inputs of the allocator, and of the order in which problems are reported.

use dra_alloc::{
    AllocateError, AllocatedState, Allocator, Budget, Classes, Gate, Index, Inventory, NodeError, Outcome, Profile,
    RequestError,
};
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{Value, json, to_value};

use crate::cluster::{Cluster, claim, class, device, node, pool, request, with};

const GPU: &str = "gpu.example.com";

fn one() -> Vec<ResourceClaim> {
    vec![claim("claim", json!([request("r", "gpu", json!({}))]), json!([]))]
}

#[test]
fn a_request_for_no_device_needs_no_value() {
    let devices = [1, 2, 3, 4, 5, 5].iter().enumerate();
    let devices = devices.map(|(index, value)| device(&format!("gpu-{index}"), "y", json!({"int": value})));
    let cluster = Cluster::new([pool(GPU, "node-1", devices.collect())]);
    let requests = json!([request("b", "gpu", json!({"count": 2})), request("a", "gpu", json!({"count": 0}))]);
    let on = |name: &str, request: &str| json!({"matchAttribute": format!("{GPU}/{name}"), "requests": [request]});
    let claims = [claim("claim", requests, json!([on("y", "b"), on("x", "a")]))];
    assert_eq!(cluster.devices("node-1", &claims).unwrap(), ["b gpu-4", "b gpu-5"]);
}

#[test]
fn the_first_of_the_newest_slices_says_how_many_there_are() {
    let part = |name: &str, generation: u64, count: u64| {
        let mut slice = pool(GPU, "node-1", json!([{"name": name}]));
        slice["metadata"]["name"] = json!(name);
        slice["spec"]["pool"] = json!({"name": "node-1", "generation": generation, "resourceSliceCount": count});
        slice
    };
    // The order is that of the list, not alphabetical.
    let rows = [
        (vec![part("b", 1, 2), part("a", 1, 1)], Some("r a")),
        (vec![part("b", 1, 1), part("a", 1, 2)], None),
        (vec![part("old", 1, 1), part("b", 2, 2), part("a", 2, 1)], Some("r a")),
        (vec![part("old", 1, 2), part("b", 2, 1), part("a", 2, 2)], None),
    ];
    for (slices, expected) in rows {
        let devices = Cluster::new(slices.clone()).devices("node-1", &one());
        assert_eq!(devices.as_ref().map(|devices| devices[0].as_str()), expected, "{slices:?}");
    }
}

#[test]
fn device_node_selection_that_is_written_down_as_off_needs_the_gate_too() {
    let slice = with(pool(GPU, "node-1", json!([{"name": "gpu-0"}])), "perDeviceNodeSelection", json!(false));
    let mut cluster = Cluster::new([slice]);
    assert!(cluster.devices("node-1", &one()).is_some());
    cluster.gates = cluster.gates.without(Gate::PartitionableDevices);
    assert_eq!(cluster.allocate("node-1", &one()), Outcome::Unsatisfied);
}

#[test]
fn an_empty_list_of_binding_conditions_keeps_a_pool_for_the_end_and_no_device_out() {
    let named = |name: &str, conditions: Value| {
        let mut slice = pool(GPU, "node-1", json!([{"name": name, "bindingConditions": conditions}]));
        slice["metadata"]["name"] = json!(name);
        slice["spec"]["pool"]["name"] = json!(name);
        slice
    };
    let mut cluster = Cluster::new([named("a", json!([])), named("b", json!(null))]);
    assert_eq!(cluster.devices("node-1", &one()).unwrap(), ["r b"]);
    cluster.gates = cluster.gates.without(Gate::DeviceBindingConditions);
    let two = claim("claim", json!([request("r", "gpu", json!({"count": 2}))]), json!([]));
    assert_eq!(cluster.devices("node-1", &[two]).unwrap(), ["r b", "r a"]);
}

#[test]
fn of_several_fields_that_say_where_a_slice_is_the_first_one_counts() {
    let elsewhere = json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "none", "operator": "Exists"}]}]});
    let only_here = json!({"nodeSelectorTerms": [{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["node-1"]},
    ]}]});
    let own = json!([{"name": "none"}, {"name": "other", "nodeName": "node-2"}, {"name": "own", "nodeName": "node-1"}]);
    let plain = json!([{"name": "gpu-0"}]);
    let slice = |devices: &Value, fields: Value| {
        let mut slice = pool(GPU, "node-1", devices.clone());
        slice["spec"].as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        slice
    };
    let rows = [
        // The order is: a non-empty node name, then `allNodes`, then the selector. The allocation has the selector in
        // any case.
        (slice(&plain, json!({"nodeName": "node-2", "allNodes": true})), None),
        (
            slice(&plain, json!({"nodeName": null, "allNodes": true, "nodeSelector": elsewhere})),
            Some(("gpu-0", &elsewhere)),
        ),
        (slice(&plain, json!({"nodeName": null, "allNodes": false})), None),
        // An empty node name is skipped when nodes are matched, but still restricts the allocation to the node.
        (slice(&plain, json!({"nodeName": "", "allNodes": true})), Some(("gpu-0", &only_here))),
        // The field of the slice decides if the node sees it, and that of each device if the device may be chosen.
        (slice(&own, json!({"perDeviceNodeSelection": true})), Some(("own", &only_here))),
        (slice(&own, json!({"nodeName": "node-2", "perDeviceNodeSelection": true})), None),
    ];
    for (slice, expected) in rows {
        let outcome = Cluster::new([slice.clone()]).allocate("node-1", &one());
        let Outcome::Allocated(results) = outcome else {
            assert!(expected.is_none(), "{slice}");
            continue;
        };
        let result = to_value(&results[0]).unwrap();
        let actual = (result["devices"]["results"][0]["device"].as_str().unwrap(), &result["nodeSelector"]);
        assert_eq!(Some(actual), expected, "{slice}");
    }
}

#[test]
fn what_is_wrong_first_is_what_is_said() {
    let mut updated = Cluster::new([pool(GPU, "node-1", json!([{"name": "gpu-0"}]))]);
    let mut slice = pool(GPU, "node-1", json!([{"name": "gpu-0"}]));
    slice["spec"]["pool"]["resourceSliceCount"] = json!(2);
    updated.slices = Cluster::new([slice]).slices;
    let all = || request("all", "gpu", json!({"allocationMode": "All"}));
    let unknown = || request("unknown", "none", json!({}));
    let many = || request("many", "gpu", json!({"count": 33}));
    let of = |requests: Value, constraints: Value| claim("claim", requests, constraints);
    let answer =
        |claims: &[ResourceClaim]| updated.try_allocate(&node("node-1"), claims).map(|verdict| verdict.outcome);

    // Request by request: the devices of a request for all devices are searched before the next request is read.
    let incomplete = answer(&[of(json!([all(), unknown()]), json!([{}]))]);
    assert!(matches!(incomplete, Ok(Outcome::FailedOnNode(NodeError::PoolIncomplete { .. }))), "{incomplete:?}");
    let list = json!([{"name": "list", "firstAvailable": [
        {"name": "all", "deviceClassName": "gpu", "allocationMode": "All"}, {"name": "unknown", "deviceClassName": "none"},
    ]}]);
    let incomplete = answer(&[of(list, json!([]))]);
    assert!(matches!(incomplete, Ok(Outcome::FailedOnNode(NodeError::PoolIncomplete { .. }))), "{incomplete:?}");
    let class =
        |answer| matches!(answer, Err(AllocateError::Request { source: RequestError::ClassNotFound { .. }, .. }));
    assert!(class(answer(&[of(json!([unknown(), all()]), json!([]))])));
    // After the requests: the size of the claim, then its constraints, then the next claim.
    assert!(class(answer(&[of(json!([many(), unknown()]), json!([{}]))])));
    let size = answer(&[of(json!([many()]), json!([{}])), of(json!([unknown()]), json!([]))]);
    assert!(matches!(size, Err(AllocateError::TooManyDevices { devices: 33, .. })), "{size:?}");
    let constraint = answer(&[of(json!([]), json!([{}])), of(json!([unknown()]), json!([]))]);
    assert!(
        matches!(constraint, Err(AllocateError::EmptyConstraint { index, .. }) if index == Index::FIRST),
        "{constraint:?}"
    );
    assert!(class(answer(&[of(json!([]), json!([])), of(json!([unknown()]), json!([]))])));
}

#[test]
fn a_derived_attribute_hides_the_devices_own_and_the_last_of_a_name_counts() {
    let devices: Vec<Value> =
        (0..3).map(|index| device(&format!("gpu-{index}"), "a", json!({"int": index % 2}))).collect();
    let cluster = Cluster::new([pool(GPU, "node-1", json!(devices))]);
    let name = format!("{GPU}/a");
    let own = format!("device.attributes['{GPU}'].a");
    let matching = |expressions: &[&str]| {
        let derived: Vec<Value> =
            expressions.iter().map(|expression| json!({"name": name, "expression": expression})).collect();
        let request = request("r", "gpu", json!({"count": 2, "derivedAttributes": derived}));
        let claims = [claim("claim", json!([request]), json!([{"matchAttribute": name}]))];
        cluster.devices("node-1", &claims).unwrap()
    };
    assert_eq!(matching(&[]), ["r gpu-0", "r gpu-2"]);
    assert_eq!(matching(&["1"]), ["r gpu-0", "r gpu-1"]);
    assert_eq!(matching(&[&own, "1"]), ["r gpu-0", "r gpu-1"]);
    assert_eq!(matching(&["1", &own]), ["r gpu-0", "r gpu-2"]);
}

#[test]
fn admin_access_takes_no_room_from_what_is_asked_beside_it() {
    let kinds = ["a", "a", "a", "a", "a", "a", "b", "c", "c"];
    let device = |(index, kind): (usize, &&str)| {
        let attributes = json!({"kind": {"string": kind}, "root": {"int": index.min(5)}});
        json!({"name": format!("gpu-{index}"), "attributes": attributes})
    };
    let cluster = Cluster::new([pool(GPU, "node-1", kinds.iter().enumerate().map(device).collect())]);
    let of_kind = |name: &str, kind: &str, is_admin: bool| {
        let selector = json!([{"cel": {"expression": format!("device.attributes['{GPU}'].kind == '{kind}'")}}]);
        request(name, "gpu", json!({"selectors": selector, "adminAccess": is_admin}))
    };
    // Only the last device of the first kind has the root of the second: the search turns back often enough to count.
    let requests = json!([of_kind("a", "a", false), of_kind("b", "b", false), of_kind("c", "c", false)]);
    let near = json!([{"matchAttribute": format!("{GPU}/root"), "requests": ["a", "b"]}]);
    let beside = json!([of_kind("admin", "c", true), of_kind("plain", "c", false)]);
    let claims = [claim("first", requests, near), claim("second", beside, json!([]))];
    let found = cluster.devices("node-1", &claims).unwrap();
    assert_eq!(found, ["a gpu-5", "b gpu-6", "c gpu-7", "admin gpu-7", "plain gpu-8"]);
}

#[test]
fn counters_that_are_left_follow_claims_and_slices() {
    let memory = |amount: &str| json!({"memory": {"value": amount}});
    let inventory = |total: &str| {
        let whole = json!({"name": "n", "generation": 1, "resourceSliceCount": 2});
        let consumed = json!([{"counterSet": "s", "counters": memory("2")}]);
        let devices: Vec<Value> =
            (0..8).map(|part| json!({"name": format!("d{part}"), "consumesCounters": consumed})).collect();
        let sets = json!([{"name": "s", "counters": memory(total)}]);
        let mut counters = with(pool("gpu.x", "n", json!([])), "sharedCounters", sets);
        counters["metadata"]["name"] = json!("counters");
        Cluster::new([pool("gpu.x", "n", json!(devices)), counters].map(|slice| with(slice, "pool", whole.clone())))
            .inventory()
    };
    let (small, large, classes) = (inventory("8"), inventory("10"), Classes::new([class("gpu.x")]));
    let mut state = AllocatedState::new(Profile::V1_37);
    let ask = |state: &AllocatedState, inventory: &Inventory, name: &str| {
        let claim = claim(name, json!([request("r", "gpu", json!({}))]), json!([]));
        let allocator = Allocator::new(Profile::V1_37, inventory, &classes);
        let verdict = allocator.allocate(state, &node("n"), [&claim], Budget::default()).unwrap();
        let Outcome::Allocated(results) = verdict.outcome else { return None };
        Some((claim, results.into_iter().next().unwrap()))
    };
    let take = |state: &mut AllocatedState, inventory: &Inventory, name: &str| {
        let found = ask(state, inventory, name);
        found.as_ref().is_some_and(|(claim, result)| state.assume(claim, result).is_ok())
    };
    let taken: Vec<bool> = (0..5).map(|number| take(&mut state, &small, &format!("c{number}"))).collect();
    assert_eq!(taken, [true, true, true, true, false]);
    // Another version of the pool has room for one more, whichever was asked for first.
    assert!(ask(&state, &large, "c5").is_some() && ask(&state, &small, "c5").is_none());
    state.forget(&claim("c2", json!([]), json!([])));
    assert!(take(&mut state, &small, "c6") && !take(&mut state, &small, "c7"));
    let copy = state.clone();
    assert!(take(&mut state, &large, "c8") && !take(&mut state, &large, "c9"));
    assert!(ask(&copy, &large, "c9").is_some(), "a copy has its own");
}
