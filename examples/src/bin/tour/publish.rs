//! Step "publish": drivers publish the NUMA nodes of their devices (KEP-6072), and the node operations to skip
//! (KEP-5945).

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use dra_attrs::numa::{NumaForm, NumaNodeAttribute, NumaPlace, numa_node_attribute};
use dra_attrs::{PciAddress, StandardAttribute};
use k8s_openapi::api::resource::v1::{Device, ResourcePool, ResourceSlice, ResourceSliceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::cluster::Cluster;
use super::error::TourError;
use super::page::Page;
use examples::machine::Machine;

/// Machine of the cluster.
struct Place {
    node: &'static str,
    capture: &'static str,
    /// One CPU of each NUMA node whose CPUs are a device.
    cpus: &'static [u32],
}

const PLACES: [Place; 2] = [
    Place { node: "epyc", capture: "epyc-9825-nps4", cpus: &[144, 180] },
    Place { node: "xeon", capture: "xeon-snc3", cpus: &[24] },
];

/// Kinds of devices of the drivers, each with true if node operations are to be skipped.
const DRIVERS: [(&str, bool); 3] = [("gpu", false), ("nic", false), ("cpu", true)];

pub(super) fn publish(cluster: &mut Cluster, page: &mut Page) -> Result<(), TourError> {
    page.step("Drivers publish where their devices are");
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(["node", "device", "numaNode", "skipNodeOperations"]);
    for place in &PLACES {
        let machine = Machine::load(place.capture)?;
        page.input(format!("{}: {}", place.node, machine.title));
        for (driver, skips) in DRIVERS {
            let devices = devices(driver, place, &machine)?;
            for device in &devices {
                table.add_row([place.node, &device.name, &numa_node(device), if skips { "*" } else { "" }]);
            }
            cluster.slices.push(slice(driver, skips, place.node, devices));
        }
    }
    page.decision(table);
    page.reason(
        "A device lists its own NUMA node and those of its socket that are no farther than any other. On epyc, GPU and \
         network\ncard sit on different nodes (5 and 6) and have all four in common. CPUs are on one node by nature; \
         giving them to a pod\nneeds no call to their driver, which says so.",
    );
    Ok(())
}

fn devices(driver: &str, place: &Place, machine: &Machine) -> Result<Vec<Device>, TourError> {
    let sysfs = machine.sysfs();
    if driver == "cpu" {
        // CPUs are local to one node by nature: the list has only that node.
        let device = |cpu: &u32| {
            let numa = numa_node_attribute(&sysfs, NumaPlace::Cpu(*cpu), NumaForm::OwnNode)?;
            Ok(device(format!("cpus-from-{cpu}"), numa))
        };
        return place.cpus.iter().map(device).collect();
    }
    let own = machine.devices.iter().filter(|device| device.label.eq_ignore_ascii_case(driver));
    let devices = own.map(|own| {
        let address = PciAddress::parse_extended(&own.address)?;
        let numa = numa_node_attribute(&sysfs, NumaPlace::Pci(address), NumaForm::LocalNodes)?;
        Ok(device(format!("{driver}-{}", address.to_string().replace([':', '.'], "-")), numa))
    });
    devices.collect()
}

fn device(name: String, numa: NumaNodeAttribute) -> Device {
    Device {
        name,
        attributes: Some([(StandardAttribute::NUMA_NODE.to_owned(), numa.value)].into()),
        ..Device::default()
    }
}

fn numa_node(device: &Device) -> String {
    let values = device.attributes.iter().flatten().flat_map(|(_, value)| value.ints.iter().flatten());
    values.map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn slice(driver: &str, skips: bool, node: &str, devices: Vec<Device>) -> ResourceSlice {
    let spec = ResourceSliceSpec {
        driver: format!("{driver}.example.com"),
        node_name: Some(node.to_owned()),
        pool: ResourcePool { name: node.to_owned(), generation: 1, resource_slice_count: 1 },
        devices: Some(devices),
        // The list form of the KEP's `true`.
        skip_node_operations: skips.then(|| vec!["*".to_owned()]),
        ..ResourceSliceSpec::default()
    };
    ResourceSlice { metadata: ObjectMeta { name: Some(format!("{node}-{driver}")), ..ObjectMeta::default() }, spec }
}
