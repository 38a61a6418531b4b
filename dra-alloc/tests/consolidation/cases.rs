//! Decisive cases of moves.

use dra_alloc::consolidation::{MoveProof, MoveRules, MovesAnswer, NoMovesError};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{from_value, json};

use super::world::{World, allocate, carry_out, claim, node, pod, slice, texts};

fn reason(world: &World, pods: &[&str], rules: &MoveRules<'_>) -> NoMovesError {
    match world.moves(pods, rules) {
        MovesAnswer::NoMoves(reason) => reason,
        MovesAnswer::Moves(plan) => panic!("{plan:?}"),
    }
}

#[test]
fn two_moves_where_one_is_not_enough() {
    let mut world = World::of(&[&[4, 2, 1], &[4, 2], &[4, 2, 1]]);
    world.wait("t", 4);
    let plan = world.plan("t", &MoveRules::default());
    assert_eq!((plan.cost, plan.proof, plan.waves.concat().len()), (3, MoveProof::Least, 2));
    carry_out(&world, &plan);
}

#[test]
fn three_moves_empty_the_first_of_equal_nodes() {
    let mut world = World::of(&[&[1, 1, 1][..]; 8]);
    world.wait("t", 8);
    let plan = world.plan("t", &MoveRules::default());
    assert_eq!((plan.cost, plan.proof, plan.waves.len()), (3, MoveProof::Least, 1));
    assert_eq!(texts(&plan.placed), ["t ->n1"]);
    carry_out(&world, &plan);
}

#[test]
fn moves_make_no_devices() {
    let mut world = World::of(&[&[4], &[4, 4]]);
    world.wait("t", 8);
    assert_eq!(reason(&world, &["t"], &MoveRules::default()), NoMovesError::NotEnough { free: 4, wanted: 8 });
}

#[test]
fn a_pod_without_another_place_is_named() {
    let mut world = World::of(&[&[5], &[5], &[5]]);
    world.wait("t", 6);
    let NoMovesError::NoPlace { pod, reason } = reason(&world, &["t"], &MoveRules::default()) else { panic!() };
    assert_eq!(pod.name, "n1-0");
    let reason = reason.unwrap().to_string();
    assert!(reason.starts_with("0/2 nodes are available: 2 too few: 3 of 8 free, 5 wanted of class gpu"), "{reason}");
}

#[test]
fn a_chain_costs_less_than_two_moves_from_one_node() {
    let mut world = World::of(&[&[3], &[2, 4], &[6]]);
    world.wait("t", 8);
    let plan = world.plan("t", &MoveRules::default());
    assert_eq!((plan.cost, plan.proof), (5, MoveProof::Least));
    assert_eq!(texts(&plan.waves.concat()), ["n2-0 n2>n3", "n1-0 n1>n2"]);
    assert_eq!(texts(&plan.placed), ["t ->n1"]);
    carry_out(&world, &plan);
}

#[test]
fn pinned_pods_are_named_for_each_node() {
    let mut world = World::of(&[&[1, 1, 1][..]; 8]);
    world.wait("t", 8);
    let pinned: Vec<String> = (1..=8).map(|number| format!("n{number}-1")).collect();
    let rules = MoveRules::default().with_pinned(pinned.iter().map(String::as_str));
    let NoMovesError::Pinned { by } = reason(&world, &["t"], &rules) else { panic!() };
    assert_eq!(by.into_iter().map(|pod| pod.name).collect::<Vec<_>>(), pinned);
}

#[test]
fn a_pod_of_a_daemon_set_does_not_move_and_is_named() {
    let mut world = World::of(&[&[1, 3], &[4], &[5]]);
    world.wait("t", 8);
    let owner = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]);
    world.pods[0].metadata.owner_references = from_value(owner).unwrap();
    let plan = world.plan("t", &MoveRules::default());
    assert_eq!((texts(&plan.placed), plan.cost), (vec!["t ->n2".to_owned()], 4), "n1 keeps its daemon");
    world.run("other", "n2", &["g7".to_owned()]);
    let pinned = MoveRules::default().with_pinned(["other", "n3-0"]);
    let NoMovesError::Pinned { by } = reason(&world, &["t"], &pinned) else { panic!() };
    assert_eq!(by.into_iter().map(|pod| pod.name).collect::<Vec<_>>(), ["n1-0", "n3-0", "other"]);
}

#[test]
fn a_disruption_budget_makes_waves_or_another_node() {
    let mut world = World::of(&[&[1, 1, 1][..]; 8]);
    world.wait("t", 8);
    for pod in world.pods.iter_mut().take(3) {
        pod.metadata.labels = from_value(json!({"app": "x"})).unwrap();
    }
    let budget: PodDisruptionBudget = from_value(json!({"metadata": {"namespace": "ml", "name": "b"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}}, "status": {"disruptionsAllowed": 1, "currentHealthy": 3,
            "desiredHealthy": 2, "expectedPods": 3}}))
    .unwrap();
    let rules = || MoveRules::default().with_budgets([&budget]);
    let plan = world.plan("t", &rules());
    assert_eq!((plan.waves.len(), texts(&plan.placed)), (1, vec!["t ->n2".to_owned()]));
    let others: Vec<String> = (2..=8).map(|number| format!("n{number}-0")).collect();
    let plan = world.plan("t", &rules().with_pinned(others.iter().map(String::as_str)));
    assert_eq!((plan.waves.len(), texts(&plan.placed)), (3, vec!["t ->n1".to_owned()]));
    assert!(plan.waves.iter().all(|wave| wave.len() == 1));
}

#[test]
fn pods_that_share_a_claim_move_together() {
    let mut world = World::of(&[&[], &[6]]);
    let mut shared = claim("c", "gpu", 2);
    allocate(&mut shared, "n1", &["g0".to_owned(), "g1".to_owned()], &["x", "y"]);
    world.claims.push(shared);
    for name in ["x", "y"] {
        let mut pod = pod(name, "c");
        pod.spec.as_mut().unwrap().node_name = Some("n1".to_owned());
        world.pods.push(pod);
    }
    world.wait("t", 8);
    let plan = world.plan("t", &MoveRules::default());
    assert_eq!(texts(&plan.waves.concat()), ["x n1>n2", "y n1>n2"]);
    // One that must not move keeps both.
    let pinned = MoveRules::default().with_pinned(["y", "n2-0"]);
    let NoMovesError::Pinned { by } = reason(&world, &["t"], &pinned) else { panic!() };
    assert_eq!(by.into_iter().map(|pod| pod.name).collect::<Vec<_>>(), ["n2-0", "x", "y"]);
}

#[test]
fn pods_change_devices_within_a_node() {
    let mut world = World { nodes: vec![node("n1")], ..World::default() };
    let mut own = slice("n1", &["f".to_owned(), "g0".to_owned(), "h1".to_owned()]);
    for device in own.spec.devices.as_mut().unwrap() {
        device.attributes = from_value(json!({"kind": {"string": device.name[..1]}})).unwrap();
    }
    world.slices.push(own);
    world.run("b", "n1", &["h1".to_owned()]);
    world.run("a", "n1", &["g0".to_owned()]);
    world.claims[1].spec = claim("a", "a", 1).spec;
    world.wait("t", 1);
    world.claims[2].spec = claim("t", "t", 1).spec;
    let plan = world.plan("t", &MoveRules::default());
    let held = carry_out(&world, &plan);
    let of = |pod: &str| held[pod].first().unwrap().1.clone();
    assert_eq!((of("b"), of("a"), of("t")), ("f".to_owned(), "h1".to_owned(), "g0".to_owned()));
    assert_eq!((plan.cost, plan.waves.concat()[0].pod.name.as_str()), (2, "b"));
}

#[test]
fn an_eviction_may_cost_less_than_moves() {
    let mut world = World::of(&[&[8], &[2, 2], &[4]]);
    world.wait("t", 8);
    for pod in &mut world.pods {
        let is_target = pod.metadata.name.as_deref() == Some("t");
        pod.spec.as_mut().unwrap().priority = Some(if is_target { 100 } else { 0 });
    }
    let costs = [("n2-0", 5), ("n2-1", 5), ("n3-0", 20)];
    let rules = MoveRules::default().with_costs(costs).with_eviction_costs([("n1-0", 3)]);
    let plan = world.plan("t", &rules);
    assert_eq!((plan.cost, texts(&plan.waves.concat())), (3, vec!["n1-0 n1>-".to_owned()]));
    let plan = world.plan("t", &MoveRules::default().with_costs(costs));
    assert_eq!((plan.cost, texts(&plan.waves.concat()).len()), (10, 2));
    // A pod of the same priority is not evicted.
    world.pods[0].spec.as_mut().unwrap().priority = Some(100);
    assert_eq!(world.plan("t", &rules).cost, 10);
}

#[test]
fn a_gang_gets_all_its_places_at_once() {
    let mut world = World::of(&[&[4, 2], &[4, 2], &[4]]);
    world.wait("t0", 4);
    world.wait("t1", 4);
    let MovesAnswer::Moves(plan) = world.moves(&["t0", "t1"], &MoveRules::default()) else { panic!() };
    assert_eq!((plan.cost, plan.placed.len()), (2, 2));
    carry_out(&world, &plan);
    let fits = world.moves(&["t0"], &MoveRules::default());
    assert!(matches!(fits, MovesAnswer::Moves(plan) if plan.waves.is_empty() && plan.cost == 0));
}
