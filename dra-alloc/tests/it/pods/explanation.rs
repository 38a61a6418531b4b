//! Explanations for pods: groups over nodes and alternatives, other reasons, suggestions, a gang's own devices.

use dra_alloc::explain::Detail;
use dra_alloc::pods::{ClaimTracker, FitQuestion, GangSearch, PodExplanation};
use dra_alloc::{Allocator, Budget, Classes, Inventory, Profile};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use serde_json::{Value, from_value, json};

use super::world::{NOW, World, allocated, claim, node, pod};

fn explained(world: &World, pod: &Pod, nodes: &[&str]) -> PodExplanation {
    let allocator = Allocator::new(Profile::V1_37, &world.inventory, &world.classes).with_explanation(Detail::Summary);
    let cycle = world.begin(pod, None);
    let mut explanation = PodExplanation::default();
    for name in nodes {
        let verdict = cycle.filter(&node(name), &allocator, world.tracker.state(), NOW, Budget::default());
        explanation.add_verdict(name, &verdict);
    }
    explanation
}

#[test]
fn nodes_are_grouped_by_reason_with_those_that_failed_for_other_reasons() {
    let held = [("n1", "a"), ("n1", "b"), ("n2", "a"), ("n2", "b"), ("n3", "a")];
    let held = held.map(|(node, device)| allocated(&format!("{node}-{device}"), node, device, &["x"]));
    let world = World::new(3, held.into_iter().chain([claim("c", 2)]));
    let mut explanation = explained(&world, &pod("p", &["c"], None), &["n1", "n2", "n3", "n4"]);
    explanation.add_other("n5", "Insufficient cpu");
    assert_eq!(
        explanation.to_string(),
        "0/5 nodes are available: 2 no free device of class gpu, 1 Insufficient cpu, 1 no devices, \
         1 too few: 1 of 2 free, 2 wanted of class gpu; possible on 2 nodes once other claims give back what they hold, \
         possible on 1 node if request r asked for 1 device"
    );
}

#[test]
fn a_claim_that_is_allocated_elsewhere_is_a_reason_of_its_own() {
    let world = World::new(2, [allocated("c", "n1", "a", &[])]);
    let explanation = explained(&world, &pod("p", &["c"], None), &["n1", "n2"]);
    assert_eq!(explanation.to_string(), "1/2 nodes are available: 1 claim allocated for other nodes");
}

#[test]
fn alternatives_are_grouped_each_by_itself() {
    let list: ResourceClaim = from_value(json!({"metadata": {"namespace": "ns", "name": "c", "uid": "c-uid"},
        "spec": {"devices": {"requests": [{"name": "r", "firstAvailable": [
            {"name": "two", "deviceClassName": "gpu", "count": 2},
            {"name": "three", "deviceClassName": "gpu", "count": 3}]}]}}}))
    .unwrap();
    let held = [("n1", "a"), ("n1", "b"), ("n2", "a")];
    let held = held.map(|(node, device)| allocated(&format!("{node}-{device}"), node, device, &["x"]));
    let world = World::new(2, held.into_iter().chain([list]));
    let explanation = explained(&world, &pod("p", &["c"], None), &["n1", "n2"]);
    let text = explanation.to_string();
    assert_eq!(explanation.groups.len(), 1, "{text}");
    assert!(text.starts_with("0/2 nodes are available: 2 no alternative for request r (three: "), "{text}");
    assert!(
        text.contains("two: 1 no free device of class gpu, 1 too few: 1 of 2 free, 2 wanted of class gpu"),
        "{text}"
    );
}

#[test]
fn a_gang_names_the_devices_that_it_holds_itself() {
    let slice: ResourceSlice = from_value(json!({"metadata": {"name": "s"}, "spec": {"driver": "d.example.com",
        "nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "a"}]}}))
    .unwrap();
    let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}})).unwrap();
    let (inventory, classes) = (Inventory::new([slice]), Classes::new([class]));
    let allocator = Allocator::new(Profile::V1_37, &inventory, &classes).with_explanation(Detail::Summary);
    let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
    tracker.replace([claim("c1", 1), claim("c2", 1)], None).unwrap();
    let fit = |question: &FitQuestion<'_>| match question.node().metadata.name.as_deref() {
        Some("n2") => Err("Insufficient memory".to_owned()),
        _ => Ok(()),
    };
    let nodes = [node("n1"), node("n2")];
    let options = dra_alloc::pods::PodOptions::new(Profile::V1_37);
    let search = GangSearch::new(&allocator, &nodes, options, NOW).with_fit(&fit);
    let refusal = search.place(&[pod("p1", &["c1"], None), pod("p2", &["c2"], None)], None, &mut tracker).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "pod ns/p2: 0/2 nodes are available: 1 Insufficient memory, 1 no free device of class gpu; possible on 1 node once \
         other claims give back what they hold; pod p1 on n1, placed before it, holds d.example.com/n1/a"
    );
}

#[test]
fn gates_that_are_off_are_counted_with_their_nodes() {
    let mut world = World::new(0, [claim("c", 1)]);
    let slice = |node: &str| -> ResourceSlice {
        let devices = if node == "n1" { json!([{"name": "a"}]) } else { json!([{"name": "a"}, {"name": "b"}]) };
        from_value(json!({"metadata": {"name": node}, "spec": {"driver": "d.example.com", "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": devices,
            "skipNodeOperations": ["*"]}}))
        .unwrap()
    };
    world.inventory = Inventory::new([slice("n1"), slice("n2")]);
    let on = |nodes: &[&str]| explained(&world, &pod("p", &["c"], None), nodes);
    let counts = |explanation: &PodExplanation| -> Vec<(&str, usize)> {
        explanation.gates_off.iter().map(|(gate, nodes)| (gate.name, *nodes)).collect()
    };
    let mut both = on(&["n1", "n2"]);
    assert_eq!(counts(&both), [("DRAOptionalNodeOperations", 2)]);
    both.remove(&on(&["n1"]));
    assert_eq!(counts(&both), [("DRAOptionalNodeOperations", 1)]);
    both.add(&on(&["n1"]));
    assert_eq!(both, {
        let mut other = on(&["n2"]);
        other.add(&on(&["n1"]));
        other
    });
    both.remove(&on(&["n1", "n2"]));
    assert!(both.gates_off.is_empty() && !serde_json::to_string(&both).unwrap().contains("gatesOff"));
}

#[test]
fn long_lists_are_cut() {
    let mut explanation = PodExplanation::default();
    for reason in 0..8 {
        explanation.add_other("n", format!("reason {reason}"));
    }
    assert!(explanation.to_string().ends_with("1 reason 4 and 3 more"));
    let data: Value = serde_json::to_value(&explanation).unwrap();
    assert_eq!(data["groups"].as_array().unwrap().len(), 8);
}
