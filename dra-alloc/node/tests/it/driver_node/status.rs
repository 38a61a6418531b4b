//! Merging of `status.devices`: other drivers' entries, conditions, and times.

use dra_node::driver::{ConditionReport, DeviceReport, DeviceStatusError};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, from_value, json, to_value};

const DRIVER: &str = "gpu.example.com";
const THEN: &str = "2026-11-22T10:00:00Z";
const NOW: &str = "2026-11-22T11:00:00Z";

fn claim(results: &[(&str, &str, Option<&str>)], devices: Value) -> ResourceClaim {
    let result = |(driver, device, share): &(&str, &str, Option<&str>)| json!({"request": "r", "driver": driver, "pool": "p", "device": device, "shareID": share});
    from_value(json!({
        "metadata": {"name": "c", "generation": 4},
        "status": {
            "allocation": {"devices": {"results": results.iter().map(result).collect::<Vec<_>>()}},
            "devices": devices,
        },
    }))
    .unwrap()
}

fn stored(driver: &str, device: &str, conditions: &[(&str, &str)]) -> Value {
    let condition = |(type_, status): &(&str, &str)| {
        json!({"type": type_, "status": status, "reason": "R", "message": "", "lastTransitionTime": THEN,
            "observedGeneration": 4})
    };
    json!({"driver": driver, "pool": "p", "device": device,
        "conditions": conditions.iter().map(condition).collect::<Vec<_>>()})
}

fn report(device: &str, conditions: &[(&str, &str)]) -> DeviceReport {
    let condition = |(type_, status): &(&str, &str)| ConditionReport {
        type_: (*type_).to_owned(),
        status: (*status).to_owned(),
        reason: "R".to_owned(),
        message: String::new(),
    };
    DeviceReport {
        pool: "p".to_owned(),
        device: device.to_owned(),
        conditions: conditions.iter().map(condition).collect(),
        ..DeviceReport::default()
    }
}

fn merge(claim: &ResourceClaim, reports: &[DeviceReport]) -> Result<Option<Value>, DeviceStatusError> {
    let now: Timestamp = NOW.parse().unwrap();
    DeviceReport::merge(claim, DRIVER, reports, now).map(|devices| devices.map(|devices| to_value(devices).unwrap()))
}

#[test]
fn entries_of_others_stay_in_their_places() {
    let devices = json!([
        stored(DRIVER, "gone", &[]),
        stored("nic.example.com", "n", &[("Ready", "False")]),
        stored(DRIVER, "b", &[("Ready", "True")]),
        stored(DRIVER, "c", &[("Ready", "True")]),
    ]);
    let all = [(DRIVER, "a", None), (DRIVER, "b", None), (DRIVER, "c", None), (DRIVER, "d", None)];
    let claim = claim(&all, devices.clone());
    let merged =
        merge(&claim, &[report("d", &[]), report("b", &[("Ready", "False")]), report("a", &[])]).unwrap().unwrap();
    let names: Vec<_> = merged.as_array().unwrap().iter().map(|device| device["device"].as_str().unwrap()).collect();
    assert_eq!(names, ["n", "b", "c", "a", "d"], "new ones in the order of the allocation");
    assert_eq!(merged[0], devices[1]);
    assert_eq!(merged[2], devices[3]);
    assert_eq!(merged[1]["conditions"][0]["lastTransitionTime"], NOW);
}

#[test]
fn conditions_by_type() {
    let devices = json!([stored(DRIVER, "a", &[("Bound", "True"), ("Ready", "False"), ("Hot", "True")])]);
    let claim = claim(&[(DRIVER, "a", None)], devices);
    let merged =
        merge(&claim, &[report("a", &[("New", "True"), ("Hot", "True"), ("Ready", "True")])]).unwrap().unwrap();
    let found: Vec<_> = merged[0]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| (condition["type"].as_str().unwrap(), condition["lastTransitionTime"].as_str().unwrap()))
        .collect();
    assert_eq!(found, [("Bound", THEN), ("Ready", NOW), ("Hot", THEN), ("New", NOW)]);
}

#[test]
fn a_newer_generation_is_written_with_the_old_time() {
    let devices = json!([stored(DRIVER, "a", &[("Ready", "True")])]);
    let mut claim = claim(&[(DRIVER, "a", None)], devices);
    assert_eq!(merge(&claim, &[report("a", &[("Ready", "True")])]).unwrap(), None);
    claim.metadata.generation = Some(5);
    let merged = merge(&claim, &[report("a", &[("Ready", "True")])]).unwrap().unwrap();
    assert_eq!(merged[0]["conditions"][0]["observedGeneration"], 5);
    assert_eq!(merged[0]["conditions"][0]["lastTransitionTime"], THEN);
    claim.metadata.generation = None;
    let merged = merge(&claim, &[report("a", &[("Ready", "True")])]).unwrap().unwrap();
    assert_eq!(merged[0]["conditions"][0].get("observedGeneration"), None);
}

#[test]
fn nothing_to_write() {
    let devices = json!([{"driver": DRIVER, "pool": "p", "device": "a", "conditions": []}]);
    assert_eq!(merge(&claim(&[(DRIVER, "a", None)], devices), &[report("a", &[])]).unwrap(), None);
    assert_eq!(merge(&claim(&[], json!(null)), &[]).unwrap(), None);
    assert_eq!(merge(&ResourceClaim::default(), &[]).unwrap(), None);
}

#[test]
fn refusals() {
    let share = |share: &str| DeviceReport { share_id: Some(share.to_owned()), ..report("a", &[]) };
    let claim = claim(&[(DRIVER, "a", Some("s1")), ("nic.example.com", "n", None)], json!([]));
    let place = |device: &str| ("p".to_owned(), device.to_owned());
    for (reports, (pool, device)) in
        [(vec![report("a", &[])], place("a")), (vec![share("s2")], place("a")), (vec![report("n", &[])], place("n"))]
    {
        assert_eq!(merge(&claim, &reports).unwrap_err(), DeviceStatusError::NotAllocated { pool, device });
    }
    assert!(merge(&claim, &[share("s1")]).unwrap().is_some());
    let duplicate = DeviceStatusError::Duplicate { pool: "p".to_owned(), device: "a".to_owned() };
    assert_eq!(merge(&claim, &[share("s1"), share("s1")]).unwrap_err(), duplicate);
    let twice = DeviceReport { conditions: report("a", &[("T", "True"), ("T", "False")]).conditions, ..share("s1") };
    assert_eq!(merge(&claim, &[twice]).unwrap_err(), duplicate);
}

#[test]
fn eight_conditions_with_those_that_stay() {
    let types: Vec<String> = (0..9).map(|number| format!("T{number}")).collect();
    let all: Vec<(&str, &str)> = types.iter().map(|type_| (type_.as_str(), "True")).collect();
    let claim = claim(&[(DRIVER, "a", None)], json!([stored(DRIVER, "a", &all[..2])]));
    assert!(merge(&claim, &[report("a", &all[..8])]).unwrap().is_some());
    let too_many = DeviceStatusError::TooManyConditions { pool: "p".to_owned(), device: "a".to_owned() };
    assert_eq!(merge(&claim, &[report("a", &all)]).unwrap_err(), too_many);
    assert_eq!(merge(&claim, &[report("a", &all[2..])]).unwrap_err(), too_many, "two are stored already");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A merge of what was merged writes nothing, and never touches an entry of another driver.
    #[test]
    fn a_second_merge_writes_nothing(
        stored_devices in prop::collection::vec((any::<bool>(), 0_u8..4, any::<bool>()), 0..5),
        reported in prop::collection::btree_map(0_u8..4, any::<bool>(), 0..4),
    ) {
        let status = |is_true: bool| if is_true { "True" } else { "False" };
        let devices: Vec<Value> = stored_devices
            .iter()
            .map(|(own, device, ready)| {
                let driver = if *own { DRIVER } else { "nic.example.com" };
                stored(driver, &format!("d{device}"), &[("Ready", status(*ready))])
            })
            .collect();
        let names: Vec<String> = (0..4).map(|number| format!("d{number}")).collect();
        let results: Vec<_> = names.iter().map(|name| (DRIVER, name.as_str(), None)).collect();
        let mut claim = claim(&results, json!(devices));
        let reports: Vec<_> = reported.iter().map(|(device, ready)| report(&format!("d{device}"), &[("Ready", status(*ready))])).collect();
        let foreign = |value: &Value| value.as_array().unwrap().iter().filter(|entry| entry["driver"] != DRIVER).cloned().collect::<Vec<_>>();
        if let Some(merged) = merge(&claim, &reports).unwrap() {
            prop_assert_eq!(foreign(&merged), foreign(&json!(devices)));
            claim.status.as_mut().unwrap().devices = Some(from_value(merged).unwrap());
        }
        prop_assert_eq!(merge(&claim, &reports).unwrap(), None);
    }
}
