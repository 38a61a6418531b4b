//! Device counts in both forms of a status.

use dra_attrs::{Component, Gate, GateSet, Profile};
use k8s_openapi::api::resource::v1::ResourceClaim;
use poolstatus::Cluster;
use serde_json::json;

use crate::cluster::{
    DRIVER, claim, claim_with, devices, gpus, kep_counts, node, now, query, report, result, rule, shipped_counts, slice,
};

#[test]
fn the_pools_of_story_1() {
    // req: 5677-CALC-11, 5677-CALC-2
    let slices = [node("node-1", 4), node("node-2", 4)];
    let claims =
        [claim("a", &["node-1/gpu-0", "node-1/gpu-1"]), claim("b", &["node-1/gpu-3"]), claim("c", &["node-2/gpu-0"])];
    let report = report(&slices, &claims);
    assert_eq!(kep_counts(&report), [[4, 3, 1, 0], [4, 1, 3, 0]]);
    assert_eq!(shipped_counts(&report), kep_counts(&report));
    let pools = report.to_kep().pools;
    assert_eq!((pools[0].pool_name.as_str(), pools[1].node_name.as_str()), ("node-1", "node-2"));
}

#[test]
fn only_pools_asked_for_sorted_by_name() {
    // req: 5677-CALC-1, 5677-REQ-2
    let other = slice("other", "node-1", json!({"driver": "nic.example.com", "devices": gpus(1)}));
    let upper = slice("upper", "node-1", json!({"driver": "GPU.example.com", "devices": gpus(1)}));
    let slices = [node("node-2", 1), other, node("node-10", 1), upper, node("node-1", 1), node("Node", 1)];
    let names = |query| -> Vec<String> {
        let report = Cluster::new::<_, ResourceClaim>(Profile::V1_37, &slices, []).report(&query, now());
        report.to_kep().pools.into_iter().map(|pool| pool.pool_name).collect()
    };
    assert_eq!(names(query()), ["Node", "node-1", "node-10", "node-2"], "by bytes");
    assert_eq!(names(query().with_pool("node-1")), ["node-1"]);
    assert_eq!(names(query().with_pool("node")), [""; 0]);
}

#[test]
fn devices_of_all_slices_of_the_newest_generation() {
    // req: 5677-CALC-2, 5677-CALC-6, 5677-CALC-8
    let at = |generation: i64, count: i64| json!({"generation": generation, "resourceSliceCount": count});
    let slices = [
        slice("a", "p", json!({"pool": at(7, 2), "devices": gpus(3)})),
        slice("b", "p", json!({"pool": at(7, 2), "devices": devices(&["x", "y"])})),
        slice("old", "p", json!({"pool": at(6, 1), "devices": devices(&["z"])})),
    ];
    let report = report(&slices, &[claim("c", &["p/x"])]);
    assert_eq!(kep_counts(&report), [[5, 1, 4, 0]]);
    let pool = &report.to_kep().pools[0];
    assert_eq!((pool.slice_count, pool.generation), (2, 7));
    assert!(report.to_kep().validation_errors.is_empty() && report.warnings(Profile::Kep).count() == 0);
}

#[test]
fn slices_are_counted_not_announced() {
    // req: 5677-CALC-6
    let pool = |count: i64| json!({"pool": {"resourceSliceCount": count}, "devices": gpus(1)});
    assert_eq!(report(&[slice("a", "p", pool(3))], &[]).to_kep().pools[0].slice_count, 1);
    let two = [slice("a", "p", pool(1)), slice("b", "p", json!({"devices": devices(&["x"])}))];
    let report = report(&two, &[]);
    assert_eq!(report.to_kep().pools[0].slice_count, 2);
    assert_eq!(crate::cluster::pool(&report).resource_slice_count, Some(2), "more than announced is complete");
}

#[test]
fn a_device_is_allocated_once_whoever_holds_it() {
    // req: 5677-CALC-3, 5677-SEC-3
    let deleted = {
        let mut claim = claim_with("elsewhere", "deleted", json!([result("node-1/gpu-2")]));
        claim.metadata.deletion_timestamp = serde_json::from_value(json!(crate::cluster::NOW)).unwrap();
        claim
    };
    let claims = [
        claim("twice", &["node-1/gpu-0", "node-1/gpu-0"]),
        claim_with("elsewhere", "shared", json!([result("node-1/gpu-0")])),
        deleted,
        claim("another-pool", &["node-2/gpu-1"]),
        claim_with(
            "team",
            "another-driver",
            json!([{"request": "r", "driver": "d", "pool": "node-1", "device": "gpu-1"}]),
        ),
        serde_json::from_value(json!({"metadata": {"name": "pending"}, "spec": {}})).unwrap(),
    ];
    let report = report(&[node("node-1", 4)], &claims);
    assert_eq!(kep_counts(&report), [[4, 2, 2, 0]]);
    assert_eq!(shipped_counts(&report), [[4, 2, 2, 0]]);
}

#[test]
fn admin_access_takes_nothing_away() {
    // req: 5677-CALC-3
    let mut admin = result("node-1/gpu-0");
    admin["adminAccess"] = json!(true);
    let mut plain = result("node-1/gpu-1");
    plain["adminAccess"] = json!(false);
    let claims = [claim_with("team", "monitor", json!([admin])), claim_with("team", "user", json!([plain]))];
    let report = report(&[node("node-1", 4)], &claims);
    assert_eq!(kep_counts(&report), [[4, 1, 3, 0]]);
    assert_eq!(shipped_counts(&report), [[4, 1, 3, 0]]);
}

#[test]
fn names_that_are_no_device_of_the_pool() {
    // req: 5677-CALC-3, 5677-CALC-4
    let claims = [claim("stale", &["node-1/gone-0", "node-1/gone-1", "node-1/gpu-0"])];
    let report = report(&[node("node-1", 2)], &claims);
    assert_eq!(kep_counts(&report), [[2, 1, 1, 0]], "about the pool's own devices");
    assert_eq!(shipped_counts(&report), [[2, 3, 0, 0]], "as the controller counts; never below nothing");
}

#[test]
fn taints_of_slices() {
    // req: 5677-CALC-5, 5677-CALC-4
    let tainted = |name: &str, effect: &str| json!({"name": name, "taints": [{"key": "health", "effect": effect}]});
    let devices = json!([
        tainted("a", "NoSchedule"),
        tainted("b", "NoExecute"),
        tainted("c", "None"),
        tainted("d", "Future"),
        {"name": "e"},
        {"name": "f"},
    ]);
    let slices = [slice("s", "p", json!({"devices": devices}))];
    let report_ = report(&slices, &[]);
    assert_eq!(kep_counts(&report_), [[6, 0, 4, 2]]);
    assert_eq!(shipped_counts(&report_), [[6, 0, 4, 2]]);

    let report_ = report(&slices, &[claim("c", &["p/a", "p/e"])]);
    assert_eq!(kep_counts(&report_), [[6, 2, 3, 1]], "allocated or unavailable, not both");
    assert_eq!(shipped_counts(&report_), [[6, 2, 2, 2]], "both, and taken off twice");
}

#[test]
fn taint_rules() {
    // req: 5677-CALC-5
    let slices = [node("node-1", 4), node("node-2", 4)];
    let unavailable = |selector, effect| -> Vec<i32> {
        let rules = [rule("r", selector, effect)];
        let report = Cluster::new::<_, ResourceClaim>(Profile::V1_37, &slices, [])
            .with_taint_rules(&rules)
            .report(&query(), now());
        kep_counts(&report).iter().map(|counts| counts[3]).collect()
    };
    let rows = [
        (json!({}), [4, 4], "an empty selector is for everything"),
        (json!(null), [0, 0], "no selector is for nothing"),
        (json!({"driver": DRIVER}), [4, 4], ""),
        (json!({"driver": "other"}), [0, 0], ""),
        (json!({"pool": "node-2"}), [0, 4], ""),
        (json!({"device": "gpu-3"}), [1, 1], ""),
        (json!({"driver": DRIVER, "pool": "node-1", "device": "gpu-0"}), [1, 0], ""),
        (json!({"pool": "node-1", "device": "gpu-9"}), [0, 0], ""),
    ];
    for (selector, expected, why) in rows {
        assert_eq!(unavailable(selector.clone(), "NoExecute"), expected, "{selector} {why}");
        assert_eq!(unavailable(selector.clone(), "None"), [0, 0], "{selector}");
    }
    let rules = [rule("r", json!({}), "NoSchedule")];
    let gates = GateSet::of(Profile::V1_37).without(Gate::DeviceTaintRules);
    let controllers = Component::new(Profile::V1_37, gates);
    let off = Cluster::new::<_, ResourceClaim>(controllers, &slices, []).with_taint_rules(&rules);
    assert_eq!(kep_counts(&off.report(&query(), now()))[0], [4, 0, 4, 0], "the gate is off");
}

#[test]
fn the_node_of_a_pool() {
    // req: 5677-CALC-7
    let two = |first, second| {
        let pool = json!({"resourceSliceCount": 2});
        let mut slices = [slice("a", "p", json!({"pool": pool})), slice("b", "p", json!({"pool": pool}))];
        slices[0].spec.node_name = Option::<&str>::map(first, str::to_owned);
        slices[1].spec.node_name = Option::<&str>::map(second, str::to_owned);
        let report = report(&slices, &[]);
        (report.to_kep().pools[0].node_name.clone(), crate::cluster::pool(&report).node_name)
    };
    assert_eq!(two(Some("n"), Some("n")), ("n".into(), Some("n".into())));
    for (first, second) in [(Some("n"), Some("m")), (Some("n"), None), (None, Some("n")), (None, None)] {
        assert_eq!(two(first, second), (String::new(), None), "{first:?} {second:?}");
    }
}

#[test]
fn a_pool_that_only_claims_name_is_none() {
    let report = report(&[node("node-1", 1)], &[claim("c", &["gone/gpu-0"])]);
    assert_eq!((report.matching_pools, report.pools.len()), (1, 1));
}

#[test]
fn a_slice_of_counters_is_a_slice_without_devices() {
    let pool = json!({"resourceSliceCount": 2});
    let counters = json!([{"name": "card", "counters": {"memory": {"value": "80Gi"}}}]);
    let slices = [
        slice("a", "p", json!({"pool": pool, "sharedCounters": counters})),
        slice("b", "p", json!({"pool": pool, "devices": gpus(2)})),
    ];
    let pool = &report(&slices, &[]).to_kep().pools[0];
    assert_eq!((pool.slice_count, pool.total_devices), (2, 2));
}

#[test]
fn partitions_are_counted_as_they_are_listed() {
    // req: 5677-CALC-12, 5677-CALC-9
    let partition = |index: usize| {
        let consumed = json!([{"counterSet": "card", "counters": {"slices": {"value": "1"}}}]);
        json!({"name": format!("partition-{index}"), "consumesCounters": consumed})
    };
    let pool = json!({"resourceSliceCount": 2});
    let counters = json!([{"name": "card", "counters": {"slices": {"value": "7"}}}]);
    let partitions: Vec<_> = (0..15).map(partition).collect();
    let slices = [
        slice("a", "card-0", json!({"pool": pool, "devices": partitions})),
        slice("b", "card-0", json!({"pool": pool, "sharedCounters": counters})),
    ];
    let report = report(&slices, &[claim("c", &["card-0/partition-3"])]);
    assert_eq!(kep_counts(&report), [[15, 1, 14, 0]]);
    let notes: Vec<String> =
        report.warnings(Profile::Kep).map(|(pool, warning)| format!("pool {pool}: {warning}")).collect();
    assert_eq!(notes, ["pool card-0: devices share counters: the counts are of devices as listed and may mislead"]);
}

#[test]
fn a_later_request_sees_what_an_earlier_one_did_not() {
    // req: 5677-REQ-7
    let slices = [node("node-1", 4)];
    let before = report(&slices, &[]).to_kep();
    let after = report(&slices, &[claim("c", &["node-1/gpu-0"])]).to_kep();
    assert_eq!(after.pools[0].allocated_devices, before.pools[0].allocated_devices + 1);
    assert_eq!(after.pools[0].available_devices, before.pools[0].available_devices - 1);
}

#[test]
fn pools_of_one_namespace() {
    // req: 5677-NS-1, 5677-SEC-3
    let slices = [node("node-1", 4), node("node-2", 4), node("node-3", 4)];
    let mut admin = result("node-3/gpu-0");
    admin["adminAccess"] = json!(true);
    let claims = [
        claim("ours", &["node-2/gpu-0"]),
        claim_with("elsewhere", "theirs", json!([result("node-1/gpu-0"), result("node-2/gpu-1")])),
        claim_with("team", "monitor", json!([admin])),
        claim("stale", &["node-1/gone"]),
    ];
    let report = Cluster::new(Profile::V1_37, &slices, &claims).report(&query().with_namespace("team"), now());
    let pools = report.to_kep().pools;
    assert_eq!((pools.len(), pools[0].pool_name.as_str(), report.matching_pools), (1, "node-2", 1));
    assert_eq!(pools[0].allocated_devices, 2, "counts are those of all namespaces");
}
