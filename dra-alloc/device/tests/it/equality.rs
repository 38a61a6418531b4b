//! Laws of the API server's equality over random objects: it sees every field, and nothing but values.

use std::fmt::Debug;

use dra_device::internal::{Same, TaintTimes};
use k8s_openapi::api::resource::v1::{ResourceClaimSpec, ResourceClaimStatus, ResourceSliceSpec};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Specs and statuses with every field, of which random ones are taken away.
fn slice() -> Value {
    let attribute = json!({"bool": true, "int": 1, "string": "a", "version": "1.0.0", "bools": [true], "ints": [1, 2],
        "strings": ["a"], "versions": ["1.0.0"]});
    let range = json!({"min": "1Gi", "max": "8Gi", "step": "1Gi"});
    let policy = json!({"default": "1Gi", "validRange": range, "validValues": ["1Gi", "2Gi"]});
    let term = json!({"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]});
    let selector = json!({"nodeSelectorTerms": [term]});
    let resource = json!({"mapping": {"capacityKey": "c", "capacityMultiplier": "1", "deviceMultiplier": "2"},
        "overhead": {"perPod": "1Mi", "perContainer": "2Mi"}});
    let device = json!({
        "name": "gpu-0", "nodeName": "n", "allNodes": true, "allowMultipleAllocations": true, "bindsToNode": true,
        "nodeSelector": selector, "attributes": {"a": attribute}, "capacity": {"memory": {"value": "80Gi", "requestPolicy": policy}},
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}],
        "bindingConditions": ["a"], "bindingFailureConditions": ["b"],
        "consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "1"}}, "compatibilityGroups": ["g"]}],
        "nodeAllocatableResources": {"cpu": resource},
    });
    json!({
        "driver": "d", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n", "allNodes": true,
        "nodeSelector": selector, "perDeviceNodeSelection": true, "partitionTypeAttribute": "t", "skipNodeOperations": ["*"],
        "sharedCounters": [{"name": "s", "counters": {"c": {"value": "8"}}}], "devices": [device],
    })
}

fn claim() -> Value {
    let selectors = json!([{"cel": {"expression": "true"}}]);
    let tolerations =
        json!([{"key": "k", "operator": "Exists", "value": "v", "effect": "NoExecute", "tolerationSeconds": 3}]);
    let wanted = json!({"deviceClassName": "c", "selectors": selectors, "allocationMode": "All", "count": 2,
        "capacity": {"requests": {"memory": "1Gi"}}, "tolerations": tolerations,
        "derivedAttributes": [{"name": "a", "expression": "1"}]});
    let mut exactly = wanted.clone();
    exactly["adminAccess"] = json!(true);
    let mut sub = wanted;
    sub["name"] = json!("s");
    let opaque = json!({"driver": "d", "parameters": {"k": "v"}});
    json!({"devices": {
        "requests": [{"name": "r", "exactly": exactly, "firstAvailable": [sub]}],
        "constraints": [{"requests": ["r"], "matchAttribute": "a/b", "distinctAttribute": "a/c"}],
        "config": [{"requests": ["r"], "opaque": opaque}],
    }})
}

fn status() -> Value {
    let result = json!({"request": "r", "driver": "d", "pool": "p", "device": "x", "adminAccess": true, "shareID": "s",
        "consumedCapacity": {"memory": "1Gi"}, "bindingConditions": ["a"], "bindingFailureConditions": ["b"],
        "skipNodeOperations": ["*"], "tolerations": [{"key": "k", "operator": "Exists"}]});
    let config = json!({"source": "FromClass", "requests": ["r"], "opaque": {"driver": "d", "parameters": {"k": 1}}});
    let condition = json!({"type": "Ready", "status": "True", "reason": "R", "message": "m", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    json!({
        "allocation": {"devices": {"results": [result], "config": [config]}, "allocationTimestamp": "2026-01-01T00:00:00Z",
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "k", "operator": "In", "values": ["v"]}]}]}},
        "reservedFor": [{"apiGroup": "g", "resource": "pods", "name": "p", "uid": "u"}],
        "devices": [{"driver": "d", "pool": "p", "device": "x", "shareID": "s", "data": {"k": 1}, "conditions": [condition],
            "networkData": {"interfaceName": "eth0", "hardwareAddress": "aa", "ips": ["10.0.0.1/24"]}}],
    })
}

/// Returns the pointers of all values below one, the outer ones first.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (format!("{at}/{name}"), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (format!("{at}/{index}"), value)).collect()
        }
        _ => Vec::new(),
    };
    for (path, value) in below {
        found.push(path.clone());
        pointers(value, &path, found);
    }
}

fn all_pointers(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    pointers(value, "", &mut found);
    found
}

/// Field without which its object can't be read.
const REQUIRED: &str = "lastTransitionTime";

/// Removes a field of an object; items of lists stay.
fn remove(value: &mut Value, pointer: &str) -> Option<Value> {
    let (parent, name) = pointer.rsplit_once('/').filter(|(_, name)| *name != REQUIRED)?;
    value.pointer_mut(parent)?.as_object_mut()?.remove(name)
}

/// Returns another value of the same type; `None` for lists and objects.
fn other(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Bool(value) => json!(!value),
        Value::Number(number) => json!(number.as_i64()? + 1),
        Value::String(text) if text.starts_with("2026") => json!(text.replacen("2026", "2027", 1)),
        Value::String(text) if text.starts_with(|c: char| c.is_ascii_digit()) => json!(format!("9{text}")),
        // The default operator equals an absent one, so that another word is taken.
        Value::String(text) => json!(format!("{text}x")),
        _ => return None,
    })
}

fn same<T: Same + DeserializeOwned>(one: &Value, other: &Value) -> bool {
    let read = |value: &Value| serde_json::from_value::<T>(value.clone()).unwrap();
    let (one, other) = (read(one), read(other));
    assert!(one.same(&one, TaintTimes::Exact), "an object equals itself");
    let forth = one.same(&other, TaintTimes::Exact);
    assert_eq!(forth, other.same(&one, TaintTimes::Exact), "equality goes both ways");
    forth
}

/// Takes random fields away, then changes each value that is left, in turn.
fn check<T: Same + DeserializeOwned + Debug>(
    mut object: Value,
    gone: &[prop::sample::Index],
) -> Result<(), TestCaseError> {
    for index in gone {
        let pointers = all_pointers(&object);
        if !pointers.is_empty() {
            let pointer: &String = index.get(&pointers);
            remove(&mut object, pointer);
        }
    }
    for pointer in all_pointers(&object) {
        let value = object.pointer(&pointer).unwrap();
        let mut changed = object.clone();
        if let Some(other) = other(value) {
            *changed.pointer_mut(&pointer).unwrap() = other;
            prop_assert!(!same::<T>(&object, &changed), "{pointer} is not seen");
        }
        if let Some(items) = value.as_array().filter(|items| !items.is_empty()) {
            let mut more = items.clone();
            more.push(items[0].clone());
            *changed.pointer_mut(&pointer).unwrap() = json!(more);
            prop_assert!(!same::<T>(&object, &changed), "the length of {pointer} is not seen");
            let (mut absent, mut empty) = (object.clone(), object.clone());
            *empty.pointer_mut(&pointer).unwrap() = json!([]);
            if remove(&mut absent, &pointer).is_some() {
                prop_assert!(same::<T>(&absent, &empty), "an empty list {pointer} is no value");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_field_of_a_slice_counts(gone in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        check::<ResourceSliceSpec>(slice(), &gone)?;
    }

    #[test]
    fn each_field_of_a_claim_counts(gone in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        check::<ResourceClaimSpec>(claim(), &gone)?;
    }

    #[test]
    fn each_field_of_a_status_counts(gone in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        check::<ResourceClaimStatus>(status(), &gone)?;
    }
}

#[test]
fn samples_have_every_field() {
    // A field that a type gains is missing from its sample, and its equality does not compile without it either.
    let read_and_written = |object: &Value, again: Value| assert_eq!(*object, again);
    let slice = slice();
    read_and_written(&slice, json!(serde_json::from_value::<ResourceSliceSpec>(slice.clone()).unwrap()));
    let claim = claim();
    read_and_written(&claim, json!(serde_json::from_value::<ResourceClaimSpec>(claim.clone()).unwrap()));
    let status = status();
    read_and_written(&status, json!(serde_json::from_value::<ResourceClaimStatus>(status.clone()).unwrap()));
}

#[test]
fn forms_of_one_value_are_equal() {
    for (pointer, one, other) in [
        ("/devices/0/capacity/memory/value", json!("1Gi"), json!("1024Mi")),
        ("/devices/0/taints/0/timeAdded", json!("2026-01-01T00:00:00Z"), json!("2026-01-01T00:00:00.9Z")),
    ] {
        let with = |value: Value| {
            let mut slice = slice();
            *slice.pointer_mut(pointer).unwrap() = value;
            slice
        };
        assert!(same::<ResourceSliceSpec>(&with(one), &with(other)), "{pointer}");
    }
    let requests = |request: Value| json!({"devices": {"requests": [{"name": "r", "exactly": request}]}});
    let (bare, full) =
        (json!({"deviceClassName": "c"}), json!({"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}));
    assert!(same::<ResourceClaimSpec>(&requests(bare), &requests(full)), "defaults equal absent values");
}
