//! The question `numa`: devices by node and NUMA node.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::pool::{LatestGeneration, group_by_pool, slice_devices};
use dra_alloc::{DeviceId, allocated_devices};
use dra_attrs::StandardAttribute;
use examples::manifest::Manifests;
use examples::table::{Column, Table};
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};

/// Text of a device without a node, or without a NUMA node.
const NO_VALUE: &str = "-";

/// Largest number of devices of a row that are named.
const SHOWN: usize = 4;

/// Devices of one driver at one place.
#[derive(Default)]
struct Row {
    names: Vec<String>,
    allocated: usize,
}

/// Returns the table of the devices in the latest generation of each pool. Devices that are near several NUMA nodes have a row
/// of these.
pub(crate) fn table(objects: &Manifests) -> String {
    let allocated: BTreeSet<DeviceId> = objects
        .claims
        .iter()
        .flat_map(allocated_devices)
        .filter(|result| result.admin_access != Some(true))
        .map(|result| DeviceId::new(&result.driver, &result.pool, &result.device))
        .collect();
    let mut slices: Vec<&ResourceSlice> = objects.slices.iter().collect();
    let mut rows: BTreeMap<[String; 3], Row> = BTreeMap::new();
    for pool in group_by_pool(&mut slices).filter_map(LatestGeneration::from_slices) {
        for slice in pool.slices() {
            for device in slice_devices(slice) {
                let node = slice.spec.node_name.as_ref().or(device.node_name.as_ref());
                let place =
                    [node.map_or(NO_VALUE, String::as_str).to_owned(), numa_nodes(device), pool.driver().to_owned()];
                let row = rows.entry(place).or_default();
                let id = DeviceId::new(pool.driver(), pool.pool(), &device.name);
                row.allocated = row.allocated.saturating_add(allocated.contains(&id).into());
                row.names.push(device.name.clone());
            }
        }
    }
    let mut table = Table::new([
        Column::always("NODE"),
        Column::always("NUMA"),
        Column::always("DRIVER"),
        Column::number("TOTAL", 1),
        Column::number("ALLOCATED", 2),
        Column::ranked("DEVICES", 3),
    ]);
    for ([node, numa, driver], Row { mut names, allocated }) in rows {
        names.sort_unstable();
        table.add([node, numa, driver, names.len().to_string(), allocated.to_string(), listed(&names)]);
    }
    table.text()
}

/// Returns the NUMA nodes of a device, the nearest one first.
fn numa_nodes(device: &Device) -> String {
    let attribute = device.attributes.iter().flatten().find(|(name, _)| name.as_str() == StandardAttribute::NUMA_NODE);
    let numbers = attribute.into_iter().flat_map(|(_, value)| value.int.iter().chain(value.ints.iter().flatten()));
    let texts: Vec<String> = numbers.map(ToString::to_string).collect();
    if texts.is_empty() { NO_VALUE.to_owned() } else { texts.join(" ") }
}

fn listed(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(" "),
        more => format!("{} and {more} more", shown.join(" ")),
    }
}
