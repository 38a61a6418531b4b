//! Decisions of an autoscaler about slices and claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use dra_alloc::Profile;
use dra_alloc::autoscaler::{
    ClaimRelease, Departure, NodeCopy, NodeUtilization, PoolName, PoolReadiness, ReservationError, TemplateRules,
    UtilizationError, release, reserve,
};
use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::PodOptions;
use dra_attrs::Component;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

fn slice(name: &str, pool: &str, generation: i64, count: i64, more: Value) -> ResourceSlice {
    let mut spec = json!({"driver": "gpu.example.com", "nodeName": "n1",
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    from_value(json!({"metadata": {"name": name, "uid": format!("{name}-uid"), "resourceVersion": "7"}, "spec": spec}))
        .unwrap()
}

fn pod(name: &str, claims: &[&str]) -> Pod {
    let entries: Vec<Value> = claims.iter().map(|claim| json!({"name": claim, "resourceClaimName": claim})).collect();
    from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": format!("{name}-uid")},
        "spec": {"nodeName": "n1", "resourceClaims": entries}}))
    .unwrap()
}

/// A claim with devices of pool `p`, reserved for pods and owned by one of them.
fn claim(name: &str, devices: &[&str], pods: &[&str], owner: Option<&str>) -> ResourceClaim {
    let results: Vec<Value> = devices
        .iter()
        .map(|device| json!({"request": "r", "driver": "gpu.example.com", "pool": "p", "device": device}))
        .collect();
    let consumers: Vec<Value> =
        pods.iter().map(|pod| json!({"resource": "pods", "name": pod, "uid": format!("{pod}-uid")})).collect();
    let owners: Vec<Value> = owner
        .iter()
        .map(|owner| json!({"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": format!("{owner}-uid"), "controller": true}))
        .collect();
    from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": format!("{name}-uid"), "ownerReferences": owners,
        "finalizers": ["resource.kubernetes.io/delete-protection"]}, "spec": {},
        "status": {"reservedFor": consumers, "allocation": {"devices": {"results": results}, "nodeSelector":
            {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}}}}))
    .unwrap()
}

fn devices(names: &[&str]) -> Value {
    json!({"devices": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()})
}

fn billionths(used: Result<NodeUtilization, UtilizationError>) -> u128 {
    used.unwrap().highest().unwrap().1.billionths()
}

#[test]
fn the_examples_of_partitions() {
    let half = json!([{"counterSet": "g0", "counters": {"memory": {"value": "40Gi"}, "cores": {"value": "50"}}}]);
    let quarter = json!([{"counterSet": "g0", "counters": {"memory": {"value": "10Gi"}, "cores": {"value": "40"}}}]);
    let other = json!([{"counterSet": "g1", "counters": {"memory": {"value": "40Gi"}, "cores": {"value": "50"}}}]);
    let set = |name: &str| json!({"name": name, "counters": {"memory": {"value": "80Gi"}, "cores": {"value": "100"}, "none": {"value": "0"}}});
    let one = [
        slice(
            "d",
            "p",
            1,
            2,
            json!({"devices": [{"name": "half", "consumesCounters": half}, {"name": "quarter", "consumesCounters": quarter}]}),
        ),
        slice("s", "p", 1, 2, json!({"sharedCounters": [set("g0"), set("unused")]})),
    ];
    let used = |names: &[&str]| billionths(NodeUtilization::of_node(&one, [&claim("c", names, &[], None)]));
    assert_eq!(used(&["half"]), 500_000_000);
    assert_eq!(used(&["quarter"]), 400_000_000);
    assert_eq!(used(&["half", "quarter", "quarter"]), 900_000_000);
    assert_eq!(used(&["unknown"]), 0);
    let two = [
        slice(
            "d",
            "p",
            1,
            2,
            json!({"devices": [{"name": "half", "consumesCounters": half}, {"name": "other", "consumesCounters": other}]}),
        ),
        slice("s", "p", 1, 2, json!({"sharedCounters": [set("g0"), set("g1")]})),
    ];
    assert_eq!(billionths(NodeUtilization::of_node(&two, [&claim("c", &["half"], &[], None)])), 250_000_000);
}

#[test]
fn devices_of_the_newest_generation_are_counted() {
    let slices = [slice("old", "p", 1, 9, devices(&["0", "1", "2"])), slice("new", "p", 2, 1, devices(&["0", "1"]))];
    let mut admin = claim("admin", &["1"], &[], None);
    admin.status.as_mut().unwrap().allocation.as_mut().unwrap().devices.as_mut().unwrap().results.as_mut().unwrap()
        [0]
    .admin_access = Some(true);
    let claims = [claim("c", &["0", "2"], &[], None), claim("d", &["0"], &[], None), admin];
    assert_eq!(billionths(NodeUtilization::of_node(&slices, &claims)), 500_000_000);
    let incomplete = [slice("a", "p", 3, 2, devices(&["0"]))];
    let error = NodeUtilization::of_node(&incomplete, []).unwrap_err();
    assert_eq!(error.to_string(), "pool \"p\" error: newest generation: 3, slice count: 2 - found only 1 slices");
    let pending: ResourceClaim = from_value(json!({"metadata": {"namespace": "ns", "name": "c"}, "spec": {}})).unwrap();
    assert_eq!(NodeUtilization::of_node([], [&pending]).unwrap_err().to_string(), "claim ns/c not allocated");
}

#[test]
fn the_fullest_pool_stands_for_the_node() {
    let slices = [slice("b", "b", 1, 1, devices(&["0"])), slice("a", "a", 1, 1, devices(&["0"]))];
    let used = NodeUtilization::of_node(&slices, []).unwrap();
    assert_eq!(used.highest().map(|(pool, _)| pool.name.as_str()), Some("a"), "the first of equal ones");
    let pool = PoolName { driver: "gpu.example.com".to_owned(), name: "b".to_owned() };
    assert_eq!(used.pools[&pool].billionths(), 0);
    assert!(NodeUtilization::of_node([], []).unwrap().highest().is_none());
}

#[test]
fn templates_that_are_better_than_copies() {
    let slices = [
        slice("old", "p", 1, 1, devices(&["0"])),
        slice(
            "new",
            "p",
            2,
            3,
            json!({"devices": [{"name": "0", "taints": [{"key": "ill", "effect": "NoExecute"}, {"key": "k", "effect": "None"}]}]}),
        ),
    ];
    let copy = NodeCopy::new("n1", "t", "1");
    let plain = copy.slices(&slices, TemplateRules::default()).unwrap();
    let names =
        |slices: &[ResourceSlice]| slices.iter().map(|slice| slice.metadata.name.clone().unwrap()).collect::<Vec<_>>();
    assert_eq!(names(&plain.slices), ["old-1", "new-1"]);
    assert_eq!(plain.slices[0].metadata.resource_version.as_deref(), Some("7"));
    assert!(
        !PoolReadiness::of_node(&slices, &plain.slices).wanted.contains_key("gpu.example.com"),
        "an incomplete pool wants nothing"
    );

    let rules = TemplateRules::default().with_counted_slices().without_taints(|taint| taint.key == "ill");
    let better = copy.with_pool_names_kept().slices(&slices, rules).unwrap();
    assert_eq!(names(&better.slices), ["new-1"]);
    let pool = &better.slices[0].spec.pool;
    assert_eq!((pool.name.as_str(), pool.resource_slice_count), ("p", 1));
    let taints = better.slices[0].spec.devices.as_ref().unwrap()[0].taints.as_ref().unwrap();
    assert_eq!(taints.iter().map(|taint| taint.key.as_str()).collect::<Vec<_>>(), ["k"]);
    let newest = copy.slices(&slices, TemplateRules::default().with_newest_generation_only()).unwrap();
    assert_eq!(newest.slices[0].spec.pool.resource_slice_count, 3);
}

#[test]
fn claims_on_a_template() {
    let copy = NodeCopy::new("n1", "t", "1");
    let pools = ["p".to_owned()].into();
    let (old, new) = (pod("p", &[]), pod("q", &[]));
    let own = claim("own", &["0"], &["p", "z"], Some("p"));
    let copied = &copy.claims(&old, &new, [&own], &pools).unwrap()[0];
    let status = copied.status.as_ref().unwrap();
    let allocation = status.allocation.as_ref().unwrap();
    assert_eq!(copied.metadata.name.as_deref(), Some("own-1"));
    assert_eq!(
        status.reserved_for.as_ref().unwrap().iter().map(|entry| entry.uid.as_str()).collect::<Vec<_>>(),
        ["q-uid"]
    );
    assert_eq!(allocation.devices.as_ref().unwrap().results.as_ref().unwrap()[0].pool, "p-1");
    assert_eq!(json!(allocation.node_selector)["nodeSelectorTerms"][0]["matchFields"][0]["values"], json!(["t"]));

    let mut everywhere = own.clone();
    everywhere.status.as_mut().unwrap().allocation.as_mut().unwrap().node_selector = None;
    let error = copy.claims(&old, &new, [&everywhere], &pools).unwrap_err();
    assert_eq!(error.to_string(), "claim ns/own is allocated, but not node-local on n1 - can't be sanitized");
    let error = copy.claims(&old, &new, [&own], &["x".to_owned()].into()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "claim ns/own has an allocation r, from a pool that isn't node-local on n1 - can't be sanitized"
    );
    // Admin access holds nothing, wherever it is.
    let results = |claim: &mut ResourceClaim| {
        let allocation = claim.status.as_mut().unwrap().allocation.as_mut().unwrap();
        allocation.devices.as_mut().unwrap().results.as_mut().unwrap()[0].admin_access = Some(true);
    };
    results(&mut everywhere);
    let copied = copy.claims(&old, &new, [&everywhere], &["x".to_owned()].into()).unwrap();
    let mut recorded = old;
    recorded.status = from_value(json!({"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "own"},
        {"name": "b", "resourceClaimName": "of-group"}, {"name": "c"}]}))
    .unwrap();
    let names = copy.claim_names(&recorded, |name| name == "own");
    let names: Vec<_> = names.iter().map(|status| status.resource_claim_name.as_deref()).collect();
    assert_eq!(names, [Some("own-1"), Some("of-group"), None]);
    assert_eq!(dra_alloc::allocated_devices(&copied[0])[0].pool, "p");
}

#[test]
fn what_becomes_free() {
    let claims = [
        claim("own", &["0"], &["p", "q"], Some("p")),
        claim("last", &["1"], &["p"], None),
        claim("shared", &["2"], &["p", "q"], None),
        claim("others", &["3"], &["q"], None),
    ];
    let going = pod("p", &["own", "last", "shared", "last"]);
    let rows = [
        (Departure::Unscheduled, [ClaimRelease::Deallocated, ClaimRelease::Deallocated, ClaimRelease::Unreserved]),
        (Departure::Removed, [ClaimRelease::Deallocated, ClaimRelease::Deleted, ClaimRelease::Unreserved]),
        (
            Departure::RemovedAsClusterAutoscaler,
            [ClaimRelease::Unreserved, ClaimRelease::Deleted, ClaimRelease::Unreserved],
        ),
    ];
    for (departure, expected) in rows {
        let released = release([&going], &claims, departure);
        let names: Vec<_> = released.iter().map(|(claim, _)| claim.metadata.name.as_deref().unwrap()).collect();
        assert_eq!(names, ["last", "own", "shared"], "by name");
        assert_eq!(released.iter().map(|(_, release)| *release).collect::<Vec<_>>(), expected, "{departure:?}");
        for (claim, release) in &released {
            let status = claim.status.as_ref().unwrap();
            assert_eq!(status.allocation.is_some(), *release == ClaimRelease::Unreserved);
            assert!(status.reserved_for.iter().flatten().all(|entry| entry.uid == "q-uid"));
        }
    }
    // Both pods of the shared claim go: nobody has it.
    let released = release([&going, &pod("q", &["shared", "others"])], &claims, Departure::Removed);
    assert!(released.iter().all(|(_, release)| *release != ClaimRelease::Unreserved));
    assert_eq!(released.len(), 4);
}

#[test]
fn all_claims_are_reserved_or_none() {
    let options = PodOptions::new(Component::of(Profile::V1_37));
    let cache = |claims: Vec<ResourceClaim>| -> BTreeMap<ClaimKey, Arc<ResourceClaim>> {
        claims.into_iter().map(|claim| (ClaimKey::from_metadata(&claim.metadata), Arc::new(claim))).collect()
    };
    let coming = pod("p", &["a", "b", "a"]);
    let names: Vec<String> = (0..256).map(|index| format!("other-{index}")).collect();
    let full: Vec<&str> = names.iter().map(String::as_str).collect();
    let claims = cache(vec![claim("a", &["0"], &["q"], None), claim("b", &["1"], &["p"], None)]);
    let reserved = reserve(&coming, None, &claims, options).unwrap();
    assert_eq!(reserved.len(), 1, "b is the pod's already, and a is reserved once");
    assert_eq!(reserved[0].status.as_ref().unwrap().reserved_for.as_ref().unwrap().len(), 2);
    let error =
        reserve(&coming, None, &cache(vec![claim("a", &["0"], &[], None), claim("b", &["1"], &full, None)]), options);
    assert_eq!(error.unwrap_err().to_string(), "claim ns/b already has max number of reservations set, can't add more");
    let error = reserve(&coming, None, &cache(Vec::new()), options).unwrap_err();
    assert!(matches!(error, ReservationError::NotFound { .. }), "{error}");
}

/// Pools of a node that are complete or not, with counters that devices consume within their limits.
fn any_slices() -> impl Strategy<Value = Vec<ResourceSlice>> {
    let any_slice = (0..3_usize, 0..3_i64, 1..3_i64, 0..4_usize, any::<bool>());
    prop::collection::vec(any_slice, 0..6).prop_map(|drawn| {
        let slices = drawn.into_iter().enumerate().map(|(index, (pool, generation, count, devices, has_counters))| {
            let consumed = json!([{"counterSet": "g", "counters": {"c": {"value": "1500m"}}}]);
            let devices: Vec<Value> = (0..devices)
                .map(|device| json!({"name": format!("{index}-{device}"), "consumesCounters": if has_counters { consumed.clone() } else { json!([]) }}))
                .collect();
            let mut more = json!({"devices": devices});
            if has_counters && index % 2 == 0 {
                more["sharedCounters"] = json!([{"name": "g", "counters": {"c": {"value": "40"}, "d": {"value": "1"}}}]);
            }
            slice(&format!("s{index}"), &format!("p{pool}"), generation, count, more)
        });
        slices.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_template_is_ready_for_itself(slices in any_slices()) {
        let template = NodeCopy::new("n1", "t", "1").slices(&slices, TemplateRules::default()).unwrap();
        prop_assert!(PoolReadiness::of_node(&slices, &template.slices).is_ready());
        prop_assert!(PoolReadiness::of_node(&template.slices, &slices).is_ready());
        prop_assert!(PoolReadiness::of_node(&template.slices, &template.slices).is_ready());
        let counted = NodeCopy::new("n1", "t", "1").slices(&slices, TemplateRules::default().with_counted_slices()).unwrap();
        prop_assert!(NodeUtilization::of_node(&counted.slices, []).is_ok(), "each pool is complete");
    }

    #[test]
    fn utilization_is_a_fraction(slices in any_slices(), held in prop::collection::vec((0..3_usize, 0..6_usize, 0..4_usize), 0..8)) {
        let slices = NodeCopy::new("n1", "n1", "1").with_pool_names_kept().slices(&slices, TemplateRules::default().with_counted_slices()).unwrap().slices;
        let mut claim = claim("c", &[], &[], None);
        let results: Vec<Value> = held
            .iter()
            .map(|(pool, slice, device)| json!({"request": "r", "driver": "gpu.example.com", "pool": format!("p{pool}"), "device": format!("{slice}-{device}")}))
            .collect();
        claim.status.as_mut().unwrap().allocation = from_value(json!({"devices": {"results": results}})).unwrap();
        for used in NodeUtilization::of_node(&slices, [&claim]).unwrap().pools.values() {
            prop_assert!(used.billionths() <= 1_000_000_000);
            prop_assert!(used.shares().iter().all(|share| share.all > 0));
        }
    }
}
