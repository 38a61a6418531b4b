//! Tests of every rule for slices as a whole, with valid and invalid objects.

use dra_attrs::ErrorType::*;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use serde_json::{Map, Value, json};

use super::world::{at, changed, check_rows, claim, class, counters, create, expect, shipped, slice, text, update};

#[test]
fn names_of_slice_driver_and_pool() {
    let long_pool = format!("{}/{}", text(63), vec![text(60); 4].join("."));
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (json!({"/metadata/name": "a.b-c"}), &[]),
            (
                json!({"/metadata/name": "A"}),
                &[("metadata.name", Invalid, "a lowercase RFC 1123 subdomain must consist")],
            ),
            (json!({"/metadata/name": ""}), &[("metadata.name", Required, "name or generateName is required")]),
            (json!({"/spec/driver": "GPU.example.com"}), &[]),
            (json!({"/spec/driver": ""}), &[("spec.driver", Required, "")]),
            (json!({"/spec/driver": text(63)}), &[]),
            (json!({"/spec/driver": text(64)}), &[("spec.driver", TooLong, "may not be more than 63 bytes")]),
            (json!({"/spec/driver": "a_b"}), &[("spec.driver", Invalid, "RFC 1123 subdomain")]),
            (json!({"/spec/pool/name": "a/b.c/d"}), &[]),
            (json!({"/spec/pool/name": ""}), &[("spec.pool.name", Required, "")]),
            (json!({"/spec/pool/name": "a//b"}), &[("spec.pool.name", Invalid, "RFC 1123 subdomain")]),
            (json!({"/spec/pool/name": "a/B"}), &[("spec.pool.name", Invalid, "RFC 1123 subdomain")]),
            (json!({"/spec/pool/name": long_pool}), &[("spec.pool.name", TooLong, "may not be more than 253 bytes")]),
            (
                json!({"/spec/pool/resourceSliceCount": 0}),
                &[("spec.pool.resourceSliceCount", Invalid, "must be greater than zero")],
            ),
            (json!({"/spec/pool/generation": 7}), &[]),
            (
                json!({"/spec/pool/generation": -1}),
                &[("spec.pool.generation", Invalid, "must be greater than or equal to zero")],
            ),
        ],
    );
}

#[test]
fn exactly_one_way_to_say_where_a_slice_belongs() {
    const NONE: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    const SEVERAL: &str = "is required, but multiple fields are set";
    let term = json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]});
    let selector = |terms: &[Value]| json!({"nodeSelectorTerms": terms});
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (json!({"/spec/nodeName": null}), &[("spec", Required, NONE)]),
            (
                json!({"/spec/nodeName": ""}),
                &[
                    ("spec.nodeName", Invalid, "must be either unset or set to a non-empty string"),
                    ("spec", Required, NONE),
                ],
            ),
            (json!({"/spec/nodeName": "Node"}), &[("spec.nodeName", Invalid, "RFC 1123 subdomain")]),
            (json!({"/spec/nodeName": null, "/spec/allNodes": true}), &[]),
            (
                json!({"/spec/nodeName": null, "/spec/allNodes": false}),
                &[("spec.allNodes", Invalid, "must be either unset or set to true"), ("spec", Required, NONE)],
            ),
            (json!({"/spec/allNodes": true}), &[("spec", Invalid, SEVERAL)]),
            (
                json!({"/spec/perDeviceNodeSelection": false}),
                &[("spec.perDeviceNodeSelection", Invalid, "must be either unset or set to true")],
            ),
            (json!({"/spec/nodeName": null, "/spec/nodeSelector": selector(std::slice::from_ref(&term))}), &[]),
            (
                json!({"/spec/nodeName": null, "/spec/nodeSelector": selector(&[])}),
                &[
                    ("spec.nodeSelector.nodeSelectorTerms", Required, "must have at least one node selector term"),
                    ("spec.nodeSelector.nodeSelectorTerms", Invalid, "must have exactly one node selector term"),
                ],
            ),
            (
                json!({"/spec/nodeName": null, "/spec/nodeSelector": selector(&vec![term.clone(); 2]), "/spec/allNodes": false}),
                &[
                    ("spec.nodeSelector.nodeSelectorTerms", Invalid, "must have exactly one node selector term"),
                    ("spec.allNodes", Invalid, "must be either unset or set to true"),
                ],
            ),
            (
                json!({"/spec/nodeName": null, "/spec/nodeSelector": selector(&[term.clone(), term])}),
                &[("spec.nodeSelector.nodeSelectorTerms", Invalid, "must have exactly one node selector term")],
            ),
        ],
    );
    let object = changed(&slice(), json!({"/spec/allNodes": true}));
    let error = create::<ResourceSlice>(shipped(), object).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of"), "{text}");
}

#[test]
fn requirements_of_node_selectors() {
    const TERM: &str = "spec.nodeSelector.nodeSelectorTerms[0]";
    let expression = |requirement: Value| {
        json!({"/spec/nodeName": null, "/spec/nodeSelector":
            {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}})
    };
    let field = |requirement: Value| json!({"/spec/nodeName": null, "/spec/nodeSelector": {"nodeSelectorTerms": [{"matchFields": [requirement]}]}});
    let one = |name: &str| format!("{TERM}.matchExpressions[0].{name}");
    let other = |name: &str| format!("{TERM}.matchFields[0].{name}");
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (expression(json!({"key": "a.b/c", "operator": "Exists"})), &[]),
            (expression(json!({"key": "n", "operator": "Gt", "values": ["3"]})), &[]),
            (
                expression(json!({"key": "", "operator": "Exists"})),
                &[
                    (&one("key"), Invalid, "name part must be non-empty"),
                    (&one("key"), Invalid, "name part must consist of"),
                ],
            ),
            (
                expression(json!({"key": "/n", "operator": "Exists"})),
                &[(&one("key"), Invalid, "prefix part must be non-empty")],
            ),
            (
                expression(json!({"key": "A_/n", "operator": "Exists"})),
                &[(&one("key"), Invalid, "prefix part a lowercase RFC 1123 subdomain")],
            ),
            (
                expression(json!({"key": "a/b/c", "operator": "Exists"})),
                &[(&one("key"), Invalid, "a valid label key must consist of alphanumeric characters")],
            ),
            (
                expression(json!({"key": text(64), "operator": "Exists"})),
                &[(&one("key"), Invalid, "name part must be no more than 63 bytes")],
            ),
            (
                expression(json!({"key": "a", "operator": "In"})),
                &[(&one("values"), Required, "must be specified when")],
            ),
            (
                expression(json!({"key": "a", "operator": "Exists", "values": ["b"]})),
                &[(&one("values"), Forbidden, "may not be specified when")],
            ),
            (
                expression(json!({"key": "a", "operator": "Lt", "values": ["1", "2"]})),
                &[(&one("values"), Required, "must be specified single value")],
            ),
            (
                expression(json!({"key": "a", "operator": "Has"})),
                &[(&one("operator"), Invalid, "not a valid selector operator")],
            ),
            (
                expression(json!({"key": "a", "operator": "In", "values": ["-"]})),
                &[(&one("values[0]"), Invalid, "a valid label must be an empty string or consist of")],
            ),
            (
                expression(json!({"key": "a", "operator": "In", "values": [text(64)]})),
                &[(&one("values[0]"), Invalid, "must be no more than 63 bytes")],
            ),
            (field(json!({"key": "metadata.name", "operator": "NotIn", "values": ["n"]})), &[]),
            (
                field(json!({"key": "metadata.name", "operator": "In", "values": ["n", "m"]})),
                &[(&other("values"), Required, "must be only one value")],
            ),
            (
                field(json!({"key": "metadata.name", "operator": "Exists"})),
                &[(&other("operator"), Invalid, "not a valid selector operator")],
            ),
            (
                field(json!({"key": "metadata.uid", "operator": "In", "values": ["n"]})),
                &[(&other("key"), Invalid, "not a valid field selector key")],
            ),
            (
                field(json!({"key": "metadata.name", "operator": "In", "values": ["N"]})),
                &[(&other("values[0]"), Invalid, "RFC 1123 subdomain")],
            ),
        ],
    );
}

#[test]
fn devices_or_counters_and_not_too_many() {
    let plain = |count: usize| -> Value { (0..count).map(|index| json!({"name": format!("d{index}")})).collect() };
    let advanced = |count: usize, extra: Value| {
        let mut devices = plain(count);
        let Value::Object(fields) = extra else { panic!() };
        devices[0].as_object_mut().unwrap().extend(fields);
        json!({"/spec/devices": devices})
    };
    let taint = json!({"taints": [{"key": "k", "effect": "None"}]});
    let consumes = json!({"consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "1"}}}]});
    let list = json!({"attributes": {"numa": {"ints": [1]}}});
    let scalar = json!({"attributes": {"numa": {"int": 1}}});
    const MANY: &str = "must have at most 64 items";
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (json!({"/spec/devices": []}), &[]),
            (
                json!({"/spec/devices": [], "/spec/sharedCounters": []}),
                &[("spec", Invalid, "only one of `sharedCounters` or `devices` is allowed")],
            ),
            (json!({"/spec/devices": plain(128)}), &[]),
            (json!({"/spec/devices": plain(129)}), &[("spec.devices", TooMany, "must have at most 128 items")]),
            (advanced(128, scalar), &[]),
            (advanced(64, taint.clone()), &[]),
            (advanced(65, taint), &[("spec.devices", TooMany, MANY)]),
            (advanced(64, consumes.clone()), &[]),
            (advanced(65, consumes), &[("spec.devices", TooMany, MANY)]),
            (advanced(64, list.clone()), &[]),
            (advanced(65, list), &[("spec.devices", TooMany, MANY)]),
            (json!({"/spec/devices/-": {"name": "gpu-0"}}), &[("spec.devices[1]", Duplicate, "")]),
            (json!({"/spec/devices/0/name": ""}), &[("spec.devices[0].name", Invalid, "a lowercase RFC 1123 label")]),
            (json!({"/spec/devices/0/name": "a.b"}), &[("spec.devices[0].name", Invalid, "must not contain dots")]),
            (json!({"/spec/devices/0/name": "a..b"}), &[("spec.devices[0].name", Invalid, "RFC 1123 label")]),
            (
                json!({"/spec/devices/0/name": text(64)}),
                &[("spec.devices[0].name", Invalid, "must be no more than 63 characters")],
            ),
        ],
    );
}

#[test]
fn counter_sets() {
    const SET: &str = "spec.sharedCounters[0]";
    let field = |name: &str| format!("{SET}.{name}");
    let sets = |count: usize| -> Value {
        (0..count).map(|index| json!({"name": format!("s{index}"), "counters": {"c": {"value": "-1"}}})).collect()
    };
    let many = |count: usize| -> Map<String, Value> {
        (0..count).map(|index| (format!("c{index}"), json!({"value": "1"}))).collect()
    };
    check_rows::<ResourceSlice>(
        &counters(),
        &[
            (json!({"/spec/sharedCounters": sets(8)}), &[]),
            (
                json!({"/spec/sharedCounters": sets(9)}),
                &[("spec.sharedCounters", TooMany, "must have at most 8 items")],
            ),
            (
                json!({"/spec/sharedCounters/-": {"name": "gpu-0", "counters": {"c": {"value": "1"}}}}),
                &[("spec.sharedCounters[1]", Duplicate, "")],
            ),
            (json!({"/spec/sharedCounters/0/name": ""}), &[(&field("name"), Required, "")]),
            (json!({"/spec/sharedCounters/0/name": "G"}), &[(&field("name"), Invalid, "RFC 1123 label")]),
            (json!({"/spec/sharedCounters/0/name": "g.0"}), &[(&field("name"), Invalid, "must not contain dots")]),
            (json!({"/spec/sharedCounters/0/counters": {}}), &[(&field("counters"), Required, "")]),
            (json!({"/spec/sharedCounters/0/counters": many(32)}), &[]),
            (
                json!({"/spec/sharedCounters/0/counters": many(33)}),
                &[(&field("counters"), TooMany, "must have at most 32 items")],
            ),
            (
                json!({"/spec/sharedCounters/0/counters": {"C": {"value": "1"}}}),
                &[(&field("counters"), Invalid, "RFC 1123 label")],
            ),
            (
                json!({"/spec/sharedCounters/0/counters/memory/value": "x"}),
                &[(&field("counters[memory].value"), Invalid, "quantities must match the regular expression")],
            ),
        ],
    );
}

#[test]
fn the_attribute_that_tells_partitions_apart() {
    const NAME: &str = "spec.partitionTypeAttribute";
    let named = |name: &str| json!({"/spec/partitionTypeAttribute": name});
    let path = |name: &str| at(&format!("attributes[{name}]"));
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (named("gpu.example.com/model"), &[]),
            (
                named("model"),
                &[(NAME, Invalid, "a fully qualified name must be a domain and a name separated by a slash")],
            ),
            // The declarative rule for names accepts several slashes.
            (named("gpu.example.com/model/large"), &[]),
            (
                named("GPU.example.com/model"),
                &[
                    (NAME, Invalid, "prefix: a lowercase RFC 1123 subdomain must consist of"),
                    (&path("GPU.example.com/model"), Required, "so it must be set"),
                ],
            ),
            (
                named("other.example.com/profile"),
                &[(&path("other.example.com/profile"), Required, "so it must be set")],
            ),
            (
                named("other.example.com/numaNode"),
                &[(&path("other.example.com/numaNode"), Invalid, "must be a string value because")],
            ),
            (
                json!({"/spec/partitionTypeAttribute": "a.b/c", "/spec/devices/0/consumesCounters": null}),
                &[(NAME, Invalid, "may only be set on a slice which declares devices that consume counters")],
            ),
        ],
    );
    let on_counters = changed(&counters(), named("a.b/c"));
    expect::<ResourceSlice>(
        "counters",
        create(shipped(), on_counters),
        &[(NAME, Invalid, "may only be set on a slice which declares devices")],
    );
}

#[test]
fn fields_of_a_slice_that_stay() {
    let by_node = slice();
    for (changes, field) in [
        (json!({"/spec/driver": "nic.example.com"}), "spec.driver"),
        (json!({"/spec/pool/name": "node-2"}), "spec.pool.name"),
        (json!({"/spec/nodeName": "node-2"}), "spec.nodeName"),
        (json!({"/spec/nodeName": null, "/spec/allNodes": true}), "spec.nodeName"),
        (json!({"/metadata/name": "other"}), "metadata.name"),
    ] {
        let outcome = update::<ResourceSlice>(shipped(), by_node.clone(), changed(&by_node, changes));
        expect(field, outcome, &[(field, Invalid, "field is immutable")]);
    }
    let all = counters();
    let selected = changed(
        &all,
        json!({"/spec/allNodes": null, "/spec/nodeSelector":
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}),
    );
    for changes in [json!({"/spec/pool/generation": 3}), json!({"/spec/pool/resourceSliceCount": 2})] {
        expect("may change", update::<ResourceSlice>(shipped(), all.clone(), changed(&all, changes)), &[]);
    }
    expect("selector", update::<ResourceSlice>(shipped(), all, selected), &[]);
}

#[test]
fn a_capital_in_the_name_of_a_driver_is_a_warning() {
    let object = changed(&slice(), json!({"/spec/driver": "GPU.example.com"}));
    let admitted = create::<ResourceSlice>(shipped(), object).unwrap();
    let expected = "spec.driver: driver names should be lowercase; \"GPU.example.com\" contains uppercase characters";
    assert_eq!(admitted.warnings, [expected]);
    assert!(create::<ResourceSlice>(shipped(), slice()).unwrap().warnings.is_empty());
}

#[test]
fn the_generation_counts_changes_of_the_spec() {
    let stored = changed(&slice(), json!({"/metadata/generation": 4}));
    let generation = |outcome: Result<dra_validate::Accepted<ResourceSlice>, _>| {
        outcome.map_err(|errors: dra_attrs::FieldErrors| errors.to_string()).unwrap().object.metadata.generation
    };
    assert_eq!(generation(create(shipped(), stored.clone())), Some(1));
    assert_eq!(generation(update(shipped(), stored.clone(), stored.clone())), Some(4));
    let relabelled = changed(&stored, json!({"/metadata/labels": {"a": "b"}}));
    assert_eq!(generation(update(shipped(), stored.clone(), relabelled)), Some(4));
    let rewritten = changed(&stored, json!({"/spec/devices/0/capacity/memory/value": "81920Mi"}));
    assert_eq!(generation(update(shipped(), stored.clone(), rewritten)), Some(4), "80Gi is 81920Mi");
    // An attribute named like a field with quantities is not compared as a quantity.
    let text = |text: &str| changed(&stored, json!({"/spec/devices/0/attributes": {"capacity": {"string": text}}}));
    assert_eq!(generation(update(shipped(), text("1Ki"), text("1024"))), Some(5));
    let mapping = json!({"/spec/devices/0/nodeAllocatableResources/cpu/mapping/deviceMultiplier": "2000m"});
    assert_eq!(generation(update(shipped(), stored.clone(), changed(&stored, mapping))), Some(4), "2 is 2000m");
    let regenerated = changed(&stored, json!({"/spec/pool/generation": 1}));
    assert_eq!(generation(update(shipped(), stored, regenerated)), Some(5));
}

#[test]
fn devices_that_consume_nothing_need_no_partition_type() {
    let devices = json!([{"name": "plain"}, slice()["spec"]["devices"][0]]);
    let named = |name: &str| json!({"/spec/devices": devices, "/spec/partitionTypeAttribute": name});
    let missing = "spec.devices[1].attributes[gpu.example.com/kind]";
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (named("gpu.example.com/model"), &[]),
            (named("gpu.example.com/kind"), &[(missing, Required, "must be set")]),
        ],
    );
}

#[test]
fn names_of_exactly_the_largest_length() {
    let pool = |last: usize| json!({"/spec/pool/name": format!("{0}/{0}/{0}/{1}", text(63), text(last))});
    let taint = |key: usize, value: usize| json!({"/spec/devices/0/taints": [{"key": text(key), "value": text(value), "effect": "None"}]});
    let plain: Vec<Value> =
        (0..128).map(|n| json!({"name": format!("d{n}"), "taints": [], "consumesCounters": []})).collect();
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (pool(61), &[]),
            (pool(62), &[("spec.pool.name", TooLong, "253 bytes")]),
            (taint(63, 63), &[]),
            (taint(64, 63), &[(&at("taints[0].key"), Invalid, "must be no more than 63 bytes")]),
            (taint(63, 64), &[(&at("taints[0].value"), Invalid, "must be no more than 63 bytes")]),
            // Empty lists do not count as advanced features.
            (json!({"/spec/devices": plain}), &[]),
        ],
    );
    let domain = |len: usize| {
        json!({"/spec/devices/constraints": [{"matchAttribute": format!("{}/c", text(len))}],
            "/spec/devices/requests/0/exactly/derivedAttributes": null})
    };
    let field = "spec.devices.constraints[0].matchAttribute";
    check_rows::<ResourceClaim>(&claim(), &[(domain(63), &[]), (domain(64), &[(field, TooLong, "63 bytes")])]);
    // The domain must still be valid with `requests.` before it.
    let resource = |last: usize| {
        let labels = [text(60), text(60), text(60), text(last)].join(".");
        json!({"/spec/extendedResourceName": format!("{labels}/gpu")})
    };
    check_rows::<DeviceClass>(
        &class(),
        &[
            (resource(61), &[]),
            (resource(62), &[("spec.extendedResourceName", Invalid, "prefix part must be no more than 253 bytes")]),
        ],
    );
}
