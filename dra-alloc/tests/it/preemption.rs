//! Laws of preemption on random small clusters, with an oracle that counts devices and tries all sets of victims.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::PodIdentity;
use dra_alloc::preemption::{
    BudgetPolicy, Harm, HarmProof, HarmValue, NoRoom, Preemption, PreemptionAnswer, PreemptionView, Room,
};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Component, Inventory, Outcome, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

pub(crate) const NODES: usize = 2;
pub(crate) const PREEMPTOR: i32 = 100;

/// A random cluster, as indexes and numbers.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    /// Devices of each node.
    pub(crate) gpus: [usize; NODES],
    /// Devices that all nodes see.
    pub(crate) nets: usize,
    pub(crate) pods: Vec<OnePod>,
    pub(crate) claims: Vec<OneClaim>,
    /// Disruptions that the budget of each label allows.
    pub(crate) allowed: Vec<i32>,
    pub(crate) wanted_gpus: usize,
    pub(crate) wanted_nets: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct OnePod {
    pub(crate) node: usize,
    pub(crate) priority: i32,
    pub(crate) start: i64,
    pub(crate) is_leaving: bool,
    pub(crate) cost: u64,
    pub(crate) label: usize,
    /// The pod is one of a group, all pods of which go together.
    pub(crate) is_grouped: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct OneClaim {
    /// Pod that uses the claim and says on which node its devices are.
    pub(crate) user: usize,
    /// A further user.
    pub(crate) other: Option<usize>,
    /// Nobody uses the claim.
    pub(crate) is_idle: bool,
    pub(crate) gpus: usize,
    pub(crate) nets: usize,
}

fn a_pod() -> impl Strategy<Value = OnePod> {
    let numbers = (0..NODES, prop_oneof![4 => -1..4_i32, 1 => Just(PREEMPTOR)], 0..3_i64, 0..3_u64, 0..3_usize);
    (numbers, prop::bool::weighted(0.15), prop::bool::weighted(0.2)).prop_map(
        |((node, priority, start, cost, label), is_leaving, is_grouped)| OnePod {
            node,
            priority,
            start,
            is_leaving,
            cost,
            label,
            is_grouped,
        },
    )
}

fn a_claim(pods: usize) -> impl Strategy<Value = OneClaim> {
    let users = (0..pods, prop::option::weighted(0.2, 0..pods), prop::bool::weighted(0.1));
    (users, 0..3_usize, prop::bool::weighted(0.2)).prop_map(|((user, other, is_idle), gpus, net)| OneClaim {
        user,
        other,
        is_idle,
        gpus,
        nets: usize::from(net),
    })
}

pub(crate) fn a_cluster() -> impl Strategy<Value = Cluster> {
    let pods = prop::collection::vec(a_pod(), 1..8);
    let claims = pods.prop_flat_map(|pods| {
        let claims = prop::collection::vec(a_claim(pods.len()), 1..10);
        (Just(pods), claims)
    });
    let numbers = ([2..6_usize, 2..6_usize], 0..3_usize, prop::collection::vec(0..2_i32, 0..3));
    (claims, numbers, 1..5_usize, 0..2_usize).prop_map(
        |((pods, claims), (gpus, nets, allowed), wanted_gpus, wanted_nets)| Cluster {
            gpus,
            nets,
            pods,
            claims,
            allowed,
            wanted_gpus,
            wanted_nets,
        },
    )
}

/// Claims with the devices that they hold: those for which there are enough devices.
pub(crate) fn held(cluster: &Cluster) -> Vec<(usize, Vec<String>)> {
    let (mut gpus, mut nets) = ([0; NODES], 0);
    let mut held = Vec::new();
    for (index, claim) in cluster.claims.iter().enumerate() {
        let node = cluster.pods[claim.user].node;
        let fits = gpus[node] + claim.gpus <= cluster.gpus[node] && nets + claim.nets <= cluster.nets;
        if !fits || claim.gpus + claim.nets == 0 {
            continue;
        }
        let of_node = (gpus[node]..gpus[node] + claim.gpus).map(|gpu| format!("n{node}/g{gpu}"));
        let shared = (nets..nets + claim.nets).map(|net| format!("net/t{net}"));
        held.push((index, of_node.chain(shared).collect()));
        gpus[node] += claim.gpus;
        nets += claim.nets;
    }
    held
}

/// Objects of a cluster.
pub(crate) struct Objects {
    pub(crate) nodes: Vec<Node>,
    pub(crate) slices: Vec<ResourceSlice>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) claims: Vec<ResourceClaim>,
    pub(crate) budgets: Vec<PodDisruptionBudget>,
    pub(crate) groups: Vec<PodGroup>,
    pub(crate) preemptor: Pod,
}

pub(crate) fn requests(gpus: usize, nets: usize) -> Value {
    let request =
        |class: &str, count: usize| json!({"name": class, "exactly": {"deviceClassName": class, "count": count}});
    let all = [("gpu", gpus), ("net", nets)].into_iter().filter(|(_, count)| *count > 0);
    json!({"devices": {"requests": all.map(|(class, count)| request(class, count)).collect::<Vec<_>>()}})
}

fn slice(driver: &str, pool: &str, scope: (&str, Value), devices: Vec<Value>) -> ResourceSlice {
    let mut spec = json!({"driver": driver, "devices": devices,
        "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}});
    spec[scope.0] = scope.1;
    from_value(json!({"metadata": {"name": pool}, "spec": spec})).unwrap()
}

pub(crate) fn objects(cluster: &Cluster) -> Objects {
    let devices = |letter: &str, count: usize| (0..count).map(|n| json!({"name": format!("{letter}{n}")})).collect();
    let own = (0..NODES).map(|node| {
        let name = format!("n{node}");
        slice("gpu", &name, ("nodeName", json!(name)), devices("g", cluster.gpus[node]))
    });
    let shared = slice("net", "net", ("allNodes", json!(true)), devices("t", cluster.nets));
    let pods = cluster.pods.iter().enumerate().map(|(index, pod)| {
        let group = if pod.is_grouped { json!({"podGroupName": "gang"}) } else { Value::Null };
        let leaving = if pod.is_leaving { json!("2026-01-01T00:00:00Z") } else { Value::Null };
        json!({
            "metadata": {"namespace": "ns", "name": format!("p{index}"), "uid": format!("p{index}"),
                "labels": {"of": format!("b{}", pod.label)}, "deletionTimestamp": leaving},
            "spec": {"containers": [], "nodeName": format!("n{}", pod.node), "priority": pod.priority,
                "schedulingGroup": group},
            "status": {"startTime": format!("2026-01-01T00:0{}:00Z", pod.start)},
        })
    });
    let held: BTreeMap<usize, Vec<String>> = held(cluster).into_iter().collect();
    let claims = cluster.claims.iter().enumerate().filter_map(|(index, claim)| {
        let devices = held.get(&index)?.iter().map(|device| {
            let (pool, device) = device.split_once('/').unwrap();
            let driver = if pool == "net" { "net" } else { "gpu" };
            json!({"request": driver, "driver": driver, "pool": pool, "device": device})
        });
        let users = [Some(claim.user), claim.other].into_iter().flatten().filter(|_| !claim.is_idle);
        let users: BTreeSet<usize> = users.collect();
        let reserved =
            users.into_iter().map(|user| json!({"resource": "pods", "name": "p", "uid": format!("p{user}")}));
        Some(json!({
            "metadata": {"namespace": "ns", "name": format!("c{index}"), "uid": format!("c{index}")},
            "spec": requests(claim.gpus, claim.nets),
            "status": {"reservedFor": reserved.collect::<Vec<_>>(),
                "allocation": {"devices": {"results": devices.collect::<Vec<_>>()}}},
        }))
    });
    let wanted = json!({"metadata": {"namespace": "ns", "name": "wanted", "uid": "wanted"},
        "spec": requests(cluster.wanted_gpus, cluster.wanted_nets)});
    let budgets = cluster.allowed.iter().enumerate().map(|(index, allowed)| {
        json!({"metadata": {"namespace": "ns", "name": format!("b{index}")},
            "spec": {"selector": {"matchLabels": {"of": format!("b{index}")}}},
            "status": {"disruptionsAllowed": allowed, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}})
    });
    Objects {
        nodes: (0..NODES).map(|n| from_value(json!({"metadata": {"name": format!("n{n}")}})).unwrap()).collect(),
        slices: own.chain([shared]).collect(),
        pods: pods.map(|pod| from_value(pod).unwrap()).collect(),
        claims: claims.chain([wanted]).map(|claim| from_value(claim).unwrap()).collect(),
        budgets: budgets.map(|budget| from_value(budget).unwrap()).collect(),
        groups: Vec::new(),
        preemptor: from_value(json!({
            "metadata": {"namespace": "ns", "name": "preemptor", "uid": "preemptor"},
            "spec": {"containers": [], "priority": PREEMPTOR,
                "resourceClaims": [{"name": "a", "resourceClaimName": "wanted"}]},
        }))
        .unwrap(),
    }
}

pub(crate) fn classes() -> Classes {
    Classes::new(["gpu", "net"].map(|name| -> DeviceClass {
        let expression = format!("device.driver == '{name}'");
        from_value(json!({"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}))
            .unwrap()
    }))
}

fn asked(cluster: &Cluster, objects: &Objects, harm: Harm, policy: BudgetPolicy) -> PreemptionAnswer {
    let (inventory, classes) = (Inventory::new(objects.slices.clone()), classes());
    let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
    let state = AllocatedState::from_claims(&objects.claims, Component::of(Profile::V1_37)).unwrap();
    let view = PreemptionView::new(&objects.nodes, &objects.pods, &objects.claims)
        .with_budgets(&objects.budgets)
        .with_groups(&objects.groups);
    let cost = |pod: &Pod| cluster.pods[position(pod.metadata.name.as_deref().unwrap())].cost;
    let preemption = Preemption::new(&allocator, &state, &view, Timestamp::UNIX_EPOCH)
        .with_harm(harm)
        .with_budget_policy(policy)
        .with_costs(&cost);
    preemption.make_room(&objects.preemptor, Budget::default()).unwrap()
}

pub(crate) fn position(pod: &str) -> usize {
    pod[1..].parse().unwrap()
}

pub(crate) fn victims(room: &Room) -> BTreeSet<usize> {
    room.victims.iter().map(|victim: &PodIdentity| position(&victim.name)).collect()
}

/// Claims that are free once pods are out, by the oracle's own count.
pub(crate) fn freed(cluster: &Cluster, out: &BTreeSet<usize>) -> BTreeSet<usize> {
    let is_freed =
        |claim: &OneClaim| !claim.is_idle && out.contains(&claim.user) && claim.other.is_none_or(|p| out.contains(&p));
    let claims = cluster.claims.iter().enumerate();
    claims.filter(|(_, claim)| is_freed(claim)).map(|(index, _)| index).collect()
}

/// Tells by counting if the preemptor fits on a node with claims out.
fn fits(cluster: &Cluster, node: usize, gone: &BTreeSet<usize>) -> bool {
    let (mut gpus, mut nets) = (cluster.gpus[node], cluster.nets);
    for (index, devices) in held(cluster).iter().filter(|(index, _)| !gone.contains(index)) {
        let shared = devices.iter().filter(|device| device.starts_with("net/")).count();
        nets -= shared;
        if cluster.pods[cluster.claims[*index].user].node == node {
            gpus -= devices.len() - shared;
        }
    }
    gpus >= cluster.wanted_gpus && nets >= cluster.wanted_nets
}

/// Units in reach of a node: pods on it, pods whose claims hold a device that all nodes see, the group as one.
pub(crate) fn units(cluster: &Cluster, node: usize) -> Vec<BTreeSet<usize>> {
    let held = held(cluster);
    let touches = |pod: usize| {
        held.iter().any(|(index, devices)| {
            let claim = &cluster.claims[*index];
            !claim.is_idle
                && (claim.user == pod || claim.other == Some(pod))
                && devices.iter().any(|device| device.starts_with("net/") || device.starts_with(&format!("n{node}/")))
        })
    };
    let pods = || (0..cluster.pods.len()).map(|pod| (pod, &cluster.pods[pod]));
    let group: BTreeSet<usize> = pods().filter(|(_, pod)| pod.is_grouped).map(|(index, _)| index).collect();
    let alone = pods().filter(|(_, pod)| !pod.is_grouped).map(|(index, _)| BTreeSet::from([index]));
    let may_go = |unit: &BTreeSet<usize>| {
        !unit.is_empty()
            && unit.iter().all(|pod| {
                cluster.pods[*pod].priority < PREEMPTOR && (cluster.pods[*pod].node == node || touches(*pod))
            })
    };
    alone.chain([group]).filter(may_go).collect()
}

/// Harm of a set of pods, by the oracle's own count; `None` if a budget forbids it.
pub(crate) fn value(cluster: &Cluster, out: &BTreeSet<usize>, harm: Harm, policy: BudgetPolicy) -> Option<Vec<i64>> {
    let mut pods: Vec<(usize, &OnePod)> = out.iter().map(|pod| (*pod, &cluster.pods[*pod])).collect();
    pods.retain(|(_, pod)| !pod.is_leaving);
    pods.sort_by_key(|(index, pod)| (-pod.priority, pod.start, format!("p{index}")));
    let mut left = cluster.allowed.clone();
    let mut violations = 0;
    for (_, pod) in &pods {
        if let Some(left) = left.get_mut(pod.label) {
            *left -= 1;
            violations += i64::from(*left < 0);
        }
    }
    match policy {
        BudgetPolicy::Ignore => violations = 0,
        BudgetPolicy::Never if violations > 0 => return None,
        _ => {}
    }
    let count = i64::try_from(pods.len()).unwrap();
    let minute = |pod: &OnePod| "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap().as_second() + 60 * pod.start;
    if harm == Harm::Cost {
        let cost = pods.iter().map(|(_, pod)| i64::try_from(pod.cost).unwrap()).sum();
        return Some(if policy == BudgetPolicy::LastResort {
            vec![violations, cost, count]
        } else {
            vec![cost, count]
        });
    }
    let Some((_, first)) = pods.first() else { return Some(Vec::new()) };
    let sum = pods.iter().map(|(_, pod)| i64::from(pod.priority) + (1 << 31)).sum();
    let start = pods.iter().filter(|(_, pod)| pod.priority == first.priority).map(|(_, pod)| minute(pod)).min();
    Some(vec![violations, i64::from(first.priority), sum, count, -start.unwrap()])
}

pub(crate) fn idle(cluster: &Cluster) -> BTreeSet<usize> {
    (0..cluster.claims.len()).filter(|claim| cluster.claims[*claim].is_idle).collect()
}

/// Least harm of all sets on all nodes, by trying them.
fn least_by_force(cluster: &Cluster, harm: Harm, policy: BudgetPolicy) -> Option<Vec<i64>> {
    let mut least: Option<Vec<i64>> = None;
    for node in 0..NODES {
        let units = units(cluster, node);
        for set in 0..1_u32 << units.len() {
            let out: BTreeSet<usize> =
                (0..units.len()).filter(|unit| set & 1 << unit != 0).flat_map(|unit| &units[unit]).copied().collect();
            let gone = freed(cluster, &out).union(&idle(cluster)).copied().collect();
            if let Some(value) = value(cluster, &out, harm, policy)
                && least.as_ref().is_none_or(|least| value < *least)
                && fits(cluster, node, &gone)
            {
                least = Some(value);
            }
        }
    }
    least
}

pub(crate) fn a_rule() -> impl Strategy<Value = (Harm, BudgetPolicy)> {
    let policy = prop_oneof![Just(BudgetPolicy::LastResort), Just(BudgetPolicy::Never), Just(BudgetPolicy::Ignore)];
    (prop_oneof![Just(Harm::KubeExact), Just(Harm::Cost)], policy)
}

pub(crate) fn any_rule() -> impl Strategy<Value = (Harm, BudgetPolicy)> {
    prop_oneof![a_rule(), Just((Harm::Kube, BudgetPolicy::LastResort))]
}

fn keys(claims: &[ClaimKey]) -> BTreeSet<usize> {
    claims.iter().map(|claim| position(&claim.name)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn without_the_victims_the_allocator_says_yes(cluster in a_cluster(), (harm, policy) in any_rule()) {
        let objects = objects(&cluster);
        let PreemptionAnswer::Room(room) = asked(&cluster, &objects, harm, policy) else { return Ok(()) };
        let gone: BTreeSet<String> = room.freed.iter().chain(&room.idle).map(|claim| claim.name.clone()).collect();
        let left = objects.claims.iter().filter(|claim| !gone.contains(claim.metadata.name.as_deref().unwrap()));
        let state = AllocatedState::from_claims(left, Component::of(Profile::V1_37)).unwrap();
        let (inventory, classes) = (Inventory::new(objects.slices.clone()), classes());
        let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
        let node = objects.nodes.iter().find(|node| node.metadata.name.as_deref() == Some(room.node())).unwrap();
        let wanted = objects.claims.last().unwrap();
        let verdict = allocator.allocate(&state, node, [wanted], Budget::default()).unwrap();
        let Outcome::Allocated(results) = verdict.outcome else { panic!("{:?}", verdict.outcome) };
        prop_assert_eq!(room.results, [(ClaimKey::from_metadata(&wanted.metadata), results[0].clone())]);
    }

    #[test]
    fn no_victim_can_be_left_out(cluster in a_cluster(), (harm, policy) in any_rule()) {
        let objects = objects(&cluster);
        let PreemptionAnswer::Room(room) = asked(&cluster, &objects, harm, policy) else { return Ok(()) };
        let (out, node) = (victims(&room), position(room.node()));
        let of_kube = |out: &BTreeSet<usize>| freed_by_kube(&cluster, node, out);
        let gone = |out: &BTreeSet<usize>| if harm == Harm::Kube { of_kube(out) } else { freed(&cluster, out) };
        let idle = keys(&room.idle);
        let with_idle = |out: &BTreeSet<usize>| gone(out).union(&idle).copied().collect::<BTreeSet<usize>>();
        prop_assert!(fits(&cluster, node, &with_idle(&out)));
        let held: BTreeSet<usize> = held(&cluster).into_iter().map(|(index, _)| index).collect();
        prop_assert_eq!(keys(&room.freed), gone(&out).intersection(&held).copied().collect());
        for unit in out.iter().map(|pod| unit_of(&cluster, harm, *pod)) {
            let less: BTreeSet<usize> = out.difference(&unit).copied().collect();
            prop_assert!(!fits(&cluster, node, &with_idle(&less)), "{unit:?} of {out:?}");
        }
        for claim in &idle {
            let mut less = with_idle(&out);
            less.remove(claim);
            prop_assert!(!fits(&cluster, node, &less), "idle claim {claim}");
        }
    }

    #[test]
    fn the_order_of_objects_does_not_matter(cluster in a_cluster(), (harm, policy) in any_rule()) {
        let mut objects = objects(&cluster);
        let first = asked(&cluster, &objects, harm, policy);
        objects.nodes.reverse();
        objects.pods.reverse();
        objects.claims.reverse();
        objects.budgets.reverse();
        objects.slices.reverse();
        prop_assert_eq!(first, asked(&cluster, &objects, harm, policy));
    }

    #[test]
    fn least_is_the_least_of_all_sets(cluster in a_cluster(), (harm, policy) in a_rule()) {
        let least = least_by_force(&cluster, harm, policy);
        match asked(&cluster, &objects(&cluster), harm, policy) {
            PreemptionAnswer::Room(room) => {
                prop_assert_eq!(&room.proof, &HarmProof::Least);
                prop_assert_eq!(room.value.as_ref().map(HarmValue::numbers), least.as_deref());
                prop_assert_eq!(value(&cluster, &victims(&room), harm, policy), least);
            }
            PreemptionAnswer::NoRoom(_) => prop_assert_eq!(least, None),
        }
    }

    #[test]
    fn a_free_device_more_never_makes_the_answer_dearer(
        cluster in a_cluster(),
        (harm, policy) in a_rule(),
        node in 0..NODES,
    ) {
        let before = asked(&cluster, &objects(&cluster), harm, policy);
        let mut richer = objects(&cluster);
        let held: Vec<ResourceClaim> = richer.claims.clone();
        let mut larger = cluster.clone();
        larger.gpus[node] += 1;
        richer.slices = objects(&larger).slices;
        richer.claims = held;
        let after = asked(&cluster, &richer, harm, policy);
        let cost = |answer: PreemptionAnswer| match answer {
            PreemptionAnswer::Room(room) => Some(room.value.unwrap()),
            PreemptionAnswer::NoRoom(_) => None,
        };
        if let Some(before) = cost(before) {
            prop_assert!(cost(after).is_some_and(|after| after <= before));
        }
    }

    #[test]
    fn kube_exact_is_never_worse_than_kube(cluster in a_cluster()) {
        let objects = objects(&cluster);
        let PreemptionAnswer::Room(kube) = asked(&cluster, &objects, Harm::Kube, BudgetPolicy::LastResort) else {
            return Ok(());
        };
        // A pod of a group goes alone by kube-scheduler's rule, and what is leaving costs nothing.
        prop_assume!(kube.victims.iter().all(|pod| !cluster.pods[position(&pod.name)].is_grouped));
        let exact = asked(&cluster, &objects, Harm::KubeExact, BudgetPolicy::LastResort);
        let PreemptionAnswer::Room(exact) = exact else { panic!("{exact:?}") };
        let of_kube = value(&cluster, &victims(&kube), Harm::KubeExact, BudgetPolicy::LastResort).unwrap();
        prop_assert!(exact.value.unwrap().numbers() <= of_kube.as_slice());
    }

    #[test]
    fn a_no_has_somebody_in_the_way_or_is_hopeless(cluster in a_cluster(), (harm, policy) in any_rule()) {
        let answer = asked(&cluster, &objects(&cluster), harm, policy);
        let all: BTreeSet<usize> = (0..cluster.claims.len()).collect();
        let has_hope = (0..NODES).any(|node| fits(&cluster, node, &all));
        let fits_now = (0..NODES).any(|node| fits(&cluster, node, &BTreeSet::new()));
        match answer {
            PreemptionAnswer::Room(_) => prop_assert!(has_hope),
            PreemptionAnswer::NoRoom(NoRoom::Hopeless) => prop_assert!(!has_hope),
            PreemptionAnswer::NoRoom(NoRoom::Blocked { by }) => {
                prop_assert!(has_hope);
                prop_assert!(fits_now || !by.is_empty());
            }
            PreemptionAnswer::NoRoom(reason) => panic!("{reason:?}"),
        }
    }
}

/// Pods that go together with a pod.
fn unit_of(cluster: &Cluster, harm: Harm, pod: usize) -> BTreeSet<usize> {
    if harm == Harm::Kube || !cluster.pods[pod].is_grouped {
        return BTreeSet::from([pod]);
    }
    (0..cluster.pods.len()).filter(|other| cluster.pods[*other].is_grouped).collect()
}

/// Claims that kube-scheduler's rule frees: of pods without a group, and with devices of the node alone.
fn freed_by_kube(cluster: &Cluster, node: usize, out: &BTreeSet<usize>) -> BTreeSet<usize> {
    let held: BTreeMap<usize, Vec<String>> = held(cluster).into_iter().collect();
    let is_local = |claim: &usize| {
        held.get(claim).is_some_and(|devices| devices.iter().all(|device| device.starts_with(&format!("n{node}/"))))
    };
    let alone: BTreeSet<usize> = out.iter().copied().filter(|pod| !cluster.pods[*pod].is_grouped).collect();
    freed(cluster, &alone).into_iter().filter(is_local).collect()
}
