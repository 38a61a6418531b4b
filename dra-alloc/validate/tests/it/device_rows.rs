//! Tests of every rule for devices of a slice, except capacities.

use dra_attrs::ErrorType::*;
use k8s_openapi::api::resource::v1::ResourceSlice;
use serde_json::{Map, Value, json};

use super::world::{DEVICE, at, changed, check_rows, create, expect, shipped, slice, text};

#[test]
fn consumed_counters() {
    let consumption = |set: &str| json!({"counterSet": set, "counters": {"c": {"value": "1"}}});
    let list = |sets: &[&str]| {
        json!({"/spec/devices/0/consumesCounters":
        sets.iter().map(|set| consumption(set)).collect::<Value>()})
    };
    let first = |field: &str, value: Value| {
        let mut one = consumption("s");
        one[field] = value;
        json!({"/spec/devices/0/consumesCounters": [one]})
    };
    let many = |count: usize| -> Map<String, Value> {
        (0..count).map(|index| (format!("c{index}"), json!({"value": "1"}))).collect()
    };
    let path = |field: &str| at(&format!("consumesCounters[0].{field}"));
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (list(&["a", "b"]), &[]),
            (list(&["a", "b", "c"]), &[(&at("consumesCounters"), TooMany, "must have at most 2 items")]),
            (list(&["a", "a"]), &[(&at("consumesCounters[1]"), Duplicate, "")]),
            (list(&[""]), &[(&path("counterSet"), Required, "")]),
            (list(&["a b"]), &[(&path("counterSet"), Invalid, "RFC 1123 label")]),
            (first("counters", json!({})), &[(&path("counters"), Required, "")]),
            (first("counters", many(32).into()), &[]),
            (first("counters", many(33).into()), &[(&path("counters"), TooMany, "must have at most 32 items")]),
            (first("counters", json!({"a_b": {"value": "1"}})), &[(&path("counters"), Invalid, "RFC 1123 label")]),
            (first("compatibilityGroups", json!(["a", "b"])), &[]),
            (
                first("compatibilityGroups", json!(["a", "b", "c"])),
                &[(&path("compatibilityGroups"), TooMany, "must have at most 2 items")],
            ),
            (first("compatibilityGroups", json!(["a", "a"])), &[(&path("compatibilityGroups[1]"), Duplicate, "")]),
            (
                first("compatibilityGroups", json!(["a.b", ""])),
                &[
                    (&path("compatibilityGroups[0]"), Invalid, "must not contain dots"),
                    (&path("compatibilityGroups[1]"), Invalid, "RFC 1123 label"),
                ],
            ),
        ],
    );
}

#[test]
fn attributes_of_a_device() {
    let attribute = |value: Value| json!({"/spec/devices/0/attributes": {"a": value}});
    let named = |name: &str| json!({"/spec/devices/0/attributes": {name: {"int": 1}}});
    let one = at("attributes[a]");
    let path = |field: &str| format!("{one}.{field}");
    let map = at("attributes");
    let long_key = format!("{}/{}", text(63), text(40));
    const UNION: &str = "must specify one of";
    const EMPTY: &str = "must not be empty if specified";
    const SEMVER: &str = "must be a string compatible with semver.org spec 2.0.0";
    const C: &str = "a valid C identifier must start with";
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (named("example.com/numaNode"), &[]),
            (named("_x1"), &[]),
            (named("1x"), &[(&map, Invalid, C)]),
            (named(""), &[(&map, Invalid, C)]),
            (named(&text(32)), &[]),
            (named(&text(33)), &[(&map, TooLong, "may not be more than 32 bytes")]),
            (named("/a"), &[(&map, Invalid, "the domain must not be empty")]),
            (named("a/"), &[(&map, Invalid, "the name must not be empty")]),
            (named("a/b/c"), &[(&map, Invalid, "must not contain more than one slash")]),
            (named("a_b/c"), &[(&map, Invalid, "RFC 1123 subdomain")]),
            (named(&long_key), &[(&map, TooLong, "32 bytes")]),
            (attribute(json!({"bool": true})), &[]),
            (attribute(json!({"int": 1})), &[]),
            (attribute(json!({"string": text(64)})), &[]),
            (attribute(json!({"string": text(65)})), &[(&path("string"), TooLong, "may not be more than 64 bytes")]),
            (attribute(json!({"version": "1.2.3-rc.1+b.01"})), &[]),
            (attribute(json!({"version": "v1.2.3"})), &[(&path("version"), Invalid, SEMVER)]),
            (attribute(json!({"version": "1.2"})), &[(&path("version"), Invalid, SEMVER)]),
            (attribute(json!({"version": "1.02.3"})), &[(&path("version"), Invalid, SEMVER)]),
            (attribute(json!({"version": "1.2.3-01"})), &[(&path("version"), Invalid, SEMVER)]),
            (attribute(json!({"version": "1.2.3+"})), &[(&path("version"), Invalid, SEMVER)]),
            (attribute(json!({"version": format!("{}.0.0", "9".repeat(60))})), &[]),
            (attribute(json!({"version": format!("1.2.3-{}", text(60))})), &[(&path("version"), TooLong, "64 bytes")]),
            (
                attribute(json!({"version": text(65)})),
                &[(&path("version"), Invalid, SEMVER), (&path("version"), TooLong, "64 bytes")],
            ),
            (attribute(json!({})), &[(&one, Invalid, UNION)]),
            (
                attribute(json!({"int": 1, "bool": true})),
                &[(&one, Invalid, "must specify exactly one of: `int`, `bool`,")],
            ),
            (attribute(json!({"int": 1, "ints": [1]})), &[(&one, Invalid, "must specify exactly one of")]),
        ],
    );
    // req: 6072-FORM-6
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (attribute(json!({"bools": [true]})), &[]),
            (attribute(json!({"ints": [1, 1, 0]})), &[]),
            (attribute(json!({"strings": ["a", text(64)]})), &[]),
            (attribute(json!({"versions": ["1.2.3"]})), &[]),
            (attribute(json!({"bools": []})), &[(&path("bools"), Invalid, EMPTY)]),
            (attribute(json!({"ints": []})), &[(&path("ints"), Invalid, EMPTY)]),
            (attribute(json!({"strings": []})), &[(&path("strings"), Invalid, EMPTY)]),
            (attribute(json!({"versions": []})), &[(&path("versions"), Invalid, EMPTY)]),
            (attribute(json!({"strings": ["a", text(65)]})), &[(&path("strings[1]"), TooLong, "64 bytes")]),
            (attribute(json!({"versions": ["1.2.3", "1"]})), &[(&path("versions[1]"), Invalid, SEMVER)]),
            (attribute(json!({"ints": vec![1; 48]})), &[]),
            (
                attribute(json!({"ints": vec![1; 49]})),
                &[(DEVICE, Invalid, "the total number of attribute values must not exceed 48")],
            ),
        ],
    );
}

#[test]
fn a_key_that_is_too_long_is_cut_in_the_path_of_its_value() {
    let key = format!("example.com/{}", text(100));
    let object = changed(&slice(), json!({"/spec/devices/0/attributes": {key: {}}}));
    let cut = format!("spec.devices[0].attributes[example.com/{}...{}]", text(35), text(46));
    expect::<ResourceSlice>(
        "key",
        create(shipped(), object),
        &[("spec.devices[0].attributes", TooLong, "32 bytes"), (&cut, Invalid, "must specify one of")],
    );
}

#[test]
fn attributes_and_capacities_together() {
    let attributes = |count: usize| -> Value {
        (0..count).map(|index| (format!("a{index}"), json!({"int": 1}))).collect::<Map<_, _>>().into()
    };
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (json!({"/spec/devices/0/attributes": attributes(31)}), &[]),
            (
                json!({"/spec/devices/0/attributes": attributes(32)}),
                &[(DEVICE, Invalid, "the total number of attributes and capacities must not exceed 32")],
            ),
        ],
    );
}

#[test]
fn taints_of_a_device() {
    let taint = |taint: Value| json!({"/spec/devices/0/taints": [taint]});
    let path = |field: &str| at(&format!("taints[0].{field}"));
    let many = |count: usize| json!({"/spec/devices/0/taints": vec![json!({"key": "k", "effect": "None"}); count]});
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (taint(json!({"key": "a.b/c", "value": "", "effect": "NoExecute"})), &[]),
            (taint(json!({"key": "k", "value": "v-1", "effect": "None"})), &[]),
            (many(16), &[]),
            (many(17), &[(&at("taints"), TooMany, "must have at most 16 items")]),
            (
                taint(json!({"key": "", "effect": "None"})),
                &[
                    (&path("key"), Invalid, "name part must be non-empty"),
                    (&path("key"), Invalid, "name part must consist of"),
                ],
            ),
            (
                taint(json!({"key": "k", "value": "a b", "effect": "None"})),
                &[(&path("value"), Invalid, "a valid label")],
            ),
            (taint(json!({"key": "k", "effect": ""})), &[(&path("effect"), Required, "")]),
            (
                taint(json!({"key": "k", "effect": "Prefer"})),
                &[(&path("effect"), NotSupported, "supported values: \"NoExecute\", \"NoSchedule\", \"None\"")],
            ),
        ],
    );
}

#[test]
fn devices_say_where_they_belong_where_the_slice_leaves_it_to_them() {
    const ONE_OF: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                          `perDeviceNodeSelection` is set to true";
    let per_device = |fields: Value| {
        let mut device = json!({"name": "d"});
        device.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({"/spec/nodeName": null, "/spec/perDeviceNodeSelection": true, "/spec/devices": [device]})
    };
    let term = json!({"matchExpressions": [{"key": "zone", "operator": "Exists"}]});
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (per_device(json!({"nodeName": "n"})), &[]),
            (per_device(json!({"allNodes": true})), &[]),
            (per_device(json!({"nodeSelector": {"nodeSelectorTerms": [term, term]}})), &[]),
            (per_device(json!({})), &[(DEVICE, Required, ONE_OF)]),
            (per_device(json!({"nodeName": "n", "allNodes": true})), &[(DEVICE, Invalid, ONE_OF)]),
            (
                per_device(json!({"nodeName": ""})),
                &[(&at("nodeName"), Invalid, "must not be empty"), (DEVICE, Required, ONE_OF)],
            ),
            (per_device(json!({"nodeName": "N"})), &[(&at("nodeName"), Invalid, "RFC 1123 subdomain")]),
            (
                per_device(json!({"nodeName": "n", "allNodes": false})),
                &[(&at("allNodes"), Invalid, "must be either unset or set to true")],
            ),
            (
                json!({"/spec/devices/0/nodeName": "n"}),
                &[(DEVICE, Invalid, "can only be set if `perDeviceNodeSelection` is set to true")],
            ),
        ],
    );
}

#[test]
fn binding_conditions() {
    let conditions = |success: &[&str], failure: &[&str]| json!({"/spec/devices/0/bindingConditions": success, "/spec/devices/0/bindingFailureConditions": failure});
    let (success, failure) = (at("bindingConditions"), at("bindingFailureConditions"));
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (conditions(&[], &[]), &[]),
            (conditions(&["a", "b", "c", "d"], &["e", "f", "g", "h"]), &[]),
            (conditions(&["a", "b", "c", "d", "e"], &["f"]), &[(&success, TooMany, "must have at most 4 items")]),
            (conditions(&["f"], &["a", "b", "c", "d", "e"]), &[(&failure, TooMany, "must have at most 4 items")]),
            (conditions(&["a b"], &["f"]), &[(&at("bindingConditions[0]"), Invalid, "name part must consist of")]),
            (conditions(&["a", "a"], &["f"]), &[(&at("bindingConditions[1]"), Duplicate, "")]),
            (conditions(&["a"], &["f", "f"]), &[(&at("bindingFailureConditions[1]"), Duplicate, "")]),
            (
                conditions(&["a"], &["f", "a"]),
                &[(&at("bindingFailureConditions[1]"), Invalid, "must not overlap with bindingConditions")],
            ),
            (conditions(&[], &["f"]), &[(&success, Invalid, "bindingConditions are required to use")]),
            (conditions(&["a"], &[]), &[(&failure, Invalid, "bindingFailureConditions are required to use")]),
        ],
    );
}

#[test]
fn resources_of_the_node() {
    let resource = |name: &str, value: Value| json!({"/spec/devices/0/nodeAllocatableResources": {name: value}});
    let mapping = |value: Value| resource("cpu", json!({"mapping": value}));
    let overhead = |value: Value| resource("memory", json!({"overhead": value}));
    let cpu = at("nodeAllocatableResources[cpu]");
    let map = |field: &str| format!("{cpu}.mapping.{field}");
    let both = format!("{cpu}.mapping");
    let storage = at("nodeAllocatableResources[ephemeral-storage]");
    let memory = at("nodeAllocatableResources[memory].overhead");
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (resource("hugepages-2Mi", json!({"mapping": {"deviceMultiplier": "1"}})), &[]),
            (
                resource("example.com/x", json!({"mapping": {"deviceMultiplier": "1"}})),
                &[(
                    &at("nodeAllocatableResources[example.com/x]"),
                    Invalid,
                    "must be a node allocatable resource name",
                )],
            ),
            (
                resource("ephemeral-storage", json!({"overhead": {"perPod": "2Gi"}})),
                &[(&storage, Invalid, "must be a node allocatable resource name")],
            ),
            (resource("cpu", json!({})), &[(&cpu, Required, "at least one of mapping or overhead must be set")]),
            (mapping(json!({"capacityKey": "memory", "capacityMultiplier": "2"})), &[]),
            (
                mapping(json!({"capacityKey": "", "capacityMultiplier": "2"})),
                &[(&map("capacityKey"), Invalid, "capacityKey must not be an empty string")],
            ),
            (
                mapping(json!({"capacityKey": "cores", "capacityMultiplier": "2"})),
                &[(&map("capacityKey"), NotFound, "")],
            ),
            (
                mapping(json!({"capacityKey": "memory"})),
                &[(&map("capacityMultiplier"), Required, "capacityMultiplier is required when capacityKey is set")],
            ),
            (
                mapping(json!({"capacityMultiplier": "2"})),
                &[
                    (&map("capacityKey"), Required, "capacityKey is required when capacityMultiplier is set"),
                    (&both, Invalid, "must specify one of: `capacityKey`, `deviceMultiplier`"),
                ],
            ),
            (mapping(json!({})), &[(&both, Invalid, "must specify one of: `capacityKey`, `deviceMultiplier`")]),
            (
                mapping(json!({"capacityKey": "memory", "capacityMultiplier": "1", "deviceMultiplier": "2"})),
                &[(&both, Invalid, "must specify exactly one of: `capacityKey`, `deviceMultiplier`")],
            ),
            (
                mapping(json!({"capacityKey": "memory", "capacityMultiplier": "0"})),
                &[(&map("capacityMultiplier"), Invalid, "must be positive")],
            ),
            (mapping(json!({"deviceMultiplier": "-1"})), &[(&map("deviceMultiplier"), Invalid, "must be positive")]),
            (overhead(json!({"perPod": "0", "perContainer": "1Mi"})), &[]),
            (overhead(json!({})), &[(&memory, Invalid, "at least one of perPod or perContainer must be set")]),
            (overhead(json!({"perPod": "-1"})), &[(&format!("{memory}.perPod"), Invalid, "must be non-negative")]),
            (
                overhead(json!({"perContainer": "-1"})),
                &[(&format!("{memory}.perContainer"), Invalid, "must be non-negative")],
            ),
        ],
    );
}

#[test]
fn an_attribute_with_one_value_counts_as_one() {
    let values = |list: usize| {
        let attributes = json!({"list": {"ints": vec![1; list]}, "one": {"bool": true}, "other": {"string": ""}});
        json!({"/spec/devices/0/attributes": attributes})
    };
    let many = (DEVICE, Invalid, "the total number of attribute values must not exceed 48");
    check_rows::<ResourceSlice>(&slice(), &[(values(46), &[]), (values(47), &[many])]);
}
