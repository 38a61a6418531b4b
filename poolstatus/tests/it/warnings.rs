//! Warnings about the objects of a pool.

use dra_attrs::Profile;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use poolstatus::{Cluster, PoolWarning};
use serde_json::{Value, json};

use crate::cluster::{DRIVER, claim, claim_with, devices, gpus, node, report, slice};

fn warnings(slices: &[ResourceSlice], claims: &[ResourceClaim]) -> Vec<String> {
    let report = report(slices, claims);
    let is_summarised = |warning: &PoolWarning| matches!(warning, PoolWarning::ShareableInUse { .. });
    let kep: Vec<_> = report.warnings(Profile::Kep).filter(|(_, warning)| !is_summarised(warning)).collect();
    let shipped: Vec<_> = report.warnings(Profile::V1_37).collect();
    assert_eq!(kep, shipped);
    assert!(kep.iter().all(|(pool, _)| *pool == "p"));
    kep.into_iter().map(|(_, warning)| warning.to_string()).collect()
}

fn pair(first: Value, second: Value) -> [ResourceSlice; 2] {
    let slices = [slice("a", "p", first), slice("b", "p", second)];
    slices.map(|mut slice| {
        slice.spec.pool.resource_slice_count = 2;
        slice
    })
}

#[test]
fn a_sound_pool_has_none() {
    let slices =
        pair(json!({"nodeName": "n", "devices": gpus(12)}), json!({"nodeName": "n", "devices": devices(&["x"])}));
    assert_eq!(warnings(&slices, &[claim("c", &["p/x", "p/gpu-11"])]), [""; 0]);
}

#[test]
fn devices_that_are_listed_twice() {
    // req: 5677-VALID-1
    let slices = pair(json!({"devices": devices(&["b", "a", "c"])}), json!({"devices": devices(&["a", "b"])}));
    assert_eq!(warnings(&slices, &[]), ["device a appears in multiple slices", "device b appears in multiple slices"]);
    let one = [slice("a", "p", json!({"devices": devices(&["a", "a"])}))];
    assert_eq!(warnings(&one, &[]), ["device a appears several times in one slice"]);
}

#[test]
fn numbers_of_slices() {
    // req: 5677-VALID-4
    let slices_with_counts = |counts: &[i64]| -> Vec<ResourceSlice> {
        let slices = counts.iter().enumerate();
        slices
            .map(|(index, count)| slice(&format!("s-{index}"), "p", json!({"pool": {"resourceSliceCount": count}})))
            .collect()
    };
    assert_eq!(warnings(&slices_with_counts(&[1, 1]), &[]), ["2 slices, although 1 are announced"]);
    assert_eq!(warnings(&slices_with_counts(&[0]), &[]), ["1 slices, although 0 are announced"]);
    assert_eq!(warnings(&slices_with_counts(&[-1]), &[]), ["1 slices, although -1 are announced"]);
    assert_eq!(warnings(&slices_with_counts(&[2, 3]), &[]), ["slices disagree on resourceSliceCount: 2, 3"]);
    let expected = ["incomplete: observed 2/3 slices at generation 1", "slices disagree on resourceSliceCount: 2, 3"];
    assert_eq!(warnings(&slices_with_counts(&[3, 2]), &[]), expected, "the first by name says how many there are");
}

#[test]
fn devices_in_claims() {
    let slices = [slice("a", "p", json!({"devices": gpus(2)}))];
    assert_eq!(warnings(&slices, &[claim("c", &["p/x", "p/y", "p/gpu-0"])]), ["2 allocated device(s) not found"]);
    let tainted = json!([{"name": "a", "taints": [{"key": "k", "effect": "NoExecute"}]}, {"name": "b"}]);
    let slices = [slice("a", "p", json!({"devices": tainted}))];
    assert_eq!(warnings(&slices, &[claim("c", &["p/a", "p/b"])]), ["1 device(s) both allocated and tainted"]);
}

#[test]
fn counter_sets() {
    let consumer = |set: &str, counter: &str| {
        let consumed = json!([{"counterSet": set, "counters": {counter: {"value": "1"}}}]);
        json!({"devices": [{"name": "a", "consumesCounters": consumed}]})
    };
    let set = json!({"sharedCounters": [{"name": "card", "counters": {"memory": {"value": "1"}}}]});
    let listed = "devices share counters: the counts are of devices as listed and may mislead";
    assert_eq!(warnings(&pair(set.clone(), consumer("card", "memory")), &[]), [listed]);
    assert_eq!(
        warnings(&pair(set.clone(), consumer("gone", "memory")), &[]),
        [listed, "device a: counter set gone not found"]
    );
    assert_eq!(
        warnings(&pair(set, consumer("card", "power")), &[]),
        [listed, "device a: counter power not found in counter set card"]
    );
}

#[test]
fn generations_that_no_status_may_have() {
    for (generation, expected) in [(1, None), (0, Some(0)), (-3, Some(-3))] {
        let slices = [slice("a", "p", json!({"pool": {"generation": generation}}))];
        let expected: Vec<String> = expected
            .map(|number| format!("generation {number}: Kubernetes 1.37 accepts no status with it"))
            .into_iter()
            .collect();
        assert_eq!(warnings(&slices, &[]), expected);
    }
}

#[test]
fn quantities_that_can_not_be_read() {
    let device = json!({"name": "a", "allowMultipleAllocations": true, "capacity": {"memory": {"value": "much"}}});
    let slices = [slice("a", "p", json!({"devices": [device]}))];
    assert_eq!(warnings(&slices, &[]), ["1 quantity(s) in slices can't be read"]);
    let result =
        json!({"request": "r", "driver": DRIVER, "pool": "p", "device": "a", "consumedCapacity": {"memory": "some"}});
    let expected = ["1 quantity(s) in slices can't be read", "1 consumed capacity(s) can't be read"];
    assert_eq!(warnings(&slices, &[claim_with("team", "c", json!([result]))]), expected);
}

#[test]
fn a_summary_says_what_the_counts_do_not() {
    // req: 5677-CALC-12
    let partition = |name: &str| {
        json!({
            "name": name, "attributes": {"profile": {"string": "Half"}},
            "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": "1"}}}],
        })
    };
    let set = json!({"sharedCounters": [{"name": "card", "counters": {"memory": {"value": "1"}}}]});
    let slices = pair(set, json!({"devices": [partition("a")], "partitionTypeAttribute": "gpu.example.com/profile"}));
    let of = |slices: &[ResourceSlice]| {
        let report = report(slices, &[]);
        (report.warnings(Profile::Kep).count(), report.warnings(Profile::V1_37).count())
    };
    assert_eq!(of(&slices), (1, 0));

    // Devices of a slice without an attribute are in no summary.
    let mut partly = slices.to_vec();
    partly.push(slice("c", "p", json!({"devices": [partition("b")]})));
    for slice in &mut partly {
        slice.spec.pool.resource_slice_count = 3;
    }
    assert_eq!(of(&partly), (1, 1));

    // An error of the shareable summary removes the partition summary.
    let capacity: serde_json::Map<String, Value> =
        (0..33).map(|index| (format!("c{index}"), json!({"value": "1"}))).collect();
    let shared = json!({"name": "s", "allowMultipleAllocations": true, "capacity": capacity});
    let mut failed = slices;
    failed[1].spec.devices.get_or_insert_default().push(serde_json::from_value(shared).unwrap());
    assert_eq!(crate::cluster::pool(&report(&failed, &[])).partition_summary, None);
    assert_eq!(of(&failed), (1, 1));
}

#[test]
fn warnings_are_those_of_the_listed_pools() {
    let slices = [node("p", 1), slice("z", "z", json!({"pool": {"generation": 0}}))];
    let report = Cluster::new::<_, ResourceClaim>(Profile::V1_37, &slices, [])
        .report(&crate::cluster::query().with_limit(1), crate::cluster::now());
    assert_eq!(report.warnings(Profile::Kep).count(), 0);
}
