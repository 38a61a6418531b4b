//! Gangs beside devices that wait for nominated pods.

use dra_alloc::pods::{ClaimTracker, GangSearch, PodOptions};
use dra_alloc::{Allocator, Inventory, Nodes, Profile};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;

use crate::preemption_rules::{World, classes};

/// Returns the nodes that the pods of a gang get, or the text of the refusal: the same node by node and by states.
fn placed(world: &World, names: &[&str]) -> Result<Vec<String>, String> {
    let (inventory, classes, holds) = (Inventory::new(world.slices.clone()), classes(), world.holds());
    let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
    let options = PodOptions::new(Profile::V1_37);
    let search = GangSearch::new(&allocator, &world.nodes, options, Timestamp::UNIX_EPOCH).with_kept(&holds);
    let pods: Vec<&Pod> =
        world.pods.iter().filter(|pod| names.contains(&pod.metadata.name.as_deref().unwrap())).collect();
    let mut nodes = Nodes::new(&world.nodes);
    let [each, by_state] = [false, true].map(|by_state| {
        let mut tracker = ClaimTracker::new(Profile::V1_37);
        tracker.replace(world.claims.iter().cloned(), None).unwrap();
        let placed = if by_state {
            search.place_on(&mut nodes, pods.iter().copied(), None, &mut tracker)
        } else {
            search.place(pods.iter().copied(), None, &mut tracker)
        };
        match placed {
            Ok(gang) => Ok(gang.pods.into_iter().map(|placement| placement.node).collect()),
            Err(error) => Err(error.to_string()),
        }
    });
    assert_eq!(by_state, each);
    each
}

/// Node a has two devices, which wait for a pod of priority 5; node b has three.
fn world(priority: i32) -> World {
    World::of_nodes(&[("a", 2), ("b", 3)])
        .with_waiting("nominated", 5, 2, Some("a"))
        .with_waiting("one", priority, 1, None)
        .with_waiting("two", priority, 2, None)
}

#[test]
fn a_gang_leaves_nominated_pods_their_devices() {
    for (priority, nodes) in [(4, ["b", "b"]), (5, ["b", "b"]), (6, ["a", "b"])] {
        assert_eq!(placed(&world(priority), &["one", "two"]).unwrap(), nodes, "priority {priority}");
    }
}

#[test]
fn devices_that_wait_for_others_are_a_reason_for_a_no() {
    let more = |priority| world(priority).with_waiting("more", priority, 1, None);
    assert_eq!(placed(&more(6), &["one", "two", "more"]).unwrap(), ["a", "b", "a"]);
    placed(&more(5), &["one", "two", "more"]).unwrap_err();
    assert_eq!(
        placed(&more(5), &["nominated", "one"]).unwrap(),
        ["a", "b"],
        "a pod's own devices are not kept from it"
    );
}
