//! Tests of the inventory: built at once or by events, and read by one thread or two.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use dra_alloc::selector::SelectorCache;
use dra_alloc::skip::SkipField;
use dra_alloc::{
    AllocatedState, Allocator, Budget, Classes, Gate, GateSet, Inventory, InventoryEvent, Outcome, Profile, Verdict,
};
use dra_attrs::Component;
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use crate::cluster::{Cluster, claim, node, pool, request, with};

fn slice(name: u8, pool: u8, place: u8, generation: i64, count: i64, devices: &[u8]) -> Arc<ResourceSlice> {
    let devices: Vec<Value> = devices.iter().map(|device| json!({"name": format!("dev-{device}")})).collect();
    let mut spec = json!({
        "driver": "d.example.com", "devices": devices,
        "pool": {"name": format!("pool-{pool}"), "generation": generation, "resourceSliceCount": count},
    });
    match place {
        0 => spec["allNodes"] = json!(true),
        1 => {
            let term = json!({"matchExpressions": [{"key": "name", "operator": "In", "values": ["node-2"]}]});
            spec["nodeSelector"] = json!({"nodeSelectorTerms": [term]});
        }
        node => spec["nodeName"] = json!(format!("node-{node}")),
    }
    Arc::new(SkipField::read(json!({"metadata": {"name": format!("slice-{name}")}, "spec": spec})).unwrap())
}

fn rule(name: u8, device: u8) -> Arc<DeviceTaintRule> {
    let taint = json!({"key": "health", "effect": "NoSchedule"});
    let spec = json!({"deviceSelector": {"device": format!("dev-{device}")}, "taint": taint});
    Arc::new(from_value(json!({"metadata": {"name": format!("rule-{name}")}, "spec": spec})).unwrap())
}

fn slice_deleted(name: &str) -> InventoryEvent {
    InventoryEvent::SliceDeleted { name: name.to_owned(), uid: None }
}

fn rule_deleted(name: &str) -> InventoryEvent {
    InventoryEvent::TaintRuleDeleted { name: name.to_owned(), uid: None }
}

fn any_class() -> DeviceClass {
    from_value(json!({"metadata": {"name": "any"}, "spec": {}})).unwrap()
}

fn claims() -> [Vec<ResourceClaim>; 2] {
    let two = request("two", "any", json!({"count": 2}));
    let all = request("all", "any", json!({"allocationMode": "All"}));
    [two, all].map(|request| vec![claim("claim", json!([request]), json!([]))])
}

/// Returns the verdict for every node.
fn answers(inventory: &Inventory) -> Vec<Verdict> {
    let (classes, state, selectors) = ([any_class()], AllocatedState::default(), SelectorCache::default());
    let classes = Classes::new(classes.iter().cloned());
    let allocator = Allocator::new(Profile::Kep, inventory, &classes).with_selector_cache(&selectors);
    let nodes = ["node-2", "node-3", "node-4"].map(node);
    let verdicts = |claims: &[ResourceClaim]| -> Vec<Verdict> {
        allocator.allocate_each(&state, &nodes, claims, Budget::default()).map(Result::unwrap).collect()
    };
    claims().iter().flat_map(|claims| verdicts(claims)).collect()
}

fn change() -> impl Strategy<Value = InventoryEvent> {
    let devices = prop::collection::vec(0..4u8, 0..3);
    let slice = (0..5u8, 0..2u8, 0..4u8, 1..3i64, 1..3i64, devices).prop_map(
        |(name, pool, place, generation, count, devices)| {
            InventoryEvent::Slice(slice(name, pool, place, generation, count, &devices))
        },
    );
    prop_oneof![
        6 => slice,
        2 => (0..5u8).prop_map(|name| slice_deleted(&format!("slice-{name}"))),
        1 => (0..2u8, 0..4u8).prop_map(|(name, device)| InventoryEvent::TaintRule(rule(name, device))),
        1 => (0..2u8).prop_map(|name| rule_deleted(&format!("rule-{name}"))),
    ]
}

fn changes() -> impl Strategy<Value = Vec<InventoryEvent>> {
    prop::collection::vec(change(), 0..8)
}

/// Reference model: the objects of a cluster as plain lists.
#[derive(Default)]
struct Objects {
    slices: Vec<Arc<ResourceSlice>>,
    rules: BTreeMap<String, Arc<DeviceTaintRule>>,
}

impl Objects {
    /// Applies an event; the deletion of an unknown object changes nothing.
    fn apply(&mut self, event: InventoryEvent) {
        match event {
            InventoryEvent::Slice(slice) => {
                match self.slices.iter_mut().find(|other| other.metadata.name == slice.metadata.name) {
                    Some(known) => *known = slice,
                    None => self.slices.push(slice),
                }
            }
            InventoryEvent::SliceDeleted { name, .. } => {
                self.slices.retain(|slice| slice.metadata.name.as_deref() != Some(name.as_str()));
            }
            InventoryEvent::TaintRule(rule) => {
                self.rules.insert(rule.metadata.name.clone().unwrap(), rule);
            }
            InventoryEvent::TaintRuleDeleted { name, .. } => {
                self.rules.remove(&name);
            }
            _ => panic!("no other change is made here"),
        }
    }

    fn inventory(&self) -> Inventory {
        Inventory::new(self.slices.iter().cloned()).with_taint_rules(self.rules.values().cloned())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changes_end_where_a_rebuild_does(changes in prop::collection::vec(change(), 0..40)) {
        let (mut inventory, mut objects) = (Inventory::default(), Objects::default());
        for change in changes {
            objects.apply(change.clone());
            prop_assert!(inventory.apply(change).is_ok());
            let rebuilt = objects.inventory();
            prop_assert!(inventory.slices().eq(rebuilt.slices()));
            prop_assert!(inventory.taint_rules().eq(rebuilt.taint_rules()));
            prop_assert_eq!(answers(&inventory), answers(&rebuilt));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_layer_is_as_if_changed_and_leaves_nothing_behind(
        before in prop::collection::vec(change(), 0..12),
        rounds in prop::collection::vec((changes(), any::<bool>(), any::<bool>(), changes(), any::<bool>()), 1..4),
    ) {
        let (mut inventory, mut objects) = (Inventory::default(), Objects::default());
        for change in before {
            objects.apply(change.clone());
            inventory.apply(change).unwrap();
        }
        for (changes, kept, asked, inner_changes, inner_kept) in rounds {
            if asked {
                answers(&inventory);
            }
            let mut layer = inventory.layer();
            let (slices, rules) = (objects.slices.clone(), objects.rules.clone());
            for change in changes {
                objects.apply(change.clone());
                layer.apply(change).unwrap();
            }
            prop_assert_eq!(answers(&layer), answers(&objects.inventory()));
            let before_inner = (objects.slices.clone(), objects.rules.clone());
            let mut inner = layer.layer();
            for change in inner_changes {
                objects.apply(change.clone());
                inner.apply(change).unwrap();
            }
            prop_assert_eq!(answers(&inner), answers(&objects.inventory()));
            if inner_kept {
                inner.keep();
            } else {
                drop(inner);
                (objects.slices, objects.rules) = before_inner;
            }
            prop_assert_eq!(answers(&layer), answers(&objects.inventory()));
            if kept {
                layer.keep();
            } else {
                drop(layer);
                (objects.slices, objects.rules) = (slices, rules);
            }
            let rebuilt = objects.inventory();
            prop_assert!(inventory.slices().eq(rebuilt.slices()));
            prop_assert!(inventory.taint_rules().eq(rebuilt.taint_rules()));
            prop_assert_eq!(answers(&inventory), answers(&rebuilt));
        }
    }
}

#[test]
fn rules_are_in_the_order_of_their_names() {
    let inventory = Inventory::new([slice(0, 0, 2, 1, 1, &[0])]).with_taint_rules([rule(2, 0), rule(1, 0), rule(3, 0)]);
    let names: Vec<_> = inventory.taint_rules().filter_map(|rule| rule.metadata.name.as_deref()).collect();
    assert_eq!(names, ["rule-1", "rule-2", "rule-3"]);
}

#[test]
fn rules_of_one_name_count_all_until_one_replaces_them() {
    let nameless = |device| {
        let mut rule = rule(0, device);
        Arc::make_mut(&mut rule).metadata.name = None;
        rule
    };
    let mut inventory =
        Inventory::new([ResourceSlice::default()]).with_taint_rules([nameless(0), nameless(1), rule(2, 0), rule(2, 1)]);
    assert_eq!(inventory.taint_rules().count(), 4);
    inventory.apply(InventoryEvent::TaintRule(rule(2, 2))).unwrap();
    assert_eq!(inventory.taint_rules().count(), 3);
}

#[test]
fn a_deleted_slice_leaves_no_room_behind() {
    let mut inventory = Inventory::default();
    for round in 0..1000u32 {
        let slice = slice((round % 250) as u8, 0, 2, 1, 1, &[0]);
        let name = slice.metadata.name.clone().unwrap();
        inventory.apply(InventoryEvent::Slice(slice)).unwrap();
        inventory.apply(slice_deleted(&name)).unwrap();
    }
    assert!(format!("{inventory:?}").len() < 1000, "gaps and pools of deleted slices are given up");
}

#[test]
fn changes_name_their_object() {
    let mut inventory = Inventory::default();
    // A watch may repeat a deletion.
    assert!(inventory.apply(slice_deleted("gone")).is_ok());
    let nameless = inventory.apply(InventoryEvent::Slice(Arc::default())).unwrap_err();
    assert_eq!(nameless.to_string(), "ResourceSlice metadata.name: must not be empty");
    assert!(inventory.apply(InventoryEvent::TaintRule(Arc::default())).is_err());
    assert!(inventory.apply(rule_deleted("gone")).is_ok());
}

#[test]
fn several_slices_of_one_name_are_changed_together() {
    let mut inventory = Inventory::new([slice(0, 0, 2, 1, 1, &[0]), slice(0, 1, 2, 1, 1, &[1])]);
    assert_eq!(inventory.slices().count(), 2);
    inventory.apply(InventoryEvent::Slice(slice(0, 0, 3, 1, 1, &[2]))).unwrap();
    assert_eq!(inventory.slices().count(), 1);
    inventory.apply(slice_deleted("slice-0")).unwrap();
    assert_eq!(inventory.slices().count(), 0);
}

#[test]
fn what_is_kept_for_a_node_belongs_to_the_features_of_the_question() {
    let anywhere = pool("gpu.example.com", "node-1", json!([{"name": "gpu-0", "allNodes": true}]));
    let cluster = Cluster::new([with(anywhere, "perDeviceNodeSelection", json!(true))]);
    let claims = [claim("claim", json!([request("r", "gpu", json!({}))]), json!([]))];
    let (inventory, selectors, state) = (cluster.inventory(), SelectorCache::default(), AllocatedState::default());
    let on = GateSet::of(Profile::V1_37).with(Gate::PartitionableDevices);
    // Without the feature the slice is ignored.
    for (features, is_allocated) in [(on.without(Gate::PartitionableDevices), false), (on, true)] {
        let classes = Classes::new(cluster.classes.iter().cloned());
        let scheduler = Component::new(Profile::Kep, features);
        let allocator = Allocator::new(scheduler, &inventory, &classes).with_selector_cache(&selectors);
        let outcome = allocator.allocate(&state, &node("node-1"), &claims, Budget::default()).unwrap().outcome;
        assert_eq!(matches!(outcome, Outcome::Allocated(_)), is_allocated, "{features:?}");
    }
}

#[test]
fn two_threads_read_one_index() {
    let devices: Vec<Value> = (0..8).map(|index| json!({"name": format!("gpu-{index}")})).collect();
    let pools = (0..50).map(|index| pool("gpu.example.com", &format!("node-{index}"), json!(devices)));
    let cluster = Cluster::new(pools);
    let (inventory, selectors, state) = (cluster.inventory(), SelectorCache::default(), AllocatedState::default());
    let classes = Classes::new(cluster.classes.iter().cloned());
    let allocator = Allocator::new(Profile::Kep, &inventory, &classes).with_selector_cache(&selectors);
    let claims = [claim("claim", json!([request("r", "gpu", json!({"count": 3}))]), json!([]))];
    let names = |range: std::ops::Range<usize>| range.map(|index| node(&format!("node-{index}"))).collect::<Vec<_>>();
    let ask = |nodes: &[_]| -> Vec<Verdict> {
        allocator.allocate_each(&state, nodes, &claims, Budget::default()).map(Result::unwrap).collect()
    };
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| ask(&names(0..25)));
        let second = scope.spawn(|| ask(&names(25..50)));
        (first.join().unwrap(), second.join().unwrap())
    });
    let alone = ask(&names(0..50));
    assert!(alone.iter().all(|verdict| matches!(verdict.outcome, Outcome::Allocated(_))));
    assert_eq!([first, second].concat(), alone);
}

#[test]
fn a_re_list_replaces_everything() {
    let before = [slice(0, 0, 2, 1, 1, &[0]), slice(1, 1, 3, 1, 1, &[1])];
    let after = [slice(1, 1, 3, 2, 1, &[1]), slice(2, 0, 2, 1, 1, &[2])];
    let mut inventory = Inventory::new(before).with_taint_rules([rule(0, 0)]);
    let _ = answers(&inventory);
    inventory.replace(after.clone());
    let built = Inventory::new(after).with_taint_rules([rule(0, 0)]);
    assert_eq!(answers(&inventory), answers(&built));
    assert_eq!(inventory.slices().collect::<Vec<_>>(), built.slices().collect::<Vec<_>>());
    inventory.replace_taint_rules([rule(1, 0)]);
    assert_eq!(inventory.taint_rules().count(), 1);
}
