//! NUMA attributes of real machines (KEP-6072): the value of `resource.kubernetes.io/numaNode` for each device, as a
//! scalar and as a list, the pairs of devices that a `matchAttribute` constraint accepts, and the devices of pods that
//! need several kinds on one NUMA node.

use anstyle::{AnsiColor, Style};
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{ContentArrangement, Table};
use dra_alloc::explain::Detail;
use dra_alloc::selector::SelectorCache;
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Gate, GateSet, Inventory, Outcome, Profile, Verdict};
use dra_attrs::numa::{
    Diagnostic, Distances, NumaError, NumaForm, NumaNode, NumaNodeAttribute, NumaPlace, NumaTopology, Socket,
    numa_node_attribute,
};
use dra_attrs::{Component, ListTypes, MatchError, MatchState, PciAddress, StandardAttribute, SysfsMap, ValueSet};
use examples::machine::{Machine, MachineError};
use examples::sysfs::SysfsDir;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{
    CELDeviceSelector, Device, DeviceAttribute, DeviceClaim, DeviceClass, DeviceClassSpec, DeviceConstraint,
    DeviceRequest, DeviceSelector, ExactDeviceRequest, ResourceClaim, ResourceClaimSpec, ResourcePool, ResourceSlice,
    ResourceSliceSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

const HEADING: Style = AnsiColor::Cyan.on_default().bold();
const QUIET: Style = Style::new().dimmed();
/// Kinds of devices that a pod needs together.
const KINDS: [&str; 4] = ["gpu", "nvidia", "nic", "cpu"];
/// Name of the cluster node for the machine.
const NODE: &str = "node-1";

/// Machine of the tour, with a remark, and the CPU and memory devices in addition to its PCI devices.
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

/// Returns the tables for the captured machines and for the local machine, with colours.
///
/// # Errors
/// A captured machine can't be read.
pub(crate) fn tables() -> Result<String, MachineError> {
    let mut lines = Vec::new();
    STOPS.iter().try_for_each(|stop| visit(stop, &mut lines))?;
    this_machine(&mut lines);
    Ok(lines.join("\n") + "\n")
}

fn visit(stop: &Stop, lines: &mut Vec<String>) -> Result<(), MachineError> {
    let machine = Machine::load(stop.capture)?;
    let sysfs = machine.sysfs();
    lines.push(format!("{HEADING}{}{HEADING:#}", machine.title));
    lines.push(format!("{}\n", stop.lesson));
    match NumaTopology::from_sysfs(&sysfs) {
        Ok(topology) => lines.push(format!("{}\n", topology_table(&topology))),
        Err(error) => lines.push(format!("{error}\n")),
    }
    let devices = devices(stop, &machine, &sysfs);
    lines.push(device_table(&devices).to_string());
    for (device, diagnostic) in devices.iter().flat_map(Published::diagnostics) {
        lines.push(format!("noticed: {device}: {diagnostic}"));
    }
    lines.push(String::new());
    lines.push(format!("{}\n", pair_table(&devices)));
    lines.push(format!("{}\n", pod_table(&devices)));
    Ok(())
}

/// Device of the tour with its attribute in both forms.
struct Published {
    name: String,
    scalar: Result<NumaNodeAttribute, NumaError>,
    list: Result<NumaNodeAttribute, NumaError>,
}

impl Published {
    fn new(name: String, sysfs: &SysfsMap, place: NumaPlace) -> Self {
        let publish = |form| numa_node_attribute(sysfs, place, form);
        // CPUs and memory are local to one node by nature: their list has only that node.
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

/// Returns a table of the pairs of devices that differ in kind or value. Equal pairs would only repeat a row.
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

/// Returns the verdict of `matchAttribute: resource.kubernetes.io/numaNode` on two devices.
fn verdict(left: &Result<NumaNodeAttribute, NumaError>, right: &Result<NumaNodeAttribute, NumaError>) -> String {
    let mut state = MatchState::new();
    let pushed = [left, right].into_iter().try_for_each(|device| {
        let value = device.as_ref().ok().map(|attribute| &attribute.value);
        state.push(&ValueSet::from_attribute(value, ListTypes::Enabled))
    });
    match pushed {
        Ok(()) => format!("match: {}", join(state.common())),
        Err(MatchError::NothingInCommon) => "-".to_owned(),
        Err(violation) => violation.to_string(),
    }
}

/// Selector of one of the two forms of a device's attribute.
type Form = fn(&Published) -> &Result<NumaNodeAttribute, NumaError>;

/// Returns a table of pods, each of which needs an accelerator, a NIC and CPUs on one NUMA node: the devices they get,
/// and the reason of the first failure.
fn pod_table(devices: &[Published]) -> Table {
    let mut table = table(["published as", "pod", "gets"]);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(100);
    let forms: [(&str, Form); 2] = [("scalars", |device| &device.scalar), ("lists", |device| &device.list)];
    for (form, attribute) in forms {
        let slices = kinds(devices).map(|kind| slice(&kind, devices, attribute));
        let inventory = Inventory::new(slices);
        for (pod, gets) in pods(&inventory, &kinds(devices).collect::<Vec<_>>()).into_iter().enumerate() {
            table.add_row([form.to_owned(), pod.to_string(), gets]);
        }
    }
    table
}

/// Returns the kinds of devices that a pod needs, each once.
fn kinds(devices: &[Published]) -> impl Iterator<Item = String> {
    let kind = |device: &Published| device.name.split(' ').next().unwrap_or_default().to_lowercase();
    devices.iter().enumerate().filter_map(move |(index, device)| {
        let is_first = !devices.iter().take(index).any(|other| kind(other) == kind(device));
        (is_first && KINDS.contains(&kind(device).as_str())).then(|| kind(device))
    })
}

/// Returns the slice that a driver of one kind of devices would publish.
fn slice(kind: &str, devices: &[Published], attribute: Form) -> ResourceSlice {
    let own = devices.iter().filter(|device| device.name.to_lowercase().starts_with(&format!("{kind} ")));
    let devices = own.map(|device| Device {
        name: device.name.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-"),
        attributes: attribute(device)
            .as_ref()
            .ok()
            .map(|numa| [(StandardAttribute::NUMA_NODE.to_owned(), numa.value.clone())].into()),
        ..Device::default()
    });
    let spec = ResourceSliceSpec {
        driver: format!("{kind}.example.com"),
        node_name: Some(NODE.to_owned()),
        pool: ResourcePool { name: NODE.to_owned(), generation: 1, resource_slice_count: 1 },
        devices: Some(devices.collect()),
        ..ResourceSliceSpec::default()
    };
    ResourceSlice { metadata: named(kind), spec }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

/// Returns the results of up to three pods in turn, up to the first failure.
fn pods(inventory: &Inventory, kinds: &[String]) -> Vec<String> {
    let classes: Vec<DeviceClass> = kinds.iter().map(|kind| class(kind)).collect();
    let (selectors, node) = (SelectorCache::default(), node());
    let mut state = AllocatedState::default();
    let mut answers = Vec::new();
    while answers.len() < 3 {
        let classes = Classes::new(classes.iter().cloned());
        let allocator = Allocator::new(
            Component::new(Profile::V1_37, GateSet::of(Profile::V1_37).with(Gate::ListTypeAttributes)),
            inventory,
            &classes,
        )
        .with_selector_cache(&selectors)
        .with_explanation(Detail::Summary);
        let mut pod = claim(kinds);
        pod.metadata.uid = Some(answers.len().to_string());
        let verdict = allocator.allocate(&state, &node, [&pod], Budget::default());
        let results = match verdict {
            Ok(Verdict { outcome: Outcome::Allocated(results), .. }) => results,
            Ok(verdict) => {
                answers.push(verdict.explanation.map(|explanation| explanation.to_string()).unwrap_or_default());
                break;
            }
            Err(error) => {
                answers.push(error.to_string());
                break;
            }
        };
        let devices =
            results.iter().flat_map(|result| &result.devices).flat_map(|devices| devices.results.iter().flatten());
        answers.push(join(&devices.map(|device| device.device.as_str()).collect::<Vec<_>>()));
        if results.iter().any(|result| state.assume(&pod, result).is_err()) {
            break;
        }
    }
    answers
}

fn node() -> Node {
    Node { metadata: named(NODE), ..Node::default() }
}

fn class(kind: &str) -> DeviceClass {
    let cel = CELDeviceSelector { expression: format!("device.driver == '{kind}.example.com'") };
    let spec = DeviceClassSpec { selectors: Some(vec![DeviceSelector { cel: Some(cel) }]), ..Default::default() };
    DeviceClass { metadata: named(kind), spec: Some(spec) }
}

/// Builds a claim for one device of each kind, all on one NUMA node.
fn claim(kinds: &[String]) -> ResourceClaim {
    let requests = kinds.iter().map(|kind| DeviceRequest {
        name: kind.clone(),
        exactly: Some(ExactDeviceRequest { device_class_name: kind.clone(), ..Default::default() }),
        ..DeviceRequest::default()
    });
    let constraint = DeviceConstraint {
        match_attribute: Some(StandardAttribute::NUMA_NODE.to_owned()),
        ..DeviceConstraint::default()
    };
    let devices =
        DeviceClaim { requests: Some(requests.collect()), constraints: Some(vec![constraint]), ..Default::default() };
    ResourceClaim { metadata: named("pod"), spec: Some(ResourceClaimSpec { devices: Some(devices) }), status: None }
}

/// Adds the tables for the machine that the tour runs on.
fn this_machine(lines: &mut Vec<String>) {
    lines.push(format!("{HEADING}This machine{HEADING:#}"));
    match NumaTopology::from_sysfs(&SysfsDir::default()) {
        Ok(topology) => {
            lines.push(topology_table(&topology).to_string());
            for finding in topology.check_slit() {
                lines.push(format!("unusual: {finding}"));
            }
        }
        Err(error) => lines.push(format!("No NUMA topology to be read here ({error}).")),
    }
    lines.push(format!(
        "{QUIET}`cargo run -p examples --bin driver` shows what its PCI devices would publish.{QUIET:#}"
    ));
}
