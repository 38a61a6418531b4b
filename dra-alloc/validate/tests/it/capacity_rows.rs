//! Tests of every rule for capacities of a device and their request policies.

use dra_attrs::ErrorType::*;
use dra_attrs::{Component, Gate, GateSet, Profile};
use dra_validate::ApiServer;
use k8s_openapi::api::resource::v1::ResourceSlice;
use serde_json::{Value, json};

use super::world::{at, changed, check_rows, create, expect, shipped, slice, update};

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
fn listed_values_that_are_equal_are_one() {
    let values = |values: [&str; 2]| {
        changed(
            &slice(),
            json!({"/spec/devices/0/capacity": {"m": {"value": "10Gi", "requestPolicy": {
                "default": values[0], "validValues": values}}}}),
        )
    };
    let field = at("capacity[m].requestPolicy.validValues[1]");
    let whole = ApiServer::new(Component::new(Profile::V1_37, GateSet::all().without(Gate::FractionalCapacityRange)));
    for server in [shipped(), whole] {
        for equal in [["1Gi", "1073741824"], ["5", "5.0"], ["1e3", "1k"]] {
            expect::<ResourceSlice>("equal", create(server, values(equal)), &[(&field, Duplicate, "")]);
        }
    }
    // Values with different fractions are distinct if the feature is on.
    expect::<ResourceSlice>("on", create(shipped(), values(["1500m", "1600m"])), &[]);
    expect::<ResourceSlice>("on", create(shipped(), values(["1.5", "1500m"])), &[(&field, Duplicate, "")]);
    expect::<ResourceSlice>("off", create(whole, values(["1500m", "1600m"])), &[(&field, Duplicate, "")]);
    let text = create::<ResourceSlice>(shipped(), values(["-1500m", "-1.5"])).unwrap_err().to_string();
    assert!(text.ends_with("Duplicate value: \"-1.5\""), "{text}");
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
    use dra_attrs::{Gate, GateSet, Profile};
    use dra_validate::ApiServer;

    let whole = ApiServer::new(Component::new(Profile::V1_37, GateSet::all().without(Gate::FractionalCapacityRange)));
    let path = |field: &str| at(&format!("capacity[m].requestPolicy.validRange.{field}"));
    let object = |default: &str, step: &str| {
        let range = json!({"default": default, "validRange": {"min": "1", "step": step}});
        changed(&slice(), policy(range))
    };
    expect::<ResourceSlice>("on a step", create(shipped(), object("1500m", "250m")), &[]);
    let between = [(path("step"), Invalid, "value is not a multiple of a given step (250m) from (1)")];
    let between: Vec<_> = between.iter().map(|(field, kind, detail)| (field.as_str(), *kind, *detail)).collect();
    expect::<ResourceSlice>("between steps", create(shipped(), object("1600m", "250m")), &between);
    // Everything is rounded up to whole units, and 2 is one step of 1 above 1.
    expect::<ResourceSlice>("rounded", create(whole, object("1600m", "250m")), &[]);
    expect::<ResourceSlice>(
        "too fine",
        create(shipped(), object("1500u", "250m")),
        &[
            (&path("default"), Invalid, "default is less than min: 1"),
            (&path("default"), Invalid, "value cannot be represented as a milli value"),
        ],
    );
    // Values that are equal after rounding are duplicates.
    let values = changed(&slice(), policy(json!({"default": "2", "validValues": ["1500m", "2"]})));
    expect::<ResourceSlice>("fractions", create(shipped(), values.clone()), &[]);
    let twice = at("capacity[m].requestPolicy.validValues[1]");
    expect::<ResourceSlice>("whole", create(whole, values), &[(&twice, Duplicate, "")]);
}

#[test]
fn the_key_of_a_capacity_is_no_amount() {
    let key = |key: &str| {
        let mapping = json!({"capacityKey": key, "capacityMultiplier": "1"});
        changed(
            &slice(),
            json!({
                "/metadata/generation": 4,
                "/spec/devices/0/capacity": {"k": {"value": "1"}, "M": {"value": "2"}},
                "/spec/devices/0/nodeAllocatableResources": {"cpu": {"mapping": mapping}},
            }),
        )
    };
    let admitted = update::<ResourceSlice>(shipped(), key("k"), key("M")).unwrap();
    assert_eq!(admitted.object.metadata.generation, Some(5));
}

#[test]
fn a_fraction_in_the_default_alone_is_seen() {
    let policy = |default: &str, range: Value| policy(json!({"default": default, "validRange": range}));
    let step = at("capacity[m].requestPolicy.validRange.step");
    let object = policy("1500m", json!({"min": "1", "max": "9", "step": "1"}));
    check_rows::<ResourceSlice>(
        &slice(),
        &[
            (policy("1500m", json!({"min": "1"})), &[]),
            (object.clone(), &[(&step, Invalid, "value is not a multiple of a given step (1) from (1)")]),
            (policy("2", json!({"min": "1", "max": "2500m", "step": "1"})), &[(&step, Invalid, "is not a multiple")]),
        ],
    );
    let whole = ApiServer::new(Component::new(Profile::V1_37, GateSet::all().without(Gate::FractionalCapacityRange)));
    expect::<ResourceSlice>("rounded", create(whole, changed(&slice(), object)), &[]);
    // An empty list counts as absent.
    let mut both = policy("1", json!({"min": "1"}));
    both["/spec/devices/0/capacity"]["m"]["requestPolicy"]["validValues"] = json!([]);
    check_rows::<ResourceSlice>(&slice(), &[(both, &[])]);
    let reversed = changed(&slice(), policy("3", json!({"min": "3", "max": "2"})));
    let text = create::<ResourceSlice>(shipped(), reversed).unwrap_err().to_string();
    assert!(text.contains("validRange.max: Invalid value: \"3\": min is larger than max: 2"), "{text}");
}
