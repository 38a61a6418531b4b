//! Long histories with ever new names: the memory that is in use follows the objects that are alive, not those that have been.
//!
//! Each history has the same number of objects alive at any time. The memory after all its events is compared with that after a
//! tenth of them. `LONG_HISTORIES=1000000` plays a million events each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::VecDeque;
use std::sync::Arc;

use benches::objects::{GPU, ask, by_name, claim as claim_of, class, node, pool};
use dra_alloc::claim_controller::{ClaimController, ControllerCall, ControllerResponse, SyncStep};
use dra_alloc::pods::{ClaimTracker, GroupRound, PodCycle, PodOptions};
use dra_alloc::queue::{ClusterEvent, ObjectChange, PrioritySort, QueueOptions, Refusal, Remedy, SchedulingQueue};
use dra_alloc::{
    AllocatedState, Allocator, Budget, ClaimId, Classes, DeviceId, Fit, Index, Inventory, InventoryEvent, NodeVerdicts,
    Nodes, Outcome, Profile,
};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{Device, DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use nnn::memory::{BindingAnswer, PodMemory, PodUsage};
use nnn::{Assumed, Behavior, NominationOptions, NominationTracker, PodKey, PodSnapshot, TrackerInput};
use peak_alloc::PeakAlloc;
use poolstatus::{PoolIndex, PoolIndexEvent, Query};
use readiness::{EvaluatorRole, GatedNode, NodeState, Policy, step};
use serde_json::{Value, from_value, json};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Objects of a kind that are alive at a time.
const ALIVE: u64 = 64;

/// Nodes of the histories that place pods.
const NODES: usize = 16;

/// Bytes that tables may keep between their sizes.
const SLACK: usize = 64 << 10;

/// Returns the number of events of each history.
fn events() -> u64 {
    std::env::var("LONG_HISTORIES").ok().and_then(|number| number.parse().ok()).unwrap_or(2_000)
}

/// Plays a history and compares the memory in use at its end with that after a tenth of it.
fn play(name: &str, mut event: impl FnMut(u64)) {
    let events = events();
    // Behind a tenth, and behind some turns of all objects.
    let settled = (events / 10).max(8 * ALIVE);
    (0..settled).for_each(&mut event);
    let before = ALLOCATOR.current_usage();
    (settled..events).for_each(&mut event);
    let after = ALLOCATOR.current_usage();
    println!("{name}: {} KiB after {settled} events, {} KiB after {events}", before >> 10, after >> 10);
    assert!(after <= before + before / 4 + SLACK, "{name}: {before} bytes grew to {after}");
}

/// Returns the number of the object that goes when another one comes.
const fn gone(number: u64) -> Option<u64> {
    number.checked_sub(ALIVE)
}

fn at(second: u64) -> Timestamp {
    Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_secs(i64::try_from(second).unwrap())).unwrap()
}

/// Builds a device whose attributes nobody else has.
fn device(number: u64) -> Device {
    let attributes = json!({"uuid": {"string": format!("gpu-{number}")}, "root": {"string": format!("pci-{number}")}});
    from_value(json!({"name": format!("gpu-{number}"), "attributes": attributes})).unwrap()
}

/// Builds the slice of a node that comes at a time.
fn slice(number: u64) -> Arc<ResourceSlice> {
    let name = format!("host-{number}");
    let devices: Vec<Device> = (0..2 + number % 3).map(|index| device(number * 10 + index)).collect();
    pool(GPU, &name, &devices, &by_name(&name)).remove(0)
}

fn node_of(number: u64) -> Node {
    node(usize::try_from(number).unwrap())
}

/// Builds a claim for a GPU; every third one reads an attribute that differs on all devices.
fn claim(number: u64, version: u64) -> ResourceClaim {
    let selectors =
        json!([{"cel": {"expression": format!("device.attributes['{GPU}'].uuid != 'gpu-{}'", number % 8)}}]);
    let exactly = match number % 3 {
        0 => json!({"deviceClassName": "gpu", "selectors": selectors}),
        _ => json!({"deviceClassName": "gpu"}),
    };
    let [mut claim] = claim_of(&json!([{"name": "r", "exactly": exactly}]), &json!([]));
    claim.metadata.namespace = Some("ns".to_owned());
    claim.metadata.name = Some(format!("claim-{number}"));
    claim.metadata.uid = Some(format!("claim-{number}"));
    claim.metadata.resource_version = Some(version.to_string());
    claim
}

fn pod(number: u64, on: Option<&str>, version: u64) -> Arc<Pod> {
    let pod = json!({
        "metadata": {"namespace": "ns", "name": format!("pod-{number}"), "uid": format!("pod-{number}"),
            "resourceVersion": version.to_string()},
        "spec": {"nodeName": on, "priority": number % 5, "schedulerName": "default-scheduler",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}],
            "resourceClaims": [{"name": "r", "resourceClaimName": format!("claim-{number}")}]},
    });
    Arc::new(from_value(pod).unwrap())
}

fn pod_key(number: u64) -> PodKey {
    let name = format!("pod-{number}");
    PodKey::new("ns", &name, &name)
}

/// A cluster of fixed nodes.
struct Fixed {
    inventory: Inventory,
    classes: Classes,
    nodes: Vec<Node>,
}

impl Fixed {
    fn new() -> Self {
        Self {
            inventory: Inventory::new((0..u64::try_from(NODES).unwrap()).map(slice)),
            classes: Classes::new([class("gpu", GPU)]),
            nodes: (0..NODES).map(node).collect(),
        }
    }

    fn allocator(&self) -> Allocator<'_> {
        Allocator::new(Profile::V1_37, &self.inventory, &self.classes)
    }
}

#[test]
fn memory_follows_the_objects_that_are_alive() {
    index_and_states();
    refusals();
    cycles();
    pods();
    nominations();
    queue();
    controller();
    pools();
    classes();
    gates();
}

/// Nodes with attributes of their own come in place of others, and devices are taken on them: the index, the state, shapes of pools and
/// groups of nodes.
fn index_and_states() {
    let classes = Classes::new([class("gpu", GPU)]);
    let (mut inventory, mut state) = (Inventory::default(), AllocatedState::default());
    let mut nodes = Nodes::new((0..ALIVE).map(node_of));
    let mut held: VecDeque<ResourceClaim> = VecDeque::new();
    play("index, state and nodes", |number| {
        inventory.apply(InventoryEvent::Slice(slice(number))).unwrap();
        nodes.replace(Index::from(usize::try_from(number % ALIVE).unwrap()), node_of(number));
        if let Some(gone) = gone(number) {
            let name = slice(gone).metadata.name.clone().unwrap();
            inventory.apply(InventoryEvent::SliceDeleted { name, uid: None }).unwrap();
            assert!(state.forget(&held.pop_front().unwrap()));
        }
        let claim = claim(number, 1);
        let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
        let verdict = allocator.allocate(&state, &node_of(number), [&claim], Budget::default()).unwrap();
        let Outcome::Allocated(results) = verdict.outcome else { panic!("{number}: {:?}", verdict.outcome) };
        state.assume(&claim, &results[0]).unwrap();
        held.push_back(claim);
        let next = self::claim(number + 1, 1);
        let by_state = nodes.attempt(&allocator, &state, [&next]);
        assert!(by_state.by_state(Budget::default()).any(|answer| answer.fit == Ok(Fit::Yes)));
    });
}

/// Kinds of pods with ever new names are refused by the nodes of a full cluster, which never changes.
fn refusals() {
    let cluster = Fixed::new();
    let mut state = AllocatedState::default();
    for slice in cluster.inventory.slices() {
        for device in slice.spec.devices.iter().flatten() {
            state.hold(&DeviceId::new(&slice.spec.driver, &slice.spec.pool.name, &device.name));
        }
    }
    let mut verdicts = NodeVerdicts::<String>::default();
    play("refusals", |number| {
        let (allocator, claim, kind) = (cluster.allocator(), claim(number, 1), format!("kind-{number}"));
        let attempt = allocator.attempt(&state, [&claim]);
        let mut followed = verdicts.follow(&allocator, &state, &cluster.nodes);
        for node in followed.undecided(&kind, Index::FIRST) {
            assert_eq!(attempt.fits(&cluster.nodes[usize::from(node)], Budget::default()).unwrap(), Fit::No);
            followed.refuse(&kind, node);
        }
        if let Some(gone) = gone(number) {
            verdicts.forget_kind(&format!("kind-{gone}"));
        }
    });
}

/// Pods are placed, and their claims are allocated, shown by the watch, freed and deleted.
fn cycles() {
    let cluster = Fixed::new();
    let options = PodOptions::new(Profile::V1_37);
    let mut tracker = ClaimTracker::new(options.scheduler());
    play("cycles of pods", |number| {
        if let Some(gone) = gone(number) {
            tracker.observe_deleted(&ClaimId::from(&claim(gone, 1)));
        }
        tracker.observe(claim(number, 3 * number + 1)).unwrap();
        let (pod, allocator, mut round) = (pod(number, None, 1), cluster.allocator(), GroupRound::default());
        let begun = PodCycle::pre_filter(&pod, None, &tracker, &cluster.classes, &round, options).unwrap();
        let mut cycle = begun.expect("the pod has a claim");
        // Half of the pods are placed; the others find that all devices of the node are in use.
        let node = &cluster.nodes[usize::try_from(number / 2 % 16).unwrap()];
        let name = node.metadata.name.as_deref().unwrap();
        let verdict = cycle.filter(node, &allocator, tracker.state(), Timestamp::UNIX_EPOCH, Budget::default());
        if verdict.refusal().is_some() {
            return;
        }
        cycle.record(name, verdict);
        cycle.reserve(name, &mut tracker, &mut round).unwrap();
        if number.is_multiple_of(5) {
            drop(cycle.unreserve(&mut tracker));
            return;
        }
        let allocation = cycle.results_on(name).next().cloned();
        let mut stored = claim(number, 3 * number + 2);
        stored.status.get_or_insert_default().allocation = allocation;
        tracker.end_allocation(stored.metadata.uid.as_deref().unwrap());
        tracker.observe(stored).unwrap();
        if number.is_multiple_of(3) {
            tracker.observe(claim(number, 3 * number + 3)).unwrap();
        }
    });
}

/// Pods are seen, nominated, assumed and bound, some by an answer that is lost, and deleted.
fn pods() {
    let mut memory = PodMemory::default();
    play("memory of pods", |number| {
        let (waiting, name) = (pod(number, None, 3 * number + 1), format!("pod-{number}"));
        let node = format!("host-{}", number / 4);
        memory.observe(Arc::clone(&waiting)).unwrap();
        memory.nominate(&name, Some(&node)).unwrap();
        memory.assume(&name, &node, PodUsage::wanted_by(&waiting).unwrap()).unwrap();
        let answer = [BindingAnswer::Stored, BindingAnswer::Lost, BindingAnswer::Refused];
        memory.answer_binding(&name, answer[usize::try_from(number % 3).unwrap()]);
        if number % 3 != 2 {
            memory.observe(pod(number, Some(&node), 3 * number + 2)).unwrap();
        }
        if let Some(gone) = gone(number) {
            assert!(memory.observe_deleted(&pod_key(gone)));
        }
        // As a program that recounts the nodes that have changed.
        assert!(!memory.take_changed_nodes().is_empty());
    });
}

/// Pods are nominated to ever new nodes, fail or are bound, and are deleted; their patches are answered.
fn nominations() {
    let mut tracker = NominationTracker::new(NominationOptions::new(Profile::V1_37, Behavior::Safe));
    let pending = |number: u64| {
        let name = format!("pod-{number}");
        PodSnapshot::pending("ns", &name).with_uid(&name)
    };
    play("nominations", |number| {
        let (pod, node) = (pending(number), format!("host-{number}"));
        let inputs = [
            TrackerInput::NodeObserved { node: node.clone() },
            TrackerInput::PodObserved(pod.clone()),
            TrackerInput::CycleSucceeded(Assumed::new(&pod.key, &node).with_permit_wait()),
        ];
        let answer = |uid: &str| TrackerInput::PatchAnswered { uid: uid.to_owned(), version: Some(number) };
        for input in inputs {
            tracker.handle(input).unwrap();
        }
        tracker.handle(answer(&pod.key.uid)).unwrap();
        if number.is_multiple_of(2) {
            tracker.handle(TrackerInput::Bound { pod: pod.key }).unwrap();
        }
        if let Some(gone) = gone(number) {
            tracker.handle(TrackerInput::PodDeleted { uid: pending(gone).key.uid }).unwrap();
            tracker.handle(TrackerInput::NodeDeleted { node: format!("host-{gone}") }).unwrap();
        }
    });
}

/// Pods come into the queue, are tried, refused with remedies of their own, woken, and deleted.
fn queue() {
    let mut queue = SchedulingQueue::new(PrioritySort, QueueOptions::default());
    play("queue", |number| {
        let now = at(number);
        let coming = pod(number, None, number + 1);
        queue.observe(&ClusterEvent::Pod(ObjectChange::Added(&coming)), now).unwrap();
        let claim = claim(number.saturating_sub(ALIVE / 2), number + 1);
        queue.observe(&ClusterEvent::Claim(ObjectChange::Added(&claim)), now).unwrap();
        while let Some(attempt) = queue.pop(now, |_| Ok(())) {
            let name = attempt.pods()[0].metadata.name.clone().unwrap();
            match number % 3 {
                0 => queue.failed(attempt, now),
                _ => queue.refused(attempt, Refusal::new([Remedy::Class { name }, Remedy::OwnClaims]), now),
            }
        }
        if let Some(gone) = gone(number) {
            queue.observe(&ClusterEvent::Pod(ObjectChange::Deleted(&pod(gone, None, number + 1))), now).unwrap();
        }
    });
}

/// Pods with templates of their own get claims from the controller, end and go.
fn controller() {
    let mut controller = ClaimController::new(PodOptions::new(Profile::V1_37));
    let template = |number: u64| -> ResourceClaimTemplate {
        let spec = json!({"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}});
        let name = format!("template-{number}");
        from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": name}, "spec": spec})).unwrap()
    };
    let pod = |number: u64| -> Arc<Pod> {
        let mut pod = pod(number, None, 1);
        let entry = json!([{"name": "r", "resourceClaimTemplateName": format!("template-{number}")}]);
        Arc::make_mut(&mut pod).spec.as_mut().unwrap().resource_claims = from_value(entry).unwrap();
        pod
    };
    let mut made: VecDeque<ResourceClaim> = VecDeque::new();
    play("controller of claims", |number| {
        controller.observe_template(template(number));
        let keys = controller.observe_pod(pod(number));
        let mut sync = controller.sync(&keys[0]);
        while let SyncStep::Call(call) = sync.next_step() {
            let ControllerCall::CreateClaim { mut claim } = call else {
                sync.answer(ControllerResponse::Done);
                continue;
            };
            (claim.metadata.name, claim.metadata.uid) =
                (Some(format!("made-{number}")), Some(format!("made-{number}")));
            controller.observe_claim((*claim).clone());
            made.push_back((*claim).clone());
            sync.answer(ControllerResponse::Claim(claim));
        }
        if let Some(gone) = gone(number) {
            controller.observe_pod_deleted(&pod(gone));
            controller.observe_template_deleted("ns", &format!("template-{gone}"));
            let claim = made.pop_front().expect("each pod has got a claim");
            controller.observe_claim_deleted("ns", claim.metadata.name.as_deref().unwrap());
        }
    });
}

/// Pools of ever new nodes and drivers' claims are counted.
fn pools() {
    let mut index = PoolIndex::new(Profile::V1_37);
    play("index of pools", |number| {
        index.apply(PoolIndexEvent::Slice(slice(number))).unwrap();
        index.apply(PoolIndexEvent::Claim(Arc::new(claim(number, number + 1)))).unwrap();
        if let Some(gone) = gone(number) {
            let name = slice(gone).metadata.name.clone().unwrap();
            index.apply(PoolIndexEvent::SliceDeleted { name, uid: None }).unwrap();
            let (namespace, name) = ("ns".to_owned(), format!("claim-{gone}"));
            index.apply(PoolIndexEvent::ClaimDeleted { namespace, name, uid: None }).unwrap();
        }
        if number.is_multiple_of(64) {
            assert!(!index.report(&Query::new(GPU), at(number)).pools.is_empty());
        }
    });
}

/// Classes with ever new selectors come and go; a cache keeps compiled selectors within its limit.
fn classes() {
    let (mut classes, cluster) = (Classes::default(), Fixed::new());
    let class = |number: u64| -> DeviceClass {
        let expression = format!("device.driver == '{GPU}' && device.attributes['{GPU}'].uuid != 'none-{number}'");
        let selectors = json!([{"cel": {"expression": expression}}]);
        from_value(json!({"metadata": {"name": format!("class-{number}")}, "spec": {"selectors": selectors}})).unwrap()
    };
    play("classes", |number| {
        classes.set(class(number));
        let allocator = Allocator::new(Profile::V1_37, &cluster.inventory, &classes);
        let [claim] = ask(&format!("class-{number}"), 1);
        assert_eq!(
            allocator.attempt(&AllocatedState::default(), [&claim]).fits(&cluster.nodes[0], Budget::default()),
            Ok(Fit::Yes)
        );
        if let Some(gone) = gone(number) {
            classes.remove(&format!("class-{gone}"), None);
        }
    });
}

/// A node has gates with ever new names, which open, time out and go.
fn gates() {
    let mut state = NodeState::default();
    let policy = Policy::kep();
    play("gates of a node", |number| {
        let gate = |number: u64| {
            let failure = if number.is_multiple_of(2) { "BypassWithWarning" } else { "KeepUnschedulable" };
            json!({"conditionType": format!("gate-{number}.example.com/Ready"), "timeoutSeconds": 60, "failureAction": failure})
        };
        let condition = |number: u64| {
            let status = if number.is_multiple_of(3) { "True" } else { "False" };
            json!({"type": format!("gate-{number}.example.com/Ready"), "status": status})
        };
        let alive = number.saturating_sub(8)..=number;
        let gates: Vec<Value> = alive.clone().map(gate).collect();
        let mut conditions: Vec<Value> = alive.map(condition).collect();
        conditions.push(json!({"type": "Ready", "status": "True"}));
        let node: GatedNode =
            from_value(json!({"spec": {"readinessGates": gates}, "status": {"conditions": conditions}})).unwrap();
        state = step(&policy, EvaluatorRole::Combined, &node.view(), at(number * 10), std::mem::take(&mut state)).state;
    });
}
