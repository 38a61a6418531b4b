//! Tests of invalid values that are stored: tolerated by an update, or not.

use dra_attrs::ErrorType::*;
use k8s_openapi::api::resource::v1::ResourceSlice;
use serde_json::{Value, json};

use super::world::{Expected, allocated, changed, counters, expect, shipped, slice, update, update_status};

/// Checks the errors for an invalid new slice, and the errors for an update of the stored slice that changes an
/// unrelated field.
fn check(bad: Value, new: &[Expected<'_>], stored: &[Expected<'_>], elsewhere: Value) {
    expect::<ResourceSlice>("new", super::world::create(shipped(), bad.clone()), new);
    expect::<ResourceSlice>("stored", update(shipped(), bad.clone(), changed(&bad, elsewhere)), stored);
}

fn generation() -> Value {
    json!({"/spec/pool/generation": 9})
}

#[test]
fn unchanged_capacities_and_taints_of_a_device_are_not_looked_at() {
    let policy = "spec.devices[0].capacity[memory].requestPolicy";
    let not_shared: &[Expected<'_>] = &[(policy, Forbidden, "allowMultipleAllocations must be true")];
    // `allowMultipleAllocations` is turned off later, and the request policy stays.
    let turned = changed(&slice(), json!({"/spec/devices/0/allowMultipleAllocations": false}));
    check(turned.clone(), not_shared, &[], generation());
    expect::<ResourceSlice>("turned off", update(shipped(), slice(), turned.clone()), &[]);
    let rewritten = changed(&turned, json!({"/spec/devices/0/capacity/memory/value": "81920Mi"}));
    expect::<ResourceSlice>("same amount", update(shipped(), turned.clone(), rewritten), &[]);
    let larger = changed(&turned, json!({"/spec/devices/0/capacity/memory/value": "81Gi"}));
    expect::<ResourceSlice>("other amount", update(shipped(), turned, larger), not_shared);

    let effect = "spec.devices[0].taints[0].effect";
    let bad: &[Expected<'_>] = &[(effect, NotSupported, "")];
    let tainted = changed(&slice(), json!({"/spec/devices/0/taints/0/effect": "Future"}));
    check(tainted.clone(), bad, &[], generation());
    let more = changed(&tainted, json!({"/spec/devices/0/taints/-": {"key": "k", "effect": "None"}}));
    expect::<ResourceSlice>("another taint", update(shipped(), tainted.clone(), more), bad);
    for taint in [json!({"/spec/devices/0/taints/0/effect": "Future"}), json!({"/spec/devices/0/taints/0/key": "a b"})]
    {
        let stored = changed(&slice(), taint);
        let elsewhere = changed(&stored, json!({"/spec/devices/0/attributes/other": {"int": 1}}));
        expect::<ResourceSlice>("elsewhere", update(shipped(), stored, elsewhere), &[]);
    }
    // A device with another name is a new device.
    let renamed = changed(&tainted, json!({"/spec/devices/0/name": "gpu-1"}));
    expect::<ResourceSlice>("renamed", update(shipped(), tainted, renamed), bad);
}

#[test]
fn rules_that_only_types_declare_are_not_checked_on_what_is_stored() {
    let groups = json!({"/spec/devices/0/consumesCounters/0/compatibilityGroups": ["A", "b", "c"]});
    let mapping = json!({"/spec/devices/0/nodeAllocatableResources/cpu/mapping": {}});
    for (changes, field, kind) in [
        (groups, "spec.devices[0].consumesCounters[0].compatibilityGroups", TooMany),
        (mapping, "spec.devices[0].nodeAllocatableResources[cpu].mapping", Invalid),
    ] {
        let bad = changed(&slice(), changes);
        check(bad.clone(), &[(field, kind, "")], &[], generation());
        // Declarative rules compare the list of devices as a whole.
        let elsewhere = json!({"/spec/devices/0/attributes/other": {"int": 1}});
        check(bad, &[(field, kind, "")], &[(field, kind, "")], elsewhere);
    }
    let name = "spec.partitionTypeAttribute";
    let named = changed(&slice(), json!({"/spec/partitionTypeAttribute": "model"}));
    let elsewhere = json!({"/spec/devices/0/attributes/other": {"int": 1}});
    check(named, &[(name, Invalid, "a fully qualified name")], &[], elsewhere);
}

#[test]
fn a_rule_that_is_declared_and_in_code_holds_for_every_write() {
    let nine: Value =
        (0..9).map(|index| json!({"name": format!("s{index}"), "counters": {"c": {"value": "1"}}})).collect();
    let upper = json!({"/spec/sharedCounters/0/counters": {"BAD": {"value": "1"}}});
    let multiplier = json!({"capacityMultiplier": "1", "deviceMultiplier": "1"});
    let capacity_key = "spec.devices[0].nodeAllocatableResources[cpu].mapping.capacityKey";
    for (base, changes, field, kind) in [
        (counters(), json!({"/spec/sharedCounters": nine}), "spec.sharedCounters", TooMany),
        (counters(), upper, "spec.sharedCounters[0].counters", Invalid),
        (slice(), json!({"/spec/devices/0/attributes/model": {}}), "spec.devices[0].attributes[model]", Invalid),
        (slice(), json!({"/spec/devices/0/nodeAllocatableResources/cpu/mapping": multiplier}), capacity_key, Required),
    ] {
        let bad = changed(&base, changes);
        check(bad, &[(field, kind, "")], &[(field, kind, "")], generation());
    }
}

#[test]
fn other_rules_hold_for_every_write() {
    for (changes, field, kind) in [
        (json!({"/spec/devices/0/name": "A"}), "spec.devices[0].name", Invalid),
        (json!({"/spec/devices/0/attributes": {"1": {"int": 1}}}), "spec.devices[0].attributes", Invalid),
        (json!({"/spec/pool/resourceSliceCount": 0}), "spec.pool.resourceSliceCount", Invalid),
        (json!({"/spec/nodeName": null}), "spec", Required),
    ] {
        let bad = changed(&slice(), changes);
        check(bad, &[(field, kind, "")], &[(field, kind, "")], json!({"/metadata/labels": {"a": "b"}}));
    }
    // The stored slice may have devices of other names: each device is checked on its own.
    let devices = |count: usize| -> Value { (0..count).map(|index| json!({"name": format!("d{index}")})).collect() };
    let many = changed(&slice(), json!({"/spec/devices": devices(129)}));
    check(many, &[("spec.devices", TooMany, "")], &[("spec.devices", TooMany, "")], generation());
}

#[test]
fn what_is_stored_in_a_status_is_looked_at_again() {
    let consumers: Value =
        (0..257).map(|index| json!({"resource": "pods", "name": "p", "uid": format!("u{index}")})).collect();
    let many = changed(&allocated(), json!({"/status/reservedFor": consumers}));
    let fewer = changed(&many, json!({"/status/devices": null}));
    expect("consumers", update_status(shipped(), many, fewer), &[("status.reservedFor", TooMany, "")]);

    let name = "status.devices[0].networkData.interfaceName";
    let long = changed(&allocated(), json!({"/status/devices/0/networkData/interfaceName": "a".repeat(300)}));
    let second = json!({"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0",
        "shareID": "12345678-90ab-cdef-1234-567890abcdef"});
    let more = changed(&long, json!({"/status/devices/-": second}));
    expect("another device", update_status(shipped(), long, more), &[(name, TooLong, "")]);
}
