//! Rules of preemption, case by case: which claims are freed, candidates, nominations, what is written, who is in the way; and
//! holds over random histories.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::{ClaimTracker, ClaimWrite};
use dra_alloc::preemption::{
    Blocker, BudgetPolicy, CandidateLimit, DevicePreemption, Harm, HarmProof, Hold, Holds, InMemoryPlace,
    InMemoryStage, NoRoom, Preemption, PreemptionAnswer, PreemptionView, Room,
};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Component, Index, Inventory, Outcome, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceClaimConsumerReference, ResourceSlice};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

use crate::oracle::random::Random;

/// Names of victims; `None` where nobody makes room.
type Victims = Option<&'static [&'static str]>;

/// Objects of a cluster with devices of one driver.
#[derive(Clone, Default)]
pub(crate) struct World {
    pub(crate) nodes: Vec<Node>,
    pub(crate) slices: Vec<ResourceSlice>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) claims: Vec<ResourceClaim>,
    pub(crate) budgets: Vec<PodDisruptionBudget>,
    pub(crate) groups: Vec<PodGroup>,
    pub(crate) in_memory: Vec<(String, String)>,
    pub(crate) releasing: Vec<ClaimKey>,
    pub(crate) unresolvable: Vec<String>,
}

impl World {
    /// A world of nodes with a number of devices each.
    pub(crate) fn of_nodes(nodes: &[(&str, usize)]) -> Self {
        let slice = |name: &str, devices: usize| {
            let devices: Vec<Value> = (0..devices).map(|device| json!({"name": format!("g{device}")})).collect();
            slice(name, json!({"nodeName": name, "devices": devices}))
        };
        Self {
            nodes: nodes.iter().map(|(name, _)| from_value(json!({"metadata": {"name": name}})).unwrap()).collect(),
            slices: nodes.iter().map(|(name, devices)| slice(name, *devices)).collect(),
            ..Self::default()
        }
    }

    /// Adds a pod on a node, with a claim of its own that holds devices of the pool that is named like the node.
    pub(crate) fn with(self, name: &str, priority: i32, node: &str, devices: &[&str]) -> Self {
        let claim = held(&format!("{name}-c"), node, devices, &[name]);
        self.with_pod(name, priority, node, &[&format!("{name}-c")]).with_claim(claim)
    }

    pub(crate) fn with_pod(mut self, name: &str, priority: i32, node: &str, claims: &[&str]) -> Self {
        self.pods.push(pod(name, priority, Some(node), claims));
        self
    }

    pub(crate) fn with_claim(mut self, claim: Value) -> Self {
        self.claims.push(from_value(claim).unwrap());
        self
    }

    /// Adds a pod that waits, with a claim for a number of devices.
    pub(crate) fn with_waiting(mut self, name: &str, priority: i32, devices: usize, nominated: Option<&str>) -> Self {
        let mut waiting = pod(name, priority, None, &[&format!("{name}-c")]);
        waiting.status.get_or_insert_default().nominated_node_name = nominated.map(str::to_owned);
        self.pods.push(waiting);
        self.with_claim(open(&format!("{name}-c"), devices))
    }

    pub(crate) fn ask(&self, preemptor: &str, harm: Harm) -> PreemptionAnswer {
        self.asked(preemptor, |preemption| preemption.with_harm(harm))
    }

    pub(crate) fn room(&self, preemptor: &str, harm: Harm) -> Room {
        match self.ask(preemptor, harm) {
            PreemptionAnswer::Room(room) => *room,
            PreemptionAnswer::NoRoom(reason) => panic!("{reason:?}"),
        }
    }

    pub(crate) fn reason(&self, preemptor: &str, harm: Harm) -> NoRoom {
        match self.ask(preemptor, harm) {
            PreemptionAnswer::NoRoom(reason) => reason,
            PreemptionAnswer::Room(room) => panic!("{room:?}"),
        }
    }

    fn asked(&self, preemptor: &str, rules: impl Fn(Preemption<'_>) -> Preemption<'_>) -> PreemptionAnswer {
        let pod = self.pods.iter().find(|pod| pod.metadata.name.as_deref() == Some(preemptor)).unwrap();
        self.with_preemption(|preemption| rules(preemption).make_room(pod, Budget::default()).unwrap())
    }

    pub(crate) fn with_preemption<T>(&self, ask: impl Fn(Preemption<'_>) -> T) -> T {
        let (inventory, classes) = (Inventory::new(self.slices.clone()), classes());
        let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
        let state = self.state();
        let places =
            self.in_memory.iter().map(|(uid, node)| InMemoryPlace { uid, node, stage: InMemoryStage::PreBind });
        let view = PreemptionView::new(&self.nodes, &self.pods, &self.claims)
            .with_budgets(&self.budgets)
            .with_groups(&self.groups)
            .with_in_memory(places)
            .with_releasing(&self.releasing);
        let preemption = Preemption::new(&allocator, &state, &view, Timestamp::UNIX_EPOCH);
        ask(preemption.with_unresolvable(self.unresolvable.iter().map(String::as_str)))
    }

    pub(crate) fn state(&self) -> AllocatedState {
        AllocatedState::from_claims(&self.claims, Component::of(Profile::V1_37)).unwrap()
    }

    pub(crate) fn holds(&self) -> Holds {
        self.with_preemption(|preemption| Holds::of_cluster(&preemption, Budget::default()).unwrap())
    }
}

pub(crate) fn slice(pool: &str, spec: Value) -> ResourceSlice {
    let mut all = json!({"driver": "gpu", "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}});
    spec.as_object().unwrap().iter().for_each(|(key, value)| all[key] = value.clone());
    from_value(json!({"metadata": {"name": pool}, "spec": all})).unwrap()
}

pub(crate) fn classes() -> Classes {
    let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}})).unwrap();
    Classes::new([class])
}

pub(crate) fn pod(name: &str, priority: i32, node: Option<&str>, claims: &[&str]) -> Pod {
    let entries: Vec<Value> = claims.iter().map(|claim| json!({"name": claim, "resourceClaimName": claim})).collect();
    from_value(json!({
        "metadata": {"namespace": "ns", "name": name, "uid": name},
        "spec": {"containers": [], "nodeName": node, "priority": priority, "resourceClaims": entries},
        "status": {"startTime": "2026-01-01T00:00:00Z"},
    }))
    .unwrap()
}

pub(crate) fn open(name: &str, devices: usize) -> Value {
    json!({"metadata": {"namespace": "ns", "name": name, "uid": name}, "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": "gpu", "count": devices}}]}}})
}

pub(crate) fn held(name: &str, pool: &str, devices: &[&str], users: &[&str]) -> Value {
    let results: Vec<Value> =
        devices.iter().map(|device| json!({"request": "r", "driver": "gpu", "pool": pool, "device": device})).collect();
    let users: Vec<Value> = users.iter().map(|user| json!({"resource": "pods", "name": user, "uid": user})).collect();
    let mut claim = open(name, devices.len());
    claim["status"] = json!({"allocation": {"devices": {"results": results}}, "reservedFor": users});
    claim
}

pub(crate) fn names(room: &Room) -> Vec<&str> {
    room.victims.iter().map(|victim| victim.name.as_str()).collect()
}

pub(crate) fn claim_names(claims: &[ClaimKey]) -> Vec<&str> {
    claims.iter().map(|claim| claim.name.as_str()).collect()
}

/// The search of a pool that all nodes see is long, and is another one once the victim is out.
#[test]
fn a_shared_pool_is_searched_anew_without_the_victim() {
    let rack = |device: usize| if device < 10 { "a".to_owned() } else { format!("r{}", device / 4) };
    let device = |device: usize| json!({"name": format!("g{device}"), "attributes": {"x.example/rack": {"string": rack(device)}}});
    let devices: Vec<Value> = (0..30).map(device).collect();
    let mut world = World::of_nodes(&[("n1", 0), ("n2", 0)]);
    world.slices = vec![slice("s", json!({"allNodes": true, "devices": devices}))];
    let mut claim = open("p-c", 6);
    claim["spec"]["devices"]["constraints"] = json!([{"matchAttribute": "x.example/rack"}]);
    let world = world
        .with_pod("p", 100, "", &["p-c"])
        .with_claim(claim)
        .with_pod("v", 0, "n1", &["v-c"])
        .with_claim(held("v-c", "s", &["g0", "g2", "g4", "g6", "g8"], &["v"]));
    assert_eq!(names(&world.room("p", Harm::KubeExact)), ["v"]);
}

#[test]
fn claims_are_freed_as_the_table_says() {
    let world = || World::of_nodes(&[("n", 1)]).with_waiting("p", 100, 1, None);
    let on = |claim: Value| world().with_pod("v", 0, "n", &["c"]).with_claim(claim);
    let mut done = pod("done", 0, None, &[]);
    done.status.get_or_insert_default().phase = Some("Succeeded".to_owned());
    let mut with_done = on(held("c", "n", &["g0"], &["v", "done"]));
    with_done.pods.push(done);
    let mut own_node_name = on(held("c", "n", &["g0"], &["v"]));
    own_node_name.slices = vec![slice(
        "n",
        json!({"perDeviceNodeSelection": true,
        "devices": [{"name": "g0", "nodeName": "n"}]}),
    )];
    let mut everywhere = own_node_name.clone();
    everywhere.slices = vec![slice("n", json!({"allNodes": true, "devices": [{"name": "g0"}]}))];
    let mut extended = world().with_pod("v", 0, "n", &[]).with_claim(held("c", "n", &["g0"], &["v"]));
    extended.pods[1].status =
        from_value(json!({"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": []}})).unwrap();
    let idle = world().with_claim(held("c", "n", &["g0"], &[]));
    let admin = {
        let mut claim = held("c", "n", &["g0"], &["v"]);
        claim["status"]["allocation"]["devices"]["results"][0]["adminAccess"] = json!(true);
        on(claim).with("w", 50, "n", &["g0"])
    };
    let (v, none): (&'static [&'static str], &'static [&'static str]) = (&["v"], &[]);
    // The victims by kube-scheduler's rule and with the least harm; `None` where nobody makes room.
    let shared = |priority| on(held("c", "n", &["g0"], &["v", "w"])).with_pod("w", priority, "n", &["c"]);
    let table: [(&str, World, [Victims; 2]); 11] = [
        ("reserved for the pod", on(held("c", "n", &["g0"], &["v"])), [Some(v), Some(v)]),
        ("reserved for somebody else, too", on(held("c", "n", &["g0"], &["v", "x"])), [None, Some(v)]),
        ("reserved for a pod that is done", with_done, [None, Some(v)]),
        ("reserved for nobody, named by the pod", on(held("c", "n", &["g0"], &[])), [Some(v), Some(v)]),
        ("reserved for nobody, named by nobody", idle.clone(), [None, Some(none)]),
        ("a device with a node name of its own", own_node_name, [Some(v), Some(v)]),
        ("a device for all nodes", everywhere, [None, Some(v)]),
        ("a claim for extended resources", extended, [Some(v), Some(v)]),
        ("admin access frees nothing", admin, [Some(&["w"]), Some(&["w"])]),
        ("two users", shared(0), [Some(&["v", "w"]), Some(&["v", "w"])]),
        ("an important user", shared(100), [None, None]),
    ];
    for (name, world, [kube, least]) in table {
        for (harm, expected) in [(Harm::Kube, kube), (Harm::KubeExact, least), (Harm::Cost, least)] {
            match (world.ask("p", harm), expected) {
                (PreemptionAnswer::Room(room), Some(victims)) => assert_eq!(names(&room), victims, "{name}, {harm:?}"),
                (PreemptionAnswer::NoRoom(NoRoom::Blocked { .. }), None) => {}
                (answer, _) => panic!("{name}, {harm:?}: {answer:?}"),
            }
        }
    }
    // Of two claims only that is freed whose devices the node's slices have.
    let nowhere = world().with_pod("v", 0, "n", &["c", "d"]).with_claim(held("c", "n", &["g0"], &["v"]));
    let nowhere = nowhere.with_claim(held("d", "n", &["g9"], &["v"]));
    assert_eq!(claim_names(&nowhere.room("p", Harm::Kube).freed), ["c"]);
    let room = idle.room("p", Harm::Cost);
    assert_eq!((claim_names(&room.idle), claim_names(&room.deallocate)), (vec!["c"], vec!["c"]));
}

#[test]
fn groups_go_together_for_the_least_harm_alone() {
    let mut claim = held("c", "n", &["g0"], &[]);
    claim["status"]["reservedFor"] =
        json!([{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang", "uid": "gang"}]);
    let mut world = World::of_nodes(&[("n", 1)]).with_waiting("p", 100, 1, None).with_claim(claim);
    for (name, priority) in [("v", 0), ("w", 1)] {
        let mut member = pod(name, priority, Some("n"), &["c"]);
        member.spec.as_mut().unwrap().scheduling_group = from_value(json!({"podGroupName": "gang"})).unwrap();
        world.pods.push(member);
    }
    world.groups.push(
        from_value(json!({"metadata": {"namespace": "ns", "name": "gang", "uid": "gang"}, "spec": {
            "schedulingPolicy": {"basic": {}}}}))
        .unwrap(),
    );
    let blocked = |by: Blocker| NoRoom::Blocked { by: vec![by] };
    let claim = ClaimKey::new("ns", "c");
    assert_eq!(world.reason("p", Harm::Kube), blocked(Blocker::Group { claim: claim.clone() }));
    let room = world.room("p", Harm::KubeExact);
    assert_eq!((names(&room), claim_names(&room.freed)), (vec!["w", "v"], vec!["c"]));
    // One member is too important: none of them goes.
    world.pods.last_mut().unwrap().spec.as_mut().unwrap().priority = Some(100);
    match world.reason("p", Harm::KubeExact) {
        NoRoom::Blocked { by } => match by.as_slice() {
            [Blocker::Priority { pod, claim: Some(through) }] => {
                assert_eq!((pod.name.as_str(), through), ("w", &claim));
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_is_in_the_way_is_named() {
    let world = |priority: i32| {
        World::of_nodes(&[("n", 2)]).with_waiting("p", 100, 2, None).with("a", priority, "n", &["g0"]).with(
            "b",
            0,
            "n",
            &["g1"],
        )
    };
    match world(100).reason("p", Harm::Kube) {
        NoRoom::Blocked { by } => match by.as_slice() {
            [Blocker::Priority { pod, claim: None }] => assert_eq!(pod.name, "a"),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
    let too_many = World::of_nodes(&[("n", 2)]).with_waiting("p", 100, 3, None).with("a", 0, "n", &["g0"]);
    for harm in [Harm::Kube, Harm::KubeExact, Harm::Cost] {
        assert_eq!(too_many.reason("p", harm), NoRoom::Hopeless);
    }
    let mut budgeted = world(1);
    budgeted.pods[1].metadata.labels = Some([("app".to_owned(), "a".to_owned())].into());
    budgeted.budgets = vec![
        from_value(
            json!({"metadata": {"namespace": "ns", "name": "keep"}, "spec": {"selector": {"matchLabels": {"app": "a"}}},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}}),
        )
        .unwrap(),
    ];
    let by = vec![Blocker::Budget { namespace: "ns".to_owned(), name: "keep".to_owned() }];
    let answer =
        budgeted.asked("p", |preemption| preemption.with_harm(Harm::Cost).with_budget_policy(BudgetPolicy::Never));
    assert_eq!(answer, PreemptionAnswer::NoRoom(NoRoom::Blocked { by }));
    assert_eq!(budgeted.room("p", Harm::Cost).violations, 1);
    let off = world(1).asked("p", |preemption| preemption.with_devices(DevicePreemption::Off));
    assert_eq!(off, PreemptionAnswer::NoRoom(NoRoom::GateOff));
}

#[test]
fn a_limit_keeps_the_first_candidates() {
    let world = World::of_nodes(&[("a", 1), ("b", 1), ("c", 1)])
        .with_waiting("p", 100, 1, None)
        .with("va", 30, "a", &["g0"])
        .with("vb", 20, "b", &["g0"])
        .with("vc", 10, "c", &["g0"]);
    let from = |first: usize, count: usize| {
        let limit = CandidateLimit { first: Index::from(first), count: NonZeroUsize::new(count).unwrap() };
        let PreemptionAnswer::Room(room) = world.asked("p", |preemption| preemption.with_candidates(limit)) else {
            panic!("no room");
        };
        let tried: Vec<String> = room.candidates.iter().map(|candidate| candidate.node.clone()).collect();
        (room.node().to_owned(), tried.concat())
    };
    assert_eq!(from(0, 1), ("a".to_owned(), "a".to_owned()));
    assert_eq!(from(1, 1), ("b".to_owned(), "b".to_owned()));
    assert_eq!(from(5, 2), ("c".to_owned(), "ac".to_owned()));
    assert_eq!(from(0, 9), ("c".to_owned(), "abc".to_owned()));
    let mut lost = world.clone();
    lost.unresolvable = vec!["c".to_owned()];
    assert_eq!(lost.room("p", Harm::Kube).node(), "b");
    assert_eq!(lost.room("p", Harm::KubeExact).node(), "b");
}

#[test]
fn victims_in_memory_leave_a_write() {
    let mut world =
        World::of_nodes(&[("n", 1)]).with_waiting("p", 100, 1, None).with_claim(held("v-c", "n", &["g0"], &["v"]));
    world.pods.push(pod("v", 0, None, &["v-c"]));
    assert!(matches!(world.reason("p", Harm::Kube), NoRoom::Blocked { .. }));
    world.in_memory = vec![("v".to_owned(), "n".to_owned())];
    for harm in [Harm::Kube, Harm::KubeExact] {
        let room = world.room("p", harm);
        assert_eq!((names(&room), claim_names(&room.deallocate)), (vec!["v"], vec!["v-c"]));
        let claim =
            |name: &str| world.claims.iter().find(|claim| claim.metadata.name.as_deref() == Some(name)).unwrap();
        let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
        assert!(room.calls(&tracker).is_empty(), "the claim is not known");
        tracker.observe(claim("v-c").clone()).unwrap();
        let Some(ClaimWrite::UpdateStatus { claim: written }) = room.calls(&tracker).next() else { panic!() };
        let status = written.status.unwrap();
        assert_eq!((status.allocation, status.reserved_for), (None, None));
        let mut shared = claim("v-c").clone();
        shared.metadata.resource_version = Some("9".to_owned());
        let other = ResourceClaimConsumerReference { uid: "w".to_owned(), ..ResourceClaimConsumerReference::default() };
        shared.status.get_or_insert_default().reserved_for.get_or_insert_default().push(other);
        tracker.observe(shared).unwrap();
        assert!(room.calls(&tracker).is_empty(), "somebody else uses it by now");
    }
    let bound = World::of_nodes(&[("n", 1)]).with_waiting("p", 100, 1, None).with("v", 0, "n", &["g0"]);
    assert_eq!(bound.room("p", Harm::Kube).deallocate, []);
}

#[test]
fn nominated_pods_come_first() {
    let world = |priority: i32, wanted: usize| {
        World::of_nodes(&[("n", 4)])
            .with("v", 0, "n", &["g0", "g1", "g2", "g3"])
            .with_waiting("q", priority, wanted, Some("n"))
            .with_waiting("p", 100, 2, None)
    };
    assert_eq!(names(&world(100, 2).room("p", Harm::Kube)), ["v"]);
    assert_eq!(names(&world(99, 4).room("p", Harm::Kube)), ["v"]);
    match world(100, 3).reason("p", Harm::Kube) {
        NoRoom::Blocked { by } => match by.as_slice() {
            [Blocker::Priority { pod, claim: None }] => assert_eq!(pod.name, "q"),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
    // What an earlier preemption frees counts as free beside those it is for.
    let mut gone = World::of_nodes(&[("n", 2)])
        .with_claim(held("gone-c", "n", &["g0", "g1"], &["gone"]))
        .with_waiting("q", 100, 1, Some("n"))
        .with_waiting("p", 100, 1, None);
    gone.releasing = vec![ClaimKey::new("ns", "gone-c")];
    let room = gone.room("p", Harm::KubeExact);
    assert_eq!((names(&room), &room.proof), (Vec::<&str>::new(), &HarmProof::Least));
}

#[test]
fn the_least_harm_sees_what_the_greedy_rule_misses() {
    let world = World::of_nodes(&[("n", 8)])
        .with("big", 5, "n", &["g0", "g1", "g2", "g3"])
        .with("s1", 0, "n", &["g4"])
        .with("s2", 0, "n", &["g5"])
        .with("s3", 0, "n", &["g6"])
        .with("s4", 0, "n", &["g7"])
        .with_waiting("p", 100, 4, None);
    assert_eq!(names(&world.room("p", Harm::Kube)), ["s1", "s2", "s3", "s4"]);
    assert_eq!(names(&world.room("p", Harm::Cost)), ["big"]);
    assert_eq!(world.room("p", Harm::Cost).value.unwrap().numbers(), [0, 1, 1]);
    let stopped = world.with_preemption(|preemption| {
        let pod = world.pods.last().unwrap();
        preemption.with_harm(Harm::Cost).make_room(pod, Budget::work(1_000_000).with_work_per_call(40)).unwrap()
    });
    assert!(matches!(stopped, PreemptionAnswer::NoRoom(NoRoom::Stopped { .. })), "{stopped:?}");
}

#[test]
fn a_selector_that_fails_means_no_device() {
    let mut world = World::of_nodes(&[("n", 2)])
        .with("plain", 0, "n", &["g0"])
        .with("large", 0, "n", &["g1"])
        .with_waiting("p", 100, 1, None);
    let name: Value = json!({"gpu/name": {"string": "L"}});
    world.slices[0].spec.devices.as_mut().unwrap()[1].attributes = from_value(name).unwrap();
    let claim = world.claims.last_mut().unwrap();
    let mut text = serde_json::to_value(&*claim).unwrap();
    text["spec"]["devices"]["requests"][0]["exactly"]["selectors"] =
        json!([{"cel": {"expression": "device.attributes['gpu'].name == 'L'"}}]);
    *claim = from_value(text).unwrap();
    // The device of the other pod has no such attribute: its selector fails once that pod is out.
    for harm in [Harm::Kube, Harm::KubeExact, Harm::Cost] {
        assert_eq!(names(&world.room("p", harm)), ["large"], "{harm:?}");
    }
}

/// Devices of holds, each as `node/device`, with the pods that they wait for.
fn held_devices(holds: &Holds) -> Vec<(String, String)> {
    let of_hold = |hold: &Hold| {
        let results = hold.results.iter().flat_map(|(_, allocation)| allocation.devices.iter());
        let devices = results.flat_map(|devices| devices.results.iter().flatten());
        devices.map(|result| (format!("{}/{}", result.pool, result.device), hold.pod.name.clone())).collect::<Vec<_>>()
    };
    holds.iter().flat_map(of_hold).collect()
}

impl World {
    /// Marks the victims of a room as preempted, and nominates the preemptor.
    fn carry_out(&mut self, preemptor: &str, room: &Room) {
        let victims: BTreeSet<&str> = names(room).into_iter().collect();
        for pod in &mut self.pods {
            let name = pod.metadata.name.clone().unwrap();
            if victims.contains(name.as_str()) {
                pod.metadata.deletion_timestamp = Some(from_value(json!("2026-01-02T00:00:00Z")).unwrap());
                pod.status.get_or_insert_default().conditions = from_value(json!([
                    {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]))
                .unwrap();
            } else if name == preemptor {
                pod.status.get_or_insert_default().nominated_node_name = Some(room.node().to_owned());
            }
        }
    }

    /// Binds a nominated pod if its devices are free, as its scheduler sees them.
    fn bind(&mut self, name: &str) {
        let Some(position) = self.pods.iter().position(|pod| pod.metadata.name.as_deref() == Some(name)) else {
            return;
        };
        let pod = self.pods[position].clone();
        let Some(node) = pod.status.as_ref().and_then(|status| status.nominated_node_name.clone()) else { return };
        let seen = self.holds().beside(&self.state(), &pod, &node);
        let (inventory, classes) = (Inventory::new(self.slices.clone()), classes());
        let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
        let object = self.nodes.iter().find(|other| other.metadata.name.as_ref() == Some(&node)).unwrap();
        let claim = self.claims.iter().position(|claim| claim.metadata.name == Some(format!("{name}-c"))).unwrap();
        let verdict = allocator.allocate(&seen, object, [&self.claims[claim]], Budget::default()).unwrap();
        let Outcome::Allocated(results) = verdict.outcome else { return };
        self.claims[claim].status = from_value(json!({"allocation": results[0],
            "reservedFor": [{"resource": "pods", "name": name, "uid": name}]}))
        .unwrap();
        self.pods[position].spec.as_mut().unwrap().node_name = Some(node);
        self.pods[position].status.as_mut().unwrap().nominated_node_name = None;
    }

    /// Removes the pods that are being deleted, one at random; later its claim is deallocated.
    fn end_somebody(&mut self, random: &mut Random) {
        let leaving = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
        let going: Vec<usize> = (0..self.pods.len()).filter(|pod| leaving(&self.pods[*pod])).collect();
        if !going.is_empty() && random.below(2) == 0 {
            self.pods.remove(going[random.below(going.len())]);
            return;
        }
        let living: BTreeSet<&str> = self.pods.iter().map(|pod| pod.metadata.uid.as_deref().unwrap()).collect();
        let is_left = |claim: &ResourceClaim| {
            let users = claim.status.iter().flat_map(|status| status.reserved_for.iter().flatten());
            claim.status.is_some()
                && users.clone().count() > 0
                && users.into_iter().all(|user| !living.contains(user.uid.as_str()))
        };
        if let Some(claim) = self.claims.iter().position(is_left) {
            self.claims.remove(claim);
        }
    }
}

#[test]
fn holds_are_those_of_a_restart() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut world = World::of_nodes(&[("a", 3), ("b", 3)]);
        for (number, node) in ["a", "a", "b", "b"].into_iter().enumerate() {
            let device = format!("g{}", number % 2);
            world = world.with(&format!("v{number}"), i32::try_from(random.below(3)).unwrap(), node, &[&device]);
        }
        for step in 0..25 {
            let name = format!("p{step}");
            match random.below(3) {
                0 => {
                    let priority = [10, 20][random.below(2)];
                    world = world.with_waiting(&name, priority, 1 + random.below(2), None);
                    if let PreemptionAnswer::Room(room) = world.ask(&name, Harm::Kube) {
                        world.carry_out(&name, &room);
                        let holds = world.holds();
                        let hold = holds.iter().find(|hold| hold.pod.name == name);
                        assert!(hold.is_some_and(|hold| hold.node == room.node()), "seed {seed}, step {step}");
                    }
                }
                1 => world.end_somebody(&mut random),
                _ => {
                    let pods = (0..step).map(|other| format!("p{other}"));
                    pods.for_each(|pod| world.bind(&pod));
                }
            }
            let holds = world.holds();
            check_holds(&world, &holds, &format!("seed {seed}, step {step}"));
            let mut restarted = world.clone();
            restarted.pods.reverse();
            restarted.claims.reverse();
            restarted.nodes.reverse();
            assert_eq!(restarted.holds(), holds, "seed {seed}, step {step}");
        }
    }
}

/// Checks that no device is held twice, none that stays in use is held, and that others don't see what is held as free.
fn check_holds(world: &World, holds: &Holds, at: &str) {
    let held = held_devices(holds);
    let distinct: BTreeSet<&str> = held.iter().map(|(device, _)| device.as_str()).collect();
    assert_eq!(distinct.len(), held.len(), "{at}: {held:?}");
    let staying = world.claims.iter().filter(|claim| {
        let users = claim.status.iter().flat_map(|status| status.reserved_for.iter().flatten());
        users.into_iter().any(|user| {
            let pod = world.pods.iter().find(|pod| pod.metadata.uid.as_deref() == Some(&user.uid));
            pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_none())
        })
    });
    let staying = AllocatedState::from_claims(staying, Component::of(Profile::V1_37)).unwrap();
    for (device, waiting) in &held {
        let (pool, device) = device.split_once('/').unwrap();
        let device = dra_alloc::DeviceId::new("gpu", pool, device);
        assert!(!staying.is_allocated(&device), "{at}: {device} is held for {waiting}");
        let seen = |pod: &Pod| holds.beside(&world.state(), pod, pool).is_allocated(&device);
        assert!(seen(&pod("stranger", 10, None, &[])), "{at}: {device}");
        let own = world.pods.iter().find(|pod| pod.metadata.name.as_ref() == Some(waiting)).unwrap();
        assert!(seen(own) == world.state().is_allocated(&device), "{at}: {device} for {waiting} itself");
    }
    let above = pod("above", 1_000, None, &[]);
    assert_eq!(holds.beside(&world.state(), &above, "a"), world.state(), "{at}");
}
