//! Exhaustive exploration of small clusters: all orders of a few events, of `PATCHes`, answers and watch events.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use dra_attrs::{Component, Gate, GateSet, Profile};
use nnn::NominationState;

use super::common::{kube_scheduler, safe};
use super::invariants::{check_memory, check_preemption, check_writes};
use super::sim::{Action, Sim, create, create_slow};

/// Actions that may happen at any time, as often as they can.
const BY_ITSELF: [Action; 3] = [Action::Serve, Action::Answer, Action::Watch];

fn digest(sim: &Sim, used: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    (format!("{sim:?}"), used).hash(&mut hasher);
    hasher.finish()
}

/// Plays every order of `events`, each at most once, and checks the invariants at each step. Returns the number of
/// states.
///
/// `at_rest` checks the states in which no write, answer or watch event is pending.
fn explore(start: &Sim, events: &[Action], at_rest: impl Fn(&Sim)) -> usize {
    explore_with(start, events, |before, after, action| {
        check_memory(after);
        check_writes(after, before);
        check_preemption(after, before, action);
        if after.is_settled() {
            at_rest(after);
        }
    })
}

fn explore_with(start: &Sim, events: &[Action], check: impl Fn(&Sim, &Sim, &Action)) -> usize {
    let mut seen = BTreeSet::from([digest(start, 0)]);
    let mut open = vec![(start.clone(), 0_u32)];
    while let Some((sim, used)) = open.pop() {
        let once = (0..).zip(events).filter(|(bit, _)| used & (1 << bit) == 0);
        let next =
            BY_ITSELF.iter().map(|action| (used, action)).chain(once.map(|(bit, event)| (used | (1 << bit), event)));
        for (used, action) in next {
            let mut after = sim.clone();
            after.act(action);
            check(&sim, &after, action);
            after.last = Default::default();
            after.last_evaluation = None;
            if seen.insert(digest(&after, used)) {
                open.push((after, used));
            }
        }
    }
    seen.len()
}

/// Checks that memory equals the API server's status.
fn memory_is_the_status(sim: &Sim) {
    for pod in sim.api.values().filter(|pod| pod.node.is_none()) {
        let uid = &pod.key.uid;
        if !sim.tracker.state(uid).is_assumed() {
            assert_eq!(
                sim.tracker.nominator().nominated_node(uid),
                pod.nnn.as_deref(),
                "{uid} at rest: {:?}",
                sim.tracker.state(uid)
            );
        }
    }
}

#[test]
fn a_pod_with_a_slow_volume() {
    let mut start = Sim::new(safe(), &["m", "n"]);
    start.run(&[create_slow(0, 0, 3)]);
    let events = [
        Action::Cycle(0),
        Action::FailBinding(0),
        Action::Relabel(0),
        Action::Cycle(0),
        Action::Bind(0),
        Action::Delete(0),
    ];
    let states = explore(&start, &events, |sim| {
        memory_is_the_status(sim);
        if let (Some(_), nnn) = (sim.node(0), sim.nnn(0)) {
            assert!(nnn.is_none() || sim.written_late.contains("p0"));
        }
    });
    assert!(states > 5_000, "{states} states");
}

#[test]
fn a_preemptor_and_a_pod_that_is_in_its_way() {
    let mut start = Sim::new(safe(), &["n"]);
    start.run(&[create(9, 0, 4), Action::Cycle(9), Action::Bind(9), create(1, 1, 2), Action::Cycle(1)]);
    assert_eq!(start.nominated(1), Some("n"));
    let events = [
        create(2, 2, 4),
        Action::Cycle(2),
        Action::Relabel(1),
        Action::Cycle(1),
        Action::EndVictims,
        Action::Cycle(2),
        Action::Bind(2),
    ];
    let states = explore(&start, &events, memory_is_the_status);
    assert!(states > 3_000, "{states} states");
}

#[test]
fn a_binding_that_is_told_late() {
    let mut start = Sim::new(safe(), &["n"]);
    start.run(&[create_slow(0, 0, 3), Action::Cycle(0)]);
    let events = [
        Action::BindUntold(0),
        Action::Report,
        Action::Relabel(0),
        Action::FailBinding(0),
        Action::Cycle(0),
        Action::Delete(0),
    ];
    let states = explore(&start, &events, |sim| {
        memory_is_the_status(sim);
        let bound = matches!(sim.state(0), NominationState::Bound { .. });
        assert_eq!(bound, sim.node(0).is_some(), "{:?}", sim.state(0));
    });
    assert!(states > 1_000, "{states} states");
}

#[test]
fn a_restart_at_any_moment() {
    for gates in
        [GateSet::of(Profile::V1_37), GateSet::of(Profile::V1_37).without(Gate::NominatedNodeNameForExpectation)]
    {
        let mut start = Sim::new(safe().with_scheduler(Component::new(Profile::V1_37, gates)), &["m", "n"]);
        start.run(&[create_slow(0, 0, 3), create(1, 0, 3)]);
        let events =
            [Action::Cycle(0), Action::Restart, Action::Cycle(1), Action::Cycle(0), Action::Bind(0), Action::Bind(1)];
        let states = explore(&start, &events, |sim| {
            memory_is_the_status(sim);
            let used = |node: &str| sim.api.values().filter(|pod| pod.node.as_deref() == Some(node)).count();
            assert!(used("m") <= 1 && used("n") <= 1, "overcommitted");
            assert!((0..2).all(|id| sim.state(id) != NominationState::Gone));
        });
        assert!(states > 300, "{states} states, {gates:?}");
    }
}

#[test]
fn upstreams_options_break_what_holds_here() {
    // The same exploration finds the races where they are allowed.
    let mut start = Sim::new(kube_scheduler(), &["n"]);
    start.run(&[create(1, 1, 9), Action::Hint(1, Some("n"))]);
    let lost = std::cell::Cell::new(false);
    explore_with(&start, &[Action::Cycle(1), Action::Relabel(1)], |_, sim, _| {
        let cleared = sim.tracker.nominator().unseen_write("p1") == Some(None);
        lost.set(lost.get() || cleared && sim.nominated(1).is_some());
    });
    assert!(lost.get(), "a nomination that was released came back");
}
