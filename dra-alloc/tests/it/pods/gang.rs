//! Gangs against an independent loop over single pods, on small clusters of all shapes.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a test may be asked for more and tells its size"
)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use dra_alloc::explain::Detail;
use dra_alloc::objective::Objective;
use dra_alloc::pods::{
    ClaimTracker, FitQuestion, GangError, GangPlacement, GangSearch, MemberError, PodCycle, PodOptions,
};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Inventory, Nodes, Outcome, Profile};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceClass, ResourceClaim, ResourceSlice};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, from_value, json};

use super::world::{NOW, World, allocated, claim, group, node, pod};

/// A cluster with a gang: devices of each node, of which some are held; claims by number of devices; claims of each pod.
#[derive(Clone, Debug)]
struct Case {
    nodes: Vec<(usize, usize)>,
    claims: Vec<i64>,
    pods: Vec<Vec<usize>>,
    /// Largest number of pods on a node.
    room: usize,
}

fn case() -> impl Strategy<Value = Case> {
    let nodes = prop::collection::vec((0_usize..5, 0_usize..3), 1..5);
    let claims = prop::collection::vec(1_i64..4, 1..6);
    let pods = prop::collection::vec(prop::collection::vec(0_usize..6, 0..3), 1..5);
    (nodes, claims, pods, 1_usize..4).prop_map(|(nodes, claims, mut pods, room)| {
        for used in &mut pods {
            used.retain(|claim| *claim < claims.len());
            used.sort_unstable();
            used.dedup();
        }
        Case { nodes, claims, pods, room }
    })
}

struct Cluster {
    inventory: Inventory,
    classes: Classes,
    nodes: Vec<Node>,
    claims: Vec<ResourceClaim>,
    pods: Vec<Pod>,
}

fn name(kind: &str, index: usize) -> String {
    format!("{kind}{index}")
}

impl Case {
    fn cluster(&self) -> Cluster {
        let slice = |(index, (devices, _)): (usize, &(usize, usize))| -> ResourceSlice {
            let node = name("n", index);
            let devices: Vec<_> = (0..*devices).map(|device| json!({"name": name("d", device)})).collect();
            from_value(json!({"metadata": {"name": node}, "spec": {"driver": "d.example.com", "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": devices}}))
            .unwrap()
        };
        let held = self.nodes.iter().enumerate().flat_map(|(index, (devices, held))| {
            let held = 0..(*held).min(*devices);
            held.map(move |device| {
                allocated(&format!("held-{index}-{device}"), &name("n", index), &name("d", device), &["x"])
            })
        });
        let wanted = self.claims.iter().enumerate().map(|(index, count)| claim(&name("c", index), *count));
        let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}})).unwrap();
        let pods = self.pods.iter().enumerate().map(|(index, used)| {
            let used: Vec<String> = used.iter().map(|claim| name("c", *claim)).collect();
            pod(&name("p", index), &used.iter().map(String::as_str).collect::<Vec<_>>(), None)
        });
        Cluster {
            inventory: Inventory::new(self.nodes.iter().enumerate().map(slice)),
            classes: Classes::new([class]),
            nodes: (0..self.nodes.len()).map(|index| node(&name("n", index))).collect(),
            claims: held.chain(wanted).collect(),
            pods: pods.collect(),
        }
    }
}

/// Result of a loop over single pods: the node of each, and all allocations by name of the claim.
type Placed = (Vec<String>, BTreeMap<String, AllocationResult>);

/// Tries the pods one by one in an order, each on the first node that serves its claims, with a state of its own.
fn one_by_one(cluster: &Cluster, order: &[usize], room: usize) -> Option<Placed> {
    let allocator = Allocator::new(Profile::V1_37, &cluster.inventory, &cluster.classes);
    let mut state = AllocatedState::from_claims(&cluster.claims, Component::of(Profile::V1_37)).unwrap();
    let mut claims: BTreeMap<String, ResourceClaim> =
        cluster.claims.iter().map(|claim| (claim.metadata.name.clone().unwrap(), claim.clone())).collect();
    let (mut nodes, mut results) = (vec![String::new(); order.len()], BTreeMap::new());
    for index in order {
        let entries = cluster.pods[*index].spec.clone().unwrap().resource_claims.unwrap_or_default();
        let used: Vec<String> = entries.into_iter().filter_map(|entry| entry.resource_claim_name).collect();
        let objects: Vec<ResourceClaim> = used.iter().map(|name| claims[name].clone()).collect();
        let found = cluster.nodes.iter().find_map(|node| {
            let name = node.metadata.name.clone().unwrap();
            if nodes.iter().filter(|taken| **taken == name).count() == room {
                return None;
            }
            match allocator.allocate(&state, node, &objects, Budget::default()).unwrap().outcome {
                Outcome::Allocated(found) => Some((name, found)),
                _ => None,
            }
        });
        let (node, found) = found?;
        nodes[*index] = node;
        for (name, result) in used.iter().zip(found) {
            let claim = claims.get_mut(name).unwrap();
            if claim.status.as_ref().is_none_or(|status| status.allocation.is_none()) {
                state.assume(claim, &result).unwrap();
                claim.status.get_or_insert_default().allocation = Some(result.clone());
                results.insert(name.clone(), result);
            }
        }
    }
    Some((nodes, results))
}

/// Places the pods as a gang: each node is asked, or each state of `nodes`.
fn as_gang(
    cluster: &Cluster,
    tracker: &mut ClaimTracker,
    room: usize,
    nodes: Option<&mut Nodes<&Node>>,
) -> Result<Placed, Box<GangError>> {
    let allocator = Allocator::new(Profile::V1_37, &cluster.inventory, &cluster.classes);
    let fit = |question: &FitQuestion<'_>| {
        if question.placed_here().count() == room { Err("Too many pods".to_owned()) } else { Ok(()) }
    };
    let options = PodOptions::new(Profile::V1_37);
    let search = GangSearch::new(&allocator, &cluster.nodes, options, NOW).with_fit(&fit);
    let placed = match nodes {
        None => search.place(&cluster.pods, None, tracker),
        Some(nodes) => search.place_on(nodes, &cluster.pods, None, tracker),
    };
    let placed = placed?.pods;
    let nodes = placed.iter().map(|placement| placement.node.clone()).collect();
    let claims = placed.iter().filter_map(|placement| placement.cycle.as_ref()).flat_map(PodCycle::claims);
    let results =
        claims.filter_map(|claim| Some((claim.claim().metadata.name.clone().unwrap(), claim.chosen()?.clone())));
    Ok((nodes, results.collect()))
}

/// Returns an objective over the devices of some nodes, for which the first node that fits is not the best one.
fn objective() -> Objective {
    let links = |node: usize, cost: usize| {
        let device = |number: usize| format!("d.example.com/n{node}/d{number}");
        [(0, 1), (0, 2), (1, 2), (2, 3)].map(|(one, other)| json!([device(one), device(other), cost]))
    };
    let scores: Vec<Value> = [0, 2, 1, 3].into_iter().enumerate().flat_map(|(node, cost)| links(node, cost)).collect();
    Objective::from_json(&json!([[{"term": "links", "scores": scores, "default": 2}]])).unwrap()
}

/// Places the pods with an objective or a quorum, node by node and by states, and returns the nodes and the number of pods left out.
fn by_both(
    cluster: &Cluster,
    objective: Option<&Objective>,
    quorum: Option<NonZeroUsize>,
) -> Result<(Vec<String>, usize), Box<GangError>> {
    let allocator = Allocator::new(Profile::V1_37, &cluster.inventory, &cluster.classes);
    let allocator = allocator.with_explanation(Detail::Summary);
    let allocator = match objective {
        Some(objective) => allocator.with_objective(objective),
        None => allocator,
    };
    let search = GangSearch::new(&allocator, &cluster.nodes, PodOptions::new(Profile::V1_37), NOW);
    let search = match quorum {
        Some(pods) => search.with_quorum(pods),
        None => search,
    };
    let mut nodes = Nodes::new(&cluster.nodes);
    let answers = [false, true, true].map(|by_state| {
        let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
        tracker.replace(cluster.claims.clone(), None).unwrap();
        let placed = if by_state {
            search.place_on(&mut nodes, &cluster.pods, None, &mut tracker)
        } else {
            search.place(&cluster.pods, None, &mut tracker)
        };
        let placed = placed.map(|gang| {
            let chosen = |placement: &GangPlacement| -> Vec<Option<AllocationResult>> {
                let claims = placement.cycle.iter().flat_map(PodCycle::claims);
                claims.map(|claim| claim.chosen().cloned()).collect()
            };
            let pods: Vec<_> = gang.pods.iter().map(|placement| (placement.node.clone(), chosen(placement))).collect();
            (pods, gang.left_out)
        });
        (placed, tracker.state().clone())
    });
    assert_eq!(answers[1], answers[0]);
    assert_eq!(answers[2], answers[0], "asked again");
    let [(placed, _), ..] = answers;
    placed.map(|(pods, left_out)| (pods.into_iter().map(|(node, _)| node).collect(), left_out.len()))
}

#[test]
fn objectives_and_quorums_are_the_same_by_states() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[8; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (objective, most) = (objective(), NonZeroUsize::new(2));
    let (mut elsewhere, mut without_some, mut refused) = (0, 0, 0);
    for _ in 0..300 {
        let cluster = case().new_tree(&mut runner).unwrap().current().cluster();
        let plain = by_both(&cluster, None, None);
        let best = by_both(&cluster, Some(&objective), None);
        elsewhere += usize::from(best.is_ok() && best != plain);
        for objective in [None, Some(&objective)] {
            match by_both(&cluster, objective, most) {
                Ok((_, left_out)) => without_some += usize::from(left_out > 0),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(elsewhere > 10 && without_some > 20 && refused > 20, "{elsewhere} {without_some} {refused}");
}

fn permutations(length: usize) -> Vec<Vec<usize>> {
    (0..length).fold(vec![Vec::new()], |orders, next| {
        let insert = |order: &Vec<usize>| -> Vec<Vec<usize>> {
            (0..=order.len()).map(|at| [&order[..at], &[next], &order[at..]].concat()).collect()
        };
        orders.iter().flat_map(insert).collect()
    })
}

#[test]
fn a_gang_is_a_loop_over_its_pods_with_rollback() {
    let cases = std::env::var("GANG_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000_u32);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (mut placed, mut refused, mut another_order) = (0, 0, 0);
    for _ in 0..cases {
        let case = case().new_tree(&mut runner).unwrap().current();
        let cluster = case.cluster();
        let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
        tracker.replace(cluster.claims.clone(), None).unwrap();
        let (before, before_gang) = (tracker.state().clone(), tracker.clone());
        let order: Vec<usize> = (0..cluster.pods.len()).collect();
        let expected = one_by_one(&cluster, &order, case.room);
        let mut nodes = Nodes::new(&cluster.nodes);
        let found = as_gang(&cluster, &mut tracker, case.room, None);
        for _ in 0..2 {
            let mut beside = before_gang.clone();
            let by_state = as_gang(&cluster, &mut beside, case.room, Some(&mut nodes));
            assert_eq!(by_state, found, "{case:?}");
            assert_eq!(beside.state(), tracker.state(), "{case:?}");
        }
        assert_eq!(found.ok(), expected, "{case:?}");
        if expected.is_some() {
            placed += 1;
        } else {
            refused += 1;
            assert_eq!(*tracker.state(), before, "{case:?}");
            assert_eq!(tracker.in_flight().count(), 0);
            let orders = permutations(cluster.pods.len());
            another_order += usize::from(orders.iter().any(|order| one_by_one(&cluster, order, case.room).is_some()));
        }
    }
    println!("{placed} gangs placed, {refused} refused, of which another order fits {another_order}");
    assert!(placed > 400 && refused > 400 && another_order > 0);
}

#[test]
fn pods_of_a_group_share_its_claim_and_the_gang_gives_all_back() {
    let mut world = World::new(2, [claim("shared", 1), claim("big", 3)]).with_groups();
    let of_group = group("g", &["shared"]);
    let allocator =
        Allocator::new(world.options.scheduler(), &world.inventory, &world.classes).with_explanation(Detail::Summary);
    let nodes = [node("n1"), node("n2")];
    let search = GangSearch::new(&allocator, &nodes, world.options, NOW);
    let before = world.tracker.state().clone();
    let pods = [pod("a", &["shared"], Some("g")), pod("b", &["shared"], Some("g")), pod("c", &["big"], Some("g"))];
    let refusal = search.place(&pods, Some(&of_group), &mut world.tracker).unwrap_err();
    assert_eq!((usize::from(refusal.member), refusal.pod.name.as_str()), (2, "c"));
    let MemberError::NoNode(explanation) = &refusal.reason else { panic!("{refusal}") };
    assert_eq!(explanation.holdings.len(), 2);
    assert_eq!(*world.tracker.state(), before);

    let placed = search.place(&pods[..2], Some(&of_group), &mut world.tracker).unwrap().pods;
    assert!(placed.iter().all(|placement| placement.node == "n1"));
    assert_eq!(world.tracker.in_flight().count(), 1);
}

#[test]
fn a_gang_with_a_quorum_leaves_pods_out_that_have_no_node() {
    let claims = [claim("big", 3), claim("one", 1), claim("two", 1)];
    let pods = [pod("a", &["one"], None), pod("b", &["big"], None), pod("c", &["two"], None)];
    for (quorum, expected) in [(1, Some(["a", "c"])), (2, Some(["a", "c"])), (3, None)] {
        let mut world = World::new(1, claims.clone());
        let allocator = Allocator::new(world.options.scheduler(), &world.inventory, &world.classes);
        let nodes = [node("n1")];
        let search = GangSearch::new(&allocator, &nodes, world.options, NOW);
        let search = search.with_quorum(NonZeroUsize::new(quorum).unwrap());
        let placed = search.place(&pods, None, &mut world.tracker);
        if let Some(names) = expected {
            let placed = placed.unwrap();
            assert!(placed.pods.iter().map(|placement| placement.pod.name.as_str()).eq(names));
            let left_out = placed.left_out.iter().map(|left| (usize::from(left.member), left.pod.name.as_str()));
            assert!(left_out.eq([(1, "b")]));
            assert_eq!(world.tracker.in_flight().count(), 2);
        } else {
            assert_eq!(placed.unwrap_err().pod.name, "b");
            let refusal = search.place(&pods[..1], None, &mut world.tracker).unwrap_err();
            assert_eq!(refusal.reason, MemberError::TooFew { members: 1, quorum: 3 });
            assert_eq!(world.tracker.in_flight().count(), 0);
        }
    }
}

#[test]
fn a_node_that_has_refused_a_pod_is_not_asked_again_for_one_that_asks_the_same() {
    let claims: Vec<ResourceClaim> = (0..4).map(|index| claim(&name("c", index), 1)).collect();
    let pods: Vec<Pod> = (0..4).map(|index| pod(&name("p", index), &[name("c", index).as_str()], None)).collect();
    let case = Case { nodes: vec![(1, 0); 4], claims: vec![1; 4], pods: Vec::new(), room: 1 };
    let cluster = case.cluster();
    let allocator = Allocator::new(Profile::V1_37, &cluster.inventory, &cluster.classes);
    let mut tracker = ClaimTracker::new(Profile::V1_37);
    tracker.replace(claims, None).unwrap();
    let asked = Cell::new(0);
    let fit = |_: &FitQuestion<'_>| {
        asked.set(asked.get() + 1);
        Ok(())
    };
    let search = GangSearch::new(&allocator, &cluster.nodes, PodOptions::new(Profile::V1_37), NOW).with_fit(&fit);
    let placed = search.place(&pods, None, &mut tracker).unwrap().pods;
    assert!(placed.iter().map(|placement| placement.node.as_str()).eq(["n0", "n1", "n2", "n3"]));
    // Each pod but the first asks the node of the one before it, which refuses it, and its own.
    assert_eq!(asked.get(), 7);
}

#[test]
fn pods_without_uids_are_not_taken_for_each_other() {
    let mut world = World::new(1, [claim("big", 3), claim("one", 1)]);
    let allocator = Allocator::new(world.options.scheduler(), &world.inventory, &world.classes);
    let nodes = [node("n1")];
    let mut pods = [pod("a", &["big"], None), pod("b", &["one"], None)];
    for pod in &mut pods {
        pod.metadata.uid = None;
    }
    let search = GangSearch::new(&allocator, &nodes, world.options, NOW);
    let search = search.with_quorum(NonZeroUsize::MIN);
    let placed = search.place(&pods, None, &mut world.tracker).unwrap();
    assert!(placed.pods.iter().map(|placement| placement.pod.name.as_str()).eq(["b"]));
}
