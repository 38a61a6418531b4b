//! Limits on the number of listed pools, and sums over the listed pools.

use dra_attrs::Profile;
use k8s_openapi::api::resource::v1::ResourceClaim;
use poolstatus::{Cluster, DeviceTotals, RequestOutcome};
use serde_json::json;

use crate::cluster::{claim, node, now, query, ready, slice};

#[test]
fn limit_and_one_more() {
    // req: 5677-TRUNC-1, 5677-TRUNC-2
    for (count, limit, shown, truncated) in [(100, 100, 100, false), (101, 100, 100, true), (3, 1, 1, true)] {
        let slices: Vec<_> = (0..count).rev().map(|index| node(&format!("node-{index:03}"), 1)).collect();
        let report =
            Cluster::new::<_, ResourceClaim>(Profile::V1_37, &slices, []).report(&query().with_limit(limit), now());
        let (kep, shipped) = (report.to_kep(), ready(&report));
        assert_eq!((kep.pools.len(), kep.truncated, kep.total_matching_pools), (shown, truncated, count));
        assert_eq!((shipped.pools.unwrap().len(), shipped.pool_count), (shown, count));
        assert_eq!(kep.pools.last().unwrap().pool_name, format!("node-{:03}", shown - 1), "the first in order");

        let last = format!("node-{:03}", count - 1);
        let one = Cluster::new::<_, ResourceClaim>(Profile::V1_37, &slices, [])
            .report(&query().with_limit(limit).with_pool(&last), now())
            .to_kep();
        assert_eq!((one.pools.len(), one.truncated), (1, false), "the name is looked at before the limit");
    }
}

#[test]
fn what_is_left_against_a_threshold() {
    // req: 5677-CALC-13
    let slices = [node("node-1", 4), node("node-2", 4)];
    let claims = [claim("c", &["node-1/gpu-0", "node-1/gpu-1", "node-2/gpu-0", "node-2/gpu-1"])];
    let totals = |limit, slices| {
        let report = Cluster::new(Profile::V1_37, slices, &claims).report(&query().with_limit(limit), now());
        let totals = DeviceTotals::from(&report.to_kep());
        let (RequestOutcome::Ready(status) | RequestOutcome::Incomplete { preview: status, .. }) = report.to_v1alpha3()
        else {
            panic!("failed")
        };
        (totals, DeviceTotals::from(&status))
    };
    let (all, shipped) = totals(10, &slices[..]);
    assert_eq!(all, shipped);
    assert_eq!((all.pools, all.total, all.allocated, all.available, all.unavailable), (2, 8, 4, 4, 0));
    assert!(all.is_below(5) && !all.is_below(4) && !all.is_lower_bound);

    let (some, shipped) = totals(1, &slices[..]);
    assert_eq!(some, shipped);
    assert!(some.available == 2 && some.is_below(5) && some.is_lower_bound, "there may be more");

    let missing = slice("m", "node-3", json!({"pool": {"resourceSliceCount": 2}}));
    let (_, shipped) = totals(10, &[&slices[..], &[missing]].concat()[..]);
    assert!(shipped.is_lower_bound && shipped.pools == 2, "a pool without counts");
}

#[test]
fn thousands_of_pools() {
    // req: 5677-SCALE-1
    let (pools, devices) = (3_000, 20);
    let name = |index: usize| format!("node-{index:05}");
    let slices: Vec<_> = (0..pools).map(|index| node(&name(index), devices)).collect();
    let held =
        |index: usize| -> Vec<String> { (0..=index % 10).map(|gpu| format!("{}/gpu-{gpu}", name(index))).collect() };
    let claims: Vec<_> = (0..pools)
        .map(|index| claim(&name(index), &held(index).iter().map(String::as_str).collect::<Vec<_>>()))
        .collect();
    let report = Cluster::new(Profile::V1_37, &slices, &claims).report(&query().with_limit(pools), now());
    let totals = DeviceTotals::from(&report.to_kep());
    assert_eq!((totals.pools, totals.total, totals.allocated), (3_000, 60_000, 16_500));
    assert_eq!(totals.available, 43_500);
}
