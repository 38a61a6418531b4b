//! Nodes, devices and classes of a simulation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dra_alloc::selector::SelectorCache;
use dra_alloc::{Classes, GateSet, Inventory, Profile};
use dra_attrs::{FieldError, FieldErrors, FieldPath};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{CounterSet, Device, ResourceSlice, ResourceSliceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::description::{Description, DescriptionError, MAX_DEVICES, MAX_NODES, NodeShape};
use super::recorded::Recorded;
use super::template::Templates;

/// Largest number of counter sets of a slice.
const SETS_OF_SLICE: usize = 8;

/// Cluster without pods. It does not change during a day.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) nodes: Vec<Node>,
    pub(super) inventory: Inventory,
    pub(super) classes: Classes,
    pub(super) selectors: SelectorCache,
    /// Number of devices, by driver.
    pub(super) devices: BTreeMap<String, u64>,
    /// Drivers and names of the pools that more than one node may see.
    shared_pools: BTreeSet<(String, String)>,
}

impl Cluster {
    pub(super) fn new(
        description: &Description,
        recorded: &Recorded,
        profile: Profile,
        gates: GateSet,
    ) -> Result<Self, DescriptionError> {
        let templates = Templates::new(profile, gates);
        let (mut nodes, mut slices) = (recorded.nodes.clone(), recorded.slices.clone());
        for (index, shape) in description.nodes.iter().enumerate() {
            add_nodes(templates, index, shape, &mut nodes, &mut slices)?;
        }
        let mut classes = recorded.classes.clone();
        for (name, expression) in &description.classes {
            classes.push(Arc::new(templates.class(name, expression)?));
        }
        let mut devices = BTreeMap::<String, u64>::new();
        for slice in &slices {
            let count = slice.spec.devices.iter().flatten().count() as u64;
            *devices.entry(slice.spec.driver.clone()).or_default() += count;
        }
        let mut errors = FieldErrors::new();
        let many = [("nodes", nodes.len() as u64, MAX_NODES), ("devices", devices.values().sum(), MAX_DEVICES)];
        for (what, count, most) in many.into_iter().filter(|(_, count, most)| *count > *most as u64) {
            let detail = format!("must be at most {most} {what}, with those of the manifests");
            errors.push(FieldError::invalid(&FieldPath::new("nodes"), count.to_string(), detail));
        }
        unique("nodes", nodes.iter().map(|node| &node.metadata), &mut errors);
        unique("slices", slices.iter().map(|slice| &slice.metadata), &mut errors);
        unique("classes", classes.iter().map(|class| &class.metadata), &mut errors);
        errors.into_result()?;
        let shared_pools = shared_pools(&slices);
        let inventory = Inventory::new(slices).with_taint_rules(recorded.taint_rules.iter().cloned());
        let (classes, selectors) = (Classes::new(classes), SelectorCache::default());
        Ok(Self { nodes, inventory, classes, selectors, devices, shared_pools })
    }

    /// Returns true if more than one node may see the pool.
    pub(super) fn is_shared(&self, driver: &str, pool: &str) -> bool {
        !self.shared_pools.is_empty() && self.shared_pools.contains(&(driver.to_owned(), pool.to_owned()))
    }
}

/// Devices and counters of a driver on a node.
#[derive(Default)]
struct Pool {
    devices: Vec<Device>,
    /// Counters and partitions of each card.
    cards: Vec<(CounterSet, Vec<Device>)>,
}

impl Pool {
    /// Returns the contents of the slices: devices, then counters, then the partitions of each card.
    fn slices(&self) -> Vec<ResourceSliceSpec> {
        let of_devices = |devices: &Vec<Device>| {
            let devices = Some(devices.clone()).filter(|devices| !devices.is_empty());
            devices.map(|devices| ResourceSliceSpec { devices: Some(devices), ..ResourceSliceSpec::default() })
        };
        let of_sets = |cards: &[(CounterSet, Vec<Device>)]| {
            let sets = cards.iter().map(|(set, _)| set.clone()).collect();
            ResourceSliceSpec { shared_counters: Some(sets), ..ResourceSliceSpec::default() }
        };
        let partitions = self.cards.iter().filter_map(|(_, devices)| of_devices(devices));
        of_devices(&self.devices)
            .into_iter()
            .chain(self.cards.chunks(SETS_OF_SLICE).map(of_sets))
            .chain(partitions)
            .collect()
    }
}

/// Adds the nodes of a shape, each with a pool for each driver.
fn add_nodes(
    templates: Templates,
    index: usize,
    shape: &NodeShape,
    nodes: &mut Vec<Node>,
    slices: &mut Vec<Arc<ResourceSlice>>,
) -> Result<(), DescriptionError> {
    let name = |number: u32| format!("{}-{number}", shape.name);
    // The longest name, so that it is checked.
    let last = name(shape.count.saturating_sub(1));
    let mut pools = BTreeMap::<&str, Pool>::new();
    for (number, group) in shape.devices.iter().enumerate() {
        let Pool { devices, .. } = pools.entry(&group.driver).or_default();
        let place = format!("nodes[{index}].devices[{number}]");
        devices.extend(templates.devices(group, devices.len(), &last, place)?);
    }
    for (number, group) in shape.cards.iter().enumerate() {
        let Pool { cards, .. } = pools.entry(&group.driver).or_default();
        let place = format!("nodes[{index}].cards[{number}]");
        let first = u32::try_from(cards.len()).unwrap_or(u32::MAX);
        for card in first..first.saturating_add(group.count) {
            cards.push(templates.card(group, card, &last, &place)?);
        }
    }
    let pools: Vec<_> = pools.into_iter().map(|(driver, pool)| (driver, pool.slices())).collect();
    for number in 0..shape.count {
        let node = name(number);
        for (driver, of_pool) in &pools {
            for (number, contents) in of_pool.iter().enumerate() {
                let mut spec = contents.clone();
                (spec.driver, spec.node_name) = ((*driver).to_owned(), Some(node.clone()));
                (spec.pool.name, spec.pool.generation) = (node.clone(), 1);
                spec.pool.resource_slice_count = i64::try_from(of_pool.len()).unwrap_or(i64::MAX);
                let number = if of_pool.len() > 1 { format!("-{number:02}") } else { String::new() };
                let metadata = ObjectMeta { name: Some(format!("{node}-{driver}{number}")), ..ObjectMeta::default() };
                slices.push(Arc::new(ResourceSlice { metadata, spec }));
            }
        }
        let metadata = ObjectMeta { name: Some(node), ..ObjectMeta::default() };
        nodes.push(Node { metadata, ..Node::default() });
    }
    Ok(())
}

fn unique<'m>(field: &str, objects: impl Iterator<Item = &'m ObjectMeta>, errors: &mut FieldErrors) {
    let mut known = BTreeSet::new();
    for name in objects.filter_map(|metadata| metadata.name.as_deref()) {
        if !known.insert(name) {
            errors.push(FieldError::duplicate(&FieldPath::new(field), name));
        }
    }
}

/// Returns the pools with a slice that is not of one node, or of another node than the first one.
fn shared_pools(slices: &[Arc<ResourceSlice>]) -> BTreeSet<(String, String)> {
    let mut first = BTreeMap::<(&str, &str), Option<&str>>::new();
    let mut shared = BTreeSet::new();
    for slice in slices {
        let (spec, node) = (&slice.spec, slice.spec.node_name.as_deref());
        let known = *first.entry((&spec.driver, &spec.pool.name)).or_insert(node);
        if node.is_none() || known != node {
            shared.insert((spec.driver.clone(), spec.pool.name.clone()));
        }
    }
    shared
}
