//! Partition summary: partitions that could still be allocated.

use dra_attrs::Profile;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use poolstatus::Cluster;
use serde_json::{Value, json};

use crate::cluster::{DRIVER, claim, gpus, kep_counts, now, pool, query, report, slice};

const PROFILE: &str = "gpu.example.com/profile";

/// Builds a partition of a type that consumes counters of the counter set `card`.
fn partition(name: &str, of_type: &str, counters: Value) -> Value {
    let counters: serde_json::Map<String, Value> =
        counters.as_object().unwrap().iter().map(|(name, value)| (name.clone(), json!({"value": value}))).collect();
    json!({
        "name": name, "attributes": {PROFILE: {"string": of_type}},
        "consumesCounters": [{"counterSet": "card", "counters": counters}],
    })
}

fn full(name: &str) -> Value {
    partition(name, "Full", json!({"memory": "80Gi"}))
}

fn half(name: &str) -> Value {
    partition(name, "Half", json!({"memory": "40Gi"}))
}

/// Builds a pool of two slices: one with counters, one with devices.
fn card(counters: Value, devices: Value) -> Vec<ResourceSlice> {
    card_of(json!(PROFILE), counters, devices)
}

fn card_of(attribute: Value, counters: Value, devices: Value) -> Vec<ResourceSlice> {
    let counters: serde_json::Map<String, Value> =
        counters.as_object().unwrap().iter().map(|(name, value)| (name.clone(), json!({"value": value}))).collect();
    let pool = json!({"resourceSliceCount": 2});
    vec![
        slice("counters", "p", json!({"pool": pool, "sharedCounters": [{"name": "card", "counters": counters}]})),
        slice("devices", "p", json!({"pool": pool, "devices": devices, "partitionTypeAttribute": attribute})),
    ]
}

/// Returns type, allocatable and total of each entry of the summary.
fn types(slices: &[ResourceSlice], claims: &[ResourceClaim]) -> Vec<(String, i32, i32)> {
    let pool = pool(&report(slices, claims));
    assert_eq!(pool.validation_error, None);
    let entries = pool.partition_summary.unwrap_or_default();
    entries.into_iter().map(|entry| (entry.type_, entry.allocatable, entry.total)).collect()
}

fn entries(rows: &[(&str, i32, i32)]) -> Vec<(String, i32, i32)> {
    rows.iter().map(|(name, allocatable, total)| ((*name).to_owned(), *allocatable, *total)).collect()
}

fn error(slices: &[ResourceSlice]) -> String {
    let pool = pool(&report(slices, &[]));
    assert_eq!(pool.partition_summary, None);
    assert!(pool.total_devices.is_some(), "the counts stay");
    pool.validation_error.unwrap_or_default()
}

#[test]
fn worked_numbers() {
    // req: 5677-CALC-9
    let one = card(json!({"memory": "80Gi"}), json!([full("f"), half("h0"), half("h1")]));
    assert_eq!(types(&one, &[]), entries(&[("Full", 1, 1), ("Half", 2, 2)]));
    assert_eq!(types(&one, &[claim("c", &["p/h0"])]), entries(&[("Full", 0, 1), ("Half", 1, 2)]));
    assert_eq!(types(&one, &[claim("c", &["p/f"])]), entries(&[("Full", 0, 1), ("Half", 0, 2)]));
    assert_eq!(kep_counts(&report(&one, &[claim("c", &["p/h0"])])), [[3, 1, 2, 0]], "naively two are left");

    let roomy = card(json!({"memory": "800Gi"}), json!([full("a"), full("b"), full("c")]));
    assert_eq!(types(&roomy, &[]), entries(&[("Full", 3, 3)]), "no more than there are");

    let big = |name| partition(name, "Full", json!({"memory": "80Gi", "sm": "8"}));
    let two = card(json!({"memory": "160Gi", "sm": "8"}), json!([big("a"), big("b")]));
    assert_eq!(types(&two, &[]), entries(&[("Full", 1, 2)]), "the scarcest counter decides");
}

#[test]
fn amounts_of_one_type_must_agree() {
    let other = partition("h1", "Half", json!({"memory": "50Gi"}));
    let slices = card(json!({"memory": "80Gi"}), json!([half("h0"), other]));
    let expected = format!(
        "PartitionCostMismatch: devices of partition type \"Half\" in pool {DRIVER}/p consume different counters"
    );
    assert_eq!(error(&slices), expected);

    // Equal amounts agree only if their canonical forms are equal.
    let mebi = partition("h1", "Half", json!({"memory": "40960Mi"}));
    assert_eq!(types(&card(json!({"memory": "80Gi"}), json!([half("h0"), mebi])), &[]), entries(&[("Half", 2, 2)]));
    let bytes = partition("h1", "Half", json!({"memory": "42949672960"}));
    assert_eq!(error(&card(json!({"memory": "80Gi"}), json!([half("h0"), bytes]))), expected);
}

#[test]
fn a_partition_without_a_type() {
    let mut typeless = half("h1");
    typeless["attributes"] = json!({});
    let expected = format!(
        "PartitionTypeMissing: device \"h1\" in pool {DRIVER}/p does not carry partition type attribute \"{PROFILE}\""
    );
    assert_eq!(error(&card(json!({"memory": "80Gi"}), json!([half("h0"), typeless.clone()]))), expected);
    for value in [json!({"int": 1}), json!({"version": "1.0.0"}), json!({"strings": ["Half"]}), json!({"bool": true})] {
        typeless["attributes"] = json!({PROFILE: value});
        assert_eq!(error(&card(json!({"memory": "80Gi"}), json!([typeless]))), expected);
    }
    // A device that consumes no counters needs no type.
    let slices = card(json!({"memory": "80Gi"}), json!([half("h0"), {"name": "plain"}]));
    assert_eq!(types(&slices, &[]), entries(&[("Half", 1, 1)]));
}

#[test]
fn bare_and_full_names_of_the_attribute() {
    let with = |attributes: Value| {
        let mut device = half("h0");
        device["attributes"] = attributes;
        card(json!({"memory": "80Gi"}), json!([device]))
    };
    assert_eq!(types(&with(json!({"profile": {"string": "Bare"}})), &[])[0].0, "Bare");
    let both = json!({"profile": {"string": "Bare"}, PROFILE: {"string": "Explicit"}});
    assert_eq!(types(&with(both), &[])[0].0, "Explicit");
    let unusable = json!({"profile": {"string": "Bare"}, PROFILE: {"int": 1}});
    assert!(error(&with(unusable)).starts_with("PartitionTypeMissing: device"), "an explicit key is not passed over");

    let mut foreign = half("h0");
    foreign["attributes"] = json!({"profile": {"string": "Bare"}});
    let slices = card_of(json!("other.example.com/profile"), json!({"memory": "80Gi"}), json!([foreign]));
    assert!(error(&slices).starts_with("PartitionTypeMissing: device"), "a bare name is in the driver's domain");
}

#[test]
fn each_slice_names_its_attribute() {
    let pool_of = json!({"resourceSliceCount": 3});
    let shaped = json!({
        "name": "s", "attributes": {"shape": {"string": "Round"}},
        "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": "10Gi"}}}],
    });
    let mut slices = card(json!({"memory": "80Gi"}), json!([half("h0")]));
    for slice in &mut slices {
        slice.spec.pool.resource_slice_count = 3;
    }
    let attribute = json!("gpu.example.com/shape");
    slices.push(slice("more", "p", json!({"pool": pool_of, "devices": [shaped], "partitionTypeAttribute": attribute})));
    let summary = pool(&report(&slices, &[])).partition_summary.unwrap();
    let summary: Vec<_> = summary.iter().map(|entry| (entry.attribute.as_str(), entry.type_.as_str())).collect();
    assert_eq!(summary, [(PROFILE, "Half"), ("gpu.example.com/shape", "Round")]);
}

#[test]
fn the_attribute_of_the_request() {
    let summary = |slices: &[ResourceSlice], attribute: &str| {
        let report = Cluster::new::<_, ResourceClaim>(Profile::V1_37, slices, [])
            .report(&query().with_partition_type_attribute(attribute), now());
        let pool = pool(&report);
        let types = pool.partition_summary.unwrap_or_default().into_iter().map(|entry| entry.type_);
        (types.collect::<Vec<_>>(), pool.validation_error)
    };
    let undeclared = card_of(json!(null), json!({"memory": "80Gi"}), json!([half("h0")]));
    assert_eq!(types(&undeclared, &[]), [], "nobody names an attribute: no view, no error");
    assert_eq!(summary(&undeclared, PROFILE), (vec!["Half".to_owned()], None));
    assert_eq!(summary(&undeclared, ""), (vec![], None), "an empty text is no attribute");

    // A slice that names an attribute disables the request's attribute for the whole pool.
    let mut mixed = card(json!({"memory": "80Gi"}), json!([half("h0")]));
    for slice in &mut mixed {
        slice.spec.pool.resource_slice_count = 3;
    }
    let more = json!({"pool": {"resourceSliceCount": 3}, "devices": [full("f0")]});
    mixed.push(slice("more", "p", more));
    assert_eq!(summary(&mixed, "gpu.example.com/shape"), (vec!["Half".to_owned()], None));

    // A slice without devices does not.
    let mut idle = undeclared;
    idle[0].spec.partition_type_attribute = Some("gpu.example.com/shape".to_owned());
    assert_eq!(summary(&idle, PROFILE), (vec!["Half".to_owned()], None));

    let plain = [slice("s", "p", json!({"devices": gpus(1)}))];
    let expected = format!(
        "PartitionTypeMissing: pool {DRIVER}/p declares partitionTypeAttribute but publishes no sharedCounters"
    );
    assert_eq!(summary(&plain, PROFILE), (vec![], Some(expected)), "every plain pool has the error");
    let empty = [slice("s", "p", json!({}))];
    assert_eq!(summary(&empty, PROFILE), (vec![], None), "unless it has no device");
}

#[test]
fn a_counter_set_for_each_card() {
    let on = |name: &str, set: &str| {
        let mut device = half(name);
        device["consumesCounters"][0]["counterSet"] = json!(set);
        device
    };
    let slices = card(json!({"memory": "80Gi"}), json!([on("a", "card"), on("b", "card-1")]));
    assert!(error(&slices).starts_with("PartitionCostMismatch: "));
    let warnings: Vec<String> =
        report(&slices, &[]).warnings(Profile::V1_37).map(|(_, warning)| warning.to_string()).collect();
    assert!(
        warnings.iter().any(|warning| warning.contains("type \"Half\" have a counter set for each card")),
        "{warnings:?}"
    );
}

#[test]
fn counters_that_do_not_suffice_or_are_not_there() {
    let none = partition("a", "None", json!({}));
    let zero = partition("b", "Zero", json!({"memory": "0"}));
    let other = partition("c", "Other", json!({"power": "1"}));
    let devices = json!([full("f"), half("h"), none, zero, other]);
    let slices = card(json!({"memory": "80Gi"}), devices);
    let expected = entries(&[("Full", 1, 1), ("Half", 1, 1), ("None", 1, 1), ("Other", 0, 1), ("Zero", 1, 1)]);
    assert_eq!(types(&slices, &[]), expected);
    // Overcommitted: the remaining counter is negative, so that even an amount of 0 does not fit.
    let expected = entries(&[("Full", 0, 1), ("Half", 0, 1), ("None", 1, 1), ("Other", 0, 1), ("Zero", 0, 1)]);
    assert_eq!(types(&slices, &[claim("c", &["p/f", "p/h"])]), expected);
    // A device without a group consumes counters too.
    let ungrouped =
        json!({"name": "u", "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": "60Gi"}}}]});
    let mut more = slices;
    for slice in &mut more {
        slice.spec.pool.resource_slice_count = 3;
    }
    more.push(slice("u", "p", json!({"pool": {"resourceSliceCount": 3}, "devices": [ungrouped]})));
    assert_eq!(types(&more, &[claim("c", &["p/u"])])[1], ("Half".to_owned(), 0, 1));
}

#[test]
fn a_shared_partition_is_debited_once_and_taints_play_no_part() {
    let mut shared = half("h0");
    shared["allowMultipleAllocations"] = json!(true);
    let mut tainted = half("h1");
    tainted["taints"] = json!([{"key": "health", "effect": "NoSchedule"}]);
    let slices = card(json!({"memory": "80Gi"}), json!([shared, tainted]));
    let claims = [claim("a", &["p/h0"]), claim("b", &["p/h0"]), claim("c", &["p/h0"])];
    assert_eq!(types(&slices, &claims), entries(&[("Half", 1, 2)]));
}

#[test]
fn more_than_32_types() {
    let of = |count: usize| {
        let devices: Vec<Value> = (0..count)
            .map(|index| partition(&format!("d-{index:02}"), &format!("t-{index:02}"), json!({"memory": "1Gi"})))
            .collect();
        card(json!({"memory": "80Gi"}), json!(devices))
    };
    assert_eq!(types(&of(32), &[]).len(), 32);
    let expected =
        format!("PartitionSummaryOverCap: pool {DRIVER}/p has 33 partition types, exceeding the maximum of 32");
    assert_eq!(error(&of(33)), expected);
}

#[test]
fn the_first_of_two_errors_does_not_depend_on_the_order_of_slices_without_names() {
    let spec = |devices: Value| json!({"pool": {"resourceSliceCount": 3}, "devices": devices, "partitionTypeAttribute": "gpu.example.com/profile"});
    let pair = |of_type: &str| {
        let one = |index: usize| {
            let name = format!("{}-{index}", of_type.to_lowercase());
            partition(&name, of_type, json!({"memory": format!("{}Gi", 10 + index)}))
        };
        slice("", "p", spec(json!([one(0), one(1)])))
    };
    let card = json!([{"name": "card", "counters": {"memory": {"value": "80Gi"}}}]);
    let counters = slice("", "p", json!({"pool": {"resourceSliceCount": 3}, "sharedCounters": card}));
    let (half, third) = (pair("Half"), pair("Third"));
    let error = |slices: [&ResourceSlice; 3]| {
        let error = report(&slices.map(Clone::clone), &[]).pools[0].summary_error().map(ToString::to_string);
        error.expect("both types have partitions of different costs")
    };
    let first = error([&counters, &half, &third]);
    assert!(first.contains("\"Half\""), "{first}");
    assert_eq!(error([&third, &half, &counters]), first);
}
