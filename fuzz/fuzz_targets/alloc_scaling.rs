//! Arbitrary clusters whose nodes come and go, and whose pods move: nothing panics, a question leaves nothing behind, and each pod has one answer.
#![no_main]

use dra_alloc::autoscaler::{ClusterSnapshot, NodeTemplate, ScaleSimulator};
use dra_alloc::consolidation::MoveRules;
use dra_alloc::pods::{ClaimTracker, PodOptions};
use dra_alloc::selector::SelectorCache;
use dra_alloc::superposition::NodeShape;
use dra_alloc::{Budget, Classes, Inventory, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use libfuzzer_sys::fuzz_target;

type Input =
    (Vec<Node>, Vec<Pod>, Vec<ResourceClaim>, Vec<ResourceSlice>, (Vec<DeviceClass>, Node, Vec<ResourceSlice>));

fuzz_target!(|text: &[u8]| {
    let Ok((nodes, pods, claims, slices, (classes, new, new_slices))) = serde_json::from_slice::<Input>(text) else {
        return;
    };
    let (options, selectors) = (PodOptions::new(Profile::V1_37), SelectorCache::default());
    let mut tracker = ClaimTracker::new(options.scheduler());
    let _ = tracker.replace(claims, None);
    let (classes, mut inventory) = (Classes::new(classes), Inventory::new(slices.iter().cloned()));
    let simulator =
        ScaleSimulator::new(&classes, &selectors, options, Timestamp::UNIX_EPOCH).with_budget(Budget::work(1_000));
    if let Ok(template) = NodeTemplate::new(new, new_slices) {
        let template = template.with_unknown_attributes(["d.example.com/a"]);
        if let Ok(answer) = simulator.scale_up(&mut inventory, &tracker, &template, &pods) {
            assert_eq!(answer.placed.len() + answer.refused.len(), pods.len());
        }
        let few: Vec<&Pod> = pods.iter().take(2).collect();
        let zones = NodeShape::new(&template, 2).with_label("zone", ["a", "b"]);
        let shapes = [NodeShape::new(&template, 1), zones];
        if let Ok(node) = simulator.superposed(&mut inventory, &tracker, &shapes, &[], &few) {
            assert_eq!(node.survivors.len() + node.lost.len(), shapes.len());
            let _ = simulator.superposed(&mut inventory, &tracker, &shapes, &[&node], &few);
        }
    }
    let snapshot = ClusterSnapshot::new(&nodes, &pods);
    let names = nodes.iter().take(8).filter_map(|node| node.metadata.name.as_deref());
    let answer = simulator.scale_down(&mut inventory, &tracker, &snapshot, names);
    if let Ok(removal) =
        simulator.remove_nodes(&mut inventory, &tracker, &snapshot, answer.removable.iter().map(String::as_str))
    {
        assert_eq!(removal, answer.removal, "one answer to one question");
    }
    let rules = MoveRules::default();
    let names = nodes.iter().take(8).filter_map(|node| node.metadata.name.as_deref());
    let plan = simulator.consolidate(&mut inventory, &tracker, &snapshot, names, &rules).plan;
    let _ = plan.check(&simulator, &mut inventory, &tracker, &snapshot, &rules);
    let waiting: Vec<&Pod> = pods.iter().take(2).collect();
    let budget = Budget::work(1_000).with_work_per_call(20_000);
    let _ = simulator.make_moves(&inventory, &tracker, &snapshot, &waiting, &rules, budget);
    assert!(inventory.slices().eq(&slices), "a question leaves nothing behind");
});
