//! Scenarios of upstream's integration tests and of KEP-5278, played by the simulation.

use dra_attrs::{Component, Gate, GateSet, Profile};
use nnn::external::ClearingPolicy;
use nnn::{Behavior, Command, NoPatchReason, NominatingInfo, NominationOptions, NominationState};

use super::common::safe;
use super::sim::{Action, Sim, create, create_slow};

fn options(gates: GateSet) -> NominationOptions {
    NominationOptions::new(Component::new(Profile::V1_37, gates), Behavior::Safe)
}

/// Lists all four combinations of the gates.
fn combinations() -> [GateSet; 4] {
    let on = GateSet::of(Profile::V1_37);
    [
        on,
        on.without(Gate::ClearingNominatedNodeNameAfterBinding),
        on.without(Gate::NominatedNodeNameForExpectation),
        GateSet::NONE,
    ]
}

/// Returns the reason of a cycle that wrote nothing.
fn reason(sim: &Sim) -> Option<NoPatchReason> {
    sim.last.commands.iter().find_map(|command| match command {
        Command::None { reason, .. } => Some(*reason),
        _ => None,
    })
}

#[test]
fn nnn_is_put_before_pre_bind_and_not_without_work() {
    for gates in combinations() {
        let mut sim = Sim::new(options(gates), &["n"]);
        sim.run(&[create_slow(0, 0, 1), Action::Cycle(0)]);
        let announced = gates.has(Gate::NominatedNodeNameForExpectation).then_some("n");
        assert_eq!(sim.nnn(0), announced, "{gates:?}");
        sim.run(&[create(1, 0, 1), Action::Cycle(1)]);
        assert_eq!((sim.nnn(1), sim.state(1).is_assumed()), (None, true));
    }
}

#[test]
fn all_four_combinations_of_the_gates() {
    // req: 5278-GATE-1, 5278-SKEW-1, 5278-SET-8
    // The value from before the binding cycle is m, the node that was chosen is n.
    let visible = [(Some("n"), None), (Some("n"), Some("n")), (Some("m"), None), (Some("m"), Some("m"))];
    for (gates, (while_binding, bound)) in combinations().into_iter().zip(visible) {
        let mut sim = Sim::new(options(gates), &["m", "n"]);
        // A hint to another node that is full.
        sim.run(&[create(9, 5, 4), Action::Hint(9, Some("m")), Action::Cycle(9), Action::Bind(9)]);
        assert_eq!(sim.node(9), Some("m"));
        sim.run(&[create_slow(0, 0, 1), Action::Hint(0, Some("m")), Action::Cycle(0)]);
        assert_eq!(sim.nnn(0), while_binding, "{gates:?}, while binding");
        sim.run(&[Action::Bind(0)]);
        assert_eq!((sim.nnn(0), sim.node(0)), (bound, Some("n")), "{gates:?}, bound");
    }
    for gate in [Gate::NominatedNodeNameForExpectation, Gate::ClearingNominatedNodeNameAfterBinding] {
        let defaults = [Profile::V1_34, Profile::V1_35, Profile::V1_37].map(|release| gate.is_default(release));
        assert_eq!(defaults, [false, true, true], "on by default since the beta");
    }
    let by_name = |name: &str| (name == "ClearingNominatedNodeNameAfterBinding").then_some(false);
    assert_eq!(
        GateSet::from_names(Profile::V1_37, by_name),
        GateSet::of(Profile::V1_37).without(Gate::ClearingNominatedNodeNameAfterBinding)
    );
}

#[test]
fn an_old_api_server_leaves_a_stale_nomination_that_changes_nothing() {
    // req: 5278-SKEW-3
    let new = options(GateSet::of(Profile::V1_37));
    let old = options(GateSet::of(Profile::V1_37).without(Gate::ClearingNominatedNodeNameAfterBinding));
    let play = |options| {
        let mut sim = Sim::new(options, &["n"]);
        sim.run(&[create_slow(0, 0, 1), Action::Cycle(0), Action::Hint(0, Some("elsewhere")), Action::Bind(0)]);
        sim.run(&[create(1, 0, 3), Action::Cycle(1), Action::Bind(1)]);
        sim
    };
    let (new, old) = (play(new), play(old));
    assert_eq!((old.nnn(0), new.nnn(0)), (Some("elsewhere"), None));
    assert_eq!((old.node(0), old.node(1)), (new.node(0), new.node(1)), "the same scheduling");
    let mut again = old.tracker.clone();
    let shown = again.handle(nnn::TrackerInput::PodObserved(old.pod(0).unwrap().clone())).unwrap();
    assert!(matches!(shown.notices[..], [nnn::TrackerNotice::StaleNomination { .. }]), "{shown:?}");
}

#[test]
fn basic_preemption_sets_nnn() {
    for gates in combinations() {
        let mut sim = Sim::new(options(gates), &["n"]);
        sim.run(&[create(1, 1, 4), Action::Cycle(1), Action::Bind(1), create(2, 100, 2), Action::Cycle(2)]);
        assert_eq!((sim.nnn(2), sim.nominated(2)), (Some("n"), Some("n")), "{gates:?}");
        // Victims are terminating: the nomination stays.
        sim.run(&[Action::Cycle(2)]);
        assert_eq!(sim.nnn(2), Some("n"));
        sim.run(&[Action::EndVictims, Action::Cycle(2), Action::Bind(2)]);
        let left = (!gates.has(Gate::ClearingNominatedNodeNameAfterBinding)).then_some("n");
        assert_eq!((sim.node(2), sim.nnn(2)), (Some("n"), left), "{gates:?}");
        assert!(sim.tracker.nominator().is_empty());
    }
}

#[test]
fn nnn_is_overwritten_by_preemption() {
    // req: 5278-SET-8
    for gates in combinations() {
        let mut sim = Sim::new(options(gates), &["n1", "n2"]);
        // The hint's node has pods that can't be evicted; the other one has a victim.
        sim.run(&[create(1, 200, 4), Action::Hint(1, Some("n1")), Action::Cycle(1), Action::Bind(1)]);
        sim.run(&[create(2, 1, 3), Action::Cycle(2), Action::Bind(2)]);
        sim.run(&[create(3, 100, 4), Action::Hint(3, Some("n1")), Action::Cycle(3)]);
        assert_eq!((sim.nnn(3), sim.nominated(3)), (Some("n2"), Some("n2")), "{gates:?}");
    }
}

#[test]
fn nnn_is_ignored_and_cleared_on_a_pod_that_fits_nowhere() {
    for gates in combinations() {
        let mut sim = Sim::new(options(gates), &["n"]);
        sim.run(&[create(1, 0, 5), Action::Hint(1, Some("n")), create(2, 0, 3)]);
        sim.run(&[Action::Cycle(2)]);
        assert_eq!(sim.node(2), None, "reserved for its equal");
        sim.run(&[Action::Cycle(1)]);
        assert_eq!((sim.nnn(1), sim.nominated(1)), (None, None));
        sim.run(&[Action::Cycle(2), Action::Bind(2)]);
        assert_eq!(sim.node(2), Some("n"), "{gates:?}");
    }
}

#[test]
fn a_higher_priority_ignores_the_nnn_of_a_lower_one() {
    for gates in combinations() {
        let mut sim = Sim::new(options(gates), &["n"]);
        sim.run(&[create(1, 1, 4), Action::Hint(1, Some("n")), create(2, 2, 4), Action::Cycle(2), Action::Bind(2)]);
        assert_eq!(sim.node(2), Some("n"), "{gates:?}");
        sim.run(&[Action::Cycle(1)]);
        assert_eq!(sim.nnn(1), None);
    }
}

#[test]
fn without_preemption_nnn_is_cleared_by_the_binding() {
    for gates in combinations() {
        let mut sim = Sim::new(options(gates), &["n"]);
        sim.run(&[create(1, 0, 1), Action::Hint(1, Some("n")), Action::Cycle(1), Action::Bind(1)]);
        assert_eq!(sim.nnn(1).is_none(), gates.has(Gate::ClearingNominatedNodeNameAfterBinding), "{gates:?}");
    }
}

#[test]
fn the_members_of_a_group_that_preempts_are_nominated() {
    use nnn::TrackerInput;
    for gates in combinations() {
        let mut sim = Sim::new(options(gates), &["n"]);
        sim.run(&[create(1, 10, 1), create(2, 10, 1), create(3, 10, 1)]);
        for id in 1..4 {
            let queued_pod = sim.pod(id).unwrap().clone();
            let info = NominatingInfo::nominate("n");
            let condition = super::common::unschedulable();
            let output = sim.tracker.handle(TrackerInput::MemberFailed { queued_pod, info, condition }).unwrap();
            assert_eq!(super::common::written(&output), [(super::sim::uid(id).as_str(), Some("n"))]);
        }
        assert_eq!(sim.tracker.nominator().on_node("n").count(), 3, "{gates:?}");
    }
}

#[test]
fn a_pod_binds_on_its_node_after_failed_bindings_and_a_restart() {
    // The nomination has to outlive the failures for that.
    for failures in 0..3 {
        let kept = options(GateSet::of(Profile::V1_37)).with_clearing(ClearingPolicy::Never);
        let mut sim = Sim::new(kept, &["m", "n"]);
        sim.run(&[create(9, 0, 4), Action::Cycle(9), create_slow(0, 0, 3), Action::Cycle(0)]);
        assert_eq!(sim.nnn(0), Some("n"));
        for _ in 0..failures {
            sim.run(&[Action::FailBinding(0)]);
            assert_eq!((sim.nnn(0), sim.nominated(0)), (Some("n"), Some("n")));
            // A peer wants the place meanwhile.
            sim.run(&[create(1, 0, 4), Action::Cycle(1), Action::Cycle(0)]);
        }
        sim.run(&[Action::Delete(9), Action::Restart, Action::Cycle(0), Action::Bind(0)]);
        assert_eq!(sim.node(0), Some("n"), "{failures} failures; m is free as well");
    }
}

#[test]
fn after_a_restart_the_same_node_is_tried_first() {
    // req: 5278-RESUME-1
    let mut sim = Sim::new(options(GateSet::of(Profile::V1_37)), &["m", "n"]);
    sim.run(&[create(9, 0, 4), Action::Cycle(9), create_slow(0, 0, 1), Action::Cycle(0), Action::Delete(9)]);
    assert_eq!(sim.nnn(0), Some("n"));
    sim.run(&[Action::Restart]);
    assert_eq!(sim.state(0), NominationState::NominatedHint { node: "n".to_owned() });
    sim.run(&[Action::Cycle(0)]);
    assert_eq!(sim.state(0), NominationState::AssumedAnnounced { node: "n".to_owned() }, "m would come first");
    assert_eq!(reason(&sim), Some(NoPatchReason::AlreadySet), "and nothing is written again");
}

#[test]
fn after_a_restart_the_node_may_not_fit_any_more() {
    // req: 5278-RESUME-2
    let mut sim = Sim::new(options(GateSet::of(Profile::V1_37)), &["m", "n"]);
    sim.run(&[create_slow(0, 0, 1), Action::Hint(0, Some("n")), Action::Cycle(0), Action::Restart]);
    sim.run(&[Action::RemoveNode("n"), Action::Cycle(0), Action::Bind(0)]);
    assert_eq!((sim.node(0), sim.nnn(0)), (Some("m"), None));
}

#[test]
fn the_rollback_drill_of_the_kep() {
    // req: 5278-SKEW-2, 5278-GATE-2
    let on = options(GateSet::of(Profile::V1_37));
    let off = options(GateSet::of(Profile::V1_37).without(Gate::NominatedNodeNameForExpectation));
    let mut sim = Sim::new(off, &["m", "n"]);
    // 1. upgrade
    sim.restart(on);
    // 2. a pod with a long PreBind; 3. it is announced
    sim.run(&[create(9, 0, 4), Action::Cycle(9), create_slow(1, 0, 1), Action::Cycle(1), Action::Delete(9)]);
    assert_eq!(sim.nnn(1), Some("n"));
    // 4. a scheduler without the gate; 5. the pod is bound to the same node
    sim.restart(off);
    sim.run(&[Action::Cycle(1), Action::Bind(1)]);
    assert_eq!((sim.node(1), sim.nnn(1)), (Some("n"), None));
    // 6. another such pod; 7. it is not announced
    sim.run(&[create_slow(2, 0, 1), Action::Cycle(2)]);
    assert_eq!((sim.nnn(2), reason(&sim)), (None, Some(NoPatchReason::GateOff)));
    // 8. with the gate again; 9. the pod is bound, to any node
    sim.restart(on);
    sim.run(&[Action::Cycle(2)]);
    assert!(sim.nnn(2).is_some(), "the next cycle with work announces again");
    sim.run(&[Action::Bind(2)]);
    assert!(sim.node(2).is_some());
}

#[test]
fn leftovers_under_a_scheduler_without_the_feature() {
    // req: 5278-CLEAR-3, 5278-CLEAR-4
    let old = options(GateSet::of(Profile::V1_37).without(Gate::NominatedNodeNameForExpectation));
    let leftover = |sim: &mut Sim| sim.run(&[create_slow(0, 50, 2), Action::Hint(0, Some("m"))]);
    // Tried first, and it fits.
    let mut sim = Sim::new(old, &["a", "m"]);
    leftover(&mut sim);
    sim.run(&[Action::Cycle(0), Action::Bind(0)]);
    assert_eq!((sim.node(0), sim.nnn(0)), (Some("m"), None));
    // It fits elsewhere only: the old value is gone.
    let mut sim = Sim::new(old, &["a"]);
    leftover(&mut sim);
    sim.run(&[Action::Cycle(0), Action::Bind(0)]);
    assert_eq!((sim.node(0), sim.nnn(0)), (Some("a"), None));
    // Unschedulable with a preemption elsewhere.
    let mut sim = Sim::new(old, &["a"]);
    sim.run(&[create(1, 0, 4), Action::Cycle(1), Action::Bind(1)]);
    leftover(&mut sim);
    sim.run(&[Action::Cycle(0)]);
    assert_eq!(sim.nnn(0), Some("a"));
    // Unschedulable.
    let mut sim = Sim::new(old, &["a"]);
    sim.run(&[create(1, 99, 4), Action::Cycle(1), Action::Bind(1)]);
    leftover(&mut sim);
    sim.run(&[Action::Cycle(0)]);
    assert_eq!(sim.nnn(0), None);
    // With both gates off, as after the KEP's downgrade, nobody clears it at the binding.
    let mut sim = Sim::new(options(GateSet::NONE), &["a"]);
    leftover(&mut sim);
    sim.run(&[Action::Cycle(0), Action::Bind(0)]);
    assert_eq!((sim.node(0), sim.nnn(0)), (Some("a"), Some("m")));
}

#[test]
fn a_foreign_write_is_told_and_taken_as_a_hint() {
    // req: 5278-READER-2
    let mut sim = Sim::new(options(GateSet::of(Profile::V1_37)), &["m", "n"]);
    sim.run(&[create(0, 0, 1)]);
    sim.act(&Action::Hint(0, Some("n")));
    sim.act(&Action::Watch);
    let [nnn::TrackerNotice::ForeignWrite { writer, node, .. }] = &sim.last.notices[..] else {
        panic!("{:?}", sim.last)
    };
    assert_eq!((writer.as_deref(), node.as_deref()), (Some("somebody"), Some("n")));
    assert_eq!(sim.foreign_writes(), 1);
    sim.run(&[Action::Cycle(0)]);
    assert_eq!(sim.state(0).node(), Some("n"));
    // The scheduler's own writes are not told.
    let mut sim = Sim::new(options(GateSet::of(Profile::V1_37)), &["n"]);
    sim.run(&[create_slow(0, 0, 1)]);
    sim.act(&Action::Cycle(0));
    sim.act(&Action::Serve);
    sim.act(&Action::Watch);
    assert_eq!((sim.nnn(0), sim.foreign_writes()), (Some("n"), 0));
}

#[test]
fn a_node_that_appears_later_goes_to_the_pod_that_was_nominated() {
    // req: 5278-ALT-4, 5278-ALT-2
    let external = options(GateSet::of(Profile::V1_37)).with_clearing(ClearingPolicy::Never);
    let mut sim = Sim::new(external, &["full"]);
    sim.run(&[create(9, 9, 4), Action::Cycle(9), Action::Bind(9)]);
    sim.run(&[create(1, 0, 4), Action::Hint(1, Some("new")), create(2, 0, 4), create(3, 1, 4)]);
    sim.run(&[Action::Cycle(1), Action::Cycle(2)]);
    assert_eq!((sim.nnn(1), sim.nominated(1)), (Some("new"), Some("new")), "kept though the node is not there");
    sim.run(&[Action::AddNode("new"), Action::Cycle(2)]);
    assert_eq!(sim.state(2), NominationState::Pending, "an equal waits");
    let mut higher = sim.clone();
    sim.run(&[Action::Cycle(1), Action::Bind(1)]);
    assert_eq!(sim.node(1), Some("new"));
    higher.run(&[Action::Cycle(3), Action::Bind(3)]);
    assert_eq!(higher.node(3), Some("new"), "a higher priority takes the place");
}

#[test]
fn the_nine_steps_with_a_node_that_is_not_ready() {
    // req: 5278-ALT-5
    let play = |clearing| {
        let mut sim = Sim::new(options(GateSet::of(Profile::V1_37)).with_clearing(clearing), &[]);
        // 1. unschedulable; 2. and 3. an autoscaler orders a node and writes the hint; 4. tried in vain
        sim.run(&[create(1, 0, 4), Action::Cycle(1), Action::Hint(1, Some("new"))]);
        // 5. and 6. the node appears with a taint: no pod fits yet; 7. to 9. the cycle fails
        sim.run(&[create(9, 9, 4), Action::AddNode("new"), Action::Cycle(9), Action::Cycle(1)]);
        (sim.nnn(1).map(str::to_owned), sim.nominated(1).map(str::to_owned))
    };
    let kept = (Some("new".to_owned()), Some("new".to_owned()));
    assert_eq!(play(ClearingPolicy::Never), kept);
    assert_eq!(play(ClearingPolicy::KeepExternal), kept);
    assert_eq!(play(ClearingPolicy::Always), (None, None), "as shipped");
    assert_eq!(play(ClearingPolicy::KeepIfNodeMissing), (None, None), "which is why the KEP does not stop there");
}

#[test]
fn too_many_hints_overcommit_nothing() {
    // req: 5278-ALT-6
    let external = options(GateSet::of(Profile::V1_37)).with_clearing(ClearingPolicy::Never);
    let mut sim = Sim::new(external, &["n"]);
    for id in 0..4 {
        sim.run(&[create(id, i32::from(id), 2), Action::Hint(id, Some("n"))]);
    }
    for id in (0..4).rev() {
        sim.run(&[Action::Cycle(id), Action::Bind(id)]);
    }
    let bound: Vec<u8> = (0..4).filter(|id| sim.node(*id).is_some()).collect();
    assert_eq!(bound, [2, 3], "two fit");
    assert_eq!((sim.nnn(0), sim.nnn(1)), (Some("n"), Some("n")), "the others keep their hints");
}

#[test]
fn too_many_hints_of_equals_block_each_other_until_one_goes() {
    // req: 5278-ALT-6
    let external = options(GateSet::of(Profile::V1_37)).with_clearing(ClearingPolicy::Never);
    let mut sim = Sim::new(external, &["n"]);
    for id in 0..3 {
        sim.run(&[create(id, 0, 2), Action::Hint(id, Some("n"))]);
    }
    for id in [0, 1, 2, 0, 1, 2] {
        sim.run(&[Action::Cycle(id), Action::Bind(id)]);
    }
    assert!((0..3).all(|id| sim.node(id).is_none() && sim.nnn(id) == Some("n")), "each reserves for itself");
    sim.run(&[Action::Hint(0, None)]);
    for id in [1, 2, 0] {
        sim.run(&[Action::Cycle(id), Action::Bind(id)]);
    }
    assert_eq!([0, 1, 2].map(|id| sim.node(id).is_some()), [false, true, true]);
}

#[test]
fn a_hint_for_a_node_that_never_comes_leaks_nothing() {
    let mut sim = Sim::new(options(GateSet::of(Profile::V1_37)), &[]);
    for id in 0..20 {
        sim.run(&[create(id, 0, 1), Action::Hint(id, Some("never"))]);
    }
    assert_eq!(sim.tracker.nominator().len(), 20);
    for id in 0..20 {
        sim.run(&[Action::Delete(id)]);
    }
    assert!(sim.tracker.nominator().is_empty() && sim.tracker.nominator().nodes().next().is_none());
}

#[test]
fn after_a_restart_the_node_is_full() {
    // req: 5278-RESUME-2
    let mut sim = Sim::new(safe(), &["m", "n"]);
    sim.run(&[create_slow(0, 0, 3), Action::Hint(0, Some("n")), Action::Cycle(0), Action::Restart]);
    assert_eq!(sim.nominated(0), Some("n"));
    // A higher priority takes the place.
    sim.run(&[create(1, 1, 3), Action::Hint(1, Some("n")), Action::Cycle(1), Action::Bind(1)]);
    assert_eq!(sim.node(1), Some("n"));
    sim.run(&[Action::Cycle(0)]);
    assert_eq!(sim.nnn(0), Some("m"), "overwritten at the start of the binding cycle");
    sim.run(&[Action::Bind(0)]);
    assert_eq!((sim.node(0), sim.nnn(0)), (Some("m"), None));
}
