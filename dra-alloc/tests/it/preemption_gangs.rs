//! Laws of preemption by gangs on random small clusters, with an oracle that counts devices and tries all sets of victims and all
//! places.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use dra_alloc::preemption::{
    BudgetPolicy, Harm, HarmProof, HarmValue, NoRoom, PreemptingGang, PreemptingMember, Preemption, PreemptionAnswer,
    PreemptionView, Room,
};
use dra_alloc::{AllocatedState, Allocator, Budget, Component, Inventory, Profile, allocated_devices};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use crate::preemption::{
    Cluster, NODES, Objects, PREEMPTOR, a_cluster, a_rule, any_rule, classes, freed, held, idle, objects, position,
    requests, units, value, victims,
};

const CASES: u32 = if cfg!(debug_assertions) { 60 } else { 4_000 };

/// A random gang, as numbers.
#[derive(Clone, Debug)]
struct Gang {
    members: Vec<OneMember>,
    /// Devices of a claim that all members use.
    shared_gpus: usize,
    shared_nets: usize,
    quorum: usize,
}

#[derive(Clone, Debug)]
struct OneMember {
    gpus: usize,
    nets: usize,
    /// The only node that the member may use.
    node: Option<usize>,
}

fn a_member() -> impl Strategy<Value = OneMember> {
    let nets = prop::bool::weighted(0.2).prop_map(usize::from);
    (1..4_usize, nets, prop::option::weighted(0.2, 0..NODES)).prop_map(|(gpus, nets, node)| OneMember {
        gpus,
        nets,
        node,
    })
}

fn a_gang() -> impl Strategy<Value = Gang> {
    let members = prop_oneof![
        prop::collection::vec(a_member(), 1..4),
        (a_member(), 2..4_usize).prop_map(|(member, count)| vec![member; count]),
    ];
    let shared = prop_oneof![6 => Just((0, 0)), 1 => Just((1, 0)), 1 => Just((0, 1))];
    (members, shared, prop::bool::weighted(0.2)).prop_map(|(members, (shared_gpus, shared_nets), may_lack)| Gang {
        quorum: if may_lack { 1.max(members.len() - 1) } else { members.len() },
        members,
        shared_gpus,
        shared_nets,
    })
}

/// A cluster with a gang, whose objects need no other preemptor.
fn a_question() -> impl Strategy<Value = (Cluster, Gang)> {
    (a_cluster(), a_gang(), prop::bool::ANY).prop_map(|(cluster, gang, has_nets)| {
        let nets = if has_nets { cluster.nets } else { 0 };
        (Cluster { nets, wanted_gpus: 1, wanted_nets: 0, ..cluster }, gang)
    })
}

/// Pods of a gang, with their claims.
fn gang_objects(gang: &Gang) -> (Vec<Pod>, Vec<ResourceClaim>) {
    let claim = |name: String, spec: Value| -> ResourceClaim {
        from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": name}, "spec": spec})).unwrap()
    };
    let has_shared = gang.shared_gpus + gang.shared_nets > 0;
    let shared = has_shared.then(|| claim("shared".to_owned(), requests(gang.shared_gpus, gang.shared_nets)));
    let own = gang.members.iter().enumerate();
    let own = own.map(|(index, member)| claim(format!("m{index}"), requests(member.gpus, member.nets)));
    let pods = (0..gang.members.len()).map(|index| {
        let names = [Some(format!("m{index}")), has_shared.then(|| "shared".to_owned())];
        let entries: Vec<Value> =
            names.into_iter().flatten().map(|name| json!({"name": name, "resourceClaimName": name})).collect();
        from_value(json!({
            "metadata": {"namespace": "ns", "name": format!("m{index}"), "uid": format!("m{index}")},
            "spec": {"containers": [], "priority": PREEMPTOR, "resourceClaims": entries},
        }))
        .unwrap()
    });
    (pods.collect(), own.chain(shared).collect())
}

fn objects_with(cluster: &Cluster, gang: &Gang) -> (Objects, Vec<Pod>) {
    let mut all = objects(cluster);
    all.slices.retain(|slice| cluster.nets > 0 || slice.spec.driver != "net");
    let (pods, claims) = gang_objects(gang);
    all.claims.extend(claims);
    (all, pods)
}

fn asked(
    cluster: &Cluster,
    gang: &Gang,
    all: &Objects,
    pods: &[Pod],
    harm: Harm,
    policy: BudgetPolicy,
) -> PreemptionAnswer {
    let (inventory, classes) = (Inventory::new(all.slices.clone()), classes());
    let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
    let state = AllocatedState::from_claims(&all.claims, Component::of(Profile::V1_37)).unwrap();
    let view =
        PreemptionView::new(&all.nodes, &all.pods, &all.claims).with_budgets(&all.budgets).with_groups(&all.groups);
    let cost = |pod: &Pod| cluster.pods[position(pod.metadata.name.as_deref().unwrap())].cost;
    let preemption = Preemption::new(&allocator, &state, &view, Timestamp::UNIX_EPOCH)
        .with_harm(harm)
        .with_budget_policy(policy)
        .with_costs(&cost);
    let names = ["n0", "n1"];
    let members = pods.iter().map(|pod| {
        let member = PreemptingMember::new(pod);
        match gang.members[position(pod.metadata.name.as_deref().unwrap())].node {
            Some(node) => member.on_nodes([names[node]]),
            None => member,
        }
    });
    let question = PreemptingGang::new(members).with_quorum(NonZeroUsize::new(gang.quorum).unwrap());
    preemption.make_room_for_gang(&question, Budget::default()).unwrap()
}

fn answer(cluster: &Cluster, gang: &Gang, harm: Harm, policy: BudgetPolicy) -> PreemptionAnswer {
    let (all, pods) = objects_with(cluster, gang);
    asked(cluster, gang, &all, &pods, harm, policy)
}

/// Free devices of each node, and those that all nodes see, with claims out.
fn free(cluster: &Cluster, gone: &BTreeSet<usize>) -> ([usize; NODES], usize) {
    let (mut gpus, mut nets) = (cluster.gpus, cluster.nets);
    for (index, devices) in held(cluster).iter().filter(|(index, _)| !gone.contains(index)) {
        let shared = devices.iter().filter(|device| device.starts_with("net/")).count();
        nets -= shared;
        gpus[cluster.pods[cluster.claims[*index].user].node] -= devices.len() - shared;
    }
    (gpus, nets)
}

/// Tells by trying all places if a gang fits with claims out.
fn fits(cluster: &Cluster, gang: &Gang, gone: &BTreeSet<usize>) -> bool {
    let (gpus, nets) = free(cluster, gone);
    let choices = u32::try_from(NODES + 1).unwrap();
    (0..choices.pow(u32::try_from(gang.members.len()).unwrap())).any(|code| {
        let place =
            |index: usize| usize::try_from(code / choices.pow(u32::try_from(index).unwrap()) % choices).unwrap();
        let placed: Vec<(usize, &OneMember)> = gang.members.iter().enumerate().map(|(i, m)| (place(i), m)).collect();
        let placed: Vec<_> = placed.into_iter().filter(|(node, _)| *node < NODES).collect();
        let used: BTreeSet<usize> = placed.iter().map(|(node, _)| *node).collect();
        let on_node =
            |node: usize| placed.iter().filter(|(at, _)| *at == node).map(|(_, member)| member.gpus).sum::<usize>();
        let shared = |node: usize| if used.contains(&node) { gang.shared_gpus } else { 0 };
        let wanted_nets: usize = placed.iter().map(|(_, member)| member.nets).sum::<usize>() + gang.shared_nets;
        placed.len() >= gang.quorum
            && placed.iter().all(|(node, member)| member.node.is_none_or(|only| only == *node))
            && (gang.shared_gpus == 0 || used.len() == 1)
            && (0..NODES).all(|node| on_node(node) + shared(node) <= gpus[node])
            && wanted_nets <= nets
    })
}

/// Units in reach of the nodes that some member may use.
fn units_in_reach(cluster: &Cluster, gang: &Gang) -> Vec<BTreeSet<usize>> {
    let nodes: BTreeSet<usize> =
        gang.members.iter().flat_map(|member| member.node.map_or(0..NODES, |node| node..node + 1)).collect();
    if nodes.len() == 1 {
        return units(cluster, nodes.into_iter().next().unwrap());
    }
    let pods = || (0..cluster.pods.len()).map(|pod| (pod, &cluster.pods[pod]));
    let group: BTreeSet<usize> = pods().filter(|(_, pod)| pod.is_grouped).map(|(index, _)| index).collect();
    let alone = pods().filter(|(_, pod)| !pod.is_grouped).map(|(index, _)| BTreeSet::from([index]));
    let may_go =
        |unit: &BTreeSet<usize>| !unit.is_empty() && unit.iter().all(|pod| cluster.pods[*pod].priority < PREEMPTOR);
    alone.chain([group]).filter(may_go).collect()
}

/// Least harm of all sets of units, by trying them.
fn least_by_force(cluster: &Cluster, gang: &Gang, harm: Harm, policy: BudgetPolicy) -> Option<Vec<i64>> {
    let units = units_in_reach(cluster, gang);
    let sets = (0..1_u32 << units.len()).filter_map(|set| {
        let out: BTreeSet<usize> =
            (0..units.len()).filter(|unit| set & 1 << unit != 0).flat_map(|unit| &units[unit]).copied().collect();
        let gone: BTreeSet<usize> = freed(cluster, &out).union(&idle(cluster)).copied().collect();
        value(cluster, &out, harm, policy).filter(|_| fits(cluster, gang, &gone))
    });
    sets.min()
}

/// Pods that go together with a pod.
fn unit_of(cluster: &Cluster, pod: usize) -> BTreeSet<usize> {
    if !cluster.pods[pod].is_grouped {
        return BTreeSet::from([pod]);
    }
    (0..cluster.pods.len()).filter(|other| cluster.pods[*other].is_grouped).collect()
}

fn claims_of(room: &Room) -> BTreeSet<usize> {
    room.freed.iter().chain(&room.idle).map(|claim| position(&claim.name)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn least_is_the_least_of_all_sets((cluster, gang) in a_question(), (harm, policy) in a_rule()) {
        let least = least_by_force(&cluster, &gang, harm, policy);
        match answer(&cluster, &gang, harm, policy) {
            PreemptionAnswer::Room(room) => {
                prop_assert_eq!(room.value.as_ref().map(HarmValue::numbers), least.as_deref());
                prop_assert_eq!(value(&cluster, &victims(&room), harm, policy), least);
                match &room.proof {
                    HarmProof::Least => {}
                    HarmProof::Irreducible { bound } => {
                        prop_assert!(cluster.nets > 0);
                        prop_assert!(Some(bound) <= room.value.as_ref());
                    }
                    other => panic!("{other:?}"),
                }
            }
            PreemptionAnswer::NoRoom(reason) => {
                prop_assert_eq!(least, None);
                prop_assert!(cluster.nets > 0 || reason != NoRoom::Open);
            }
        }
    }

    #[test]
    fn results_are_free_and_places_are_the_members(
        (cluster, gang) in a_question(),
        (harm, policy) in any_rule(),
    ) {
        let (all, pods) = objects_with(&cluster, &gang);
        let PreemptionAnswer::Room(room) = asked(&cluster, &gang, &all, &pods, harm, policy) else { return Ok(()) };
        prop_assert!(room.places.len() >= gang.quorum);
        let names: BTreeSet<&str> = room.places.iter().map(|place| place.pod.name.as_str()).collect();
        prop_assert_eq!(names.len(), room.places.len());
        for place in &room.places {
            let only = gang.members[position(&place.pod.name)].node;
            prop_assert!(only.is_none_or(|only| place.node == format!("n{only}")), "{place:?}");
        }
        // Each device once, none of which somebody else holds, and each on the node of its member.
        let gone = claims_of(&room);
        let mut used: BTreeSet<String> =
            held(&cluster).into_iter().filter(|(index, _)| !gone.contains(index)).flat_map(|(_, devices)| devices).collect();
        for (claim, result) in &room.results {
            let status = json!({"allocation": result});
            let claim: ResourceClaim = from_value(json!({"metadata": {"name": claim.name}, "status": status})).unwrap();
            let member = claim.metadata.name.as_deref().filter(|name| *name != "shared").map(position);
            let counts = member.map_or((gang.shared_gpus, gang.shared_nets), |member| {
                (gang.members[member].gpus, gang.members[member].nets)
            });
            let devices = allocated_devices(&claim);
            prop_assert_eq!(devices.len(), counts.0 + counts.1);
            for device in devices {
                prop_assert!(used.insert(format!("{}/{}", device.pool, device.device)), "{device:?} twice");
                let place = member.and_then(|member| room.places.iter().find(|place| place.pod.name == format!("m{member}")));
                prop_assert!(place.is_none_or(|place| device.pool == "net" || device.pool == place.node));
            }
        }
        let has_shared = usize::from(gang.shared_gpus + gang.shared_nets > 0);
        prop_assert_eq!(room.results.len(), room.places.len() + has_shared);
    }

    #[test]
    fn no_victim_can_be_left_out((cluster, gang) in a_question(), (harm, policy) in a_rule()) {
        let PreemptionAnswer::Room(room) = answer(&cluster, &gang, harm, policy) else { return Ok(()) };
        let (out, idle) = (victims(&room), room.idle.iter().map(|claim| position(&claim.name)).collect::<BTreeSet<usize>>());
        let gone = |out: &BTreeSet<usize>| freed(&cluster, out).union(&idle).copied().collect::<BTreeSet<usize>>();
        prop_assert!(fits(&cluster, &gang, &gone(&out)));
        for unit in out.iter().map(|pod| unit_of(&cluster, *pod)) {
            let less: BTreeSet<usize> = out.difference(&unit).copied().collect();
            prop_assert!(!fits(&cluster, &gang, &gone(&less)), "{unit:?} of {out:?}");
        }
        for claim in &idle {
            let mut less = gone(&out);
            less.remove(claim);
            prop_assert!(!fits(&cluster, &gang, &less), "idle claim {claim}");
        }
    }

    #[test]
    fn a_free_device_more_never_makes_the_answer_dearer(
        (cluster, gang) in a_question(),
        (harm, policy) in a_rule(),
        node in 0..NODES,
    ) {
        let (mut all, pods) = objects_with(&cluster, &gang);
        let before = asked(&cluster, &gang, &all, &pods, harm, policy);
        let mut larger = cluster.clone();
        larger.gpus[node] += 1;
        all.slices = objects_with(&larger, &gang).0.slices;
        let after = asked(&cluster, &gang, &all, &pods, harm, policy);
        let cost = |answer: PreemptionAnswer| match answer {
            PreemptionAnswer::Room(room) => room.value,
            PreemptionAnswer::NoRoom(_) => None,
        };
        if let Some(before) = cost(before) {
            prop_assert!(cost(after).is_some_and(|after| after <= before));
        }
    }

    #[test]
    fn the_order_of_objects_does_not_matter((cluster, gang) in a_question(), (harm, policy) in any_rule()) {
        let (mut all, mut pods) = objects_with(&cluster, &gang);
        let first = asked(&cluster, &gang, &all, &pods, harm, policy);
        all.nodes.reverse();
        all.pods.reverse();
        all.claims.reverse();
        all.budgets.reverse();
        all.slices.reverse();
        pods.reverse();
        prop_assert_eq!(first, asked(&cluster, &gang, &all, &pods, harm, policy));
    }

    #[test]
    fn a_no_has_somebody_in_the_way_or_is_hopeless((cluster, gang) in a_question(), (harm, policy) in any_rule()) {
        let all: BTreeSet<usize> = (0..cluster.claims.len()).collect();
        let has_hope = fits(&cluster, &gang, &all);
        match answer(&cluster, &gang, harm, policy) {
            PreemptionAnswer::Room(_) => prop_assert!(has_hope),
            PreemptionAnswer::NoRoom(NoRoom::Hopeless) => prop_assert!(!has_hope),
            PreemptionAnswer::NoRoom(NoRoom::Blocked { by }) => {
                prop_assert!(has_hope);
                prop_assert!(fits(&cluster, &gang, &BTreeSet::new()) || !by.is_empty());
            }
            PreemptionAnswer::NoRoom(NoRoom::Open) => prop_assert!(cluster.nets > 0),
            PreemptionAnswer::NoRoom(reason) => panic!("{reason:?}"),
        }
    }
}
