//! Comparison of what is kept between calls, and of each shortcut, with a plain search over an index built anew, on random
//! clusters and random events.

use std::collections::BTreeSet;
use std::sync::Arc;

use dra_attrs::{Gate, GateSet, Profile};
use dra_device::DeviceId;
use dra_selector::SelectorCache;
use k8s_openapi::api::core::v1::{Node, NodeStatus};
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use serde_json::{Value, from_value, json};
use smallvec::SmallVec;

use super::Elisions;
use crate::cluster::classes::Classes;
use crate::cluster::expression::Compiler;
use crate::cluster::inventory::Inventory;
use crate::cluster::state::AllocatedState;
use crate::explain::{Detail, ExplainedStates, Explanation, Refused, Suggestion, explain};
use crate::oracle::compare::numbered;
use crate::oracle::history::{DRIVERS, Model, change, claim, classes, node};
use crate::oracle::random::Random;
use crate::search::budget::{Budget, Meter};
use crate::search::context::{Context, FailingSelectors};
use crate::search::outcome::{Fit, Outcome};
use crate::search::request::Plan;
use crate::search::{PruningRules, allocate_on, fits_within};

/// Number of random histories, lower without optimisation; more with `CLUSTER_HISTORIES` set when it is compiled.
const HISTORIES: u64 = if cfg!(debug_assertions) { 10 } else { 300 };
const EVENTS: usize = 25;
/// Budget of one search. A search that needs more is not compared.
const STEPS: u64 = 20_000;

struct World {
    classes: Classes,
    selectors: SelectorCache,
    gates: GateSet,
}

type Answer = Result<Outcome, String>;

impl World {
    fn context<'c>(&'c self, inventory: &'c Inventory, state: &'c AllocatedState, elisions: Elisions) -> Context<'c> {
        Context {
            inventory,
            classes: &self.classes,
            state,
            selectors: Compiler::new(&self.selectors, Profile::V1_37, self.gates),
            share_ids: &numbered,
            gates: self.gates,
            profile: Profile::V1_37,
            pruning: PruningRules::default(),
            elisions,
            failing: FailingSelectors::End,
        }
    }

    /// Explains the answer on each of some nodes. Without elisions, the claims are read anew for each question.
    fn explain(
        &self,
        inventory: &Inventory,
        state: &AllocatedState,
        claims: &[ResourceClaim],
        elisions: Elisions,
    ) -> Vec<Option<Explanation>> {
        self.explain_with(&ExplainedStates::default(), inventory, state, claims, elisions)
    }

    /// Explains the answer on each of some nodes, with the explanations of nodes before.
    fn explain_with(
        &self,
        explained_states: &ExplainedStates,
        inventory: &Inventory,
        state: &AllocatedState,
        claims: &[ResourceClaim],
        elisions: Elisions,
    ) -> Vec<Option<Explanation>> {
        let context = self.context(inventory, state, elisions);
        let listed: SmallVec<[_; 4]> = claims.iter().collect();
        let plan = Plan::new(&listed, &self.classes, self.gates, Profile::V1_37);
        let explain_on = |number| {
            let mut node = node(number);
            let declared = vec![Gate::OptionalNodeOperations.name(Profile::V1_37).to_owned()];
            node.status = Some(NodeStatus { declared_features: Some(declared), ..NodeStatus::default() });
            let (outcome, effort) = allocate_on(&context, &plan, &node, None, Budget::work(STEPS)).ok()?;
            let plan = (elisions != Elisions::from_bits(0)).then_some(&plan);
            let refused = Refused { claims, plan, outcome: &outcome, is_counted: effort.is_counted, explained_states };
            let explanation = explain(&context, Detail::Full, &refused, &node, &Meter::new(Budget::default()));
            explanation.map(Arc::unwrap_or_clone)
        };
        (0..7).map(explain_on).collect()
    }

    fn ask(
        &self,
        inventory: &Inventory,
        state: &AllocatedState,
        node: &Node,
        claims: &[ResourceClaim],
        elisions: Elisions,
    ) -> Answer {
        let context = self.context(inventory, state, elisions);
        let listed: SmallVec<[_; 4]> = claims.iter().collect();
        let plan = Plan::new(&listed, &self.classes, self.gates, Profile::V1_37);
        let answer = allocate_on(&context, &plan, node, None, Budget::work(STEPS));
        let answer = answer.map(|(outcome, _)| outcome).map_err(|error| error.to_string());
        let meter = Meter::new(Budget::work(STEPS));
        let fit = fits_within(&context, &plan, node, None, &meter).map_err(|error| error.to_string());
        let fit_of = |outcome| match outcome {
            Outcome::Allocated(_) => Fit::Yes,
            Outcome::Stopped(stopped) => Fit::Stopped(stopped),
            Outcome::Unsatisfied | Outcome::FailedOnNode(_) => Fit::No,
        };
        assert_eq!(fit, answer.clone().map(fit_of));
        answer
    }
}

#[test]
fn what_is_kept_and_left_out_changes_no_answer() {
    let histories = option_env!("CLUSTER_HISTORIES").and_then(|text| text.parse().ok()).unwrap_or(HISTORIES);
    let (mut compared, mut allocated, mut refused) = (0_u32, 0_u32, 0_u32);
    for seed in 0..histories {
        let random = &mut Random::new(seed);
        let gates = if random.percent(80) { GateSet::of(Profile::V1_37) } else { GateSet::all() };
        let gates = if random.percent(10) { gates.without(Gate::PartitionableDevices) } else { gates };
        let world = World { classes: classes(), selectors: SelectorCache::default(), gates };
        let (mut model, mut inventory, mut state) = (Model::default(), Inventory::default(), AllocatedState::default());
        for step in 0..EVENTS {
            change(random, &mut model, &mut inventory);
            if random.percent(30) {
                let names: Vec<String> = model.claims.keys().cloned().collect();
                if let Some(name) = (!names.is_empty()).then(|| random.pick(&names)) {
                    let (claim, _) = model.claims.remove(&name).unwrap();
                    state.forget(&claim);
                }
            }
            let claims = [claim(random, &format!("claim-{step}"))];
            let (fresh, plain_state) = (model.inventory(), model.state());
            assert_eq!(state, plain_state, "seed {seed}");
            let some = Elisions::from_bits(u32::try_from(random.below(1 << Elisions::COUNT)).unwrap());
            for number in 0..7 {
                let node = node(number);
                let plain = world.ask(&fresh, &plain_state, &node, &claims, Elisions::from_bits(0));
                if matches!(plain, Ok(Outcome::Stopped(_))) {
                    continue;
                }
                for elisions in [Elisions::default(), some] {
                    let kept = world.ask(&inventory, &state, &node, &claims, elisions);
                    assert_eq!(kept, plain, "seed {seed}, step {step}, node {number}, {elisions:?}");
                }
                compared += 1;
                refused += u32::from(plain == Ok(Outcome::Unsatisfied));
                let Ok(Outcome::Allocated(results)) = plain else { continue };
                allocated += 1;
                // What-if: the layer is dropped, and nothing has changed.
                let mut layer = state.layer();
                layer.assume(&claims[0], &results[0]).unwrap();
                let _ = world.ask(&inventory, &layer, &node, &claims, Elisions::default());
                drop(layer);
                if !model.claims.contains_key(&format!("claim-{step}")) && random.percent(60) {
                    state.assume(&claims[0], &results[0]).unwrap();
                    model.claims.insert(format!("claim-{step}"), (claims[0].clone(), results[0].clone()));
                    break;
                }
            }
        }
    }
    assert!(allocated > compared / 20 && refused > compared / 20, "{allocated} and {refused} of {compared}");
}

/// Requests of one claim for shares of NICs. Some are alike, some ask the same amount in other words, and some another one.
#[test]
fn requests_that_ask_alike_are_given_the_same_as_alone() {
    let (mut allocated, mut refused) = (0, 0);
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let ports: Vec<Value> = (0..4)
            .map(|number| {
                let capacity = json!({"bandwidth": {"value": random.pick(&["4Gi", "8Gi"])}});
                json!({"name": format!("port-{number}"), "allowMultipleAllocations": true, "capacity": capacity,
                    "attributes": {"model": {"string": random.pick(&["a", "b"])}}})
            })
            .collect();
        let slice: ResourceSlice = from_value(json!({"metadata": {"name": "nics"}, "spec": {"driver": DRIVERS[0],
            "nodeName": "node-0", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": ports}}))
        .unwrap();
        let requests: Vec<Value> = (0..random.pick(&[2, 4, 6, 9]))
            .map(|number| {
                let amount = random.pick(&["1Gi", "1024Mi", "3Gi", "5Gi"]);
                let model = format!("device.attributes[device.driver].model == '{}'", random.pick(&["a", "a", "b"]));
                let selectors = if random.percent(50) { json!([{"cel": {"expression": model}}]) } else { json!([]) };
                json!({"name": format!("r{number}"), "exactly": {"deviceClassName": random.pick(&["a-fabric", "any"]),
                    "selectors": selectors, "capacity": {"requests": {"bandwidth": amount}}}})
            })
            .collect();
        let claim: ResourceClaim = from_value(json!({"metadata": {"name": "c", "namespace": "ns", "uid": "c"},
            "spec": {"devices": {"requests": requests}}}))
        .unwrap();
        let world = World { classes: classes(), selectors: SelectorCache::default(), gates: GateSet::all() };
        let (inventory, state) = (Inventory::new([slice]), AllocatedState::default());
        let ask = |elisions| world.ask(&inventory, &state, &node(0), std::slice::from_ref(&claim), elisions);
        let plain = ask(Elisions::from_bits(0));
        assert_eq!(ask(Elisions::default()), plain, "seed {seed}");
        allocated += u32::from(matches!(plain, Ok(Outcome::Allocated(_))));
        refused += u32::from(plain == Ok(Outcome::Unsatisfied));
    }
    assert!(allocated > 30 && refused > 30, "{allocated} allocated, {refused} refused");
}

/// A cluster for explanations: devices with taints or without, slices that skip node operations, and many pools that are
/// held as a whole.
fn nearly_full(random: &mut Random) -> (Inventory, AllocatedState) {
    let (mut model, mut inventory, mut state) = (Model::default(), Inventory::default(), AllocatedState::default());
    for _ in 0..12 {
        change(random, &mut model, &mut inventory);
    }
    for slice in &mut model.slices {
        let slice = Arc::make_mut(slice);
        let (is_tainted, binds) = (random.percent(20), random.percent(25));
        let held = random.pick(&[0, 50, 90, 100, 100]);
        if random.percent(25) {
            slice.spec.skip_node_operations = Some(vec!["NodePrepareResources".to_owned()]);
        }
        for device in slice.spec.devices.iter_mut().flatten() {
            if is_tainted && random.percent(70) {
                device.taints = from_value(json!([{"key": "health", "effect": "NoSchedule"}])).unwrap();
            }
            if binds && random.percent(60) {
                device.binding_conditions = Some(vec!["ready".to_owned()]);
            }
            if random.percent(held) {
                state.hold(&DeviceId::new(&slice.spec.driver, &slice.spec.pool.name, &device.name));
            }
        }
    }
    (model.inventory(), state)
}

#[test]
fn elisions_change_no_explanation() {
    let histories = option_env!("CLUSTER_HISTORIES").and_then(|text| text.parse().ok()).unwrap_or(HISTORIES);
    let (mut compared, mut release, mut gates, mut others) = (0_u32, 0_u32, 0_u32, 0_u32);
    for seed in 0..histories * 4 {
        let random = &mut Random::new(seed);
        let off = |gate: &Gate| match gate {
            Gate::DeviceBindingConditions | Gate::OptionalNodeOperations | Gate::PartitionableDevices => 50,
            _ => 10,
        };
        let off: Vec<Gate> = Gate::ALL.iter().copied().filter(|gate| random.percent(off(gate))).collect();
        let all_but = off.into_iter().fold(GateSet::all(), GateSet::without);
        let world = World { classes: classes(), selectors: SelectorCache::default(), gates: all_but };
        let (inventory, state) = nearly_full(random);
        for number in 0..4 {
            let claims: Vec<_> =
                (0..random.pick(&[1, 1, 2])).map(|index| claim(random, &format!("claim-{number}-{index}"))).collect();
            let plain = world.explain(&inventory, &state, &claims, Elisions::from_bits(0));
            let some = Elisions::from_bits(u32::try_from(random.below(1 << Elisions::COUNT)).unwrap());
            for elisions in [Elisions::default(), some] {
                let explained = world.explain(&inventory, &state, &claims, elisions);
                assert_eq!(explained, plain, "seed {seed}, claims {number}, {elisions:?}");
            }
            for explanation in plain.iter().flatten() {
                compared += 1;
                for suggestion in &explanation.suggestions {
                    match suggestion {
                        Suggestion::Release => release += 1,
                        Suggestion::Gates { .. } => gates += 1,
                        _ => others += 1,
                    }
                }
            }
        }
    }
    assert!(compared > 300 && release > 10 && gates > 10 && others > 5, "{compared}, {release}, {gates}, {others}");
}

/// One thing that makes another node of some nodes of a cluster that are alike otherwise.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Oddity {
    Nothing,
    OneDeviceMore,
    OneHeldLess,
    OtherDriver,
    TwoPools,
    Incomplete,
    Skipping,
    Rule,
    Parts,
    Model,
    Tainted,
    Binding,
    Shareable,
    Broken,
    Shared,
}

impl Oddity {
    const ALL: [Self; 15] = [
        Self::Nothing,
        Self::OneDeviceMore,
        Self::OneHeldLess,
        Self::OtherDriver,
        Self::TwoPools,
        Self::Incomplete,
        Self::Skipping,
        Self::Rule,
        Self::Parts,
        Self::Model,
        Self::Tainted,
        Self::Binding,
        Self::Shareable,
        Self::Broken,
        Self::Shared,
    ];
}

/// A cluster of nodes that are equal but for names and attributes, and for one thing that makes other nodes of a third.
fn nearly_alike(random: &mut Random, nodes: usize) -> (Inventory, AllocatedState) {
    let (mut slices, mut rules, mut state) = (Vec::new(), Vec::new(), AllocatedState::default());
    let (oddity, usual) = (random.pick(&Oddity::ALL), random.between(1, 4));
    let usually_held = random.pick(&[0, usual.min(2), usual, usual]);
    for node in 0..nodes {
        let host = format!("node-{node}");
        let is_odd = random.percent(33);
        let is = |what: Oddity| is_odd && what == oddity;
        let mut add = |driver: &str, name: &str, spec: Value| {
            let mut spec = spec;
            (spec["driver"], spec["pool"]["name"], spec["pool"]["generation"]) = (json!(driver), json!(name), json!(1));
            let slice = json!({"metadata": {"name": format!("{driver}-{name}")}, "spec": spec});
            slices.push(from_value::<ResourceSlice>(slice).unwrap());
        };
        if is(Oddity::Parts) {
            // Read with the gate of partitions alone.
            let devices = json!([{"name": "part", "nodeName": host}, {"name": "other", "nodeName": host}]);
            let spec = json!({"perDeviceNodeSelection": true, "devices": devices, "pool": {"resourceSliceCount": 1}});
            add(DRIVERS[1], &format!("parts-{node}"), spec);
        }
        let drivers = [DRIVERS[1], DRIVERS[2], DRIVERS[1]];
        for (number, driver) in drivers.into_iter().enumerate().take(if is(Oddity::TwoPools) { 3 } else { 2 }) {
            let driver = if is(Oddity::OtherDriver) { DRIVERS[0] } else { driver };
            let (name, count) = (format!("pool-{node}-{number}"), usual + usize::from(is(Oddity::OneDeviceMore)));
            let is_less = is(Oddity::OneHeldLess) || is(Oddity::Shared);
            let held = usually_held.saturating_sub(usize::from(is_less));
            let device_name = |device: usize| format!("dev-{node}-{number}-{device}");
            let device = |device: usize| {
                let name = device_name(device);
                let model = if is(Oddity::Model) { "b" } else { "a" };
                let attributes = json!({"uuid": {"string": name}, "model": {"string": model}});
                let mut device = json!({"name": name, "attributes": attributes});
                match oddity {
                    Oddity::Tainted if is_odd => device["taints"] = json!([{"key": "health", "effect": "NoSchedule"}]),
                    Oddity::Binding if is_odd => device["bindingConditions"] = json!(["ready"]),
                    Oddity::Shareable if is_odd => device["allowMultipleAllocations"] = json!(true),
                    Oddity::Broken if is_odd => device["attributes"]["broken"] = json!({}),
                    _ => {}
                }
                device
            };
            let devices: Vec<Value> = (0..count).map(device).collect();
            (0..held).for_each(|device| state.hold(&DeviceId::new(driver, &name, &device_name(device))));
            if is(Oddity::Shared) {
                state.share(&DeviceId::new(driver, &name, &device_name(held)), "share");
            }
            let announced = 1 + usize::from(is(Oddity::Incomplete));
            let mut spec = json!({"nodeName": host, "devices": devices, "pool": {"resourceSliceCount": announced}});
            if is(Oddity::Skipping) {
                spec["skipNodeOperations"] = json!(["NodePrepareResources"]);
            }
            add(driver, &name, spec);
            if is(Oddity::Rule) {
                let selectors = [json!({"pool": name}), json!({"driver": driver}), json!({"device": "dev-0-0-0"})];
                let taint = json!({"key": "rule", "effect": "NoSchedule"});
                let spec = json!({"deviceSelector": random.pick(&selectors), "taint": taint});
                let rule = json!({"metadata": {"name": name}, "spec": spec});
                rules.push(from_value::<DeviceTaintRule>(rule).unwrap());
            }
        }
    }
    (Inventory::new(slices).with_taint_rules(rules), state)
}

/// A claim that mostly reads nothing of a device but its driver.
fn plain_claim(random: &mut Random) -> ResourceClaim {
    let asked = |random: &mut Random| {
        if random.percent(8) {
            let class = random.pick(&["gpu-a", "model-b"]);
            return random.pick(&[
                json!({"deviceClassName": class}),
                json!({"deviceClassName": "gpu", "allocationMode": "All"}),
            ]);
        }
        let tolerations = random.pick(&[json!([]), json!([]), json!([{"key": "health", "operator": "Exists"}])]);
        json!({"deviceClassName": random.pick(&["gpu", "gpu", "z-fabric", "any"]), "count": random.pick(&[1, 2, 3, 5]),
            "tolerations": tolerations})
    };
    let requests: Vec<Value> = (0..random.pick(&[1, 1, 2, 3]))
        .map(|number| {
            let mut one = asked(random);
            if random.percent(20) {
                let mut other = asked(random);
                (one["name"], other["name"]) = (json!("one"), json!("other"));
                return json!({"name": format!("r{number}"), "firstAvailable": [one, other]});
            }
            json!({"name": format!("r{number}"), "exactly": one})
        })
        .collect();
    let attribute = json!([{"matchAttribute": format!("{}/uuid", DRIVERS[1])}]);
    let constraints = if random.percent(10) { attribute } else { json!([]) };
    let spec = json!({"devices": {"requests": requests, "constraints": constraints}});
    from_value(json!({"metadata": {"name": "c", "namespace": "ns", "uid": "c"}, "spec": spec})).unwrap()
}

#[test]
fn nodes_that_are_alike_have_the_explanation_of_each_alone() {
    let histories = option_env!("CLUSTER_HISTORIES").and_then(|text| text.parse().ok()).unwrap_or(HISTORIES);
    let (mut explained, mut known, mut different) = (0, 0, 0);
    for seed in 0..histories * 20 {
        let random = &mut Random::new(seed);
        let off = |gate: &Gate| if *gate == Gate::PartitionableDevices { 30 } else { 10 };
        let off: Vec<Gate> = Gate::ALL.iter().copied().filter(|gate| random.percent(off(gate))).collect();
        let gates = off.into_iter().fold(GateSet::all(), GateSet::without);
        let world = World { classes: classes(), selectors: SelectorCache::default(), gates };
        let (inventory, state) = nearly_alike(random, 7);
        for _ in 0..3 {
            let claims: Vec<_> = (0..random.pick(&[1, 1, 2])).map(|_| plain_claim(random)).collect();
            let plain = world.explain(&inventory, &state, &claims, Elisions::from_bits(0));
            let kept = ExplainedStates::default();
            let alike = world.explain_with(&kept, &inventory, &state, &claims, Elisions::default());
            assert_eq!(alike, plain, "seed {seed}");
            let refused: BTreeSet<String> = plain.iter().flatten().map(Explanation::to_string).collect();
            explained += plain.iter().flatten().count();
            different += refused.len();
            known += kept.found();
        }
    }
    assert!(known * 4 > explained && different * 6 > explained, "{explained}, {different}, {known}");
}
