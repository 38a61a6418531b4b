//! Helpers for drivers, on a machine in memory.

use std::cell::RefCell;

use dra_attrs::numa::{
    Diagnostic, NumaError, NumaForm, NumaNodeAttribute, NumaPlace, NumaTopology, Socket, SocketUnknown, TopologyError,
    numa_node, numa_node_attribute,
};
use dra_attrs::{ListTypes, PciAddress, Sysfs, SysfsError, SysfsMap, ValueSet};

use super::{int, ints};

/// Builds two sockets with two nodes of one CPU each, a NIC on node 2, and a GPU without affinity.
fn machine() -> SysfsMap {
    let rows = ["10 12 20 20", "12 10 20 20", "20 20 10 12", "20 20 12 10"];
    let mut machine = SysfsMap::default()
        .with_file("devices/system/node/online", "0-3\n")
        .with_file("bus/pci/devices/0000:41:00.0/numa_node", "2\n")
        .with_file("bus/pci/devices/0000:42:00.0/numa_node", "-1\n");
    for (id, row) in rows.into_iter().enumerate() {
        machine = machine
            .with_file(format!("devices/system/node/node{id}/distance"), format!("{row}\n"))
            .with_file(format!("devices/system/node/node{id}/cpulist"), format!("{id}\n"))
            .with_file(format!("devices/system/cpu/cpu{id}/topology/physical_package_id"), format!("{}\n", id / 2));
    }
    machine
}

/// Sysfs that records which files were read.
struct Recorded {
    machine: SysfsMap,
    reads: RefCell<Vec<String>>,
}

impl Sysfs for Recorded {
    fn read(&self, path: &str) -> Result<String, SysfsError> {
        self.reads.borrow_mut().push(path.to_owned());
        self.machine.read(path)
    }

    fn link(&self, path: &str) -> Result<String, SysfsError> {
        self.machine.link(path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, SysfsError> {
        self.machine.list(path)
    }
}

fn recorded(place: NumaPlace, form: NumaForm) -> (NumaNodeAttribute, Vec<String>) {
    let recorded = Recorded { machine: machine(), reads: RefCell::default() };
    let attribute = numa_node_attribute(&recorded, place, form).unwrap();
    (attribute, recorded.reads.into_inner())
}

fn pci(text: &str) -> NumaPlace {
    NumaPlace::Pci(PciAddress::parse(text).unwrap())
}

#[test]
fn directories_that_are_links_are_followed() {
    let real = "devices/pci0000:40/0000:40:01.1/0000:41:00.0";
    let link = |target: &str| {
        let machine = machine().with_link("bus/pci/devices/0000:45:00.0", target);
        machine
            .with_file(format!("{real}/numa_node"), "3\n")
            .with_link(format!("{real}/subsystem"), "../../../../bus/pci")
    };
    for target in [format!("../../../{real}"), format!("/sys/{real}"), format!("./../../..//../{real}/.")] {
        let machine = link(&target);
        assert_eq!(machine.read("bus/pci/devices/0000:45:00.0/numa_node").unwrap(), "3\n", "{target}");
        assert_eq!(machine.link("bus/pci/devices/0000:45:00.0/subsystem").unwrap(), "../../../../bus/pci");
        assert_eq!(machine.link("bus/pci/devices/0000:45:00.0").unwrap(), target);
        let round = "bus/pci/devices/0000:45:00.0/subsystem/devices/0000:45:00.0/numa_node";
        assert_eq!(machine.read(round).unwrap(), "3\n");
        let attribute = numa_node_attribute(&machine, pci("0000:45:00.0"), NumaForm::Scalar).unwrap();
        assert_eq!(attribute.value, int(3));
    }
    let long = "a/".repeat(2049);
    for (target, reason) in [
        ("../../../nowhere", "no such file"),
        ("0000:45:00.0", "too many links"),
        ("../devices/0000:45:00.0/x", "too many links"),
        ("", "no such file"),
        (&long, "link too long"),
    ] {
        let error = link(target).read("bus/pci/devices/0000:45:00.0/numa_node").unwrap_err();
        assert_eq!(error.to_string(), format!("/sys/bus/pci/devices/0000:45:00.0/numa_node: {reason}"), "{target}");
    }
    let reason = |length: usize| {
        let path = format!("{}{}", "a/".repeat(length / 2 - 1), &"xyz"[..2 + length % 2]);
        assert_eq!(path.len(), length);
        SysfsMap::default().read(&path).unwrap_err().to_string().split(": ").last().unwrap().to_owned()
    };
    assert_eq!([4096, 4097, 5000].map(reason), ["no such file", "path too long", "path too long"]);
    let reason = |target: usize| {
        let machine = SysfsMap::default().with_link("a", "b/".repeat(target / 2));
        machine.read("a/c").unwrap_err().to_string().split(": ").last().unwrap().to_owned()
    };
    assert_eq!([4096, 4098].map(reason), ["no such file", "link too long"]);
    // A chain of links, of which each leads to the next.
    let reach = |links: usize| {
        let chain = (0..links).map(|link| (format!("l{link}"), format!("l{}", link + 1)));
        let machine = chain.fold(SysfsMap::default(), |machine, (link, next)| machine.with_link(link, next));
        machine.with_file(format!("l{links}/x"), "end").read("l0/x").map_err(|error| error.to_string())
    };
    assert_eq!(reach(40), Ok("end".to_owned()));
    assert_eq!([41, 42].map(reach), ["/sys/l0/x: too many links"; 2].map(|error| Err(error.to_owned())));
}

#[test]
fn a_reference_to_a_machine_is_one() {
    let machine = machine().with_link("class/nic", "../devices/nic");
    assert_eq!(Sysfs::read(&&machine, "devices/system/node/online").unwrap(), "0-3\n");
    assert_eq!(Sysfs::link(&&machine, "class/nic").unwrap(), "../devices/nic");
    assert_eq!(Sysfs::list(&&machine, "class").unwrap(), ["nic"]);
    assert_eq!(machine.list("block").unwrap_err().to_string(), "/sys/block: no such directory");
}

#[test]
fn by_pci_address() {
    // req: 6072-FORM-2, 6072-FORM-5, 6072-FORM-7, 6072-LIST-13
    let (scalar, reads) = recorded(pci("0000:41:00.0"), NumaForm::Scalar);
    assert_eq!(scalar.value, int(2));
    assert_eq!(reads, ["bus/pci/devices/0000:41:00.0/numa_node"]);

    let (list, reads) = recorded(pci("0000:41:00.0"), NumaForm::LocalNodes);
    assert_eq!((list.value, list.diagnostics), (ints(&[2, 3]), Vec::new()));
    assert_eq!(reads[0], "bus/pci/devices/0000:41:00.0/numa_node");
    let allowed = |path: &String| {
        ["/online", "/distance", "/cpulist", "/physical_package_id"].iter().any(|end| path.ends_with(end))
    };
    assert!(reads[1..].iter().all(allowed), "{reads:?}");

    let none = numa_node_attribute(&machine(), pci("0000:42:00.0"), NumaForm::Scalar);
    assert_eq!(none, Err(NumaError::NoAffinity { node: -1 }));
    let absent = numa_node_attribute(&machine(), pci("0000:43:00.0"), NumaForm::Scalar).unwrap_err();
    assert!(matches!(absent, NumaError::Sysfs(_)));
    let garbage = machine().with_file("bus/pci/devices/0000:44:00.0/numa_node", "two\n");
    let error = numa_node_attribute(&garbage, pci("0000:44:00.0"), NumaForm::Scalar).unwrap_err();
    assert_eq!(error.to_string(), "/sys/bus/pci/devices/0000:44:00.0/numa_node: \"two\" is not a NUMA node");
}

#[test]
fn by_known_node() {
    // req: 6072-FORM-3
    let at = |node, form| numa_node_attribute(&machine(), NumaPlace::Node(node), form);
    assert_eq!(at(1, NumaForm::Scalar).unwrap().value, int(1));
    assert_eq!(at(1, NumaForm::LocalNodes).unwrap().value, ints(&[1, 0]));
    assert_eq!(at(-1, NumaForm::LocalNodes), Err(NumaError::NoAffinity { node: -1 }));
    assert_eq!(at(9, NumaForm::Scalar).unwrap().value, int(9));
    let alone = at(9, NumaForm::LocalNodes).unwrap();
    assert_eq!((alone.value, alone.diagnostics), (ints(&[9]), vec![Diagnostic::NotOnline { node: 9 }]));
}

#[test]
fn by_cpu() {
    // req: 6072-FORM-4
    let at = |cpu, form| numa_node_attribute(&machine(), NumaPlace::Cpu(cpu), form);
    assert_eq!(at(3, NumaForm::Scalar).unwrap().value, int(3));
    assert_eq!(at(3, NumaForm::LocalNodes).unwrap().value, ints(&[3, 2]));
    assert_eq!(at(4, NumaForm::Scalar), Err(NumaError::UnknownCpu { cpu: 4 }));
    let unread = machine().with_file("devices/system/node/node1/cpulist", "1-0\n");
    let at = |cpu| numa_node_attribute(&unread, NumaPlace::Cpu(cpu), NumaForm::Scalar);
    assert_eq!(at(3).unwrap().value, int(3));
    assert!(matches!(at(4), Err(NumaError::UnreadableCpus { node: 1, .. })));
    let nothing = numa_node_attribute(&SysfsMap::default(), NumaPlace::Cpu(0), NumaForm::Scalar);
    assert!(matches!(nothing, Err(NumaError::Topology(TopologyError::Online { .. }))));
}

#[test]
fn an_unreadable_topology_is_no_failure() {
    // req: 6072-LIST-7
    let bare = SysfsMap::default().with_file("bus/pci/devices/0000:41:00.0/numa_node", "2\n");
    for online in [None, Some("x"), Some("0-2000")] {
        let machine = match online {
            None => bare.clone(),
            Some(text) => bare.clone().with_file("devices/system/node/online", text),
        };
        let list = numa_node_attribute(&machine, pci("0000:41:00.0"), NumaForm::LocalNodes).unwrap();
        assert_eq!(list.value, ints(&[2]));
        assert!(matches!(list.diagnostics.as_slice(), [Diagnostic::NoTopology { .. }]));
    }
}

#[test]
fn ids_of_nodes_end_at_1023() {
    let read = |online: &str| NumaTopology::from_sysfs(&machine().with_file("devices/system/node/online", online));
    assert_eq!(read("0,1023").map(|topology| topology.nodes().len()), Ok(2));
    for id in [1024, 1025] {
        assert_eq!(read(&format!("0,{id}")), Err(TopologyError::NodeOutOfRange { id }));
        let machine = machine().with_file("devices/system/node/online", format!("0,{id}"));
        let error = numa_node(&machine, NumaPlace::Cpu(9)).unwrap_err();
        assert_eq!(error, NumaError::from(TopologyError::NodeOutOfRange { id }));
    }
}

#[test]
fn sockets_as_the_kernel_tells_them() {
    let package =
        |cpu: u32, id: &str| (format!("devices/system/cpu/cpu{cpu}/topology/physical_package_id"), id.to_owned());
    let socket = |cpulist: Option<&str>, packages: &[(String, String)]| {
        let mut machine = SysfsMap::default()
            .with_file("devices/system/node/online", "0")
            .with_file("devices/system/node/node0/distance", "10");
        machine.files.extend(packages.iter().cloned());
        if let Some(list) = cpulist {
            machine = machine.with_file("devices/system/node/node0/cpulist", list);
        }
        NumaTopology::from_sysfs(&machine).unwrap().nodes()[0].socket().clone()
    };
    assert_eq!(socket(Some("0-1"), &[package(0, "36\n"), package(1, "36\n")]), Socket::Id(36));
    assert_eq!(socket(Some("\n"), &[]), Socket::Unknown(SocketUnknown::NoCpus));
    assert_eq!(socket(Some("0"), &[package(0, "-1\n")]), Socket::Unknown(SocketUnknown::Negative(-1)));
    let spans = socket(Some("0-1"), &[package(0, "4"), package(1, "2")]);
    assert_eq!(spans, Socket::Unknown(SocketUnknown::Spans(vec![2, 4])));
    for unreadable in
        [socket(None, &[]), socket(Some("0"), &[]), socket(Some("x"), &[]), socket(Some("0"), &[package(0, "?")])]
    {
        assert!(matches!(unreadable, Socket::Unknown(SocketUnknown::Unreadable(_))), "{unreadable:?}");
    }
}

#[test]
fn the_list_is_that_of_the_machine_at_the_call() {
    // req: 6072-LIST-12
    let nic = pci("0000:41:00.0");
    let on_node_0 = |machine: SysfsMap| machine.with_file("bus/pci/devices/0000:41:00.0/numa_node", "0\n");
    let nps2 = on_node_0(machine());
    let nps1 = on_node_0(machine())
        .with_file("devices/system/node/online", "0-1\n")
        .with_file("devices/system/node/node0/distance", "10 32\n")
        .with_file("devices/system/node/node0/cpulist", "0-1\n")
        .with_file("devices/system/node/node1/distance", "32 10\n")
        .with_file("devices/system/node/node1/cpulist", "2-3\n");
    for (machine, nodes) in [(&nps2, &[0, 1][..]), (&nps1, &[0]), (&nps2, &[0, 1])] {
        assert_eq!(numa_node_attribute(machine, nic, NumaForm::LocalNodes).unwrap().value, ints(nodes));
    }
}

#[test]
fn no_affinity_is_an_error_of_both_helpers_in_every_form() {
    // req: 6072-FORM-8
    for place in [pci("0000:42:00.0"), NumaPlace::Node(-1)] {
        for form in [NumaForm::Scalar, NumaForm::OwnNode, NumaForm::LocalNodes] {
            assert_eq!(numa_node_attribute(&machine(), place, form), Err(NumaError::NoAffinity { node: -1 }));
        }
        assert_eq!(numa_node(&machine(), place), Err(NumaError::NoAffinity { node: -1 }));
    }
    assert_eq!(numa_node(&machine(), pci("0000:41:00.0")), Ok(2));
}

#[test]
fn values_of_the_helpers_and_by_hand_are_the_same() {
    // req: 6072-NAME-3
    for (form, by_hand) in
        [(NumaForm::Scalar, int(2)), (NumaForm::OwnNode, ints(&[2])), (NumaForm::LocalNodes, ints(&[2, 3]))]
    {
        let computed = numa_node_attribute(&machine(), pci("0000:41:00.0"), form).unwrap();
        assert_eq!(computed.value, by_hand);
        for lists in [ListTypes::Enabled, ListTypes::Disabled, ListTypes::Refused] {
            assert_eq!(
                ValueSet::from_attribute(Some(&computed.value), lists),
                ValueSet::from_attribute(Some(&by_hand), lists)
            );
        }
    }
}
