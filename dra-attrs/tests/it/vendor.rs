//! Migration from vendor names to the standard attribute.

use std::collections::BTreeMap;

use dra_attrs::{StandardAttribute, VendorDriver, VendorMigration};
use k8s_openapi::api::resource::v1::DeviceAttribute;

use super::{int, ints, string};

fn device(entries: &[(&str, DeviceAttribute)]) -> BTreeMap<String, DeviceAttribute> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

#[test]
fn every_row_of_the_keps_table() {
    // req: 6072-COMPAT-1, 6072-COMPAT-2
    let rows: [(VendorDriver, &str, &[&str]); 6] = [
        (VendorDriver::NvidiaGpu, "gpu.nvidia.com", &["numa"]),
        (VendorDriver::AmdGpu, "gpu.amd.com", &["numaNode"]),
        (VendorDriver::Dranet, "dra.net", &["dra.net/numaNode"]),
        (VendorDriver::SriovNic, "sriovnetwork.k8snetworkplumbingwg.io", &["dra.net/numaNode"]),
        (VendorDriver::Cpu, "dra.cpu", &["dra.cpu/numaNodeID", "dra.net/numaNode"]),
        (VendorDriver::Memory, "dra.memory", &["dra.memory/numaNode", "dra.cpu/numaNodeID", "dra.net/numaNode"]),
    ];
    for (driver, driver_name, names) in rows {
        assert_eq!(driver.names(), names);
        for name in names {
            let mut attributes = device(&[(name, int(3)), ("model", string("x"))]);
            let before = attributes.clone();
            let done = driver.add_standard_numa_node(driver_name, &mut attributes);
            assert_eq!(done, VendorMigration::Added { from: name, node: 3 });
            assert_eq!(attributes.remove(StandardAttribute::NUMA_NODE), Some(int(3)));
            assert_eq!(attributes, before, "the vendor's own attributes stay");
        }
    }
}

#[test]
fn the_primary_name_wins_and_domains_may_be_left_out() {
    let mut cpu = device(&[("dra.net/numaNode", int(1)), ("numaNodeID", int(2))]);
    let done = VendorDriver::Cpu.add_standard_numa_node("dra.cpu", &mut cpu);
    assert_eq!(done, VendorMigration::Added { from: "dra.cpu/numaNodeID", node: 2 });
    let mut amd = device(&[("gpu.amd.com/numaNode", int(5))]);
    let done = VendorDriver::AmdGpu.add_standard_numa_node("gpu.amd.com", &mut amd);
    assert_eq!(done, VendorMigration::Added { from: "numaNode", node: 5 });
}

#[test]
fn what_is_not_added() {
    let driver = VendorDriver::SriovNic;
    let mut standard = device(&[(StandardAttribute::NUMA_NODE, ints(&[7, 6])), ("dra.net/numaNode", int(0))]);
    assert_eq!(driver.add_standard_numa_node("nic.example", &mut standard), VendorMigration::AlreadyStandard);
    assert_eq!(standard[StandardAttribute::NUMA_NODE], ints(&[7, 6]));

    let mut none = device(&[("model", string("x"))]);
    assert_eq!(driver.add_standard_numa_node("nic.example", &mut none), VendorMigration::NoVendorName);

    for (value, node) in [(int(-1), Some(-1)), (int(1024), Some(1024)), (string("0"), None)] {
        let mut attributes = device(&[("dra.net/numaNode", value)]);
        let done = driver.add_standard_numa_node("nic.example", &mut attributes);
        assert_eq!(done, VendorMigration::NotANode { from: "dra.net/numaNode", node });
        assert!(!attributes.contains_key(StandardAttribute::NUMA_NODE));
    }
}
