//! Rules of preemption by gangs, and of the caller's check of nodes, case by case.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use dra_alloc::Budget;
use dra_alloc::pods::FitQuestion;
use dra_alloc::preemption::{
    Blocker, Eligibility, Harm, HarmProof, NoRoom, PreemptingGang, PreemptingMember, PreemptionAnswer, PreemptionError,
    Room,
};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use serde_json::{Value, from_value, json};

use crate::preemption_rules::{World, claim_names, held, names, open, pod, slice};

const G: [&str; 8] = ["g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7"];

impl World {
    fn member(&self, name: &str) -> &Pod {
        self.pods.iter().find(|pod| pod.metadata.name.as_deref() == Some(name)).unwrap()
    }

    fn gang(&self, members: &[&str]) -> PreemptingGang<'_> {
        PreemptingGang::new(members.iter().map(|name| PreemptingMember::new(self.member(name))))
    }

    fn ask_gang(&self, gang: &PreemptingGang<'_>, harm: Harm) -> PreemptionAnswer {
        self.with_preemption(|preemption| {
            preemption.with_harm(harm).make_room_for_gang(gang, Budget::default()).unwrap()
        })
    }

    fn gang_room(&self, members: &[&str], harm: Harm) -> Room {
        match self.ask_gang(&self.gang(members), harm) {
            PreemptionAnswer::Room(room) => *room,
            PreemptionAnswer::NoRoom(reason) => panic!("{reason:?}"),
        }
    }

    /// Makes pods members of a group, which goes as a whole.
    fn grouped(mut self, group: &str, members: &[&str]) -> Self {
        for pod in self.pods.iter_mut().filter(|pod| members.contains(&pod.metadata.name.as_deref().unwrap())) {
            pod.spec.as_mut().unwrap().scheduling_group = from_value(json!({"podGroupName": group})).unwrap();
        }
        self
    }
}

fn places(room: &Room) -> Vec<(&str, &str)> {
    room.places.iter().map(|place| (place.pod.name.as_str(), place.node.as_str())).collect()
}

/// Two racks: in one a unit of priority 5 over both nodes, in the other sixteen pods of priority 1.
#[test]
fn a_rack_is_chosen_by_the_rule() {
    let mut world = World::of_nodes(&[("r1", 8), ("r2", 8), ("s1", 8), ("s2", 8)])
        .with("u1", 5, "r1", &G)
        .with("u2", 5, "r2", &G)
        .grouped("unit", &["u1", "u2"])
        .with_waiting("m1", 100, 8, None)
        .with_waiting("m2", 100, 8, None);
    for node in ["s1", "s2"] {
        for device in G {
            world = world.with(&format!("{node}-{device}"), 1, node, &[device]);
        }
    }
    for harm in [Harm::Kube, Harm::KubeExact] {
        let room = world.gang_room(&["m1", "m2"], harm);
        assert_eq!(places(&room), [("m1", "s1"), ("m2", "s2")], "{harm:?}");
        assert_eq!((room.victims.len(), room.node()), (16, "s1"));
    }
    let room = world.gang_room(&["m1", "m2"], Harm::Cost);
    assert_eq!((names(&room), places(&room)), (vec!["u1", "u2"], vec![("m1", "r1"), ("m2", "r2")]));
    assert_eq!((room.proof, room.value.unwrap().numbers()), (HarmProof::Least, &[0, 2, 2][..]));
}

#[test]
fn members_share_a_node_only_if_it_serves_them_together() {
    // One node has three devices; pairs need four, unless the other node gives way.
    let world = World::of_nodes(&[("a", 3), ("b", 2)])
        .with("v", 0, "b", &["g0"])
        .with_waiting("m1", 100, 2, None)
        .with_waiting("m2", 100, 2, None);
    let room = world.gang_room(&["m1", "m2"], Harm::KubeExact);
    assert_eq!((names(&room), places(&room)), (vec!["v"], vec![("m1", "a"), ("m2", "b")]));
    assert_eq!(claim_names(&room.freed), ["v-c"]);
    assert_eq!(room.results.iter().map(|(claim, _)| claim.name.as_str()).collect::<Vec<_>>(), ["m1-c", "m2-c"]);
    // The first member takes the node that only it can leave.
    let gang = PreemptingGang::new([
        PreemptingMember::new(world.member("m1")),
        PreemptingMember::new(world.member("m2")).on_nodes(["a"]),
    ]);
    let PreemptionAnswer::Room(room) = world.ask_gang(&gang, Harm::KubeExact) else { panic!() };
    assert_eq!(places(&room), [("m1", "b"), ("m2", "a")]);
}

#[test]
fn a_quorum_leaves_members_out() {
    let world = World::of_nodes(&[("a", 1), ("b", 1)])
        .with("low", 0, "a", &["g0"])
        .with("high", 100, "b", &["g0"])
        .with_waiting("m1", 100, 1, None)
        .with_waiting("m2", 100, 1, None);
    let gang = world.gang(&["m1", "m2"]);
    match world.ask_gang(&gang, Harm::KubeExact) {
        PreemptionAnswer::NoRoom(NoRoom::Blocked { by }) => match by.as_slice() {
            [Blocker::Priority { pod, claim: None }] => assert_eq!(pod.name, "high"),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
    let one = NonZeroUsize::MIN;
    let PreemptionAnswer::Room(room) = world.ask_gang(&gang.clone().with_quorum(one), Harm::KubeExact) else {
        panic!()
    };
    assert_eq!((names(&room), places(&room)), (vec!["low"], vec![("m1", "a")]));
    let group: PodGroup = from_value(json!({"metadata": {"name": "g"}, "spec": {
        "priority": 50, "schedulingPolicy": {"gang": {"minCount": 1}}}}))
    .unwrap();
    let of_group = gang.clone().with_group(&group);
    assert_eq!(of_group.quorum(), 1);
    let PreemptionAnswer::Room(room) = world.ask_gang(&of_group, Harm::Cost) else { panic!() };
    assert_eq!(names(&room), ["low"]);
    let never: PodGroup = from_value(json!({"metadata": {"name": "g"}, "spec": {
        "preemptionPolicy": "Never", "schedulingPolicy": {"basic": {}}}}))
    .unwrap();
    let refused = world.ask_gang(&gang.with_group(&never), Harm::Cost);
    assert_eq!(refused, PreemptionAnswer::NoRoom(NoRoom::MayNotPreempt(Eligibility::PolicyNever)));
}

#[test]
fn a_claim_that_members_share_counts_once() {
    let shared = |mut world: World| {
        for name in ["m1", "m2"] {
            world.pods.push(pod(name, 100, None, &[&format!("{name}-c"), "ours"]));
            world = world.with_claim(open(&format!("{name}-c"), 1));
        }
        world
    };
    // A device of the node: both members come there, and three devices are enough.
    let local = shared(World::of_nodes(&[("a", 3), ("b", 4)]).with("v", 0, "a", &["g0"]).with("w", 9, "b", &G[..4]))
        .with_claim(open("ours", 1));
    let room = local.gang_room(&["m1", "m2"], Harm::KubeExact);
    assert_eq!((names(&room), places(&room)), (vec!["v"], vec![("m1", "a"), ("m2", "a")]));
    assert_eq!(room.results.len(), 3);
    // A device that all nodes see: each member has a node of its own.
    let mut wide = shared(World::of_nodes(&[("a", 1), ("b", 1)]).with("v", 0, "b", &["g0"]));
    wide.slices.push(slice(
        "net",
        json!({"allNodes": true, "devices": [{"name": "t0", "attributes": {"gpu/net": {"bool": true}}}]}),
    ));
    let mut ours = open("ours", 1);
    ours["spec"]["devices"]["requests"][0]["exactly"]["selectors"] =
        json!([{"cel": {"expression": "has(device.attributes['gpu'].net)"}}]);
    let mut of_gpus = wide.claims.clone();
    for claim in of_gpus.iter_mut().filter(|claim| claim.status.is_none()) {
        let mut text: Value = serde_json::to_value(&*claim).unwrap();
        text["spec"]["devices"]["requests"][0]["exactly"]["selectors"] =
            json!([{"cel": {"expression": "!has(device.attributes['gpu'].net)"}}]);
        *claim = from_value(text).unwrap();
    }
    wide.claims = of_gpus;
    let wide = wide.with_claim(ours);
    let room = wide.gang_room(&["m1", "m2"], Harm::KubeExact);
    assert_eq!((names(&room), places(&room)), (vec!["v"], vec![("m1", "a"), ("m2", "b")]));
}

#[test]
fn a_claim_of_another_gang_goes_with_all_of_its_pods() {
    let mut world =
        World::of_nodes(&[("a", 1), ("b", 1)]).with_waiting("m1", 100, 1, None).with_waiting("m2", 100, 1, None);
    let mut claim = held("c", "a", &["g0"], &["v", "w"]);
    claim["status"]["allocation"]["devices"]["results"]
        .as_array_mut()
        .unwrap()
        .push(json!({"request": "r", "driver": "gpu", "pool": "b", "device": "g0"}));
    world = world.with_pod("v", 1, "a", &["c"]).with_pod("w", 2, "b", &["c"]).with_claim(claim);
    let room = world.gang_room(&["m1", "m2"], Harm::Cost);
    assert_eq!((names(&room), claim_names(&room.freed)), (vec!["w", "v"], vec!["c"]));
    assert_eq!(room.value.unwrap().numbers(), [0, 2, 2]);
}

#[test]
fn gangs_that_can_not_be_are_errors() {
    let world = World::of_nodes(&[("a", 1)]).with_waiting("m1", 100, 1, None);
    let error = |gang: PreemptingGang<'_>| {
        world.with_preemption(|preemption| preemption.make_room_for_gang(&gang, Budget::default()).unwrap_err())
    };
    assert_eq!(error(world.gang(&[])), PreemptionError::TooFewMembers { members: 0, quorum: 0 });
    let two = NonZeroUsize::new(2).unwrap();
    let few = error(world.gang(&["m1"]).with_quorum(two));
    assert_eq!(few.to_string(), "quorum: 2 of 1 members have to fit");
    assert_eq!(error(world.gang(&["m1", "m1"])).to_string(), "members: pod ns/m1 is there twice");
    let nowhere = PreemptingGang::new([PreemptingMember::new(world.member("m1")).on_nodes(["x"])]);
    assert_eq!(world.ask_gang(&nowhere, Harm::Cost), PreemptionAnswer::NoRoom(NoRoom::Hopeless));
}

/// A gang that no set of victims can serve is refused by counts of work, not after all orders of places.
#[test]
fn the_work_of_a_gang_is_bounded() {
    let names: Vec<String> = (0..8).map(|node| format!("n{node}")).collect();
    let nodes: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 3)).collect();
    let mut world = World::of_nodes(&nodes);
    let members: Vec<String> = (0..9).map(|member| format!("m{member}")).collect();
    for (number, member) in members.iter().enumerate() {
        world = world.with_waiting(member, 100, 2, None);
        // No two are alike.
        let labels = [("rank".to_owned(), number.to_string())].into();
        world.pods.last_mut().unwrap().metadata.labels = Some(labels);
    }
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    let gang = world.gang(&members);
    // Alike for the devices: each node takes one, and there is one more than nodes.
    let alike = world.with_preemption(|preemption| {
        preemption.with_harm(Harm::Cost).make_room_for_gang(&gang, Budget::work(2_000)).unwrap()
    });
    assert_eq!(alike, PreemptionAnswer::NoRoom(NoRoom::Hopeless));
    // The check of nodes may look at labels: all orders are different, and the work ends.
    let yes = |_: &FitQuestion<'_>| Ok(());
    let stopped = world.with_preemption(|preemption| {
        let budget = Budget::work(2_000).with_work_per_call(20_000);
        preemption.with_harm(Harm::Cost).with_fit(&yes).make_room_for_gang(&gang, budget).unwrap()
    });
    assert_eq!(stopped, PreemptionAnswer::NoRoom(NoRoom::Stopped { best: None }));
}

/// CPUs of a pod or a node, as a label says.
fn cpus(labels: Option<&std::collections::BTreeMap<String, String>>) -> usize {
    labels.and_then(|labels| labels.get("cpus")).map_or(0, |cpus| cpus.parse().unwrap())
}

fn label(pod: &mut Pod, cpus: usize) {
    pod.metadata.labels = Some([("cpus".to_owned(), cpus.to_string())].into());
}

/// Check that a node has CPUs for a pod once some pods are gone.
fn cpu_fit(world: &World, question: &FitQuestion<'_>) -> Result<(), String> {
    let name = question.node().metadata.name.as_deref();
    let gone: BTreeSet<&str> = question.gone().iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
    let is_there = |pod: &&Pod| {
        let is_on = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == name;
        is_on && !gone.contains(pod.metadata.name.as_deref().unwrap())
    };
    let of_pod = |pod: &Pod| cpus(pod.metadata.labels.as_ref());
    let used: usize = world.pods.iter().filter(is_there).map(of_pod).sum();
    let placed: usize = question.placed_here().map(|member| of_pod(world.member(&member.name))).sum();
    let all = cpus(question.node().metadata.labels.as_ref());
    if used + placed + of_pod(question.pod()) <= all { Ok(()) } else { Err("Insufficient cpu".to_owned()) }
}

fn world_of_cpus(cpus: usize) -> World {
    let mut world = World::of_nodes(&[("n", 2)]);
    let node: &mut Node = &mut world.nodes[0];
    node.metadata.labels = Some([("cpus".to_owned(), cpus.to_string())].into());
    world
}

#[test]
fn the_callers_check_counts_for_pods_and_gangs() {
    let mut world = world_of_cpus(4)
        .with("holder", 5, "n", &["g0"])
        .with_pod("busy", 7, "n", &[])
        .with_pod("idle", 1, "n", &[])
        .with_waiting("p", 100, 1, None)
        .with_waiting("q", 100, 1, None);
    for (name, cpus) in [("holder", 1), ("busy", 3), ("idle", 0), ("p", 2), ("q", 2)] {
        let pod = world.pods.iter_mut().find(|pod| pod.metadata.name.as_deref() == Some(name)).unwrap();
        label(pod, cpus);
    }
    let fit = |question: &FitQuestion<'_>| cpu_fit(&world, question);
    let ask = |harm: Harm| {
        world.with_preemption(|preemption| {
            let answer = preemption.with_harm(harm).with_fit(&fit).make_room(world.member("p"), Budget::default());
            match answer.unwrap() {
                PreemptionAnswer::Room(room) => room,
                PreemptionAnswer::NoRoom(reason) => panic!("{harm:?}: {reason:?}"),
            }
        })
    };
    // A device is free, CPUs are not: a pod without devices goes.
    for harm in [Harm::Kube, Harm::KubeExact, Harm::Cost] {
        let room = ask(harm);
        assert_eq!((names(&room), claim_names(&room.freed)), (vec!["busy"], Vec::new()), "{harm:?}");
        let proof = if harm == Harm::Kube { HarmProof::Greedy } else { HarmProof::LeastByCallersFit };
        assert_eq!(room.proof, proof);
    }
    // Both members need two CPUs: all who have some go.
    let gang = world.gang(&["p", "q"]);
    for harm in [Harm::Kube, Harm::KubeExact, Harm::Cost] {
        let answer = world.with_preemption(|preemption| {
            preemption.with_harm(harm).with_fit(&fit).make_room_for_gang(&gang, Budget::default()).unwrap()
        });
        let PreemptionAnswer::Room(room) = answer else { panic!("{answer:?}") };
        assert_eq!(names(&room), ["busy", "holder"], "{harm:?}");
    }
}

#[test]
fn a_check_in_the_way_is_named() {
    let mut world = world_of_cpus(1).with("v", 0, "n", &["g0"]).with_waiting("p", 100, 2, None);
    label(world.pods.last_mut().unwrap(), 2);
    let asked = RefCell::new(0);
    let fit = |question: &FitQuestion<'_>| {
        *asked.borrow_mut() += 1;
        cpu_fit(&world, question)
    };
    for harm in [Harm::Kube, Harm::KubeExact, Harm::Cost] {
        let answer = world.with_preemption(|preemption| {
            preemption.with_harm(harm).with_fit(&fit).make_room(world.member("p"), Budget::default()).unwrap()
        });
        let by = vec![Blocker::Fit { reason: "Insufficient cpu".to_owned() }];
        assert_eq!(answer, PreemptionAnswer::NoRoom(NoRoom::Blocked { by }), "{harm:?}");
    }
    assert!(*asked.borrow() > 0);
}
