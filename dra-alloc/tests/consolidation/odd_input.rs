//! Clusters that no API server has: questions about moves end, and change nothing.

use dra_alloc::Budget;
use dra_alloc::consolidation::MoveRules;
use k8s_openapi::api::core::v1::{Node, Pod};

use super::world::{Random, World, node, with_simulator};

#[test]
fn names_that_occur_twice_and_objects_without_names_are_no_trouble() {
    for seed in 0..60 {
        let random = &mut Random(seed);
        let mut world = super::emptied::random_world(random);
        world.wait("t", random.between(1, 9));
        world.nodes.push(Node::default());
        world.nodes.push(node("n1"));
        world.pods.push(Pod::default());
        let twice = random.pick(&world.pods);
        world.pods.push(twice);
        let claim = random.pick(&world.claims);
        world.claims.push(claim);
        world.slices.retain(|_| random.below(10) > 0);
        questions(&world);
    }
}

fn questions(world: &World) {
    with_simulator(|simulator| {
        let (mut inventory, tracker, snapshot) = (world.inventory(), world.tracker(), world.snapshot());
        let rules = MoveRules::default();
        let names = world.nodes.iter().filter_map(|node| node.metadata.name.as_deref());
        let plan = simulator.consolidate(&mut inventory, &tracker, &snapshot, names, &rules).plan;
        let _ = plan.check(simulator, &mut inventory, &tracker, &snapshot, &rules);
        let waiting: Vec<&Pod> = world.pods.iter().filter(|pod| super::world::node_of_any(pod).is_empty()).collect();
        let budget = Budget::work(1_000).with_work_per_call(20_000);
        let _ = simulator.make_moves(&inventory, &tracker, &snapshot, &waiting, &rules, budget);
        assert!(inventory.slices().eq(&world.slices), "a question leaves nothing behind");
    });
}
