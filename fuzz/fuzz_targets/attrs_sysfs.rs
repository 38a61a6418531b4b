//! Machines with any text in their files: helpers answer or return an error, in every form.
#![no_main]

use dra_attrs::internal::NumaNodeValue;
use dra_attrs::numa::{NumaForm, NumaPlace, NumaTopology, numa_node_attribute};
use dra_attrs::{PciAddress, SysfsMap};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, Vec<(&str, &str, &str)>, &str, &str, i64, u32)| {
    let (online, nodes, numa_node, link, node, cpu) = input;
    let nic = PciAddress::parse("0000:41:00.0").expect("a PCI address");
    let mut machine = SysfsMap::default()
        .with_file("devices/system/node/online", online)
        .with_file(format!("bus/pci/devices/{nic}/numa_node"), numa_node)
        .with_link(format!("bus/pci/devices/{nic}"), link);
    for (id, (distance, cpus, package)) in nodes.into_iter().enumerate() {
        let folder = format!("devices/system/node/node{id}");
        machine =
            machine.with_file(format!("{folder}/distance"), distance).with_file(format!("{folder}/cpulist"), cpus);
        machine = machine.with_file(format!("devices/system/cpu/cpu{id}/topology/physical_package_id"), package);
    }
    let (_, _) = (NumaTopology::from_sysfs(&machine), nic.pcie_root_attribute(&machine));
    for place in [NumaPlace::Node(node), NumaPlace::Cpu(cpu), NumaPlace::Pci(nic)] {
        let forms = [NumaForm::Scalar, NumaForm::OwnNode, NumaForm::LocalNodes];
        let [scalar, own, local] = forms.map(|form| numa_node_attribute(&machine, place, form));
        let physical = scalar.as_ref().ok().and_then(|attribute| NumaNodeValue::physical(&attribute.value));
        assert_eq!(physical.is_some(), own.is_ok());
        assert!([own, local].iter().flatten().all(|attribute| NumaNodeValue::physical(&attribute.value) == physical));
    }
});
