//! A walk through the family on machines of real shape. Plain in a pipe, coloured on a terminal.
//!
//! For now: the NUMA story of KEP-6072. What each device publishes as `resource.kubernetes.io/numaNode`, as a scalar and
//! as a list, and which pairs of devices a `matchAttribute` constraint accepts.

use std::process::ExitCode;

use anstream::{eprintln, println};
use anstyle::{AnsiColor, Style};
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use dra_attrs::matching::{ListTypes, MatchState, ValueSet, Violation};
use dra_attrs::numa::{
    Diagnostic, Distances, NumaError, NumaForm, NumaNode, NumaNodeAttribute, NumaPlace, NumaTopology, Socket,
    numa_node_attribute,
};
use dra_attrs::pci::PciAddress;
use dra_attrs::sysfs::SysfsMap;
use examples::machine::{Machine, MachineError};
use examples::sysfs::SysfsDir;
use k8s_openapi::api::resource::v1::DeviceAttribute;

const HEADING: Style = AnsiColor::Cyan.on_default().bold();
const QUIET: Style = Style::new().dimmed();

/// A machine of the tour, what to look at, and the CPU and memory devices beside its PCI devices.
struct Stop {
    capture: &'static str,
    lesson: &'static str,
    cpus: &'static [u32],
    memory_nodes: &'static [i64],
}

const STOPS: [Stop; 4] = [
    Stop {
        capture: "epyc-9825-nps4",
        lesson: "\
Story 3 of the KEP: GPU and NIC sit on different quadrants of one socket. As scalars
(5 and 6) they do not match; as lists they do, and a CPU of that socket matches both.",
        cpus: &[0, 144],
        memory_nodes: &[],
    },
    Stop {
        capture: "xeon-snc3",
        lesson: "\
Distances inside a socket differ (15 and 17), so lists differ too: NIC (node 0) and
GPU (node 2) have only node 1 in common, so only a CPU of node 1 matches both.",
        cpus: &[24],
        memory_nodes: &[],
    },
    Stop {
        capture: "power9-ac922",
        lesson: "\
Node ids have holes (0, 8, 250-255), and the nodes of the GPUs' own memory have no CPUs.
The node nearest to 0 is 8, on the other socket: every list is the physical node alone.",
        cpus: &[0, 88],
        memory_nodes: &[250],
    },
    Stop {
        capture: "xeon-cxl",
        lesson: "\
A CXL memory node has no CPUs and belongs to the socket it is nearest to. Devices of
that socket list it, and match memory on it.",
        cpus: &[0, 56],
        memory_nodes: &[2],
    },
];

fn main() -> ExitCode {
    for stop in &STOPS {
        if let Err(error) = visit(stop) {
            eprintln!("tour: {}: {error}", stop.capture);
            return ExitCode::FAILURE;
        }
    }
    this_machine();
    ExitCode::SUCCESS
}

fn visit(stop: &Stop) -> Result<(), MachineError> {
    let machine = Machine::load(stop.capture)?;
    let sysfs = machine.sysfs();
    println!("{HEADING}{}{HEADING:#}", machine.title);
    println!("{}\n", stop.lesson);
    match NumaTopology::from_sysfs(&sysfs) {
        Ok(topology) => println!("{}\n", topology_table(&topology)),
        Err(error) => println!("{error}\n"),
    }
    let devices = devices(stop, &machine, &sysfs);
    println!("{}", device_table(&devices));
    for (device, diagnostic) in devices.iter().flat_map(Published::diagnostics) {
        println!("noticed: {device}: {diagnostic}");
    }
    println!();
    println!("{}\n", pair_table(&devices));
    Ok(())
}

/// A device of the tour and what it would publish, in both forms.
struct Published {
    name: String,
    scalar: Result<NumaNodeAttribute, NumaError>,
    list: Result<NumaNodeAttribute, NumaError>,
}

impl Published {
    fn new(name: String, sysfs: &SysfsMap, place: NumaPlace) -> Self {
        let publish = |form| numa_node_attribute(sysfs, place, form);
        // CPUs and memory are on one node by nature: their list is their own node.
        let list = if matches!(place, NumaPlace::Pci(_)) { NumaForm::LocalNodes } else { NumaForm::OwnNode };
        Self { name, scalar: publish(NumaForm::Scalar), list: publish(list) }
    }

    fn diagnostics(&self) -> impl Iterator<Item = (&str, &Diagnostic)> {
        self.list.iter().flat_map(|list| &list.diagnostics).map(|diagnostic| (self.name.as_str(), diagnostic))
    }
}

fn devices(stop: &Stop, machine: &Machine, sysfs: &SysfsMap) -> Vec<Published> {
    let pci = machine.devices.iter().filter_map(|device| {
        let address = PciAddress::parse_extended(&device.address).ok()?;
        Some((format!("{} {address}", device.label), NumaPlace::Pci(address)))
    });
    let cpus = stop.cpus.iter().map(|cpu| (format!("CPU {cpu}"), NumaPlace::Cpu(*cpu)));
    let memory = stop.memory_nodes.iter().map(|node| (format!("memory of node {node}"), NumaPlace::Node(*node)));
    pci.chain(cpus).chain(memory).map(|(name, place)| Published::new(name, sysfs, place)).collect()
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(header);
    table
}

fn topology_table(topology: &NumaTopology) -> Table {
    let mut table = table(["node", "socket", "CPUs", "distances"]);
    for node in topology.nodes() {
        table.add_row([node.id().to_string(), socket(node), node.cpus().to_string(), distances(node)]);
    }
    table
}

fn socket(node: &NumaNode) -> String {
    match node.socket() {
        Socket::Id(id) => id.to_string(),
        Socket::Unknown(reason) => format!("unknown: {reason}"),
    }
}

fn distances(node: &NumaNode) -> String {
    match node.distances() {
        Distances::Row(row) => join(row),
        Distances::Unreadable(reason) => reason.clone(),
    }
}

fn join(values: &[impl ToString]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn device_table(devices: &[Published]) -> Table {
    let mut table = table(["device", "scalar", "list"]);
    for device in devices {
        table.add_row([device.name.clone(), value(&device.scalar), value(&device.list)]);
    }
    table
}

fn value(outcome: &Result<NumaNodeAttribute, NumaError>) -> String {
    match outcome {
        Ok(NumaNodeAttribute { value: DeviceAttribute { int: Some(node), .. }, .. }) => node.to_string(),
        Ok(attribute) => format!("[{}]", join(attribute.value.ints.as_deref().unwrap_or_default())),
        Err(error) => format!("left out: {error}"),
    }
}

/// Every pair of devices that differ in kind or value; twins would only repeat a row.
fn pair_table(devices: &[Published]) -> Table {
    let kind = |device: &Published| device.name.split(' ').next().map(str::to_owned);
    let twins = |a: &Published, b: &Published| kind(a) == kind(b) && a.scalar == b.scalar && a.list == b.list;
    let is_first =
        |&(index, device): &(usize, &Published)| !devices.iter().take(index).any(|other| twins(other, device));
    let devices: Vec<_> = devices.iter().enumerate().filter(is_first).map(|(_, device)| device).collect();

    let mut table = table(["pair", "as scalars", "as lists"]);
    for (index, left) in devices.iter().enumerate() {
        for right in devices.iter().skip(index + 1) {
            let pair = format!("{} + {}", left.name, right.name);
            table.add_row([pair, verdict(&left.scalar, &right.scalar), verdict(&left.list, &right.list)]);
        }
    }
    table
}

/// Whether `matchAttribute: resource.kubernetes.io/numaNode` accepts two devices.
fn verdict(left: &Result<NumaNodeAttribute, NumaError>, right: &Result<NumaNodeAttribute, NumaError>) -> String {
    let mut state = MatchState::new();
    let pushed = [left, right].into_iter().try_for_each(|device| {
        let value = device.as_ref().ok().map(|attribute| &attribute.value);
        state.push(&ValueSet::of(value, ListTypes::Enabled))
    });
    match pushed {
        Ok(()) => format!("match: {}", join(state.common())),
        Err(Violation::NothingInCommon) => "-".to_owned(),
        Err(violation) => violation.to_string(),
    }
}

/// The machine that the tour runs on, whatever it is.
fn this_machine() {
    println!("{HEADING}This machine{HEADING:#}");
    match NumaTopology::from_sysfs(&SysfsDir::default()) {
        Ok(topology) => {
            println!("{}", topology_table(&topology));
            for finding in topology.check_slit() {
                println!("unusual: {finding}");
            }
        }
        Err(error) => println!("No NUMA topology to be read here ({error})."),
    }
    println!("{QUIET}`cargo run -p examples --bin driver` shows what its PCI devices would publish.{QUIET:#}");
}
