//! What the pools have left, before and after (KEP-5677).

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use k8s_openapi::jiff::Timestamp;
use poolstatus::compute::Cluster as Pools;
use poolstatus::kep::PoolStatus;
use poolstatus::request::Query;

use super::cluster::Cluster;
use super::page::Page;

const DRIVER: &str = "gpu.example.com";

pub(super) fn availability(cluster: &Cluster, page: &mut Page) {
    page.step("An administrator asks what is left");
    page.input(format!("a ResourcePoolStatusRequest for {DRIVER}, before the claims were allocated and after"));
    let (query, now) = (Query::new(DRIVER), Timestamp::UNIX_EPOCH);
    let before = Pools::new(&cluster.slices, []).report(&query, now).kep();
    let after = Pools::new(&cluster.slices, &cluster.claims).report(&query, now).kep();
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(["pool", "devices", "available before", "available after"]);
    for (before, after) in before.pools.iter().zip(&after.pools) {
        table.add_row(row(before, after));
    }
    page.decision(table);
    page.reason("Devices are counted from slices, what is in use from claims; no claim, namespace or pod is named.");
}

fn row(before: &PoolStatus, after: &PoolStatus) -> [String; 4] {
    [
        before.pool_name.clone(),
        before.total_devices.to_string(),
        before.available_devices.to_string(),
        after.available_devices.to_string(),
    ]
}
