//! Every rule about slices, with objects that keep and break it.

use dra_attrs::field::ErrorType::*;
use k8s_openapi::api::resource::v1::ResourceSlice;
use serde_json::{Map, Value, json};

use super::world::{changed, check_rows, counters, create, expect, shipped, slice, update};

const DEVICE: &str = "spec.devices[0]";

fn text(len: usize) -> String {
    "a".repeat(len)
}

fn at(field: &str) -> String {
    format!("{DEVICE}.{field}")
}

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
                &[(&one("key"), Invalid, "a qualified name must consist of alphanumeric characters")],
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
            (
                json!({"/spec/devices/0/name": "a.b"}),
                &[("spec.devices[0].name", Invalid, "a lowercase RFC 1123 label")],
            ),
            (
                json!({"/spec/devices/0/name": text(64)}),
                &[("spec.devices[0].name", Invalid, "must be no more than 63 bytes")],
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
    const UNION: &str = "exactly one value must be specified";
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
            (attribute(json!({"int": 1, "bool": true})), &[(&one, Invalid, UNION)]),
            (attribute(json!({"int": 1, "ints": [1]})), &[(&one, Invalid, UNION)]),
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
        &[("spec.devices[0].attributes", TooLong, "32 bytes"), (&cut, Invalid, "exactly one value")],
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
fn capacities_and_who_may_have_a_policy() {
    let capacity = at("capacity");
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (json!({"/spec/devices/0/capacity": {"m": {"value": "1"}}}), &[]),
            (json!({"/spec/devices/0/capacity": {"1m": {"value": "1"}}}), &[(&capacity, Invalid, "C identifier")]),
            (
                json!({"/spec/devices/0/capacity": {"m": {"value": "much"}}}),
                &[(&at("capacity[m].value"), Invalid, "quantities must match")],
            ),
            (
                json!({"/spec/devices/0/allowMultipleAllocations": false}),
                &[(&at("capacity[memory].requestPolicy"), Forbidden, "allowMultipleAllocations must be true")],
            ),
            (
                json!({"/spec/devices/0/allowMultipleAllocations": null}),
                &[(&at("capacity[memory].requestPolicy"), Forbidden, "allowMultipleAllocations must be true")],
            ),
        ],
    );
}

fn policy(policy: Value) -> Value {
    json!({"/spec/devices/0/capacity": {"m": {"value": "10", "requestPolicy": policy}}})
}

#[test]
fn listed_values_of_a_policy() {
    let path = |field: &str| at(&format!("capacity[m].requestPolicy{field}"));
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (policy(json!({})), &[]),
            (policy(json!({"default": "1"})), &[]),
            (policy(json!({"default": "2", "validValues": ["1", "2"]})), &[]),
            (
                policy(json!({"default": "2", "validValues": ["2"], "validRange": {"min": "1"}})),
                &[(&path(""), Forbidden, "exactly one policy can be specified")],
            ),
            (
                policy(json!({"validValues": ["1"]})),
                &[(&path(".default"), Required, "required when validValues is defined")],
            ),
            (policy(json!({"default": "1", "validValues": (1..=10).map(|n| n.to_string()).collect::<Vec<_>>()})), &[]),
            (
                policy(json!({"default": "1", "validValues": ["2", "1"]})),
                &[(&path(".validValues[1]"), Invalid, "values must be sorted in ascending order")],
            ),
            (
                policy(json!({"default": "1", "validValues": ["1", "11"]})),
                &[(&path(".validValues[1]"), Invalid, "option is larger than capacity value: 10")],
            ),
            (policy(json!({"default": "1", "validValues": ["1", "1"]})), &[(&path(".validValues[1]"), Duplicate, "")]),
            (
                policy(json!({"default": "3", "validValues": ["1", "2"]})),
                &[(&path(".validValues"), Invalid, "default value is not valid according to the requestPolicy")],
            ),
            (
                policy(json!({"default": "1", "validValues": vec!["1"; 11]})),
                &[
                    (&path(".validValues"), TooMany, "must have at most 10 items"),
                    (&path(".validValues"), Invalid, "default value is not valid"),
                ],
            ),
        ],
    );
}

#[test]
fn range_of_a_policy() {
    let path = |field: &str| at(&format!("capacity[m].requestPolicy.validRange.{field}"));
    let default = at("capacity[m].requestPolicy.default");
    let range = |default: &str, range: Value| policy(json!({"default": default, "validRange": range}));
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (range("2", json!({"min": "1", "max": "9", "step": "1"})), &[]),
            (
                policy(json!({"validRange": {"min": "1"}})),
                &[(&default, Required, "required when validRange is defined")],
            ),
            (range("2", json!({})), &[(&path("min"), Required, "required when validRange is defined")]),
            (range("11", json!({"min": "11"})), &[(&path("min"), Invalid, "min is larger than capacity value: 10")]),
            (range("1", json!({"min": "2"})), &[(&path("default"), Invalid, "default is less than min: 2")]),
            (
                range("9", json!({"min": "2", "max": "8"})),
                &[(&path("default"), Invalid, "default is more than max: 8")],
            ),
            (
                range("2", json!({"min": "2", "max": "11"})),
                &[(&path("max"), Invalid, "max is larger than capacity value: 10")],
            ),
            (
                range("3", json!({"min": "3", "max": "2"})),
                &[
                    (&path("max"), Invalid, "min is larger than max: 2"),
                    (&path("default"), Invalid, "default is more than max: 2"),
                ],
            ),
            (range("2", json!({"min": "2", "step": "0"})), &[(&path("step"), Invalid, "must be greater than zero")]),
            (
                range("2", json!({"min": "2", "step": "9"})),
                &[(&path("step"), Invalid, "one step 11 is larger than capacity value: 10")],
            ),
            (
                range("3", json!({"min": "2", "step": "2"})),
                &[(&path("step"), Invalid, "value is not a multiple of a given step (2) from (2)")],
            ),
            (
                range("2", json!({"min": "2", "max": "5", "step": "2"})),
                &[(&path("step"), Invalid, "value is not a multiple of a given step (2) from (2)")],
            ),
            (
                range("-2", json!({"min": "-2", "step": "1"})),
                &[
                    (&path("default"), Invalid, "must be greater than or equal to 0"),
                    (&path("min"), Invalid, "must be greater than or equal to 0"),
                ],
            ),
        ],
    );
    let huge = json!({"/spec/devices/0/capacity": {"m": {"value": "20e18", "requestPolicy":
        {"default": "10e18", "validRange": {"min": "1", "step": "1"}}}}});
    check_rows::<ResourceSlice>(
        &slice(),
        &[(huge, &[(&path("default"), Invalid, "must not be larger than 9223372036854775807")])],
    );
}

#[test]
fn range_in_thousandths_where_the_feature_is_on() {
    use dra_alloc::features::{Feature, Features};
    use dra_alloc::validate::ApiServer;
    use dra_attrs::profile::Profile;

    let whole = ApiServer::new(Profile::V1_37, Features::all().without(Feature::FractionalCapacityRange));
    let path = |field: &str| at(&format!("capacity[m].requestPolicy.validRange.{field}"));
    let object = |default: &str, step: &str| {
        let range = json!({"default": default, "validRange": {"min": "1", "step": step}});
        changed(&slice(), policy(range))
    };
    expect::<ResourceSlice>("on a step", create(shipped(), object("1500m", "250m")), &[]);
    let between = [(path("step"), Invalid, "value is not a multiple of a given step (250m) from (1)")];
    let between: Vec<_> = between.iter().map(|(field, kind, detail)| (field.as_str(), *kind, *detail)).collect();
    expect::<ResourceSlice>("between steps", create(shipped(), object("1600m", "250m")), &between);
    // In whole numbers everything is rounded up, and 2 is a step of 1 from 1.
    expect::<ResourceSlice>("rounded", create(whole, object("1600m", "250m")), &[]);
    expect::<ResourceSlice>(
        "too fine",
        create(shipped(), object("1500u", "250m")),
        &[
            (&path("default"), Invalid, "default is less than min: 1"),
            (&path("default"), Invalid, "value cannot be represented as a milli value"),
        ],
    );
    // Values that are the same when rounded are there twice.
    let values = changed(&slice(), policy(json!({"default": "2", "validValues": ["1500m", "2"]})));
    expect::<ResourceSlice>("fractions", create(shipped(), values.clone()), &[]);
    let twice = at("capacity[m].requestPolicy.validValues[1]");
    expect::<ResourceSlice>("whole", create(whole, values), &[(&twice, Duplicate, "")]);
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
                &[(&map("capacityKey"), Required, "capacityKey is required when capacityMultiplier is set")],
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
    let generation = |outcome: Result<dra_alloc::validate::Admitted<ResourceSlice>, _>| {
        outcome.map_err(|errors: dra_attrs::field::FieldErrors| errors.to_string()).unwrap().object.metadata.generation
    };
    assert_eq!(generation(create(shipped(), stored.clone())), Some(1));
    assert_eq!(generation(update(shipped(), stored.clone(), stored.clone())), Some(4));
    let relabelled = changed(&stored, json!({"/metadata/labels": {"a": "b"}}));
    assert_eq!(generation(update(shipped(), stored.clone(), relabelled)), Some(4));
    let rewritten = changed(&stored, json!({"/spec/devices/0/capacity/memory/value": "81920Mi"}));
    assert_eq!(generation(update(shipped(), stored.clone(), rewritten)), Some(4), "80Gi is 81920Mi");
    let regenerated = changed(&stored, json!({"/spec/pool/generation": 1}));
    assert_eq!(generation(update(shipped(), stored, regenerated)), Some(5));
}
