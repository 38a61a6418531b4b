//! Tests of the skipped operations of each driver of a claim.

use dra_device::skip::{SkipDeclaration, SkipSet};
use k8s_openapi::api::resource::v1::{
    AllocationResult, DeviceAllocationResult, DeviceRequestAllocationResult, ResourceClaim,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::{from_value, json};

fn device(driver: &str, names: Option<Vec<String>>) -> DeviceRequestAllocationResult {
    DeviceRequestAllocationResult { driver: driver.to_owned(), skip_node_operations: names, ..Default::default() }
}

fn allocation(results: Vec<DeviceRequestAllocationResult>) -> AllocationResult {
    let devices = DeviceAllocationResult { results: Some(results), ..Default::default() };
    AllocationResult { devices: Some(devices), ..Default::default() }
}

fn aggregate(declarations: &[Vec<String>]) -> SkipSet {
    let devices = declarations.iter().map(|names| device("d.example.com", Some(names.clone())));
    SkipSet::by_driver(&allocation(devices.collect()))["d.example.com"]
}

fn names(text: &str) -> Vec<String> {
    let name = |letter| match letter {
        'P' => "NodePrepareResources",
        'U' => "NodeUnprepareResources",
        '*' => "*",
        _ => "Unknown",
    };
    text.chars().map(|letter| name(letter).to_owned()).collect()
}

#[test]
fn pairs_of_devices() {
    // req: 5945-KUBELET-1, 5945-KUBELET-6, 5945-KUBELET-15
    let kinds = ["", "P", "U", "PU", "*", "*U", "X", "UX"];
    let table = [
        ["", "", "", "", "", "", "", ""],
        ["", "P", "", "P", "P", "P", "", ""],
        ["", "", "U", "U", "U", "U", "", "U"],
        ["", "P", "U", "PU", "PU", "PU", "", "U"],
        ["", "P", "U", "PU", "*", "*", "", "U"],
        ["", "P", "U", "PU", "*", "*", "", "U"],
        ["", "", "", "", "", "", "", ""],
        ["", "", "U", "U", "U", "U", "", "U"],
    ];
    for (row, one) in table.iter().zip(kinds) {
        for (expected, other) in row.iter().zip(kinds) {
            let expected = SkipDeclaration::List(names(expected)).set();
            assert_eq!(aggregate(&[names(one), names(other)]), expected, "{one:?} and {other:?}");
        }
    }
}

#[test]
fn drivers_do_not_influence_each_other() {
    // req: 5945-KUBELET-2, 5945-KUBELET-3
    let results = vec![
        device("a.example.com", Some(names("*"))),
        device("b.example.com", None),
        device("a.example.com", Some(names("*"))),
    ];
    let allocation = allocation(results);
    let drivers = SkipSet::by_driver(&allocation);
    assert_eq!(drivers.keys().copied().collect::<Vec<_>>(), ["a.example.com", "b.example.com"]);
    assert_eq!(drivers["a.example.com"], SkipSet::EVERYTHING);
    assert_eq!(drivers["b.example.com"], SkipSet::NONE);
    assert!(SkipSet::by_driver(&AllocationResult::default()).is_empty());
}

#[test]
fn admin_access_and_shares_count_like_any_device() {
    let results = from_value(json!([
        {"request": "r", "driver": "d", "pool": "p", "device": "x", "skipNodeOperations": ["*"], "adminAccess": true},
        {"request": "r", "driver": "d", "pool": "p", "device": "y", "shareID": "s"},
    ]))
    .unwrap();
    assert_eq!(SkipSet::by_driver(&allocation(results))["d"], SkipSet::NONE);
}

#[test]
fn claims_that_use_it() {
    // req: 5945-OBS-3
    let claim = |declared: serde_json::Value| -> ResourceClaim {
        let result = json!({"request": "r", "driver": "d", "pool": "p", "device": "x", "skipNodeOperations": declared});
        dra_device::skip::SkipField::read(json!({"status": {"allocation": {"devices": {"results": [result]}}}}))
            .unwrap()
    };
    let claims = [json!(null), json!(false), json!([]), json!(true), json!(["*"]), json!(["Future"])].map(claim);
    assert_eq!(claims.each_ref().map(SkipSet::is_any_in), [false, false, false, true, true, true]);
    assert!(!SkipSet::is_any_in(&ResourceClaim::default()));
}

fn declaration() -> impl Strategy<Value = Vec<String>> {
    subsequence(names("PU*X"), 0..=4).prop_shuffle()
}

/// Returns true if the API server accepts a set: prepare is skipped only together with unprepare.
fn is_valid(set: SkipSet) -> bool {
    !set.prepare || set.unprepare
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn order_and_grouping_do_not_matter(
        devices in vec(declaration(), 1..6).prop_flat_map(|devices| (Just(devices.clone()), Just(devices).prop_shuffle())),
        cut in 0_usize..6,
    ) {
        let (devices, shuffled) = devices;
        let whole = aggregate(&devices);
        prop_assert_eq!(whole, aggregate(&shuffled));
        let cut = cut.clamp(1, devices.len());
        let (left, right) = devices.split_at(cut);
        let parts = if right.is_empty() { aggregate(left) } else { aggregate(left).intersection(aggregate(right)) };
        prop_assert_eq!(whole, parts);
        prop_assert_eq!(whole.intersection(whole), whole);
    }

    #[test]
    fn another_device_never_adds_a_skip(devices in vec(declaration(), 1..6), another in declaration()) {
        let before = aggregate(&devices);
        let after = aggregate(&[devices, vec![another]].concat());
        prop_assert_eq!(after.intersection(before), after);
    }

    #[test]
    fn nothing_absorbs_and_everything_is_neutral(devices in vec(declaration(), 1..6)) {
        let whole = aggregate(&devices);
        prop_assert_eq!(aggregate(&[devices.clone(), vec![names("*")]].concat()), whole);
        prop_assert_eq!(aggregate(&[devices, vec![vec![]]].concat()), SkipSet::NONE);
    }

    #[test]
    fn valid_devices_make_a_valid_whole(devices in vec(declaration(), 1..6)) {
        let all_valid = devices.iter().all(|names| is_valid(SkipDeclaration::List(names.clone()).set()));
        prop_assert!(!all_valid || is_valid(aggregate(&devices)));
    }
}
