//! Tests of fields of disabled features: dropped, or kept while in use, and the consequences.

use dra_attrs::ErrorType::*;
use dra_attrs::{Component, FieldErrors, Gate, GateSet, Profile};
use dra_device::skip::{SkipField, WireForm};
use dra_validate::{Accepted, ApiServer};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use serde_json::{Value, json};

use super::world::{
    BOTH, Written, allocated, changed, claim, counters, create, expect, fields, slice, template, update, update_status,
};

fn without(feature: Gate) -> ApiServer {
    ApiServer::new(Component::new(Profile::V1_37, GateSet::all().without(feature)))
}

/// Checks that a field is dropped from a new object, and kept if the stored object has it.
fn check<T: Written + serde::Serialize>(feature: Gate, with: &Value, field: &str, path: &str) {
    for profile in BOTH {
        let server = ApiServer::new(Component::new(profile, GateSet::all().without(feature)));
        let on = ApiServer::new(Component::new(profile, GateSet::all()));
        let kept = create::<T>(on, with.clone()).unwrap();
        assert!(kept.dropped.is_empty(), "{field}");
        let object = serde_json::to_value(&kept.object).unwrap();
        assert!(object.pointer(path).is_some(), "{field} is kept with the gate on");
        let dropped = create::<T>(server, with.clone()).unwrap();
        assert!(fields(&dropped).contains(&field), "{field}: {:?}", dropped.dropped);
        assert_eq!(serde_json::to_value(&dropped.object).unwrap().pointer(path), None, "{field} is dropped");
        let stays = update::<T>(server, with.clone(), with.clone()).unwrap();
        assert_eq!(serde_json::to_value(&stays.object).unwrap().pointer(path), object.pointer(path), "{field} stays");
        assert!(stays.dropped.is_empty());
    }
}

/// Creates a slice with one device that has only these fields.
fn device(fields: Value) -> Value {
    let mut device = json!({"name": "d"});
    device.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    changed(&slice(), json!({"/spec/devices": [device], "/spec/skipNodeOperations": null}))
}

#[test]
fn fields_of_slices() {
    let consumes = json!([{"counterSet": "s", "counters": {"c": {"value": "1"}}, "compatibilityGroups": ["g"]}]);
    let partition = changed(
        &device(json!({"consumesCounters": consumes, "attributes": {"a.b/c": {"string": "x"}}})),
        json!({"/spec/partitionTypeAttribute": "a.b/c"}),
    );
    let conditions = json!({"bindingConditions": ["a"], "bindingFailureConditions": ["b"], "bindsToNode": true});
    let policy = json!({"value": "1", "requestPolicy": {"default": "1"}});
    let shared = json!({"allowMultipleAllocations": true, "capacity": {"m": policy}});
    let taints = json!({"taints": [{"key": "k", "effect": "None"}]});
    let resources = json!({"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1"}}}});
    for (feature, object, field) in [
        (Gate::DeviceTaints, device(taints), "taints"),
        (Gate::PartitionableDevices, device(json!({"consumesCounters": consumes})), "consumesCounters"),
        (Gate::DeviceBindingConditions, device(conditions.clone()), "bindingConditions"),
        (Gate::DeviceBindingConditions, device(conditions.clone()), "bindingFailureConditions"),
        (Gate::DeviceBindingConditions, device(conditions), "bindsToNode"),
        (Gate::ConsumableCapacity, device(shared), "allowMultipleAllocations"),
        (Gate::NodeAllocatableResources, device(resources), "nodeAllocatableResources"),
    ] {
        let path = format!("/spec/devices/0/{field}");
        check::<ResourceSlice>(feature, &object, &format!("spec.devices[0].{field}"), &path);
    }
    let shared = device(json!({"allowMultipleAllocations": true, "capacity": {"m": policy}}));
    let path = "/spec/devices/0/capacity/m/requestPolicy";
    let field = "spec.devices[0].capacity[m].requestPolicy";
    check::<ResourceSlice>(Gate::ConsumableCapacity, &shared, field, path);
    let groups = "spec.devices[0].consumesCounters[0].compatibilityGroups";
    let path = "/spec/devices/0/consumesCounters/0/compatibilityGroups";
    let with_groups = device(json!({"consumesCounters": consumes}));
    check::<ResourceSlice>(Gate::DeviceCompatibilityGroups, &with_groups, groups, path);
    let name = "partitionTypeAttribute";
    check::<ResourceSlice>(
        Gate::PartitionableDevicesType,
        &partition,
        &format!("spec.{name}"),
        &format!("/spec/{name}"),
    );
    check::<ResourceSlice>(Gate::PartitionableDevices, &counters(), "spec.sharedCounters", "/spec/sharedCounters");
}

#[test]
fn a_device_that_says_where_it_is_has_no_place_without_the_gate() {
    // The dropped field was one of those of which exactly one is required.
    let per_device = changed(
        &device(json!({"nodeName": "n"})),
        json!({"/spec/nodeName": null, "/spec/perDeviceNodeSelection": true}),
    );
    expect::<ResourceSlice>(
        "off",
        create(without(Gate::PartitionableDevices), per_device.clone()),
        &[("spec", Required, "exactly one of `nodeName`")],
    );
    expect::<ResourceSlice>("in use", update(without(Gate::PartitionableDevices), per_device.clone(), per_device), &[]);
}

#[test]
fn an_empty_list_goes_like_a_full_one() {
    let both = changed(&slice(), json!({"/spec/devices": [], "/spec/sharedCounters": []}));
    let admitted = create::<ResourceSlice>(without(Gate::PartitionableDevices), both.clone()).unwrap();
    assert_eq!((admitted.object.spec.shared_counters, admitted.dropped.len()), (None, 0));
    assert!(create::<ResourceSlice>(without(Gate::DeviceTaints), both).is_err());
}

#[test]
fn an_empty_text_that_becomes_a_list_is_an_attribute_without_value() {
    let model = |value: Value| changed(&slice(), json!({"/spec/devices/0/attributes": {"model": value}}));
    let (text, list) = (model(json!({"string": ""})), model(json!({"strings": ["a", "b"]})));
    let outcome = update::<ResourceSlice>(without(Gate::ListTypeAttributes), text, list);
    expect("list", outcome, &[("spec.devices[0].attributes[model]", Invalid, "must specify one of")]);
}

#[test]
fn a_feature_in_use_anywhere_lets_everything_of_it_through() {
    let taint = json!([{"key": "k", "effect": "None"}]);
    let old = changed(&slice(), json!({"/spec/devices": [{"name": "a", "taints": taint}, {"name": "b"}]}));
    let new = changed(&slice(), json!({"/spec/devices": [{"name": "a"}, {"name": "b", "taints": taint}]}));
    let admitted = update::<ResourceSlice>(without(Gate::DeviceTaints), old, new.clone()).unwrap();
    assert_eq!(admitted.object.spec, ResourceSlice::parse(new).spec);
    // An empty list does not count as in use; `false` does.
    let empty = changed(&slice(), json!({"/spec/devices": [{"name": "a", "taints": []}]}));
    let new = changed(&slice(), json!({"/spec/devices": [{"name": "a", "taints": taint}]}));
    let admitted = update::<ResourceSlice>(without(Gate::DeviceTaints), empty, new).unwrap();
    assert_eq!(fields(&admitted), ["spec.devices[0].taints"]);
    let no = device(json!({"allowMultipleAllocations": false}));
    let yes = device(json!({"allowMultipleAllocations": true}));
    let admitted = update::<ResourceSlice>(without(Gate::ConsumableCapacity), no, yes).unwrap();
    assert!(admitted.dropped.is_empty());
}

#[test]
fn a_stored_name_of_partition_types_may_stay_and_not_become_another() {
    const NAME: &str = "spec.partitionTypeAttribute";
    let off = without(Gate::PartitionableDevicesType);
    let named = |name: &str| changed(&slice(), json!({"/spec/partitionTypeAttribute": name}));
    let stored = named("gpu.example.com/model");
    let kept = changed(&stored, json!({"/spec/pool/generation": 1}));
    expect::<ResourceSlice>("kept", update(off, stored.clone(), kept), &[]);
    expect::<ResourceSlice>("gone", update(off, stored.clone(), slice()), &[]);
    let another = changed(
        &stored,
        json!({
        "/spec/partitionTypeAttribute": "gpu.example.com/kind", "/spec/devices/0/attributes/kind": {"string": "a"}}),
    );
    expect::<ResourceSlice>("another", update(off, stored, another), &[(NAME, Forbidden, "")]);
}

#[test]
fn fields_of_claims_and_templates() {
    let request = |fields: Value| {
        let mut exactly = json!({"deviceClassName": "c"});
        exactly.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let requests = json!([{"name": "r", "exactly": exactly}, {"name": "s", "exactly": {"deviceClassName": "c"}}]);
        json!({"requests": requests, "constraints": [{"matchAttribute": "a.b/c"}]})
    };
    let derived = json!([{"name": "a.b/c", "expression": "1"}]);
    for (feature, fields, field) in [
        (Gate::AdminAccess, json!({"adminAccess": true}), "adminAccess"),
        (Gate::AdminAccess, json!({"adminAccess": false}), "adminAccess"),
        (Gate::ConsumableCapacity, json!({"capacity": {"requests": {"m": "1"}}}), "capacity"),
        (Gate::DeviceTaints, json!({"tolerations": [{"operator": "Exists"}]}), "tolerations"),
        (Gate::DerivedAttributes, json!({"derivedAttributes": derived}), "derivedAttributes"),
    ] {
        let name = format!("spec.devices.requests[0].exactly.{field}");
        let path = format!("/spec/devices/requests/0/exactly/{field}");
        let object = changed(&claim(), json!({"/spec/devices": request(fields.clone())}));
        check::<ResourceClaim>(feature, &object, &name, &path);
        let object = changed(&template(), json!({"/spec/spec/devices": request(fields)}));
        check::<ResourceClaimTemplate>(feature, &object, &format!("spec.{name}"), &format!("/spec{path}"));
    }
    // A request without its subrequests asks for nothing.
    let list = changed(
        &claim(),
        json!({"/spec/devices":
        {"requests": [{"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]}]}}),
    );
    expect::<ResourceClaim>(
        "list",
        create(without(Gate::PrioritizedList), list.clone()),
        &[("spec.devices.requests[0]", Required, "exactly one of `exactly` or `firstAvailable`")],
    );
    expect("in use", update::<ResourceClaim>(without(Gate::PrioritizedList), list.clone(), list), &[]);
    let distinct = changed(
        &claim(),
        json!({"/spec/devices/constraints": [{"distinctAttribute": "a.b/c"}],
        "/spec/devices/requests/0/exactly/derivedAttributes": null}),
    );
    expect::<ResourceClaim>(
        "distinct",
        create(without(Gate::ConsumableCapacity), distinct),
        &[("spec.devices.constraints[0].matchAttribute", Required, "")],
    );
}

#[test]
fn fields_of_a_status() {
    let result = |field: &str, value: Value| {
        let pointer = format!("/status/allocation/devices/results/0/{field}");
        changed(&allocated(), json!({pointer: value, "/status/devices": null}))
    };
    let plain = changed(
        &claim(),
        json!({
        "/spec/devices/requests/0/exactly/tolerations": null,
        "/spec/devices/constraints": [{"matchAttribute": "derived/node"}]}),
    );
    let conditions = changed(
        &result("bindingConditions", json!(["a"])),
        json!({"/status/allocation/devices/results/0/bindingFailureConditions": ["b"]}),
    );
    for (feature, new, place) in [
        (Gate::AdminAccess, result("adminAccess", json!(true)), "devices/results/0/adminAccess"),
        (Gate::DeviceBindingConditions, conditions.clone(), "devices/results/0/bindingConditions"),
        (Gate::DeviceBindingConditions, conditions, "devices/results/0/bindingFailureConditions"),
        (Gate::ConsumableCapacity, result("request", json!("gpu")), "devices/results/0/shareID"),
        (Gate::ConsumableCapacity, result("request", json!("gpu")), "devices/results/0/consumedCapacity"),
    ] {
        let path = format!("/status/allocation/{place}");
        let new = changed(&new, json!({"/spec": plain["spec"]}));
        let stored = |old: Value| {
            let admitted = update_status(without(feature), old, new.clone()).unwrap();
            serde_json::to_value(admitted.object).unwrap().pointer(&path).cloned()
        };
        assert_eq!(stored(plain.clone()), None, "{feature:?} {place}");
        assert_eq!(stored(new.clone()), new.pointer(&path).cloned(), "{feature:?} {place} stays");
    }
    let unreported = changed(&allocated(), json!({"/status/devices": null}));
    let admitted = update_status(without(Gate::ResourceClaimDeviceStatus), unreported, allocated()).unwrap();
    assert_eq!((fields(&admitted), &admitted.object.status.as_ref().unwrap().devices), (vec!["status.devices"], &None));
    let stays = update_status(without(Gate::ResourceClaimDeviceStatus), allocated(), allocated()).unwrap();
    assert!(stays.object.status.unwrap().devices.is_some());
    // A feature in use in the spec also keeps its fields in the status.
    let admin = changed(&plain, json!({"/spec/devices/requests/0/exactly/adminAccess": true}));
    let new = changed(&result("adminAccess", json!(true)), json!({"/spec": admin["spec"]}));
    let admitted = update_status(without(Gate::AdminAccess), admin, new).unwrap();
    assert!(admitted.dropped.is_empty());
}

/// Fields of a status that no gate drops, and fields that go by their own gate alone.
#[test]
fn fields_that_stay_in_a_status() {
    let result = json!({
        "/status/devices": null,
        "/status/allocation/allocationTimestamp": "2026-11-01T00:00:00Z",
        "/status/allocation/devices/results/0/tolerations": [{"operator": "Exists"}],
        "/status/allocation/devices/results/0/bindingConditions": ["a"],
        "/status/allocation/devices/results/0/bindingFailureConditions": ["b"],
    });
    let new = changed(&allocated(), result);
    let dropped = |feature: Gate| -> Vec<String> {
        let admitted = update_status(without(feature), claim(), new.clone()).unwrap();
        assert!(admitted.dropped.iter().all(|dropped| dropped.gate.gate == feature));
        admitted.dropped.into_iter().map(|dropped| dropped.field).collect()
    };
    assert_eq!(dropped(Gate::DeviceTaints), Vec::<String>::new());
    assert_eq!(dropped(Gate::ResourceClaimDeviceStatus), Vec::<String>::new());
    let conditions = ["bindingConditions", "bindingFailureConditions"];
    let places = conditions.map(|field| format!("status.allocation.devices.results[0].{field}"));
    assert_eq!(dropped(Gate::DeviceBindingConditions), places);
}

/// Kubernetes 1.34 drops the time of a new allocation while binding conditions are off, and keeps that of a stored one.
#[test]
fn the_time_of_a_stored_allocation_stays() {
    let timed = changed(&allocated(), json!({"/status/allocation/allocationTimestamp": "2026-11-01T00:00:00Z"}));
    let gates = GateSet::all().without(Gate::DeviceBindingConditions);
    for (profile, is_dropped) in [(Profile::V1_34, true), (Profile::V1_35, false), (Profile::V1_37, false)] {
        let server = ApiServer::new(Component::new(profile, gates));
        let time = "status.allocation.allocationTimestamp".to_owned();
        let dropped = |old: Value| -> Vec<String> {
            let admitted = update_status(server, old, timed.clone()).unwrap();
            admitted.dropped.into_iter().map(|dropped| dropped.field).collect()
        };
        assert_eq!(dropped(claim()).contains(&time), is_dropped, "{profile:?}");
        assert!(!dropped(timed.clone()).contains(&time), "{profile:?}");
    }
}

#[test]
fn an_empty_object_that_is_stored_is_in_use() {
    let server = without(Gate::ConsumableCapacity);
    let stored = changed(&claim(), json!({"/spec/devices/requests/0/exactly/capacity": {}}));
    let labelled = changed(&stored, json!({"/metadata/labels": {"a": "b"}}));
    let admitted = update::<ResourceClaim>(server, stored.clone(), labelled).unwrap();
    assert!(admitted.dropped.is_empty());

    let mut with_share = allocated();
    with_share["spec"] = stored["spec"].clone();
    with_share["status"]["devices"] = json!(null);
    with_share["status"]["allocation"]["devices"]["results"][1]["shareID"] =
        json!("00000000-0000-0000-0000-000000000001");
    let admitted = update_status(server, stored, with_share).unwrap();
    assert!(admitted.dropped.is_empty(), "{:?}", admitted.dropped);

    let capacity = |policy: Value| json!({"capacity": {"m": {"value": "1", "requestPolicy": policy}}});
    let (old, mut new) = (device(capacity(json!({}))), device(capacity(json!({}))));
    new["spec"]["devices"][0]["allowMultipleAllocations"] = json!(true);
    let admitted = update::<ResourceSlice>(server, old, new).unwrap();
    assert!(admitted.dropped.is_empty());
}

#[test]
fn a_status_is_written_without_a_change_of_the_spec() {
    for feature in [Gate::DeviceTaints, Gate::ConsumableCapacity, Gate::AdminAccess] {
        let tolerations = json!([{"key": "k", "operator": "Exists"}]);
        let fields = json!({
            "/spec/devices/requests/0/exactly/tolerations": tolerations,
            "/spec/devices/requests/0/exactly/adminAccess": true,
            "/spec/devices/requests/0/exactly/capacity": {"requests": {"m": "1"}},
        });
        let (old, new) = (changed(&claim(), fields.clone()), changed(&allocated(), fields));
        let admitted = update_status(without(feature), old.clone(), new).unwrap();
        assert_eq!(serde_json::to_value(&admitted.object).unwrap()["spec"], old["spec"]);
    }
}

#[test]
fn where_nothing_skips_the_gate_changes_nothing() {
    // req: 5945-GATE-3
    let feature = Gate::OptionalNodeOperations;
    let slices = [json!(null), json!(false)].map(|skip| changed(&slice(), json!({"/spec/skipNodeOperations": skip})));
    let invalid = changed(&slices[0], json!({"/spec/driver": "", "/spec/devices/0/name": ""}));
    for profile in BOTH {
        let servers = [GateSet::all(), GateSet::all().without(feature)]
            .map(|features| ApiServer::new(Component::new(profile, features)));
        // Compares the JSON, where an empty list is omitted.
        let written = |outcome: Result<Accepted<ResourceSlice>, FieldErrors>| {
            outcome.map(|admitted| SkipField::write(&admitted.object, WireForm::List).unwrap())
        };
        for new in slices.iter().chain([&invalid]) {
            let [on, off] = servers.map(|server| written(create(server, new.clone())));
            assert_eq!(on, off);
            for old in &slices {
                let [on, off] = servers.map(|server| written(update(server, old.clone(), new.clone())));
                assert_eq!(on, off);
            }
        }
        let mut quiet = allocated();
        quiet["status"]["allocation"]["devices"]["results"][1]["skipNodeOperations"] = json!(false);
        for old in [claim(), quiet.clone()] {
            let [on, off] = servers.map(|server| update_status(server, old.clone(), quiet.clone()));
            let [on, off] = [on, off]
                .map(|outcome| outcome.map(|admitted| SkipField::write(&admitted.object, WireForm::List).unwrap()));
            assert_eq!(on, off);
        }
    }
}

#[test]
fn an_empty_map_that_is_stored_is_no_use() {
    let resources = |value: Value| changed(&slice(), json!({"/spec/devices/0/nodeAllocatableResources": value}));
    let new = resources(json!({"cpu": {"mapping": {"deviceMultiplier": "1"}}}));
    let server = without(Gate::NodeAllocatableResources);
    let admitted = update::<ResourceSlice>(server, resources(json!({})), new).unwrap();
    assert_eq!(fields(&admitted), ["spec.devices[0].nodeAllocatableResources"]);
    assert!(create::<ResourceSlice>(server, resources(json!({}))).unwrap().dropped.is_empty());
    let plain = changed(&claim(), json!({"/spec/devices/constraints": [{"matchAttribute": "derived/node"}]}));
    let status = |share: Value, consumed: Value| {
        let result = json!({"request": "gpu", "driver": "d", "pool": "p", "device": "x",
            "shareID": share, "consumedCapacity": consumed});
        changed(&plain, json!({"/status": {"allocation": {"devices": {"results": [result]}}}}))
    };
    let new = status(json!("12345678-90ab-cdef-1234-567890abcdef"), json!(null));
    let admitted = update_status(without(Gate::ConsumableCapacity), status(json!(null), json!({})), new).unwrap();
    assert_eq!(fields(&admitted), ["status.allocation.devices.results[0].shareID"]);
}

#[test]
fn fields_of_alternatives_and_places_of_devices_are_dropped() {
    let sub = json!({"name": "s", "deviceClassName": "c", "tolerations": [{"operator": "Exists"}],
        "capacity": {"requests": {"m": "1"}}, "derivedAttributes": [{"name": "a.b/c", "expression": "1"}]});
    let object = changed(
        &claim(),
        json!({"/spec/devices": {"requests": [{"name": "r", "firstAvailable": [sub]}],
            "constraints": [{"matchAttribute": "a.b/c"}]}}),
    );
    for (feature, field) in [
        (Gate::DeviceTaints, "tolerations"),
        (Gate::ConsumableCapacity, "capacity"),
        (Gate::DerivedAttributes, "derivedAttributes"),
    ] {
        let admitted = create::<ResourceClaim>(without(feature), object.clone()).unwrap();
        assert_eq!(fields(&admitted), [format!("spec.devices.requests[0].firstAvailable[0].{field}")]);
        let stays = update::<ResourceClaim>(without(feature), object.clone(), object.clone()).unwrap();
        assert!(stays.dropped.is_empty(), "{field}");
    }
    let selector = json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]});
    for (field, value) in [("nodeName", json!("n")), ("nodeSelector", selector), ("allNodes", json!(true))] {
        let device = changed(&slice(), json!({"/spec/devices": [{"name": "d", field: value}]}));
        expect::<ResourceSlice>(
            field,
            create(ApiServer::new(Component::new(Profile::V1_37, GateSet::all())), device.clone()),
            &[("spec.devices[0]", Invalid, "can only be set if `perDeviceNodeSelection` is set to true")],
        );
        let admitted = create::<ResourceSlice>(without(Gate::PartitionableDevices), device).unwrap();
        assert_eq!(fields(&admitted), [format!("spec.devices[0].{field}")]);
    }
}

#[test]
fn a_change_that_is_dropped_counts_for_the_generation() {
    let stored = changed(&slice(), json!({"/metadata/generation": 4, "/spec/devices/0/taints": null}));
    let tainted = changed(&stored, json!({"/spec/devices/0/taints": [{"key": "k", "effect": "None"}]}));
    let admitted = update::<ResourceSlice>(without(Gate::DeviceTaints), stored.clone(), tainted).unwrap();
    assert_eq!(fields(&admitted), ["spec.devices[0].taints"]);
    assert_eq!(admitted.object.spec, ResourceSlice::parse(stored).spec);
    assert_eq!(admitted.object.metadata.generation, Some(5));
}
