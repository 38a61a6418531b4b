//! New nodes of several shapes: all pods are placed, at the least price where that is said; daemon sets' pods come first.

use dra_alloc::autoscaler::NodeTemplate;
use dra_alloc::consolidation::{MovePlan, MoveProof, MoveRules, NewNode, NodeOffer, PlanFaultError, PlanStep, PodMove};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{from_value, json};

use super::world::{Random, World, devices, name_of, node, pod_name, slice, with_simulator};

/// Returns the devices that a pod gets.
fn devices_of(moved: &PodMove) -> Vec<&str> {
    let results = moved.results.iter().flat_map(|(_, result)| result.devices.iter());
    results.flat_map(|devices| devices.results.iter().flatten()).map(|result| result.device.as_str()).collect()
}

fn template(name: &str, count: usize) -> NodeTemplate {
    NodeTemplate::new(node(name), [slice(name, &devices(count))]).unwrap()
}

/// Returns the least price of nodes for sizes, by trying all numbers of the two shapes.
fn least(sizes: &[usize], shapes: [(usize, u64); 2]) -> u64 {
    fn fit(sizes: &[usize], free: &mut [usize]) -> bool {
        let Some((size, others)) = sizes.split_first() else { return true };
        (0..free.len()).any(|node| {
            let fits = free[node] >= *size;
            if fits {
                free[node] -= size;
            }
            let all = fits && fit(others, free);
            if fits {
                free[node] += size;
            }
            all
        })
    }
    let numbers = (0..=sizes.len()).flat_map(|first| (0..=sizes.len()).map(move |second| [first, second]));
    let prices = numbers.filter_map(|numbers| {
        let mut free: Vec<usize> =
            numbers.iter().zip(shapes).flat_map(|(number, (devices, _))| vec![devices; *number]).collect();
        let price = numbers.iter().zip(shapes).map(|(number, (_, price))| *number as u64 * price).sum();
        fit(sizes, &mut free).then_some(price)
    });
    prices.min().unwrap()
}

#[test]
fn pods_get_cheap_nodes() {
    let (mut proven, mut above) = (0, 0);
    for seed in 0..150 {
        let random = &mut Random(seed);
        let sizes: Vec<usize> = (0..random.between(1, 5)).map(|_| random.between(1, 4)).collect();
        let shapes = [(8, random.between(5, 9) as u64), (4, random.between(2, 6) as u64)];
        let mut world = World::default();
        for (size, number) in sizes.iter().zip(0..) {
            world.wait(&format!("p{number}"), *size);
        }
        let templates = [template("large", 8), template("small", 4)];
        let offers: Vec<NodeOffer<'_>> =
            templates.iter().zip(shapes).map(|(template, (_, price))| NodeOffer::new(template, price)).collect();
        let pods: Vec<&Pod> = world.pods.iter().collect();
        let needed = with_simulator(|simulator| {
            simulator.nodes_needed(&mut world.inventory(), &world.tracker(), &offers, &pods).unwrap()
        });
        assert_eq!((needed.placed.len(), needed.refused.len()), (pods.len(), 0), "seed {seed}");
        let best = least(&sizes, shapes);
        assert!(needed.price >= best, "seed {seed}");
        match needed.proof {
            MoveProof::Least => assert_eq!(needed.price, best, "seed {seed}: {sizes:?} {shapes:?}"),
            MoveProof::AtLeast { cost } => assert!(cost <= best, "seed {seed}"),
            _ => panic!(),
        }
        proven += usize::from(needed.proof == MoveProof::Least);
        above += usize::from(needed.price > best);
    }
    assert!(proven > 30 && above < 15, "{proven} {above}");
}

#[test]
fn a_shape_that_is_too_small_is_left_out() {
    let mut world = World::default();
    world.wait("two", 2);
    world.wait("ten", 10);
    let templates = [template("two-gpus", 2), template("one-gpu", 1)];
    let offers = [NodeOffer::new(&templates[0], 20), NodeOffer::new(&templates[1], 1)];
    let pods: Vec<&Pod> = world.pods.iter().collect();
    let needed = with_simulator(|simulator| {
        simulator.nodes_needed(&mut world.inventory(), &world.tracker(), &offers, &pods).unwrap()
    });
    let names: Vec<&str> = needed.nodes.iter().map(NewNode::name).collect();
    assert_eq!((names, needed.price), (vec!["two-gpus"], 20));
    assert_eq!(needed.refused[0].0.name, "ten");
    assert!(needed.refused[0].1.to_string().contains("10 wanted"), "{}", needed.refused[0].1);
}

/// Adds the pod of a daemon set, whose claim is made from a template, so that each node's pod has its own.
fn add_daemon(world: &mut World) {
    world.wait("monitor", 1);
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "monitor", "uid": "monitor", "controller": true}]);
    world.claims.last_mut().unwrap().metadata.owner_references = from_value(owner).unwrap();
    let monitor = world.pods.last_mut().unwrap();
    let set = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "set", "uid": "set", "controller": true}]);
    monitor.metadata.owner_references = from_value(set).unwrap();
    let entries = json!([{"name": "r", "resourceClaimTemplateName": "t"}]);
    monitor.spec.as_mut().unwrap().resource_claims = from_value(entries).unwrap();
    let made = json!({"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "monitor"}]});
    monitor.status = from_value(made).unwrap();
}

#[test]
fn four_nodes_become_one_and_its_daemon_comes_first() {
    let mut world = World::of(&[&[2][..]; 4]);
    add_daemon(&mut world);
    let large = template("large", 10);
    let offers = [NodeOffer::new(&large, 7).with_daemons([world.pod("monitor")])];
    let removed = ["n1", "n2", "n3", "n4"];
    let replace = |offers: &[NodeOffer<'_>]| {
        with_simulator(|simulator| {
            let (mut inventory, tracker, snapshot) = (world.inventory(), world.tracker(), world.snapshot());
            simulator.replace_nodes(&mut inventory, &tracker, &snapshot, removed, offers, &MoveRules::default())
        })
    };
    let plan = replace(&offers).unwrap();
    assert_eq!((plan.price, plan.new_nodes.len(), plan.waves.concat().len(), plan.removed.len()), (7, 1, 4, 4));
    let first_is_free = |plan: &MovePlan| plan.waves.iter().flatten().flat_map(devices_of).all(|device| device != "g0");
    assert!(first_is_free(&plan), "the first device is the daemon's");
    let daemon = &plan.new_nodes[0].daemons[0];
    assert_eq!((pod_name(&daemon.pod), daemon.place.to.as_deref()), ("monitor", Some("large")));
    assert_eq!(devices_of(&daemon.place), ["g0"]);
    let steps: Vec<PlanStep<'_>> = plan.steps().collect();
    assert!(matches!(steps[0], PlanStep::Create(new) if new.name() == "large"));
    assert!(matches!(steps.last(), Some(PlanStep::Remove("n4"))));

    let small = template("small", 8);
    let plan = replace(&[NodeOffer::new(&small, 3).with_daemons([world.pod("monitor")])]).unwrap();
    let names: Vec<&str> = plan.new_nodes.iter().map(|new| name_of(&new.node)).collect();
    assert_eq!((names, plan.price), (vec!["small", "small-1"], 6));
    assert!(first_is_free(&plan), "a daemon takes a device of each node");
    let daemons: Vec<&str> =
        plan.new_nodes.iter().flat_map(|new| &new.daemons).map(|daemon| pod_name(&daemon.pod)).collect();
    assert_eq!(daemons, ["monitor", "monitor-1"]);
    assert!(replace(&[NodeOffer::new(&small, 3).with_most(0)]).is_err());
    assert_eq!(pod_name(world.pod("monitor")), "monitor");
}

/// The new node has ten devices: eight for the pods that move, one for the daemon, and one more.
#[test]
fn a_check_leaves_daemons_of_new_nodes_their_devices() {
    let mut world = World::of(&[&[2][..]; 4]);
    add_daemon(&mut world);
    let large = template("large", 10);
    let offers = [NodeOffer::new(&large, 7).with_daemons([world.pod("monitor")])];
    let (rules, removed) = (MoveRules::default(), ["n1", "n2", "n3", "n4"]);
    let plan = with_simulator(|simulator| {
        let (mut inventory, tracker, snapshot) = (world.inventory(), world.tracker(), world.snapshot());
        simulator.replace_nodes(&mut inventory, &tracker, &snapshot, removed, &offers, &rules).unwrap()
    });
    let faults = |world: &World| -> Vec<String> {
        let faults = with_simulator(|simulator| {
            let (mut inventory, tracker, snapshot) = (world.inventory(), world.tracker(), world.snapshot());
            let faults = plan.check(simulator, &mut inventory, &tracker, &snapshot, &rules);
            assert!(inventory.slices().eq(&world.slices), "a check leaves nothing behind");
            faults
        });
        let text = |fault: PlanFaultError| match fault {
            PlanFaultError::NoPlace { pod, node, taken, .. } => format!("{} {node} {}", pod.name, taken.len()),
            other => panic!("{other}"),
        };
        faults.into_iter().map(text).collect()
    };
    assert_eq!(faults(&world), [""; 0]);
    // The offer's pod and its claim were made up for the question.
    world.pods.retain(|pod| pod_name(pod) != "monitor");
    world.claims.retain(|claim| claim.metadata.name.as_deref() != Some("monitor"));
    assert_eq!(faults(&world), [""; 0]);
    world.nodes.push(node("large"));
    world.slices.push(slice("large", &devices(10)));
    assert_eq!(faults(&world), [""; 0]);

    let mut with_one = world.clone();
    with_one.run("stranger", "large", &["g9".to_owned()]);
    assert_eq!(faults(&with_one), [""; 0], "nine are left for eight and the daemon's");
    let mut with_two = world.clone();
    with_two.run("stranger", "large", &["g8".to_owned(), "g9".to_owned()]);
    assert_eq!(faults(&with_two), ["n4-0 large 1"], "the daemon comes first, and one of eight is missing");
    let mut with_ten = world.clone();
    with_ten.run("stranger", "large", &devices(10));
    assert_eq!(faults(&with_ten)[0], "monitor large 1", "the daemon has no place either");

    // Once the daemon runs, under another name, it is not counted again.
    let mut started = with_one.clone();
    started.run("monitor-x7k", "large", &["g3".to_owned()]);
    let set = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "set", "uid": "set", "controller": true}]);
    started.pods.last_mut().unwrap().metadata.owner_references = from_value(set).unwrap();
    assert_eq!(faults(&started), [""; 0]);
    started.pods.last_mut().unwrap().metadata.owner_references = None;
    assert_eq!(faults(&started), ["n4-0 large 1"], "a pod of somebody else is no daemon");
}

#[test]
fn pods_of_higher_priority_get_the_last_nodes() {
    let mut world = World::default();
    for (name, count, priority) in [("large", 4, 0), ("urgent", 3, 100), ("middle", 3, 50)] {
        world.wait(name, count);
        world.pods.last_mut().unwrap().spec.as_mut().unwrap().priority = Some(priority);
    }
    let template = template("four", 4);
    let pods: Vec<&Pod> = world.pods.iter().collect();
    let placed = |most: usize| {
        let offers = [NodeOffer::new(&template, 1).with_most(most)];
        let needed = with_simulator(|simulator| {
            simulator.nodes_needed(&mut world.inventory(), &world.tracker(), &offers, &pods).unwrap()
        });
        let mut names: Vec<String> = needed.placed.into_iter().map(|moved| moved.pod.name).collect();
        names.sort();
        names
    };
    assert_eq!(placed(1), ["urgent"]);
    assert_eq!(placed(2), ["middle", "urgent"]);
    assert_eq!(placed(3), ["large", "middle", "urgent"]);
}
