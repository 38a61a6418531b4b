//! Refusals of nodes that are remembered, compared with asking every node of an index built anew, on random histories.

use std::sync::Arc;

use dra_alloc::{
    AllocateError, AllocatedState, Allocator, Budget, Classes, Gate, GateSet, Index, Inventory, InventoryEvent,
    NodeVerdicts, Outcome, Profile,
};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceTaintRule, ResourceClaim};
use serde_json::{from_value, json};

use crate::oracle::history::{DRIVERS, Model, change, claim, classes, node};
use crate::oracle::random::Random;

/// Number of random histories, lower without optimisation.
const HISTORIES: u64 = if cfg!(debug_assertions) { 12 } else { 600 };
const EVENTS: usize = 40;
const NODES: usize = 7;
/// Work of one search. A search that needs more is not compared.
const WORK: u64 = 20_000;

type Answer = Result<Outcome, AllocateError>;

/// Parts of a history that do not change.
struct World {
    classes: Classes,
    gates: GateSet,
    /// A claim of each kind.
    kinds: Vec<ResourceClaim>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Answers of nodes that were asked.
    asked: usize,
    /// Refusals that were remembered.
    remembered: usize,
    /// Remembered refusals by nodes of a cluster in which something has changed since.
    beside_changes: usize,
}

impl World {
    fn allocator<'w>(&'w self, inventory: &'w Inventory) -> Allocator<'w> {
        Allocator::new(Component::new(Profile::V1_37, self.gates), inventory, &self.classes)
    }

    fn ask(&self, inventory: &Inventory, state: &AllocatedState, node: &Node, kind: usize) -> Answer {
        let claims = [&self.kinds[kind]];
        self.allocator(inventory).allocate(state, node, claims, Budget::work(WORK)).map(|verdict| verdict.outcome)
    }

    /// Compares every refusal that is remembered with the answer of an index built anew, and remembers those of the other nodes.
    /// Returns an allocation that a node has to give.
    fn compare(
        &self,
        verdicts: &mut NodeVerdicts<usize>,
        (inventory, fresh): (&Inventory, &Inventory),
        state: &AllocatedState,
        nodes: &[Node],
        counts: &mut Counts,
    ) -> Option<(usize, AllocationResult)> {
        let allocator = self.allocator(inventory);
        let mut followed = verdicts.follow(&allocator, state, nodes);
        let mut allocation = None;
        for kind in 0..self.kinds.len() {
            let undecided: Vec<usize> = followed.undecided(&kind, Index::FIRST).map(usize::from).collect();
            for (position, node) in nodes.iter().enumerate() {
                let has_refused = followed.has_refused(&kind, Index::from(position));
                assert_eq!(has_refused, !undecided.contains(&position));
                let plain = self.ask(fresh, state, node, kind);
                if has_refused {
                    counts.remembered += 1;
                    assert!(matches!(plain, Ok(Outcome::Unsatisfied | Outcome::Stopped(_))), "{position}: {plain:?}");
                    continue;
                }
                counts.asked += 1;
                match self.ask(inventory, state, node, kind) {
                    Ok(Outcome::Unsatisfied) => followed.refuse(&kind, Index::from(position)),
                    Ok(Outcome::Allocated(mut results)) => allocation = Some((kind, results.remove(0))),
                    _ => {}
                }
            }
        }
        allocation
    }
}

/// Rule that taints the devices of a driver.
fn rule(random: &mut Random) -> Arc<DeviceTaintRule> {
    let taint = json!({"key": "example.com/unhealthy", "effect": "NoSchedule"});
    let spec = json!({"deviceSelector": {"driver": random.pick(&DRIVERS)}, "taint": taint});
    Arc::new(from_value(json!({"metadata": {"name": "rule"}, "spec": spec})).unwrap())
}

/// Gives a node the labels of another one, or its own again.
fn relabel(random: &mut Random, nodes: &mut [Node], verdicts: &mut NodeVerdicts<usize>) {
    let position = random.below(nodes.len());
    nodes[position].metadata.labels = node(random.below(nodes.len())).metadata.labels;
    verdicts.forget_node(Index::from(position));
}

#[test]
fn what_is_remembered_is_what_every_node_would_answer() {
    let mut counts = Counts::default();
    for seed in 0..HISTORIES {
        let random = &mut Random::new(seed);
        let gates = if random.percent(80) { GateSet::of(Profile::V1_37) } else { GateSet::all() };
        let gates = if random.percent(10) { gates.without(Gate::PartitionableDevices) } else { gates };
        let kinds = (0..4).map(|kind| claim(random, &format!("kind-{kind}"))).collect();
        let world = World { classes: classes(), gates, kinds };
        let mut nodes: Vec<Node> = (0..NODES).map(node).collect();
        let mut verdicts = NodeVerdicts::default();
        let (mut model, mut inventory, mut state) = (Model::default(), Inventory::default(), AllocatedState::default());
        let mut rules: Vec<Arc<DeviceTaintRule>> = Vec::new();
        for step in 0..EVENTS {
            if random.percent(60) {
                change(random, &mut model, &mut inventory);
            }
            if random.percent(5) {
                rules = vec![rule(random)];
                inventory.apply(InventoryEvent::TaintRule(Arc::clone(&rules[0]))).unwrap();
            }
            if random.percent(5) {
                relabel(random, &mut nodes, &mut verdicts);
            }
            if random.percent(30) {
                let names: Vec<String> = model.claims.keys().cloned().collect();
                if let Some(name) = (!names.is_empty()).then(|| random.pick(&names)) {
                    state.forget(&model.claims.remove(&name).unwrap().0);
                }
            }
            let fresh = model.inventory().with_taint_rules(rules.iter().cloned());
            let before = counts.remembered;
            let found = world.compare(&mut verdicts, (&inventory, &fresh), &state, &nodes, &mut counts);
            counts.beside_changes += counts.remembered - before;
            if random.percent(20) {
                ask_what_if(random, &world, &model, &rules, &mut inventory, &state, &nodes, &mut verdicts);
                world.compare(&mut verdicts, (&inventory, &fresh), &state, &nodes, &mut counts);
            }
            let Some((kind, allocation)) = found.filter(|_| random.percent(70)) else { continue };
            let mut taken = world.kinds[kind].clone();
            taken.metadata.uid = Some(format!("claim-{step}"));
            taken.metadata.name.clone_from(&taken.metadata.uid);
            state.assume(&taken, &allocation).unwrap();
            model.claims.insert(format!("claim-{step}"), (taken, allocation));
        }
    }
    assert!(counts.beside_changes > counts.asked / 4, "{counts:?}");
}

/// Asks about a cluster in which everything is free and some slice is another one: a layer, which is dropped.
#[expect(clippy::too_many_arguments, reason = "the whole cluster, as it is beside the layer")]
fn ask_what_if(
    random: &mut Random,
    world: &World,
    model: &Model,
    rules: &[Arc<DeviceTaintRule>],
    inventory: &mut Inventory,
    state: &AllocatedState,
    nodes: &[Node],
    verdicts: &mut NodeVerdicts<usize>,
) {
    let mut state = state.clone();
    for (claim, _) in model.claims.values() {
        state.forget(claim);
    }
    let mut other = Model { slices: model.slices.clone(), ..Model::default() };
    change(random, &mut other, &mut Inventory::default());
    let mut layer = inventory.layer();
    let is_left = |name| other.slices.iter().any(|slice| slice.metadata.name == name);
    for slice in &model.slices {
        if !is_left(slice.metadata.name.clone()) {
            let name = slice.metadata.name.clone().unwrap();
            layer.apply(InventoryEvent::SliceDeleted { name, uid: None }).unwrap();
        }
    }
    for slice in other.slices.iter().filter(|slice| !model.slices.iter().any(|known| Arc::ptr_eq(known, slice))) {
        layer.apply(InventoryEvent::Slice(Arc::clone(slice))).unwrap();
    }
    let fresh = other.inventory().with_taint_rules(rules.iter().cloned());
    world.compare(verdicts, (&layer, &fresh), &state, nodes, &mut Counts::default());
}
