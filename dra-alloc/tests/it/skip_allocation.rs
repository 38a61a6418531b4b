//! Tests of `skipNodeOperations` in allocations, with the gate on and off (KEP-5945).

use dra_alloc::selector::SelectorCache;
use dra_alloc::skip::{SkipDeclaration, SkipField, WireForm};
use dra_alloc::{Allocator, Budget, Classes, Gate, Inventory, InventoryEvent, NodeError, Outcome, Share};
use dra_attrs::{Component, Profile};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceClass, ResourceClaim, ResourceSlice};
use serde_json::{Value, from_value, json};

use crate::cluster::{Cluster, claim, class, node, pool, request, share_id, with};

const CPU: &str = "cpu.example.com";
const GPU: &str = "gpu.example.com";
const KEY: &str = "skipNodeOperations";

fn devices(names: &[&str]) -> Value {
    json!(names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>())
}

fn cpus(declaration: Value) -> Cluster {
    Cluster::new([with(pool(CPU, "node-1", devices(&["cpu-0"])), KEY, declaration)])
}

fn one(class: &str) -> ResourceClaim {
    claim("claim", json!([request("r", class, json!({}))]), json!([]))
}

/// Returns `skipNodeOperations` of each device result.
fn recorded(outcome: &Outcome) -> Vec<Option<Vec<String>>> {
    let Outcome::Allocated(results) = outcome else { panic!("{outcome:?}") };
    let devices = results.iter().flat_map(|result| result.devices.as_ref().unwrap().results.iter().flatten());
    devices.map(|device| device.skip_node_operations.clone()).collect()
}

const PROFILES: [Profile; 2] = [Profile::Kep, Profile::V1_37];

#[test]
fn slices_and_results_are_read_in_either_form() {
    // req: 5945-API-1, 5945-API-2, 5945-API-3
    let all = Some(vec!["*".to_owned()]);
    let rows = [
        (json!(null), None, json!(null), json!(null)),
        (json!(false), Some(vec![]), json!(false), json!(null)),
        (json!(true), all.clone(), json!(true), json!(["*"])),
        (json!([]), Some(vec![]), json!(false), json!(null)),
        (json!(["*"]), all, json!(true), json!(["*"])),
    ];
    for (wire, kube, as_bool, as_list) in rows {
        let slice: ResourceSlice = SkipField::read(json!({"spec": {"driver": CPU, KEY: wire}})).unwrap();
        assert_eq!(slice.spec.skip_node_operations, kube);
        assert_eq!(SkipField::write(&slice, WireForm::Bool).unwrap()["spec"][KEY], as_bool);
        assert_eq!(SkipField::write(&slice, WireForm::List).unwrap()["spec"][KEY], as_list);

        let result = json!({"devices": {"results": [{"request": "r", KEY: wire}, {"request": "s"}]}});
        let result: AllocationResult = SkipField::read(result).unwrap();
        let devices = result.devices.as_ref().unwrap().results.as_ref().unwrap();
        assert_eq!(devices[0].skip_node_operations, kube);
        assert_eq!(devices[1].skip_node_operations, None);
        assert_eq!(SkipField::write(&result, WireForm::Bool).unwrap()["devices"]["results"][0][KEY], as_bool);

        let claim: ResourceClaim = SkipField::read(json!({"status": {"allocation": result}})).unwrap();
        assert_eq!(claim.status.as_ref().unwrap().allocation, Some(result));
    }
    assert!(ResourceSlice::read(json!({"spec": {KEY: 1}})).is_err());
    let half: ResourceSlice = SkipField::read(json!({"spec": {KEY: ["NodePrepareResources"]}})).unwrap();
    assert!(SkipField::write(&half, WireForm::Bool).is_err(), "the bool form has no value for one operation");
}

#[test]
fn the_key_means_nothing_elsewhere() {
    // req: 5945-API-4
    let cluster = cpus(json!(null));
    let claim_json = json!({
        "metadata": {"name": "claim"}, KEY: true,
        "spec": {KEY: true, "devices": {KEY: true, "requests": [
            {"name": "r", KEY: true, "exactly": {"deviceClassName": "cpu", KEY: true}},
        ]}},
    });
    let mut loud = cluster.clone();
    let mut loud_class = serde_json::to_value(class(CPU)).unwrap();
    loud_class["spec"][KEY] = json!(true);
    loud.classes = vec![from_value::<DeviceClass>(loud_class).unwrap()];
    for profile in PROFILES {
        for features in [cluster.gates, cluster.gates.without(Gate::OptionalNodeOperations)] {
            (loud.profile, loud.gates) = (profile, features);
            let outcome = loud.allocate("node-1", &[SkipField::read(claim_json.clone()).unwrap()]);
            assert_eq!(recorded(&outcome), [None]);
        }
    }
}

#[test]
fn each_device_takes_the_value_of_its_slice() {
    // req: 5945-ALLOC-1, 5945-ALLOC-4, 5945-API-2
    let rows = [json!(null), json!(false), json!(true), json!(["NodeUnprepareResources", "Later"]), json!([])];
    for profile in PROFILES {
        for (left, right) in rows.iter().flat_map(|left| rows.iter().map(move |right| (left, right))) {
            let mut slices = [("a", "cpu-0", left), ("b", "cpu-1", right)].map(|(name, device, declaration)| {
                let mut slice = with(pool(CPU, "node-1", devices(&[device])), KEY, declaration.clone());
                slice["metadata"]["name"] = json!(name);
                slice["spec"]["pool"]["resourceSliceCount"] = json!(2);
                slice
            });
            slices.reverse();
            let mut cluster = Cluster::new(slices);
            cluster.profile = profile;
            let both = claim("claim", json!([request("r", "cpu", json!({"count": 2}))]), json!([]));
            let kube = |wire: &Value| from_value::<SkipDeclaration>(wire.clone()).unwrap().to_kube();
            assert_eq!(recorded(&cluster.allocate("node-1", &[both])), [kube(left), kube(right)]);
        }
    }
}

#[test]
fn kep_with_the_gate_off_fails_the_claim_of_a_chosen_device() {
    // req: 5945-ALLOC-2, 5945-ALLOC-9, 5945-SKEW-3
    let mut cluster = Cluster::new([
        with(pool(CPU, "node-1", devices(&["cpu-0"])), KEY, json!(true)),
        pool(GPU, "node-1", devices(&["gpu-0"])),
        pool("spare.example.com", "node-1", devices(&["spare-0"])),
    ]);
    (cluster.profile, cluster.gates) = (Profile::Kep, cluster.gates.without(Gate::OptionalNodeOperations));
    let both = claim("pair", json!([request("g", "gpu", json!({})), request("c", "cpu", json!({}))]), json!([]));
    let outcome = cluster.allocate("node-1", &[both]);
    let Outcome::FailedOnNode(failure) = &outcome else { panic!("{outcome:?}") };
    let NodeError::SkipNodeOperationsOff { claim: name, slice, gate, .. } = failure else { panic!("{failure}") };
    assert_eq!((name.as_str(), slice.as_str()), ("default/pair", "node-1-cpu.example.com"));
    assert_eq!(gate.name, "DRAOptionalNodePreparation");
    assert!(failure.to_string().contains("DRAOptionalNodePreparation"));

    // The allocator does not fall back to the other alternative or to another device.
    let list = json!([{"name": "r", "firstAvailable": [
        {"name": "cpu", "deviceClassName": "cpu"}, {"name": "spare", "deviceClassName": "spare"},
    ]}]);
    let outcome = cluster.allocate("node-1", &[claim("list", list, json!([]))]);
    assert!(matches!(outcome, Outcome::FailedOnNode(NodeError::SkipNodeOperationsOff { .. })), "{outcome:?}");
}

#[test]
fn shipped_with_the_gate_off_passes_the_device_over() {
    // req: 5945-ALLOC-2, 5945-SKEW-3
    let mut cluster = Cluster::new([
        with(pool(CPU, "node-1", devices(&["cpu-0"])), KEY, json!(["*"])),
        pool("zcpu.example.com", "node-1", devices(&["cpu-1"])),
    ]);
    cluster.classes.push(from_value(json!({"metadata": {"name": "any"}, "spec": {}})).unwrap());
    cluster.gates = cluster.gates.without(Gate::OptionalNodeOperations);
    assert_eq!(cluster.devices("node-1", &[one("any")]).unwrap(), ["r cpu-1"]);
    assert_eq!(cluster.allocate("node-1", &[one("cpu")]), Outcome::Unsatisfied);
    let all = claim("all", json!([request("r", "any", json!({"allocationMode": "All"}))]), json!([]));
    assert_eq!(cluster.allocate("node-1", &[all]), Outcome::Unsatisfied);
}

#[test]
fn a_node_must_declare_the_feature_of_the_profile() {
    // req: 5945-SKEW-1, 5945-NDF-5
    let declaring = |feature: &str| -> Node {
        from_value(json!({"metadata": {"name": "node-1"}, "status": {"declaredFeatures": [feature]}})).unwrap()
    };
    let cluster = cpus(json!(["NodePrepareResources", "NodeUnprepareResources"]));
    for (profile, feature, other) in [
        (Profile::Kep, "DraOptionalNodePreparation", "DRAOptionalNodePreparation"),
        (Profile::V1_37, "DRAOptionalNodeOperations", "DraOptionalNodePreparation"),
    ] {
        let cluster = Cluster { profile, ..cluster.clone() };
        let outcome = |feature| cluster.try_allocate(&declaring(feature), &[one("cpu")]).unwrap().outcome;
        assert_eq!(recorded(&outcome(feature)).len(), 1);
        assert_eq!(outcome(other), Outcome::Unsatisfied);
    }
}

#[test]
fn another_device_is_taken_on_a_node_that_does_not_declare_the_feature() {
    let silent: Node = from_value(json!({"metadata": {"name": "node-1"}})).unwrap();
    for profile in PROFILES {
        let slices = [("a", "cpu-0", json!(true)), ("b", "cpu-1", json!(null))].map(|(name, device, declaration)| {
            let mut slice = with(pool(CPU, "node-1", devices(&[device])), KEY, declaration);
            slice["metadata"]["name"] = json!(name);
            slice["spec"]["pool"]["resourceSliceCount"] = json!(2);
            slice
        });
        let mut cluster = Cluster::new(slices);
        cluster.profile = profile;
        assert_eq!(recorded(&cluster.try_allocate(&silent, &[one("cpu")]).unwrap().outcome), [None]);
    }
}

#[test]
fn with_the_gate_off_other_slices_do_not_matter() {
    // req: 5945-ALLOC-3, 5945-ALLOC-7, 5945-ALLOC-8
    for declaration in [json!(null), json!(false)] {
        let mut slices =
            [("a", "gpu-0", declaration.clone()), ("b", "gpu-1", json!(true))].map(|(name, device, skip)| {
                let mut slice = with(pool(GPU, "node-1", devices(&[device])), KEY, skip);
                slice["metadata"]["name"] = json!(name);
                slice["spec"]["pool"]["resourceSliceCount"] = json!(2);
                slice
            });
        slices.reverse();
        let mut cluster =
            Cluster::new(slices.into_iter().chain([with(pool(CPU, "node-1", devices(&["cpu-0"])), KEY, json!(true))]));
        cluster.gates = cluster.gates.without(Gate::OptionalNodeOperations);
        for profile in PROFILES {
            cluster.profile = profile;
            let kube = from_value::<SkipDeclaration>(declaration.clone()).unwrap().to_kube();
            assert_eq!(recorded(&cluster.allocate("node-1", &[one("gpu")])), [kube]);
        }
    }
}

#[test]
fn a_result_is_frozen() {
    // req: 5945-ALLOC-6
    let before = recorded(&cpus(json!(["*"])).allocate("node-1", &[one("cpu")]));
    let changed = cpus(json!(null));
    assert_eq!(recorded(&changed.allocate("node-1", &[one("cpu")])), [None]);
    assert_eq!(SkipDeclaration::from_kube(before[0].as_deref()).set(), dra_alloc::skip::SkipSet::EVERYTHING);
    assert!(SkipDeclaration::from_kube(None).set().is_empty(), "what an old allocator wrote is false");
}

#[test]
fn a_failure_leaves_nothing_behind() {
    // req: 5945-ALLOC-10
    let off = |cluster: &Cluster| cluster.gates.without(Gate::OptionalNodeOperations);
    for profile in PROFILES {
        let mut cluster = cpus(json!(true));
        cluster.profile = profile;
        let on = cluster.gates;
        let expected = cluster.allocate("node-1", &[one("cpu")]);
        cluster.gates = off(&cluster);
        assert!(!matches!(cluster.allocate("node-1", &[one("cpu")]), Outcome::Allocated(_)));
        cluster.gates = on;
        assert_eq!(cluster.allocate("node-1", &[one("cpu")]), expected);

        let mut plain = cpus(json!(null));
        (plain.profile, plain.gates) = (profile, off(&plain));
        assert_eq!(recorded(&plain.allocate("node-1", &[one("cpu")])), [None]);
    }
}

#[test]
fn kep_with_the_gate_off_does_not_turn_to_another_device_of_the_request() {
    // req: 5945-ALLOC-2, 5945-ALLOC-9
    let slices = [("a", "cpu-0", json!(true)), ("b", "cpu-1", json!(null))].map(|(name, device, skip)| {
        let mut slice = with(pool(CPU, "node-1", devices(&[device])), KEY, skip);
        slice["metadata"]["name"] = json!(name);
        slice["spec"]["pool"]["resourceSliceCount"] = json!(2);
        slice
    });
    let mut cluster = Cluster::new(slices.into_iter().chain([pool(GPU, "node-1", devices(&["gpu-0"]))]));
    (cluster.profile, cluster.gates) = (Profile::Kep, cluster.gates.without(Gate::OptionalNodeOperations));
    let named = |name, class| claim(name, json!([request("r", class, json!({}))]), json!([]));
    // The error names the claim of the device, not the first claim.
    let outcome = cluster.allocate("node-1", &[named("plain", "gpu"), named("skipping", "cpu")]);
    let Outcome::FailedOnNode(NodeError::SkipNodeOperationsOff { claim, slice, .. }) = &outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((claim.as_str(), slice.as_str()), ("default/skipping", "a"));
}

#[test]
fn a_retry_in_the_same_cluster_finds_everything_as_it_was() {
    // req: 5945-ALLOC-10
    let shared = json!([{"name": "cpu-0", "allowMultipleAllocations": true}]);
    let mut cluster = Cluster::new([with(pool(CPU, "node-1", shared), KEY, json!(true))]);
    cluster.profile = Profile::Kep;
    let (on, off) = (cluster.gates, cluster.gates.without(Gate::OptionalNodeOperations));
    let (mut inventory, selectors) = (cluster.inventory(), SelectorCache::default());
    let allocate = |inventory: &Inventory, features| {
        let share_ids = |_: Share<'_>| share_id(&cluster.shares);
        let classes = Classes::new(cluster.classes.iter().cloned());
        Allocator::new(Component::new(Profile::Kep, features), inventory, &classes)
            .with_selector_cache(&selectors)
            .with_share_ids(&share_ids)
            .allocate(&cluster.state, &node("node-1"), &[one("cpu")], Budget::default())
            .unwrap()
            .outcome
    };
    assert!(matches!(allocate(&inventory, off), Outcome::FailedOnNode(_)));
    let Outcome::Allocated(results) = allocate(&inventory, on) else { panic!("not allocated") };
    let device = &results[0].devices.as_ref().unwrap().results.as_ref().unwrap()[0];
    assert_eq!(device.skip_node_operations, Some(vec!["*".to_owned()]));
    assert_eq!(device.share_id.as_deref(), Some("00000000-0000-0000-0000-000000000001"), "the failure took no id");
    let mut slice = (*cluster.slices[0]).clone();
    slice.spec.skip_node_operations = None;
    inventory.apply(InventoryEvent::Slice(slice.into())).unwrap();
    assert_eq!(recorded(&allocate(&inventory, off)), [None]);
}
