//! Plans against changes of the cluster: exactly what no longer holds is said.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::consolidation::{MovePlan, MoveRules, PlanFaultError};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{from_value, json};

use super::emptied::{consolidated, random_world};
use super::world::{Random, World, name_of, node_of, pod_name, with_simulator};

pub(crate) fn faults(world: &World, plan: &MovePlan, rules: &MoveRules<'_>) -> BTreeSet<String> {
    let faults = with_simulator(|simulator| {
        let (mut inventory, tracker, snapshot) = (world.inventory(), world.tracker(), world.snapshot());
        plan.check(simulator, &mut inventory, &tracker, &snapshot, rules)
    });
    let text = |fault: &PlanFaultError| match fault {
        PlanFaultError::NoPlace { pod, node, taken, lost, .. } => {
            assert!(!taken.is_empty() || !lost.is_empty(), "{fault:?}");
            format!("no place {} {node}", pod.name)
        }
        PlanFaultError::PodElsewhere { pod, node } => format!("elsewhere {} {node}", pod.name),
        PlanFaultError::PodGone { pod } => format!("gone {}", pod.name),
        PlanFaultError::PodAdded { pod, node } => format!("added {} {node}", pod.name),
        PlanFaultError::PodPinned { pod } => format!("pinned {}", pod.name),
        PlanFaultError::NodeGone { node } => format!("node gone {node}"),
        PlanFaultError::NodeCordoned { node } => format!("cordoned {node}"),
        PlanFaultError::Budget { name, wave, .. } => format!("budget {name} {wave}"),
        other => panic!("{other}"),
    };
    faults.iter().map(text).collect()
}

/// Returns the devices of a node that nobody holds.
fn free(world: &World, node: &str) -> Vec<String> {
    let held: BTreeSet<(String, String)> = world.held().into_values().flatten().collect();
    let slice = world.slices.iter().find(|slice| slice.spec.node_name.as_deref() == Some(node)).unwrap();
    let names = slice.spec.devices.iter().flatten().map(|device| device.name.clone());
    names.filter(|device| !held.contains(&(node.to_owned(), device.clone()))).collect()
}

/// Returns the moves to a node that have no room there, with fewer devices free.
fn without_room(world: &World, plan: &MovePlan, node: &str) -> BTreeSet<String> {
    let (held, mut left) = (world.held(), free(world, node).len());
    let here = plan.waves.iter().flatten().filter(|moved| moved.to.as_deref() == Some(node));
    let refused = here.filter(|moved| {
        let size = held[&moved.pod.name].len();
        let fits = size <= left;
        left -= if fits { size } else { 0 };
        !fits
    });
    refused.map(|moved| format!("no place {} {node}", moved.pod.name)).collect()
}

#[test]
fn a_check_says_exactly_what_no_longer_holds() {
    let (mut changes, mut kinds) = (0, BTreeMap::<&str, usize>::new());
    for seed in 0.. {
        let random = &mut Random(seed);
        let mut world = random_world(random);
        let plan = consolidated(&world, &MoveRules::default()).plan;
        if plan.waves.is_empty() {
            continue;
        }
        let rules = MoveRules::default();
        assert_eq!(faults(&world, &plan, &rules), BTreeSet::new(), "seed {seed}: a plan holds where it was made");
        let moved: BTreeMap<String, String> =
            plan.waves.iter().flatten().map(|one| (one.pod.name.clone(), one.to.clone().unwrap())).collect();
        let targets: BTreeSet<&str> = moved.values().map(String::as_str).collect();
        let node = name_of(&random.pick(&world.nodes)).to_owned();
        let pod = pod_name(&random.pick(&world.pods)).to_owned();
        let one = |text: String, is_fault: bool| if is_fault { BTreeSet::from([text]) } else { BTreeSet::new() };
        let (kind, expected, actual) = match random.below(7) {
            0 => {
                world.pods.retain(|other| pod_name(other) != pod);
                world.claims.retain(|claim| claim.metadata.name.as_deref() != Some(&pod));
                ("pod gone", one(format!("gone {pod}"), moved.contains_key(&pod)), faults(&world, &plan, &rules))
            }
            1 => {
                let found = world.nodes.iter_mut().find(|other| name_of(other) == node).unwrap();
                found.spec.as_mut().unwrap().unschedulable = Some(true);
                let is_target = targets.contains(node.as_str());
                ("cordoned", one(format!("cordoned {node}"), is_target), faults(&world, &plan, &rules))
            }
            2 => {
                world.nodes.retain(|other| name_of(other) != node);
                world.slices.retain(|slice| slice.spec.node_name.as_deref() != Some(&node));
                let gone: BTreeSet<String> =
                    world.pods.iter().filter(|pod| node_of(pod) == node).map(|pod| pod_name(pod).to_owned()).collect();
                world.pods.retain(|pod| !gone.contains(pod_name(pod)));
                world.claims.retain(|claim| !gone.contains(claim.metadata.name.as_ref().unwrap()));
                // A node that is to be removed may be gone.
                let mut expected = one(format!("node gone {node}"), targets.contains(node.as_str()));
                expected.extend(gone.iter().filter(|pod| moved.contains_key(*pod)).map(|pod| format!("gone {pod}")));
                ("node gone", expected, faults(&world, &plan, &rules))
            }
            3 => {
                let devices = free(&world, &node);
                if devices.is_empty() {
                    continue;
                }
                let count = random.between(1, devices.len());
                world.run("new", &node, &devices[..count]);
                let mut expected = one(format!("added new {node}"), plan.removed.contains(&node));
                expected.extend(without_room(&world, &plan, &node));
                ("pod added", expected, faults(&world, &plan, &rules))
            }
            4 => {
                let devices = free(&world, &node);
                let Some(device) = devices.first() else { continue };
                let slice =
                    world.slices.iter_mut().find(|slice| slice.spec.node_name.as_deref() == Some(&node)).unwrap();
                slice.spec.devices.as_mut().unwrap().retain(|other| other.name != *device);
                ("device gone", without_room(&world, &plan, &node), faults(&world, &plan, &rules))
            }
            5 => {
                let budget: PodDisruptionBudget = from_value(json!({"metadata": {"namespace": "ml", "name": "b"},
                    "spec": {"selector": {"matchLabels": {"name": pod}}}}))
                .unwrap();
                let rules = MoveRules::default().with_budgets([&budget]);
                ("budget", one("budget b 1".to_owned(), moved.contains_key(&pod)), faults(&world, &plan, &rules))
            }
            _ => {
                let rules = MoveRules::default().with_pinned([pod.as_str()]);
                ("pinned", one(format!("pinned {pod}"), moved.contains_key(&pod)), faults(&world, &plan, &rules))
            }
        };
        assert_eq!(actual, expected, "seed {seed}: {kind} {node} {pod}");
        *kinds.entry(kind).or_default() += usize::from(!expected.is_empty());
        changes += 1;
        if changes == 250 {
            break;
        }
    }
    assert!(kinds.len() == 7 && kinds.values().all(|faults| *faults > 2), "{kinds:?}");
}

#[test]
fn moves_that_are_made_count_as_made() {
    let mut world = World::of(&[&[4, 2, 1], &[4, 2], &[4, 2, 1]]);
    world.wait("t", 4);
    let plan = world.plan("t", &MoveRules::default());
    let rules = MoveRules::default();
    assert_eq!(faults(&world, &plan, &rules), BTreeSet::new());
    let first = &plan.waves[0][0];
    let (name, to) = (first.pod.name.clone(), first.to.clone().unwrap());
    let devices: Vec<String> = first.results[0]
        .1
        .devices
        .iter()
        .flat_map(|devices| devices.results.iter().flatten())
        .map(|result| result.device.clone())
        .collect();
    world.pods.retain(|pod| pod_name(pod) != name);
    world.claims.retain(|claim| claim.metadata.name.as_deref() != Some(&name));
    world.run(&name, &to, &devices);
    assert_eq!(faults(&world, &plan, &rules), BTreeSet::new());
    let elsewhere = world.pods.iter_mut().find(|pod| pod_name(pod) == plan.waves[0][1].pod.name).unwrap();
    elsewhere.spec.as_mut().unwrap().node_name = None;
    assert_eq!(faults(&world, &plan, &rules).first().map(String::as_str).unwrap_or_default()[..9], *"elsewhere");
}
