//! Validation of a status by the API server's rules.

use dra_attrs::Profile;
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequestStatus;
use poolstatus::{Cluster, validate_status};
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use crate::cluster::{DRIVER, NOW, gpus, now, query, ready, report, slice};
use crate::random::{Objects, objects};

/// Builds a status with one pool that has the fields of `more`.
fn with_pool(more: Value) -> Value {
    let mut pool = json!({"driver": DRIVER, "poolName": "node-1", "generation": 1});
    for (key, value) in more.as_object().unwrap() {
        pool[key] = value.clone();
    }
    json!({"poolCount": 1, "pools": [pool]})
}

fn problems(status: Value) -> Vec<String> {
    let status: ResourcePoolStatusRequestStatus = from_value(status).unwrap();
    let problems = validate_status(None, &status);
    problems
        .iter()
        .map(|error| format!("{} {}", error.field, error.r#type.name().trim_start_matches("FieldValue")))
        .collect()
}

#[test]
fn pools() {
    let rows = [
        (json!({}), None),
        (json!({"driver": ""}), Some("driver Required")),
        (json!({"driver": "a/b"}), Some("driver Invalid")),
        (json!({"poolName": ""}), Some("poolName Required")),
        (json!({"poolName": "A"}), Some("poolName Invalid")),
        (json!({"generation": 0}), Some("generation Required")),
        (json!({"generation": -1}), Some("generation Invalid")),
        (json!({"resourceSliceCount": 0}), Some("resourceSliceCount Invalid")),
        (json!({"resourceSliceCount": 1}), None),
        (json!({"totalDevices": -1}), Some("totalDevices Invalid")),
        (json!({"allocatedDevices": -1}), Some("allocatedDevices Invalid")),
        (json!({"availableDevices": -1}), Some("availableDevices Invalid")),
        (json!({"unavailableDevices": -1}), Some("unavailableDevices Invalid")),
        (json!({"unavailableDevices": 0}), None),
        (json!({"nodeName": ""}), Some("nodeName Invalid")),
        (json!({"nodeName": "Node"}), Some("nodeName Invalid")),
        (json!({"validationError": "e".repeat(256)}), None),
        (json!({"validationError": "e".repeat(257)}), Some("validationError TooLong")),
        (json!({"validationError": "ü".repeat(129)}), Some("validationError TooLong")),
    ];
    for (more, expected) in rows {
        let expected: Vec<String> = expected.map(|problem| format!("status.pools[0].{problem}")).into_iter().collect();
        assert_eq!(problems(with_pool(more.clone())), expected, "{more}");
    }
    assert_eq!(problems(json!({"poolCount": -1})), ["status.poolCount Invalid"]);
    let pool = json!({"driver": DRIVER, "poolName": "node-1", "generation": 0});
    let many = |count| json!({"poolCount": 0, "pools": vec![pool.clone(); count]});
    assert_eq!(problems(many(1001)), ["status.pools TooMany"], "the items are not looked at");
    assert_eq!(problems(many(1000)).len(), 1000);
}

#[test]
fn views() {
    let partition = |of_type: &str, total: i32, allocatable: i32| json!({"attribute": "gpu.example.com/profile", "type": of_type, "total": total, "allocatable": allocatable});
    let partitions = |entries: Vec<Value>| problems(with_pool(json!({"partitionSummary": entries})));
    let at = |problem: &str| vec![format!("status.pools[0].partitionSummary{problem}")];
    assert!(partitions(vec![partition("a", 1, 0), partition("b", 0, 0)]).is_empty());
    assert_eq!(partitions(vec![partition("a", 1, 1), partition("a", 1, 1)]), at("[1] Duplicate"));
    assert_eq!(partitions(vec![partition("", 1, 1)]), at("[0].type Required"));
    assert_eq!(partitions(vec![partition("a", -1, 1)]), at("[0].total Invalid"));
    assert_eq!(partitions(vec![partition("a", 1, -1)]), at("[0].allocatable Invalid"));
    assert_eq!(partitions(vec![partition("a", 1, 1); 33]), at(" TooMany"));

    let shareable = |full: i32, capacity: Vec<Value>| {
        let summary = json!({"fullyAvailableDevices": full, "partiallyAvailableDevices": 0, "capacity": capacity});
        problems(with_pool(json!({"shareableSummary": summary})))
    };
    let at = |problem: &str| vec![format!("status.pools[0].shareableSummary.{problem}")];
    let capacity = |name: &str, total: &str| json!({"name": name, "total": total, "consumed": "0", "available": "1"});
    assert!(shareable(0, vec![capacity("a", "1")]).is_empty());
    assert_eq!(shareable(-1, vec![]), at("fullyAvailableDevices Invalid"));
    assert_eq!(shareable(0, vec![capacity("", "1")]), at("capacity[0].name Required"));
    assert_eq!(shareable(0, vec![capacity("a", "")]), at("capacity[0].total Required"));
    assert_eq!(shareable(0, vec![capacity("a", "1"); 33]), at("capacity TooMany"));
    assert!(shareable(0, vec![capacity("a", "1"); 2]).is_empty(), "a name may be there twice");
}

#[test]
fn conditions() {
    let with = |more: Value| {
        let mut condition =
            json!({"type": "Complete", "status": "True", "reason": "Done", "message": "", "lastTransitionTime": NOW});
        for (key, value) in more.as_object().unwrap() {
            condition[key] = value.clone();
        }
        problems(json!({"poolCount": 0, "conditions": [condition]}))
    };
    let at = |problem: &str| vec![format!("status.conditions[0].{problem}")];
    assert!(with(json!({})).is_empty());
    assert_eq!(with(json!({"type": ""})), at("type Required"));
    assert!(with(json!({"type": "example.com/Complete"})).is_empty());
    for of_type in ["not a key", "a/b/c", "Example.com/Complete"] {
        assert_eq!(with(json!({"type": of_type})), at("type Invalid"), "{of_type}");
    }
    assert_eq!(with(json!({"status": ""})), at("status Required"));
    assert_eq!(with(json!({"status": "true"})), at("status NotSupported"));
    assert_eq!(with(json!({"reason": ""})), at("reason Required"));
    assert_eq!(with(json!({"reason": "not a word"})), at("reason Invalid"));
    assert_eq!(with(json!({"reason": "Done:"})), at("reason Invalid"));
    assert_eq!(with(json!({"reason": "D".repeat(1025)})), at("reason TooLong"));
    assert_eq!(with(json!({"lastTransitionTime": "0001-01-01T00:00:00Z"})), at("lastTransitionTime Required"));
    assert_eq!(with(json!({"message": "m".repeat(32_769)})), at("message TooLong"));
    assert_eq!(with(json!({"observedGeneration": -1})), at("observedGeneration Invalid"));
    let condition =
        json!({"type": "Complete", "status": "True", "reason": "Done", "message": "", "lastTransitionTime": NOW});
    let twice = json!({"poolCount": 0, "conditions": vec![condition.clone(); 2]});
    assert_eq!(problems(twice), ["status.conditions[1] Duplicate"]);
    let many = json!({"poolCount": 0, "conditions": vec![condition; 11]});
    assert_eq!(problems(many), ["status.conditions TooMany"]);
}

#[test]
fn a_status_is_written_once() {
    // req: 5677-REQ-4
    let status = ready(&report(&[slice("s", "p", json!({"devices": gpus(1)}))], &[]));
    assert!(validate_status(None, &status).is_empty());
    assert!(validate_status(Some(&status), &status).is_empty());
    let other = ResourcePoolStatusRequestStatus { pool_count: 2, ..status.clone() };
    assert_eq!(validate_status(Some(&status), &other).to_string(), "status: Invalid value: field is immutable");
}

#[test]
fn a_status_that_stays_is_not_looked_at_again() {
    let stored: ResourcePoolStatusRequestStatus = from_value(json!({"poolCount": -1})).unwrap();
    assert!(validate_status(Some(&stored), &stored).is_empty());
}

#[test]
fn names_are_worded_as_in_a_request() {
    let status = with_pool(json!({"driver": "a_b", "poolName": "a//b", "nodeName": "Node"}));
    let problems = validate_status(None, &from_value(status).unwrap());
    let details: Vec<_> = problems.iter().map(|error| error.detail.as_str()).collect();
    assert!(details[0].starts_with("an RFC 1123 subdomain must consist of"), "{}", details[0]);
    assert_eq!(details[1], "segment 1: must not be empty");
    assert!(details[2].starts_with("a lowercase RFC 1123 subdomain must consist of"), "{}", details[2]);
}

#[test]
fn generation_0_never_completes() {
    let status = ready(&report(&[slice("s", "p", json!({"pool": {"generation": 0}}))], &[]));
    assert_eq!(validate_status(None, &status).to_string(), "status.pools[0].generation: Required value");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Computed statuses are valid. Generation 0, which is not, does not occur in the random objects.
    #[test]
    fn computed_statuses_are_accepted(objects in objects()) {
        let Objects { mut slices, claims, rules } = objects;
        for slice in &mut slices {
            slice.spec.pool.resource_slice_count = 0;
        }
        let report = Cluster::new(Profile::V1_37, &slices, &claims).with_taint_rules(&rules).report(&query(), now());
        let problems = validate_status(None, &ready(&report));
        prop_assert!(problems.is_empty(), "{}", problems);
    }
}

#[test]
fn every_field_of_the_views() {
    let partition = json!({"attribute": "", "type": "a", "total": 1, "allocatable": 1});
    let at = |problem: &str| vec![format!("status.pools[0].{problem}")];
    assert_eq!(
        problems(with_pool(json!({"partitionSummary": [partition]}))),
        at("partitionSummary[0].attribute Required")
    );
    let shareable = |change: (&str, Value)| {
        let capacity = json!({"name": "c", "total": "1", "consumed": "0", "available": "1"});
        let mut summary = json!({"fullyAvailableDevices": 0, "partiallyAvailableDevices": 0, "capacity": [capacity]});
        *summary.pointer_mut(change.0).unwrap() = change.1;
        problems(with_pool(json!({"shareableSummary": summary})))
    };
    let of = |problem: &str| at(&format!("shareableSummary.{problem}"));
    assert_eq!(shareable(("/partiallyAvailableDevices", json!(-1))), of("partiallyAvailableDevices Invalid"));
    assert_eq!(shareable(("/capacity/0/consumed", json!(""))), of("capacity[0].consumed Required"));
    assert_eq!(shareable(("/capacity/0/available", json!(""))), of("capacity[0].available Required"));
}

#[test]
fn a_status_is_compared_by_what_it_says() {
    let status = |total: &str, lists: Value| {
        let capacity = json!([{"name": "c", "total": total, "consumed": "0", "available": "1"}]);
        let summary = json!({"fullyAvailableDevices": 0, "partiallyAvailableDevices": 0, "capacity": capacity});
        let mut status = with_pool(json!({"shareableSummary": summary, "partitionSummary": lists}));
        status["conditions"] = lists;
        from_value::<ResourcePoolStatusRequestStatus>(status).unwrap()
    };
    let old = status("1Gi", json!(null));
    for same in [status("1024Mi", json!(null)), status("1Gi", json!([])), status("1073741824", json!([]))] {
        assert!(validate_status(Some(&old), &same).is_empty());
        assert!(validate_status(Some(&same), &old).is_empty());
    }
    assert_eq!(validate_status(Some(&old), &status("2Gi", json!(null))).len(), 1);
}
