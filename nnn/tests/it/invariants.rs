//! Invariants over random histories of the simulated cluster and over random values.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::{Component, Gate, GateSet, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use nnn::external::{NominationOwner, NominationWriter, WritePermission};
use nnn::view::{ClusterObjects, ClusterView, ClusterViewOptions};
use nnn::{
    Assumed, Behavior, Command, NodeFit, NominatingInfo, Nomination, NominationOptions, NominationState,
    NominationTracker, Nominator, PodSnapshot, TrackerInput,
};
use proptest::prelude::*;
use serde_json::{from_value, json};

use super::common::{cpu, fails, nominated, pod, safe, version};
use super::sim::{Action, PodSpec, Sim, uid};

const CASES: u32 = 1_000;
const NODES: [&str; 3] = ["a", "b", "c"];

fn config() -> ProptestConfig {
    ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() }
}

fn node() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&NODES[..])
}

fn action() -> impl Strategy<Value = Action> {
    let id = 0..4_u8;
    let spec = (0..4_u8, 0..3_i32, 1..4_i64, any::<bool>());
    prop_oneof![
        4 => spec.prop_map(|(id, priority, cpu, slow)| Action::Create(PodSpec { id, priority, cpu, slow })),
        1 => id.clone().prop_map(Action::Delete),
        2 => id.clone().prop_map(Action::Relabel),
        2 => (id.clone(), prop::option::of(node())).prop_map(|(id, node)| Action::Hint(id, node)),
        8 => id.clone().prop_map(Action::Cycle),
        3 => id.clone().prop_map(Action::Bind),
        2 => id.clone().prop_map(Action::BindUntold),
        3 => Just(Action::Report),
        2 => id.prop_map(Action::FailBinding),
        1 => Just(Action::EndVictims),
        4 => Just(Action::Serve),
        4 => Just(Action::Answer),
        8 => Just(Action::Watch),
        1 => node().prop_map(Action::AddNode),
        1 => node().prop_map(Action::RemoveNode),
        1 => Just(Action::Restart),
    ]
}

fn history() -> impl Strategy<Value = Vec<Action>> {
    prop::collection::vec(action(), 1..45)
}

fn options() -> impl Strategy<Value = NominationOptions> {
    let gates = prop::sample::select(vec![
        GateSet::of(Profile::V1_37),
        GateSet::of(Profile::V1_37).without(Gate::ClearingNominatedNodeNameAfterBinding),
        GateSet::of(Profile::V1_37).without(Gate::NominatedNodeNameForExpectation),
        GateSet::NONE,
    ]);
    (gates, prop::sample::select(vec![Profile::Kep, Profile::V1_37]))
        .prop_map(|(gates, profile)| NominationOptions::new(Component::new(profile, gates), Behavior::Safe))
}

/// Checks the invariants of memory.
pub(crate) fn check_memory(sim: &Sim) {
    let nominator = sim.tracker.nominator();
    let mut seen = BTreeSet::new();
    for node in nominator.nodes() {
        assert!(!node.is_empty(), "a node without a name");
        assert!(nominator.on_node(node).next().is_some(), "an empty list");
    }
    for nomination in nominator.iter() {
        let uid = &nomination.pod.uid;
        assert!(seen.insert(uid.clone()), "{uid} twice");
        assert_eq!(nominator.nominated_node(uid), Some(nomination.node.as_str()));
        assert!(!sim.tracker.state(uid).is_assumed(), "{uid} is nominated and assumed");
        let pod = sim.tracker.pod(uid).unwrap();
        assert!(pod.node.is_none(), "{uid} is bound");
    }
    assert_eq!(seen.len(), nominator.len());
    for pod in sim.tracker.pods() {
        let state = sim.tracker.state(&pod.key.uid);
        if matches!(
            state,
            NominationState::Pending
                | NominationState::NominatedPreempting { .. }
                | NominationState::NominatedHint { .. }
        ) {
            assert_eq!(state.node(), nominator.nominated_node(&pod.key.uid), "state and memory of {}", pod.key.uid);
        }
    }
}

/// Checks the writes of one decision: at most one for each pod, and none that changes nothing.
pub(crate) fn check_writes(sim: &Sim, before: &Sim) {
    let mut patched = BTreeSet::new();
    for command in &sim.last.commands {
        if let Command::PatchConditionAndNnn { nnn: NominatingInfo::Noop, .. } = command {
            assert_eq!(command.written_nnn(), None);
        }
        let Some((pod, node)) = command.written_nnn() else { continue };
        assert!(patched.insert(pod.uid.clone()), "two writes for {pod} in one decision");
        if matches!(command, Command::PatchNnn { .. } | Command::ClearNnn { .. }) {
            assert_ne!(before.tracker.current_nnn(&pod.uid), node, "{pod} is written again");
        }
    }
}

/// Checks that a preemption clears lower nominations to its own node only.
pub(crate) fn check_preemption(sim: &Sim, before: &Sim, action: &Action) {
    let Action::Cycle(id) = action else { return };
    for command in &sim.last.commands {
        let Command::ClearNnn { pod } = command else { continue };
        let preemptor = before.tracker.pod(&uid(*id)).unwrap();
        let lower = before.tracker.pod(&pod.uid).unwrap();
        assert!(lower.priority < preemptor.priority, "{pod} is not lower");
        assert_eq!(before.tracker.nominator().nominated_node(&pod.uid), sim.nominated(*id), "another node");
    }
}

proptest! {
    #![proptest_config(config())]

    /// Checks every invariant after every step.
    #[test]
    fn of_every_step(options in options(), history in history()) {
        let mut sim = Sim::new(options, &NODES[..2]);
        for action in &history {
            let before = sim.clone();
            sim.act(action);
            check_memory(&sim);
            check_writes(&sim, &before);
            check_preemption(&sim, &before, action);
            if matches!(action, Action::AddNode(_) | Action::RemoveNode(_)) {
                sim.settle();
                continue;
            }
            if let Some((with_hint, full)) = sim.last_evaluation.take() {
                prop_assert!(with_hint || !full, "the hint lost a place");
            }
        }
    }

    /// Checks that memory is empty after every pod is gone.
    #[test]
    fn nothing_leaks(options in options(), history in history()) {
        let mut sim = Sim::new(options, &NODES[..1]);
        sim.act_all(&history);
        for id in 0..4 {
            sim.act(&Action::Delete(id));
        }
        sim.settle();
        let nominator = sim.tracker.nominator();
        prop_assert!(nominator.is_empty() && nominator.nodes().next().is_none());
        prop_assert!((0..4).all(|id| nominator.unseen_write(&uid(id)).is_none()));
    }

    /// Checks that node events never change memory.
    #[test]
    fn nodes_do_not_matter_to_memory(
        history in history(),
        events in prop::collection::vec((any::<bool>(), node()), 1..6),
    ) {
        let mut sim = Sim::new(safe(), &NODES[..2]);
        sim.act_all(&history);
        let memory = |tracker: &NominationTracker| tracker.nominator().iter().cloned().collect::<Vec<_>>();
        let before = memory(&sim.tracker);
        for (appears, node) in events {
            let node = node.to_owned();
            let input = if appears { TrackerInput::NodeObserved { node } } else { TrackerInput::NodeDeleted { node } };
            let output = sim.tracker.handle(input).unwrap();
            prop_assert!(output.commands.is_empty());
        }
        prop_assert_eq!(memory(&sim.tracker), before);
    }

    /// Checks that a repeated event changes nothing.
    #[test]
    fn the_same_event_again(history in history(), id in 0..4_u8) {
        let mut sim = Sim::new(safe(), &NODES[..2]);
        sim.act_all(&history);
        sim.settle();
        let places = |tracker: &NominationTracker| {
            tracker.nominator().iter().map(|it| (it.pod.clone(), it.node.clone())).collect::<BTreeMap<_, _>>()
        };
        let before = places(&sim.tracker);
        if let Some(pod) = sim.pod(id).cloned() {
            for pod in [pod.clone(), PodSnapshot::clone(&pod)] {
                let output = sim.tracker.handle(TrackerInput::PodObserved(pod)).unwrap();
                prop_assert!(output.commands.is_empty(), "{:?}", output);
            }
            prop_assert_eq!(places(&sim.tracker), before);
        }
        let gone = TrackerInput::PodDeleted { uid: uid(id) };
        sim.tracker.handle(gone.clone()).unwrap();
        let once = places(&sim.tracker);
        prop_assert!(sim.tracker.handle(gone).unwrap().commands.is_empty());
        prop_assert_eq!(places(&sim.tracker), once);
    }

    /// Checks that an update without a nomination before and after keeps the nomination in memory.
    #[test]
    fn a_lagging_watch_loses_nothing(node in node(), number in 1..9_u64, upstream in any::<bool>()) {
        let options = if upstream { Behavior::KubeScheduler } else { Behavior::Safe };
        let mut nominator = Nominator::new(options);
        let (old, new) = (version(pod("p", 0), number), version(pod("p", 1), number + 1));
        nominator.add(&old, &NominatingInfo::nominate(node), Some(&old));
        nominator.update(&old, &new, Some(&new));
        prop_assert_eq!(nominator.nominated_node("p"), Some(node));
    }

    /// Checks that a bound pod has no nomination with the clearing gate on, unless it was written after the binding.
    #[test]
    fn bound_pods_have_no_nomination(history in history()) {
        let mut sim = Sim::new(safe(), &NODES[..2]);
        let mut hinted: BTreeSet<String> = BTreeSet::new();
        for action in &history {
            if let Action::Hint(id, _) = action
                && sim.node(*id).is_some()
            {
                hinted.insert(uid(*id));
            }
            if let Action::Delete(id) = action {
                hinted.remove(&uid(*id));
            }
            sim.act(action);
            for pod in sim.api.values().filter(|pod| pod.node.is_some()) {
                let late = hinted.contains(&pod.key.uid) || sim.written_late.contains(&pod.key.uid);
                prop_assert!(pod.nnn.is_none() || late, "{:?}", pod);
            }
        }
    }

    /// Checks that a restarted scheduler has the old reservations, except for those that were never written.
    #[test]
    fn a_restart_keeps_reservations(history in history()) {
        let mut sim = Sim::new(safe(), &NODES[..2]);
        sim.act_all(&history);
        sim.settle();
        let expected: BTreeMap<String, String> = sim
            .tracker
            .pods()
            .filter_map(|pod| {
                let state = sim.tracker.state(&pod.key.uid);
                use NominationState::{AssumedAnnounced, NominatedPreempting};
                let reserves = matches!(state, NominatedPreempting { .. } | AssumedAnnounced { .. });
                let written = sim.api.get(&pod.key.uid).and_then(|pod| pod.nnn.clone());
                let is_written = reserves && written.as_deref() == state.node();
                is_written.then(|| (pod.key.uid.clone(), written.unwrap_or_default()))
            })
            .collect();
        sim.act(&Action::Restart);
        for (uid, node) in expected {
            prop_assert_eq!(sim.tracker.nominator().nominated_node(&uid), Some(node.as_str()));
        }
    }

    /// Checks that a view counts every pod once and every claim once.
    #[test]
    fn readers_count_once(history in history(), shared in any::<bool>()) {
        let mut sim = Sim::new(safe(), &NODES[..2]);
        sim.act_all(&history);
        let node = |name| from_value::<Node>(json!({"metadata": {"name": name}})).unwrap();
        let nodes: Vec<Node> = sim.nodes.iter().map(node).collect();
        let pods: Vec<Pod> = sim.api.values().map(|pod| kubernetes(pod, shared)).collect();
        let claims: Vec<ResourceClaim> = ["own", "shared"].into_iter().map(claim).collect();
        let assumed: BTreeMap<String, String> = sim.tracker.pods().filter_map(|pod| {
            let state = sim.tracker.state(&pod.key.uid);
            state.is_assumed().then(|| (pod.key.uid.clone(), state.node().unwrap_or_default().to_owned()))
        }).collect();
        let objects = ClusterObjects::new(&nodes, &pods).with_devices::<ResourceSlice, _>(&[], &claims);
        let inputs = objects.with_assumed(&assumed);
        let view = ClusterView::new(inputs, &ClusterViewOptions::default()).unwrap();
        let counted: Vec<&str> = view.nodes().flat_map(|node| &node.pods).map(|pod| pod.pod.uid.as_str()).collect();
        let once: BTreeSet<&str> = counted.iter().copied().collect();
        prop_assert_eq!(counted.len(), once.len());
        let devices = view.nodes().flat_map(|node| &node.devices);
        let devices: Vec<&str> = devices.map(|device| device.claim.as_str()).collect();
        let once: BTreeSet<&str> = devices.iter().copied().collect();
        prop_assert_eq!(devices.len(), once.len());
        // Whoever is on a node, expected there or assumed counts.
        let expected = sim.api.values().filter(|pod| {
            let is_expected = pod.nnn.is_some() || assumed.contains_key(&pod.key.uid);
            pod.node.is_some() || !pod.deleting && is_expected
        });
        prop_assert_eq!(counted.len(), expected.count());
    }

    /// Compares the two passes with plain filtering.
    #[test]
    fn two_passes(
        free in 0..8_i64,
        wanted in 0..5_i64,
        priority in -2..3_i32,
        promised in prop::collection::vec((-3..4_i32, 0..4_i64), 0..6),
    ) {
        let asking = pod("p", priority).with_requests(cpu(wanted));
        let nominations: Vec<Nomination> = promised.iter().enumerate().map(|(number, (priority, units))| {
            Nomination::new(&pod(&format!("q{number}"), *priority).with_requests(cpu(*units)), "n")
        }).collect();
        let plain = |running: i64| {
            if wanted == 0 || wanted <= free - running { NodeFit::Fits } else { NodeFit::Rejected(()) }
        };
        let promise = |it: &&Nomination| promised[it.pod.uid[1..].parse::<usize>().unwrap()].1;
        let sum = |running: &[&Nomination]| running.iter().map(promise).sum::<i64>();
        let judge = |asking: &PodSnapshot, nominations: &[Nomination]| {
            asking.filter_with_nominated_pods(nominations, |running| plain(sum(running)))
        };
        let verdict = judge(&asking, &nominations);
        // Lower ones and the pod itself change nothing; without any it is plain filtering.
        let counting: Vec<Nomination> = nominations.iter().filter(|it| it.priority >= priority).cloned().collect();
        prop_assert_eq!(&judge(&asking, &counting), &verdict);
        let own = Nomination::new(&asking, "n");
        prop_assert_eq!(&judge(&asking, &[nominations.clone(), vec![own]].concat()), &verdict);
        prop_assert_eq!(judge(&asking, &[]), plain(0));
        // Only the pass with the promised pods matters to resources.
        let all: Vec<&Nomination> = counting.iter().collect();
        prop_assert_eq!(&plain(sum(&all)), &verdict);
        prop_assert_eq!(asking.fits_unreserved_resources(&cpu(free), &nominations), verdict.fits());
        // A higher priority never loses a place.
        if verdict.fits() {
            let higher = asking.with_priority(priority + 1);
            prop_assert!(judge(&higher, &nominations).fits());
        }
    }

    /// Checks that the gate changes nothing but the PATCH at the start of a binding cycle.
    #[test]
    fn what_the_gate_changes(
        nnn in prop::option::of(node()),
        host in node(),
        slow in any::<bool>(),
        waiting in any::<bool>(),
        fails_first in any::<bool>(),
    ) {
        let play = |gates: GateSet| {
            let mut waiting_pod = pod("p", 1);
            waiting_pod.nnn = nnn.map(str::to_owned);
            let mut tracker = NominationTracker::new(safe().with_scheduler(Component::new(Profile::V1_37, gates)));
            let mut commands = Vec::new();
            let mut inputs = vec![TrackerInput::PodObserved(waiting_pod.clone())];
            if fails_first {
                inputs.push(fails(&waiting_pod, nominated("c")));
            }
            let pre_flight = if slow { nnn::PreFlight::Success } else { nnn::PreFlight::Skip };
            let mut assumed = Assumed::new(&waiting_pod.key, host).with_pre_flights(vec![pre_flight]);
            assumed.waits_on_permit = waiting;
            inputs.push(TrackerInput::CycleSucceeded(assumed));
            inputs.push(TrackerInput::Bound { pod: waiting_pod.key });
            for input in inputs {
                commands.extend(tracker.handle(input).unwrap().commands);
            }
            commands.retain(|command| !matches!(command, Command::None { .. }));
            commands
        };
        let off = play(GateSet::of(Profile::V1_37).without(Gate::NominatedNodeNameForExpectation));
        let mut on = play(GateSet::of(Profile::V1_37));
        on.retain(|command| !matches!(command, Command::PatchNnn { .. }));
        prop_assert_eq!(on, off);
    }

    /// Checks that no sequence of writes lets one component change the value of another.
    #[test]
    fn nobody_changes_the_value_of_another(
        writes in prop::collection::vec((0..3_usize, prop::option::of(node()), 0..3_u64), 1..30),
    ) {
        let (mut owner, mut value, mut current) = (NominationOwner::Nobody, None, 0);
        for (writer, node, lag) in writes {
            let name = ["x", "y", "z"][writer].to_owned();
            let read: u64 = current - lag.min(current);
            match NominationWriter::External(name.clone()).may_write(&owner, node, Some(read), Some(current)) {
                WritePermission::Allowed => {
                    let own = NominationOwner::External(name.clone());
                    prop_assert!(owner == NominationOwner::Nobody || owner == own, "{} over {:?}", name, owner);
                    prop_assert_eq!(read, current, "never on an old version");
                    current += 1;
                    value = node;
                    owner = if value.is_some() { NominationOwner::External(name) } else { NominationOwner::Nobody };
                }
                WritePermission::NoOp => prop_assert!(owner == NominationOwner::Nobody && value.is_none()),
                WritePermission::Conflict => prop_assert!(read != current),
                _ => prop_assert!(owner != NominationOwner::Nobody && owner != NominationOwner::External(name)),
            }
        }
    }
}

/// Builds the object that the API server would have.
fn kubernetes(pod: &PodSnapshot, shared: bool) -> Pod {
    let claim = if shared { "shared" } else { "own" };
    from_value(json!({
        "metadata": {"namespace": "default", "name": pod.key.name, "uid": pod.key.uid,
            "deletionTimestamp": pod.deleting.then_some("2026-01-01T00:00:00Z")},
        "spec": {"nodeName": pod.node, "priority": pod.priority, "containers": [],
            "resourceClaims": [{"name": "c", "resourceClaimName": claim}]},
        "status": {"nominatedNodeName": pod.nnn},
    }))
    .unwrap()
}

fn claim(name: &str) -> ResourceClaim {
    from_value(json!({
        "metadata": {"namespace": "default", "name": name, "uid": name}, "spec": {},
        "status": {"allocation": {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": name}]}}},
    }))
    .unwrap()
}
