//! Small clusters with an allocator: an event after which a refused pod fits is one that its refusal waits for.

use std::sync::Arc;

use dra_alloc::fit::{Allocatable, Misfit, PodNeeds};
use dra_alloc::pods::{ClaimTracker, GroupRound, PodCycle, PodOptions, QueueHint};
use dra_alloc::queue::{ClusterEvent, ObjectChange, Refusal, Remedy};
use dra_alloc::{Allocator, Budget, Classes, Inventory, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use nnn::memory::{NodeUsage, PodUsage};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, from_value, json};

use super::objects::at;

/// Objects of a cluster, of which each may be there or not.
#[derive(Clone)]
struct World {
    slices: Vec<ResourceSlice>,
    classes: Vec<DeviceClass>,
    rules: Vec<DeviceTaintRule>,
    claims: Vec<ResourceClaim>,
    nodes: Vec<Node>,
}

/// Answer for the pod of the tests.
enum Answer {
    Fits,
    Refused(Refusal),
}

fn read<T: serde::de::DeserializeOwned>(object: Value) -> T {
    from_value(object).unwrap()
}

/// The pod asks for a claim of its own, and an extended resource if `is_extended`.
fn pod(is_extended: bool) -> Pod {
    let requests = if is_extended { json!({"example.com/x": "1"}) } else { json!({}) };
    read(json!({"metadata": {"namespace": "ns", "name": "p", "uid": "p"}, "spec": {
        "containers": [{"name": "c", "resources": {"requests": requests}}],
        "resourceClaims": [{"name": "mine", "resourceClaimName": "mine"}]}}))
}

fn slice(pick: u8) -> ResourceSlice {
    let (driver, node, generation) = (pick & 1, pick >> 1 & 1, pick >> 2 & 1);
    let devices: Vec<Value> = (0..=(pick >> 3 & 1)).map(|device| json!({"name": device.to_string()})).collect();
    let by_label = json!({"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "zone", "operator": "In", "values": ["a"]}]}]});
    let place = match pick >> 4 & 1 {
        0 => json!({"nodeName": format!("n{node}"), "nodeSelector": null}),
        _ => json!({"nodeName": null, "nodeSelector": by_label}),
    };
    let mut spec = json!({"driver": format!("d{driver}"), "devices": devices, "pool": {"name": format!("p{node}"),
        "generation": generation, "resourceSliceCount": 1 + (pick >> 5 & 1)}});
    spec["nodeName"] = place["nodeName"].clone();
    spec["nodeSelector"] = place["nodeSelector"].clone();
    read(json!({"metadata": {"name": format!("s{}", pick & 7), "uid": format!("s{}", pick & 7)}, "spec": spec}))
}

fn class(pick: u8) -> DeviceClass {
    let selectors = match pick >> 1 & 3 {
        0 => json!([{"cel": {"expression": "device.driver == 'd0'"}}]),
        1 => json!([{"cel": {"expression": "device.driver == 'd1' && true"}}]),
        _ => json!([]),
    };
    let name = (pick >> 3 & 1 == 0).then_some("example.com/x");
    read(json!({"metadata": {"name": format!("c{}", pick & 1)},
        "spec": {"selectors": selectors, "extendedResourceName": name}}))
}

fn rule(pick: u8) -> DeviceTaintRule {
    let driver = (pick & 1 == 0).then(|| format!("d{}", pick >> 1 & 1));
    read(json!({"metadata": {"name": format!("r{}", pick & 1)}, "spec": {"deviceSelector": {"driver": driver},
        "taint": {"key": "k", "effect": if pick >> 2 & 1 == 0 { "NoSchedule" } else { "None" }}}}))
}

/// A claim of the pod or of others, with an allocation or without.
fn claim(pick: u8) -> ResourceClaim {
    let (name, class) = (if pick & 1 == 0 { "mine" } else { "other" }, pick >> 1 & 1);
    let request = |name: &str, class: u8| json!({"name": name, "deviceClassName": format!("c{class}")});
    let device = json!([{"request": "r", "driver": format!("d{}", pick >> 2 & 1), "pool": format!("p{}", pick >> 3 & 1),
        "device": (pick >> 4 & 1).to_string()}]);
    let on_node = json!({"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In",
        "values": [format!("n{}", pick >> 3 & 1)]}]}]});
    let allocation = json!({"devices": {"results": device}, "nodeSelector": on_node});
    let requests = match pick >> 5 & 1 {
        0 => json!([{"name": "r", "exactly": {"deviceClassName": format!("c{class}")}}]),
        _ => json!([{"name": "r", "firstAvailable": [request("a", class), request("b", 1 - class)]}]),
    };
    let status = if pick >> 6 & 1 == 0 { json!(null) } else { json!({"allocation": allocation}) };
    // The requests of a claim never change: others are those of another claim.
    let uid = format!("{name}-{class}-{}", pick >> 5 & 1);
    read(json!({"metadata": {"namespace": "ns", "name": name, "uid": uid},
        "spec": {"devices": {"requests": requests}}, "status": status}))
}

fn node(pick: u8) -> Node {
    let zone = if pick >> 1 & 1 == 0 { "a" } else { "b" };
    let amount = if pick >> 2 & 1 == 0 { json!({}) } else { json!({"example.com/x": "2"}) };
    read(json!({"metadata": {"name": format!("n{}", pick & 1), "labels": {"zone": zone}},
        "status": {"allocatable": amount}}))
}

/// Puts an object into a list, in place of that of its name, and returns that one.
fn put<T>(list: &mut Vec<T>, object: T, name: fn(&T) -> Option<&str>) -> Option<T> {
    let old = list.iter().position(|known| name(known) == name(&object)).map(|position| list.remove(position));
    list.push(object);
    old
}

impl World {
    fn new(picks: &[(u8, u8)]) -> Self {
        let mut world = Self { slices: vec![], classes: vec![], rules: vec![], claims: vec![], nodes: vec![] };
        for &(kind, pick) in picks {
            world.change(kind % 5, pick, |_, _| ());
        }
        world
    }

    fn inventory(&self) -> Inventory {
        Inventory::new(self.slices.iter().cloned()).with_taint_rules(self.rules.iter().cloned())
    }

    /// Adds, changes or deletes an object, and tells the event with the slices that are left.
    fn change<R>(&mut self, kind: u8, pick: u8, tell: impl FnOnce(&ClusterEvent<'_>, &Self) -> R) -> R {
        macro_rules! change {
            ($list:ident, $object:expr, $event:expr) => {{
                let object = $object;
                let old = put(&mut self.$list, object.clone(), |object| object.metadata.name.as_deref());
                let is_deleted = kind >= 5 && old.is_some();
                if is_deleted {
                    self.$list.pop();
                }
                let inventory = self.inventory();
                let change = match &old {
                    Some(old) if is_deleted => ObjectChange::Deleted(old),
                    Some(old) => ObjectChange::Updated { old, new: &object },
                    None => ObjectChange::Added(&object),
                };
                tell(&$event(change, &inventory), self)
            }};
        }
        match kind % 5 {
            0 => change!(slices, slice(pick), |change, inventory| ClusterEvent::Slice { change, inventory }),
            1 => change!(classes, class(pick), |change, _| ClusterEvent::Class(change)),
            2 => change!(rules, rule(pick), |change, _| ClusterEvent::TaintRule(change)),
            3 => change!(claims, claim(pick), |change, _| ClusterEvent::Claim(change)),
            _ => change!(nodes, node(pick), |change, _| ClusterEvent::Node(change)),
        }
    }

    fn answer(&self, pod: &Pod) -> Answer {
        let options = PodOptions::new(Profile::V1_37);
        let mut tracker = ClaimTracker::new(options.scheduler());
        self.claims.iter().for_each(|claim| drop(tracker.observe(claim.clone()).unwrap()));
        let (inventory, classes) = (self.inventory(), Classes::new(self.classes.iter().cloned()));
        let allocator = Allocator::new(options.scheduler(), &inventory, &classes);
        let cycle = match PodCycle::pre_filter(pod, None, &tracker, &classes, &GroupRound::default(), options) {
            Ok(cycle) => cycle.unwrap(),
            Err(reason) => return Answer::Refused(Refusal::blocked(pod, &reason)),
        };
        let mut refusal = Refusal::of_nodes();
        for node in &self.nodes {
            let verdict = cycle.filter(node, &allocator, tracker.state(), at(0), Budget::default());
            match verdict.refusal() {
                Some(reason) => refusal.add_node(&cycle, &allocator, reason),
                None => return Answer::Fits,
            }
        }
        Answer::Refused(refusal)
    }
}

/// Number of clusters that are drawn.
const CASES: usize = 6_000;

#[test]
fn no_event_that_helps_is_missed() {
    let mut runner = TestRunner::deterministic();
    let drawn = (prop::collection::vec(any::<(u8, u8)>(), 4..14), any::<(bool, u8, u8)>());
    let (mut refused, mut woken, mut helped) = (0, 0, 0);
    for _ in 0..CASES {
        let (picks, (is_extended, kind, pick)) = drawn.new_tree(&mut runner).unwrap().current();
        let pod = pod(is_extended);
        let mut world = World::new(&picks);
        let Answer::Refused(refusal) = world.answer(&pod) else { continue };
        let (hint, answer, event) = world
            .change(kind % 10, pick, |event, world| (refusal.hint(event), world.answer(&pod), format!("{event:?}")));
        refused += 1;
        woken += usize::from(hint == QueueHint::Queue);
        if matches!(answer, Answer::Fits) {
            helped += 1;
            assert_eq!(hint, QueueHint::Queue, "{event} does not meet {refusal:?}");
        }
    }
    // Many events help, and of those that do not most wake nobody.
    assert!(helped * 40 > refused, "{helped} of {refused} events helped");
    assert!(woken * 2 < refused, "{woken} of {refused} events woke the pod");
}

/// A refusal that names a driver is not helped by devices of another one: kube-scheduler wakes the pod.
#[test]
fn devices_of_another_driver_wake_nobody() {
    let world =
        World { slices: vec![], classes: vec![class(0)], rules: vec![], claims: vec![claim(0)], nodes: vec![node(0)] };
    let Answer::Refused(refusal) = world.answer(&pod(false)) else { panic!("there is no device") };
    let devices = |driver: &str| Remedy::Devices { driver: driver.to_owned() };
    assert!(refusal.is_helped_by(&devices("d0")) && !refusal.is_helped_by(&devices("d1")));
    assert!(refusal.is_helped_by(&Remedy::NodeAdded) && refusal.is_helped_by(&Remedy::Class { name: "c0".to_owned() }));
    assert!(!refusal.is_helped_by(&Remedy::Room) && !refusal.is_helped_by(&Remedy::NodeTaints));
}

/// A search that was stopped is neither a yes nor a no: the pod comes back by time, without a remedy.
#[test]
fn a_stopped_search_is_repeated_after_a_pause() {
    use dra_alloc::pods::NodeFilterError;
    use dra_alloc::queue::{Place, WhenIdle};
    let mut world = World::new(&[(0, 0), (1, 0), (3, 0), (4, 0)]);
    world.rules.clear();
    let options = PodOptions::new(Profile::V1_37);
    let mut tracker = ClaimTracker::new(options.scheduler());
    tracker.observe(claim(0)).unwrap();
    let (inventory, classes) = (world.inventory(), Classes::new(world.classes.iter().cloned()));
    let allocator = Allocator::new(options.scheduler(), &inventory, &classes);
    let cycle = PodCycle::pre_filter(&pod(false), None, &tracker, &classes, &GroupRound::default(), options).unwrap();
    let cycle = cycle.unwrap();
    let stopped = cycle.filter(&node(0), &allocator, tracker.state(), at(0), Budget::work(0));
    let Some(reason @ NodeFilterError::TimedOut { .. }) = stopped.refusal() else { panic!("{:?}", stopped.refusal()) };
    let mut refusal = Refusal::of_nodes();
    refusal.add_node(&cycle, &allocator, reason);

    let mut queue = super::objects::queue(WhenIdle::TryBackingOff);
    super::objects::show(&mut queue, None, Some(&super::objects::pod("p", 0, None)), at(0));
    let attempt = queue.pop(at(0), |_| Ok(())).unwrap();
    queue.refused(attempt, refusal, at(0));
    assert_eq!(queue.place("p"), Some(Place::BackingOff));
    assert!(queue.pop(at(0), |_| Ok(())).is_none(), "no search goes on without a pause");
    assert!(queue.pop(at(2_000), |_| Ok(())).is_some());
}

/// An attempt that gives back helps those that wait for its claim, its devices or its room.
#[test]
fn an_attempt_tells_what_it_gives_back() {
    let options = PodOptions::new(Profile::V1_37);
    let mut tracker = ClaimTracker::new(options.scheduler());
    tracker.observe(claim(0)).unwrap();
    let (inventory, classes) = (Inventory::new([slice(0)]), Classes::new([class(0)]));
    let allocator = Allocator::new(options.scheduler(), &inventory, &classes);
    let mut round = GroupRound::default();
    let begin = |tracker: &ClaimTracker| {
        PodCycle::pre_filter(&pod(false), None, tracker, &classes, &GroupRound::default(), options)
    };
    let mut cycle = begin(&tracker).unwrap().unwrap();
    assert_eq!(Remedy::given_back(&cycle), [Remedy::Room], "nothing is chosen");
    let verdict = cycle.filter(&node(0), &allocator, tracker.state(), at(0), Budget::default());
    cycle.record("n0", verdict);
    cycle.reserve("n0", &mut tracker, &mut round).unwrap();

    let refusal = Refusal::blocked(&pod(false), &begin(&tracker).unwrap_err());
    let given_back = Remedy::given_back(&cycle);
    drop(cycle.unreserve(&mut tracker));
    assert!(given_back.iter().any(|remedy| refusal.is_helped_by(remedy)), "the claim is free again");
    assert!(given_back.contains(&Remedy::Devices { driver: "d0".to_owned() }) && given_back.contains(&Remedy::Room));
}

/// Returns what keeps a pod off a node where another pod may run.
fn misfits(pod: &Pod, node: &Node, other: Option<&Pod>) -> Vec<Misfit> {
    let mut usage = NodeUsage::default();
    other.iter().for_each(|other| usage.add(&PodUsage::held_by(other).unwrap()));
    let has = Allocatable::new(node).unwrap();
    PodNeeds::new(pod).unwrap().misfits(node, &has, &usage, &Classes::default())
}

#[test]
fn a_change_that_lifts_a_misfit_is_not_missed() {
    let amounts = json!({"cpu": "2", "memory": "4Gi", "pods": "1"});
    let node = |spec: Value, amounts: &Value, labels: Value| -> Node {
        let status = json!({"capacity": amounts, "allocatable": amounts});
        read(json!({"metadata": {"name": "n", "uid": "n", "labels": labels}, "spec": spec, "status": status}))
    };
    let plain = node(json!({}), &amounts, json!({"zone": "a"}));
    let taint = json!([{"key": "a", "effect": "NoSchedule"}]);
    let waits = |node: Option<&str>, cpu: &str, ports: Value| -> Arc<Pod> {
        let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}, "ports": ports});
        let spec = json!({"nodeName": node, "nodeSelector": {"zone": "a"}, "containers": [container]});
        Arc::new(read(json!({"metadata": {"namespace": "ns", "name": cpu, "uid": cpu}, "spec": spec})))
    };
    let pod = waits(None, "1500m", json!([]));
    let nodes = [
        node(json!({"unschedulable": true}), &amounts, json!({"zone": "a"})),
        node(json!({"taints": taint}), &amounts, json!({"zone": "a"})),
        node(json!({}), &amounts, json!({"zone": "b"})),
        node(json!({}), &json!({"cpu": "1", "memory": "4Gi", "pods": "1"}), json!({"zone": "a"})),
        node(json!({}), &json!({"cpu": "2", "memory": "4Gi", "pods": "0"}), json!({"zone": "a"})),
    ];
    let other_driver = Remedy::Devices { driver: "d.example.com".to_owned() };
    for old in &nodes {
        let misfits_before = misfits(&pod, old, None);
        assert!(!misfits_before.is_empty() && misfits(&pod, &plain, None).is_empty(), "{old:?}");
        let mut refusal = Refusal::default();
        misfits_before.iter().for_each(|misfit| refusal.add_misfit(misfit));
        let event = ClusterEvent::Node(ObjectChange::Updated { old, new: &plain });
        assert_eq!(refusal.hint(&event), QueueHint::Queue, "{misfits_before:?}");
        assert!(!refusal.is_helped_by(&other_driver), "{misfits_before:?}");
    }
    let port = json!([{"containerPort": 1, "hostPort": 8080}]);
    let pairs =
        [(pod, waits(Some("n"), "1", json!([]))), (waits(None, "1m", port.clone()), waits(Some("n"), "2m", port))];
    let big = node(json!({}), &json!({"cpu": "2", "memory": "4Gi", "pods": "9"}), json!({"zone": "a"}));
    for (pod, other) in &pairs {
        for node in [&plain, &big] {
            let before = misfits(pod, node, Some(other));
            assert!(!before.is_empty() && misfits(pod, node, None).is_empty(), "{before:?}");
            let mut refusal = Refusal::default();
            before.iter().for_each(|misfit| refusal.add_misfit(misfit));
            let event = ClusterEvent::Pod(ObjectChange::Deleted(other));
            assert_eq!(refusal.hint(&event), QueueHint::Queue, "{before:?}");
        }
    }
}

/// Room that is kept for a nominated pod is free once the pod runs elsewhere.
#[test]
fn a_nomination_that_was_not_used_is_room() {
    let pod = |node: Option<&str>| -> Arc<Pod> {
        Arc::new(read(json!({"metadata": {"namespace": "ns", "name": "p", "uid": "p"},
            "spec": {"containers": [], "nodeName": node}, "status": {"nominatedNodeName": "a"}})))
    };
    let waiting = pod(None);
    let brings = |node: &str| {
        let bound = pod(Some(node));
        ClusterEvent::Pod(ObjectChange::Updated { old: &waiting, new: &bound }).remedies()
    };
    assert_eq!(brings("a"), [Remedy::Neighbors]);
    assert_eq!(brings("b"), [Remedy::Room, Remedy::Neighbors]);
}
