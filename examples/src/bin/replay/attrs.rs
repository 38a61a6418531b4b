//! Operations `attrs.*`.

use std::collections::BTreeMap;

use dra_attrs::numa::{
    CpuSet, Distances, NumaError, NumaForm, NumaNode, NumaNodeAttribute, NumaPlace, NumaTopology, SocketUnknown,
    TopologyError, numa_node_attribute,
};
use dra_attrs::{
    DistinctState, FullyQualifiedName, ListTypes, MatchError, MatchState, PciAddress, PcieRootError, Quantity,
    QuantityError, SysfsMap, ValueSet, lookup_by_name,
};
use k8s_openapi::api::resource::v1::DeviceAttribute;
use serde::Deserialize;
use serde_json::{Value, json};

use super::operation::Operation;
use super::refusal::{Refusal, read};
use super::stopwatch::Stopwatch;

#[derive(Deserialize)]
struct NodeInput {
    id: i64,
    socket: Option<i64>,
    distances: Option<Vec<u32>>,
    #[serde(default)]
    cpus: CpuSet,
}

impl NodeInput {
    fn node(&self) -> NumaNode {
        let distances = match &self.distances {
            Some(row) => Distances::Row(row.clone()),
            None => Distances::Unreadable("no distance row is given".to_owned()),
        };
        let node = NumaNode::with_distances(self.id, distances).with_cpus(self.cpus.clone());
        match self.socket {
            Some(socket) => node.on_socket(socket),
            None if self.cpus.is_empty() => node.on_unknown_socket(SocketUnknown::NoCpus),
            None => node,
        }
    }
}

#[derive(Deserialize)]
struct TopologyInput {
    nodes: Vec<NodeInput>,
}

#[derive(Deserialize)]
struct NumaNodeInput {
    topology: TopologyInput,
    node: Option<i64>,
    cpu: Option<i64>,
    #[serde(default)]
    list: bool,
}

pub(super) fn numa_node(input: Value) -> Result<Operation, Refusal> {
    let input: NumaNodeInput = read(input)?;
    if input.node.is_some() == input.cpu.is_some() {
        return Err(Refusal::field("node", "exactly one of node and cpu must be given"));
    }
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let nodes = || input.topology.nodes.iter().map(NodeInput::node).collect();
        let topology = stopwatch.index(|| NumaTopology::new(nodes())).map_err(|error| topology_refusal(&error))?;
        let attribute = stopwatch.run(|| match (input.node, input.cpu) {
            (Some(node), _) => topology.attribute(node, form(input.list)).map_err(|error| numa_refusal(&error)),
            (None, cpu) => {
                let cpu = cpu_id(cpu.unwrap_or_default())?;
                let attribute = topology.node_of_cpu(cpu).and_then(|node| topology.attribute(node, form(input.list)));
                attribute.map_err(|error| numa_refusal(&error))
            }
        });
        Ok(with_diagnostics(&attribute?))
    }))
}

/// Converts a CPU id. Numbers that no CPU can have become the id of an unknown CPU.
fn cpu_id(cpu: i64) -> Result<u32, Refusal> {
    u32::try_from(cpu).map_err(|_| Refusal::new("UnknownCpu", format!("CPU {cpu} is in no NUMA node")))
}

const fn form(list: bool) -> NumaForm {
    if list { NumaForm::LocalNodes } else { NumaForm::Scalar }
}

fn with_diagnostics(attribute: &NumaNodeAttribute) -> Value {
    let diagnostics: Vec<String> = attribute.diagnostics.iter().map(ToString::to_string).collect();
    json!({"attribute": attribute.value, "diagnostics": diagnostics})
}

fn topology_refusal(error: &TopologyError) -> Refusal {
    let kind = match error {
        TopologyError::NodeOutOfRange { .. } => "NodeOutOfRange",
        TopologyError::DuplicateNode { .. } => "DuplicateNode",
        _ => "Online",
    };
    Refusal::new(kind, error.to_string()).at("topology.nodes")
}

fn numa_refusal(error: &NumaError) -> Refusal {
    let kind = match error {
        NumaError::NoAffinity { .. } => "NoAffinity",
        NumaError::OutOfRange { .. } => "OutOfRange",
        NumaError::UnknownCpu { .. } => "UnknownCpu",
        NumaError::NotANumber { .. } => "NotANumber",
        NumaError::TooManyValues { .. } => "TooManyValues",
        NumaError::Topology(error) => return topology_refusal(error),
        _ => "Sysfs",
    };
    Refusal::new(kind, error.to_string())
}

#[derive(Deserialize)]
struct SysfsInput {
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    links: BTreeMap<String, String>,
    pci_bus_id: String,
    #[serde(default)]
    list: bool,
}

impl SysfsInput {
    fn machine(&self) -> SysfsMap {
        let files = self.files.iter().fold(SysfsMap::default(), |map, (path, text)| map.with_file(path, text));
        self.links.iter().fold(files, |map, (path, target)| map.with_link(path, target))
    }

    fn address(&self) -> Result<PciAddress, Refusal> {
        PciAddress::parse(&self.pci_bus_id)
            .map_err(|error| Refusal::new("InvalidBusId", error.to_string()).at("pci_bus_id"))
    }
}

pub(super) fn numa_node_sysfs(input: Value) -> Result<Operation, Refusal> {
    let input: SysfsInput = read(input)?;
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let (machine, place) = (input.machine(), NumaPlace::Pci(input.address()?));
        let attribute = stopwatch.run(|| numa_node_attribute(&machine, place, form(input.list)));
        attribute.map(|attribute| with_diagnostics(&attribute)).map_err(|error| numa_refusal(&error))
    }))
}

pub(super) fn pcie_root(input: Value) -> Result<Operation, Refusal> {
    let input: SysfsInput = read(input)?;
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let (machine, address) = (input.machine(), input.address()?);
        let root = stopwatch.run(|| address.pcie_root_attribute(&machine));
        let root = root.map_err(|error: PcieRootError| Refusal::new("InvalidLink", error.to_string()).at("links"))?;
        Ok(json!({"attribute": root.value}))
    }))
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ConstraintKind {
    Match,
    Distinct,
}

#[derive(Deserialize)]
struct MatchDevice {
    #[serde(default)]
    driver: String,
    #[serde(default)]
    attributes: BTreeMap<String, DeviceAttribute>,
}

#[derive(Deserialize)]
struct MatchInput {
    attribute: String,
    kind: ConstraintKind,
    #[serde(default)]
    list_types: bool,
    devices: Vec<MatchDevice>,
}

pub(super) fn matching(input: Value) -> Result<Operation, Refusal> {
    let input: MatchInput = read(input)?;
    FullyQualifiedName::parse(&input.attribute)
        .map_err(|error| Refusal::new("InvalidName", error.to_string()).at("attribute"))?;
    // With the gate off, the rules of 1.37 apply: the KEP's stricter ones need a whole claim and belong to the
    // allocator.
    let lists = if input.list_types { ListTypes::Enabled } else { ListTypes::Disabled };
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let sets: Vec<ValueSet<'_>> = stopwatch.index(|| {
            let values =
                input.devices.iter().map(|device| lookup_by_name(&device.attributes, &input.attribute, &device.driver));
            values.map(|value| ValueSet::from_attribute(value, lists)).collect()
        });
        let (mut same, mut distinct) = (MatchState::new(), DistinctState::new());
        let failed_at = stopwatch.run(|| {
            sets.iter().position(|set| {
                let pushed: Result<(), MatchError> = match input.kind {
                    ConstraintKind::Match => same.push(set),
                    ConstraintKind::Distinct => distinct.push(set),
                };
                pushed.is_err()
            })
        });
        let common: Vec<DeviceAttribute> = match failed_at {
            None => same.common().iter().map(|value| value.to_attribute()).collect(),
            Some(_) => Vec::new(),
        };
        Ok(json!({"satisfied": failed_at.is_none(), "failed_at": failed_at, "common": common}))
    }))
}

#[derive(Deserialize)]
struct QuantityInput {
    text: String,
}

pub(super) fn quantity(input: Value) -> Result<Operation, Refusal> {
    let input: QuantityInput = read(input)?;
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let quantity = stopwatch.run(|| input.text.parse::<Quantity>());
        let quantity = quantity.map_err(|error| {
            let out_of_range = matches!(error, QuantityError::OutOfRange { .. });
            Refusal::new(if out_of_range { "OutOfRange" } else { "InvalidQuantity" }, error.to_string()).at("text")
        })?;
        Ok(json!({"canonical": quantity.to_string(), "format": quantity.format()}))
    }))
}
