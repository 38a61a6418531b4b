//! Plans that are carried out by eviction: controllers make other pods, nodes get other names, removed nodes are gone.

use std::collections::BTreeSet;

use dra_alloc::autoscaler::NodeTemplate;
use dra_alloc::consolidation::{MovePlan, MoveRules, NodeOffer, PodMove};
use serde_json::{from_value, json};

use super::changes::faults;
use super::emptied::{consolidated, random_world};
use super::world::{Random, World, devices, name_of, node, node_of, pod_name, slice, with_simulator};

/// Gives each pod one of two controllers.
fn add_controllers(world: &mut World, random: &mut Random) {
    for pod in &mut world.pods {
        own(pod, &format!("rs-{}", random.below(2)));
    }
}

fn own(pod: &mut k8s_openapi::api::core::v1::Pod, controller: &str) {
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": controller, "uid": controller, "controller": true}]);
    pod.metadata.owner_references = from_value(owner).unwrap();
}

fn devices_of(moved: &PodMove) -> Vec<String> {
    let results = moved.results.iter().flat_map(|(_, result)| result.devices.iter());
    results.flat_map(|devices| devices.results.iter().flatten()).map(|result| result.device.clone()).collect()
}

/// Removes a pod with its claim. Returns its controller and the number of its devices.
fn evict(world: &mut World, name: &str) -> (String, usize) {
    let held = world.held()[name].len();
    let position = world.pods.iter().position(|pod| pod_name(pod) == name).unwrap();
    let pod = world.pods.remove(position);
    world.claims.retain(|claim| claim.metadata.name.as_deref() != Some(name));
    (pod.metadata.owner_references.unwrap()[0].uid.clone(), held)
}

/// Moves a pod as a cluster does; `at_each_step` sees the cluster without it, with a replacement that waits, and with one that runs.
fn carry_out(world: &mut World, moved: &PodMove, to: &str, mut at_each_step: impl FnMut(&World, &str)) {
    let name = &moved.pod.name;
    let (controller, count) = evict(world, name);
    at_each_step(world, "gone");
    let new = format!("{name}-x");
    let mut waiting = world.clone();
    waiting.wait(&new, count);
    own(waiting.pods.last_mut().unwrap(), &controller);
    at_each_step(&waiting, "waits");
    world.run(&new, to, &devices_of(moved));
    own(world.pods.last_mut().unwrap(), &controller);
    at_each_step(world, "runs");
}

#[test]
fn replacements_count_as_the_pods_of_the_plan() {
    let (rules, mut moves, mut removed) = (MoveRules::default(), 0, 0);
    for seed in 0..150 {
        let random = &mut Random(seed);
        let mut world = random_world(random);
        add_controllers(&mut world, random);
        let plan = consolidated(&world, &rules).plan;
        for moved in plan.waves.iter().flatten() {
            carry_out(&mut world, moved, moved.to.as_deref().unwrap(), |world, step| {
                let expected = if step == "gone" { vec![format!("gone {}", moved.pod.name)] } else { Vec::new() };
                assert_eq!(
                    faults(world, &plan, &rules).into_iter().collect::<Vec<_>>(),
                    expected,
                    "seed {seed}: {step}"
                );
            });
            moves += 1;
        }
        for node in &plan.removed {
            world.nodes.retain(|other| name_of(other) != node);
            world.slices.retain(|slice| slice.spec.node_name.as_deref() != Some(node));
            assert_eq!(faults(&world, &plan, &rules), BTreeSet::new(), "seed {seed}: without {node}");
            removed += 1;
        }
    }
    assert!(moves > 100 && removed > 100, "{moves} {removed}");
}

/// A pod of the same controller that was there before is not taken for the replacement; one that goes elsewhere is said to.
#[test]
fn a_replacement_elsewhere_is_told_from_pods_that_were_there() {
    let mut world = World::of(&[&[1], &[4, 1], &[2]]);
    world.pods.iter_mut().for_each(|pod| own(pod, "rs"));
    let rules = MoveRules::default();
    let plan = consolidated(&world, &rules).plan;
    let moved = plan.waves[0].iter().find(|moved| moved.from.as_deref() == Some("n1")).unwrap();
    assert_eq!(moved.to.as_deref(), Some("n2"));
    let mut gone = world.clone();
    evict(&mut gone, "n1-0");
    assert_eq!(
        faults(&gone, &plan, &rules),
        BTreeSet::from(["gone n1-0".to_owned()]),
        "others of rs are on n2 already"
    );
    gone.run("x", "n3", &["g5".to_owned()]);
    own(gone.pods.last_mut().unwrap(), "rs");
    let expected = if plan.removed.iter().any(|node| node == "n3") { "elsewhere n1-0 n3" } else { "" };
    assert_eq!(faults(&gone, &plan, &rules), BTreeSet::from([expected.to_owned()]));
    own(gone.pods.last_mut().unwrap(), "other");
    let expected = ["added x n3", "gone n1-0"].map(str::to_owned);
    assert_eq!(faults(&gone, &plan, &rules), BTreeSet::from(expected), "a pod of another controller is a stranger");
}

/// Two small nodes give way to a large one, which the cloud names as it likes.
#[test]
fn a_new_node_may_have_another_name() {
    let mut world = World::of(&[&[4], &[4]]);
    let random = &mut Random(1);
    add_controllers(&mut world, random);
    let template = NodeTemplate::new(node("large"), [slice("large", &devices(16))]).unwrap();
    let (rules, offers) = (MoveRules::default(), [NodeOffer::new(&template, 1)]);
    let mut plan: MovePlan = with_simulator(|simulator| {
        let (mut inventory, tracker, snapshot) = (world.inventory(), world.tracker(), world.snapshot());
        simulator.replace_nodes(&mut inventory, &tracker, &snapshot, ["n1", "n2"], &offers, &rules).unwrap()
    });
    let planned = plan.waves.concat();
    assert_eq!(planned.len(), 2);
    assert!(!plan.name_node("small", "i-42"), "there is no such node in the plan");
    assert!(plan.name_node("large", "i-42"));
    assert_eq!(faults(&world, &plan, &rules), BTreeSet::new(), "the node is to come");
    world.nodes.push(node("i-42"));
    world.slices.push(slice("i-42", &devices(16)));
    assert_eq!(faults(&world, &plan, &rules), BTreeSet::new(), "the node has come");
    for moved in &planned {
        carry_out(&mut world, moved, "i-42", |world, step| {
            let is_gone = faults(world, &plan, &rules).iter().any(|fault| fault.starts_with("gone"));
            assert_eq!(is_gone, step == "gone");
        });
    }
    world.nodes.retain(|other| name_of(other) == "i-42");
    world.slices.retain(|slice| slice.spec.node_name.as_deref() == Some("i-42"));
    assert!(world.pods.iter().all(|pod| node_of(pod) == "i-42"));
    assert_eq!(faults(&world, &plan, &rules), BTreeSet::new());
}
