//! Nodes that are emptied: the plan leaves every pod its devices at each step, and the nodes are empty afterwards.

use std::collections::BTreeSet;

use dra_alloc::consolidation::{Consolidation, KeptNodeError, MoveGuard, MoveRules, PlanStep};

use super::world::{Random, World, carry_out, name_of, node_of, with_simulator};

pub(crate) fn consolidated(world: &World, rules: &MoveRules<'_>) -> Consolidation {
    with_simulator(|simulator| {
        let (mut inventory, tracker, snapshot) = (world.inventory(), world.tracker(), world.snapshot());
        let candidates = world.nodes.iter().map(name_of);
        let answer = simulator.consolidate(&mut inventory, &tracker, &snapshot, candidates, rules);
        assert!(inventory.slices().eq(&world.slices), "the question leaves nothing behind");
        answer
    })
}

pub(crate) fn random_world(random: &mut Random) -> World {
    let cluster: Vec<(usize, Vec<usize>)> = (0..random.between(2, 10))
        .map(|_| {
            let (mut sizes, mut free) = (Vec::new(), 8);
            while free > 0 && random.below(5) > 1 {
                let size = random.between(1, free.min(5));
                sizes.push(size);
                free -= size;
            }
            (8, sizes)
        })
        .collect();
    World::with_devices(&cluster)
}

#[test]
fn plans_leave_every_pod_its_devices() {
    let (mut removed, mut moved, mut pinned) = (0, 0, 0);
    for seed in 0..300 {
        let random = &mut Random(seed);
        let world = random_world(random);
        let fixed: Vec<&str> =
            world.pods.iter().filter(|_| random.below(10) == 0).map(super::world::pod_name).collect();
        let rules = MoveRules::default().with_pinned(fixed.iter().copied());
        let Consolidation { plan, kept, .. } = consolidated(&world, &rules);
        assert_eq!(plan.removed.len() + kept.len(), world.nodes.len());
        let held = carry_out(&world, &plan);
        let gone: BTreeSet<&str> = plan.removed.iter().map(String::as_str).collect();
        for (pod, devices) in &held {
            assert!(devices.iter().all(|(node, _)| !gone.contains(node.as_str())), "seed {seed}: {pod}");
        }
        assert!(plan.waves.iter().flatten().all(|one| !fixed.contains(&one.pod.name.as_str())), "seed {seed}");
        for (node, reason) in &kept {
            let is_fixed =
                world.pods.iter().any(|pod| node_of(pod) == node && fixed.contains(&super::world::pod_name(pod)));
            assert_eq!(matches!(reason, KeptNodeError::Pinned { .. }), is_fixed, "seed {seed}: {node}: {reason}");
        }
        let steps: Vec<PlanStep<'_>> = plan.steps().collect();
        let place = |is_kind: fn(&PlanStep<'_>) -> bool| steps.iter().position(is_kind);
        if let Some(first) = place(|step| matches!(step, PlanStep::Move(_))) {
            assert!(place(|step| matches!(step, PlanStep::Cordon(_))).unwrap() < first);
            assert!(place(|step| matches!(step, PlanStep::Remove(_))).unwrap() > first);
        }
        let guards = plan.guards().filter(|guard| matches!(guard, MoveGuard::Cordoned { .. })).count();
        assert_eq!(guards, plan.removed.len());
        (removed, moved) = (removed + gone.len(), moved + plan.waves.concat().len());
        pinned += kept.iter().filter(|(_, reason)| matches!(reason, KeptNodeError::Pinned { .. })).count();
    }
    assert!(removed > 250 && moved > 250 && pinned > 50, "{removed} {moved} {pinned}");
}

#[test]
fn nodes_whose_pods_are_cheap_to_move_go_first() {
    let world = World::of(&[&[2], &[3], &[4]]);
    let removed = |rules: &MoveRules<'_>| consolidated(&world, rules).plan.removed;
    // Nine devices need two nodes.
    assert_eq!(removed(&MoveRules::default()), ["n1"], "two devices cost the least");
    assert_eq!(removed(&MoveRules::default().with_costs([("n1-0", 50), ("n2-0", 5)])), ["n3"]);
    let plan = consolidated(&world, &MoveRules::default().with_costs([("n1-0", 50), ("n3-0", 60)])).plan;
    assert_eq!((plan.removed, plan.cost), (vec!["n2".to_owned()], 3));
}
