//! Available devices of the pools before and after the allocation (KEP-5677).

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::jiff::Timestamp;
use poolstatus::{Cluster as Pools, PoolReport, Query};

use super::cluster::{Cluster, PROFILE};
use super::page::Page;

const DRIVER: &str = "gpu.example.com";

pub(super) fn availability(cluster: &Cluster, page: &mut Page) {
    page.step("An administrator asks what is left");
    page.input(format!("a ResourcePoolStatusRequest for {DRIVER}, before the claims were allocated and after"));
    let (query, now) = (Query::new(DRIVER), Timestamp::UNIX_EPOCH);
    let before = Pools::new(PROFILE, &cluster.slices, &[] as &[ResourceClaim]).report(&query, now);
    let after = Pools::new(PROFILE, &cluster.slices, &cluster.claims).report(&query, now);
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(["pool", "devices", "available before", "available after"]);
    for (before, after) in before.pools.iter().zip(&after.pools) {
        table.add_row(row(before, after));
    }
    page.decision(table);
    page.reason("Devices are counted from slices, what is in use from claims; no claim, namespace or pod is named.");
}

fn row(before: &PoolReport, after: &PoolReport) -> [String; 4] {
    let (counts, counts_after) = (before.counts(PROFILE), after.counts(PROFILE));
    [before.pool.clone(), counts.total.to_string(), counts.available.to_string(), counts_after.available.to_string()]
}
