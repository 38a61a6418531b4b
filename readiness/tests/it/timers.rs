//! Timers, phases, and the writes at their end.

use k8s_openapi::api::core::v1::{Pod, Taint};
use k8s_openapi::jiff::SignedDuration;
use readiness::{
    BlockReason, ConditionStatus, EffectiveStatus, EvaluatorRole, FailureAction, FilterOptions, GateDecision,
    GatePhase, GatedPodView, NodeChange, NodeReadinessGate, Policy, filter,
};
use serde_json::{from_value, json};

use super::examples::{self, CNI, DATADOG, PATCH};
use super::world::{A, B, Seen, World, at, blocked, gate_a, gate_b, stored, taint, with};

fn bypass_gate(name: &str, seconds: i32) -> NodeReadinessGate {
    NodeReadinessGate::new(name, seconds).with_bypass_warning()
}

/// Returns a world in which gate B is in a phase, at 10 s.
fn in_phase(phase: GatePhase, policy: &Policy) -> World {
    let mut world = World::new(policy.clone(), &[bypass_gate(B, 2)]);
    match phase {
        GatePhase::Waiting => {
            world = world.ready(9);
            world.run(9);
        }
        GatePhase::Established | GatePhase::Regressed => {
            world = world.ready(0);
            world.report(B, "True", "Ok", 0);
            world.run(0);
            if phase == GatePhase::Regressed {
                world.report(B, "False", "Lost", 9);
                world.run(9);
            }
        }
        GatePhase::TimedOut => {
            world = world.ready(0);
            world.run(0);
            world.run(2);
        }
    }
    assert_eq!(world.state.gates[B].phase, phase);
    world
}

fn show(world: &mut World, observation: ConditionStatus, seconds: i64) {
    match observation {
        ConditionStatus::Missing => world.forget(B),
        ConditionStatus::True => world.report(B, "True", "Ok", seconds),
        ConditionStatus::False => world.report(B, "False", "Broken", seconds),
        ConditionStatus::Unknown => world.report(B, "Unknown", "Lost", seconds),
        ConditionStatus::TimeoutExceeded => world.report(B, "Unknown", "TimeoutExceeded", seconds),
        ConditionStatus::NodeRestarted => world.report(B, "Unknown", "NodeRestarted", seconds),
    }
}

#[test]
fn each_cell_of_the_phase_table() {
    use ConditionStatus::{False, Missing, NodeRestarted, TimeoutExceeded, True, Unknown};
    use GatePhase::{Established, Regressed, TimedOut, Waiting};
    // Phase, then (True, False, Unknown, Missing, NodeRestarted, TimeoutExceeded); the second Waiting is at its deadline.
    let columns = [True, False, Unknown, Missing, NodeRestarted, TimeoutExceeded];
    let rows = [
        (Waiting, 10, [Established, Waiting, Waiting, Waiting, Waiting, TimedOut]),
        (Waiting, 11, [Established, TimedOut, TimedOut, TimedOut, TimedOut, TimedOut]),
        (Established, 10, [Established, Regressed, Regressed, Regressed, Waiting, TimedOut]),
        (Regressed, 10, [Established, Regressed, Regressed, Regressed, Waiting, TimedOut]),
        (Regressed, 999, [Established, Regressed, Regressed, Regressed, Waiting, TimedOut]),
        (TimedOut, 10, [Established, TimedOut, TimedOut, TimedOut, TimedOut, TimedOut]),
    ];
    for policy in [Policy::kep(), Policy::hardened()] {
        for (phase, now, expected) in rows {
            for (observation, expected) in columns.into_iter().zip(expected) {
                let mut world = in_phase(phase, &policy);
                show(&mut world, observation, now);
                world.run(now);
                assert_eq!(world.state.gates[B].phase, expected, "{phase:?} and {observation:?} at {now}");
            }
        }
    }
    // With a timer of its own, a regression ends in a timeout.
    let mut rearmed = Policy::kep();
    rearmed.rearm_on_regression = true;
    for (now, expected) in [(10, Regressed), (11, TimedOut)] {
        let mut world = in_phase(Regressed, &rearmed);
        world.run(now);
        assert_eq!(world.state.gates[B].phase, expected);
    }
    let mut unready = in_phase(Regressed, &rearmed);
    unready.report("Ready", "False", "KubeletStopped", 10);
    unready.run(99);
    assert_eq!(unready.state.gates[B].phase, Regressed, "no timer fires while the node is not ready");
}

#[test]
fn each_cell_of_the_table_of_timeout_writes() {
    use ConditionStatus::{False, Missing, NodeRestarted, TimeoutExceeded, Unknown};
    // What is there, whether the timeout was written before; what each setting writes.
    let rows = [
        (TimeoutExceeded, true, false, false),
        (Missing, false, true, true),
        (Missing, true, true, true),
        (Unknown, false, true, true),
        (NodeRestarted, false, true, true),
        (False, false, true, false),
        (False, true, false, false),
        (Unknown, true, false, false),
        (NodeRestarted, true, false, false),
    ];
    for (observation, is_written, always, when_unreported) in rows {
        for (keeps_false, writes) in [(false, always), (true, when_unreported)] {
            let mut policy = Policy::kep();
            policy.keeps_reported_false = keeps_false;
            let mut world = in_phase(if is_written { GatePhase::TimedOut } else { GatePhase::Waiting }, &policy);
            show(&mut world, observation, 20);
            let seen = world.run(20);
            let expected: &[&str] = if writes { &["b.example/Ready=TimeoutExceeded"] } else { &[] };
            assert_eq!(seen.changes(), expected, "{observation:?}, {is_written}, {keeps_false}");
            assert!(world.run(21).changes().is_empty(), "once");
        }
    }
}

#[test]
fn each_cell_of_the_table_of_verdicts() {
    // req: 5233-13
    use ConditionStatus::{False, Missing, TimeoutExceeded};
    let late = |observation| GateDecision::Blocked {
        reason: BlockReason::LateReport(EffectiveStatus::Observed(observation)),
        deadline: None,
    };
    for (policy, is_sticky) in [(Policy::kep(), false), (Policy::hardened(), true)] {
        let decide = |phase, observation| {
            let mut world = in_phase(phase, &policy);
            show(&mut world, observation, 10);
            world.look(10).decision(B)
        };
        assert_eq!(decide(GatePhase::Established, ConditionStatus::True), GateDecision::Satisfied);
        let waits = GateDecision::Blocked {
            reason: BlockReason::Condition(EffectiveStatus::Observed(False)),
            deadline: Some(at(11)),
        };
        assert_eq!(decide(GatePhase::Waiting, False), waits);
        assert_eq!(decide(GatePhase::Regressed, False), blocked(False));
        assert_eq!(decide(GatePhase::TimedOut, TimeoutExceeded), GateDecision::Bypass);
        assert_eq!(decide(GatePhase::TimedOut, Missing), GateDecision::Bypass, "written again in this step");
        assert_eq!(decide(GatePhase::TimedOut, False), if is_sticky { GateDecision::Bypass } else { late(False) });
    }
}

#[test]
fn the_example_configuration_without_any_report() {
    // req: 5233-21, 5233-60, 5233-26, 5233-27
    for policy in [Policy::kep(), Policy::hardened()] {
        let gates = from_value::<readiness::GatedNode>(examples::node()).unwrap().gates;
        let mut world = World::new(policy, &gates).ready(0);
        assert!(world.run(0).wakes(180));
        assert!(world.run(179).writes.is_empty());
        let seen = world.run(180);
        assert_eq!(
            seen.changes(),
            [
                "+node.cilium.io/agent-not-ready:NoSchedule".to_owned(),
                format!("{DATADOG}=TimeoutExceeded"),
                format!("{CNI}=TimeoutExceeded"),
            ]
        );
        let mut events = seen.events();
        events.sort_unstable();
        assert_eq!(events, ["GateBypassed", "GateTimedOut", "TaintAdded"]);
        let warning = format!(
            "Warning event GateBypassed: readiness gate {DATADOG} was not satisfied in time: the node takes pods without it"
        );
        assert!(seen.writes.iter().any(|write| write.to_string() == warning), "{:?}", seen.writes);
        assert!(!seen.schedulable && seen.wakes(300), "the node waits for the longest timeout");
        assert!(world.run(299).writes.is_empty());
        let seen = world.run(300);
        assert_eq!(
            seen.changes(),
            ["+ai-corp.com/runtime-patch-not-installed:NoSchedule".to_owned(), format!("{PATCH}=TimeoutExceeded")]
        );
        assert!(world.run(300).schedulable);
        let taints = world.node.node.spec.clone().unwrap().taints.unwrap();
        assert_eq!(taints[1].value.as_deref(), Some("true"));
    }
}

#[test]
fn timers_begin_with_ready() {
    // req: 5233-22, 5233-25
    let mut world = World::new(Policy::kep(), &[gate_b()]);
    assert_eq!(world.run(0).requeue_at, None);
    world.report("Ready", "False", "KubeletStarting", 50);
    assert_eq!(world.run(50).requeue_at, None);
    assert!(world.run(100).changes().is_empty(), "no timer without Ready");
    world.report("Ready", "True", "KubeletReady", 100);
    assert!(world.run(100).wakes(102));
    // A flap of Ready just before the end begins it anew.
    world.report("Ready", "Unknown", "NodeStatusUnknown", 101);
    assert_eq!(world.run(101).requeue_at, None);
    world.report("Ready", "True", "KubeletReady", 102);
    assert!(world.run(102).wakes(104));
    assert_eq!(world.run(104).events(), ["GateBypassed"]);
}

#[test]
fn a_gate_added_later_has_its_own_timer() {
    // req: 5233-29
    let mut world = World::new(Policy::kep(), &[gate_a()]).ready(0);
    world.run(0);
    world.run(3);
    world.node.gates.push(gate_b());
    let seen = world.run(50);
    assert!(seen.wakes(52) && !seen.schedulable);
    assert_eq!(world.state.gates[A].phase, GatePhase::TimedOut);
    assert_eq!(world.run(52).events(), ["GateBypassed"]);
}

#[test]
fn a_restart_of_kubelet_resets_timers_and_nothing_else() {
    // req: 5233-23, 5233-38
    let mut world = World::new(Policy::kep(), &[gate_b(), bypass_gate(A, 1), bypass_gate(CNI, 9)]).ready(0);
    world.report(CNI, "True", "Ok", 0);
    world.run(0);
    world.run(1);
    let before = world.node.node.status.clone();
    world.instance = "kubelet-2".to_owned();
    let seen = world.run(1);
    assert!(seen.wakes(3), "the timer of B begins again");
    assert!(seen.writes.is_empty());
    assert_eq!(world.node.node.status, before, "conditions stay");
    let phases: Vec<GatePhase> = [A, B, CNI].iter().map(|name| world.state.gates[*name].phase).collect();
    assert_eq!(phases, [GatePhase::TimedOut, GatePhase::Waiting, GatePhase::Established]);
    // Again and again: without a bound the timer never ends, with one it does. A bound of nothing is none.
    for (bound, fires) in [(None, None), (Some(5), Some(5)), (Some(0), None), (Some(-1), None)] {
        let mut policy = Policy::kep();
        policy.max_wait_per_boot = bound.map(SignedDuration::from_secs);
        let mut world = World::new(policy, &[gate_b()]).ready(0);
        let fired = (0..50).find(|second| {
            world.instance = format!("kubelet-{second}");
            world.run(*second).events() == ["GateBypassed"]
        });
        assert_eq!(fired, fires);
    }
}

#[test]
fn a_restart_of_kubelet_resets_the_timers_of_all_gates() {
    // req: 5233-23
    let mut world = World::new(Policy::kep(), &[gate_a(), gate_b(), bypass_gate(CNI, 9)]).ready(0);
    world.run(0);
    world.instance = "kubelet-2".to_owned();
    assert!(world.run(1).wakes(3));
    assert!(world.state.gates.values().all(|gate| gate.timer_started_at == Some(at(1))));
}

#[test]
fn a_gate_that_bypasses_adds_no_taint() {
    // req: 5233-8, 5233-62
    for policy in [Policy::kep(), Policy::hardened()] {
        let mut world = World::new(policy, &[gate_a().with_bypass_warning()]).ready(0);
        assert!(world.node.gates[0].readiness_taint.is_some(), "ignored with this action");
        world.run(0);
        assert_eq!(world.run(3).changes(), ["a.example/Ready=TimeoutExceeded"]);
        assert!(world.run(4).schedulable && world.taints().is_empty());
        let (options, pod) = (FilterOptions::from(&world.policy), Pod::default());
        assert!(filter(options, &world.view(), GatedPodView::new(&pod)).is_allowed());
    }
}

#[test]
fn a_reboot_is_not_a_timeout_whatever_the_bound() {
    for bound in [0, 1, 5] {
        let mut policy = Policy::kep();
        policy.max_wait_per_boot = Some(SignedDuration::from_secs(bound));
        let mut world = World::new(policy, &[gate_b()]).ready(0);
        world.report(B, "True", "Ok", 0);
        world.run(0);
        world.boot("boot-2");
        assert_eq!(world.run(1).changes(), ["b.example/Ready=NodeRestarted"], "bound {bound}");
        assert!(world.run(1).changes().is_empty(), "bound {bound}");
    }
}

#[test]
fn the_longest_wait_is_that_of_one_wait() {
    let mut policy = Policy::kep();
    policy.max_wait_per_boot = Some(SignedDuration::from_secs(5));
    let mut world = World::new(policy, &[bypass_gate(B, 20), bypass_gate(A, 4)]).ready(0);
    world.report(A, "True", "Ok", 0);
    world.run(0);
    let message = |seen: &Seen| match &seen.writes[0].change {
        NodeChange::PatchCondition { message, .. } => message.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(message(&world.run(5)), "not True within 5 s, the longest wait in one boot; before: does not exist");
    // Deleted and written again, it says the same.
    world.forget(B);
    assert_eq!(message(&world.run(9)), "not True within 5 s, the longest wait in one boot; before: does not exist");
    // A wait that has ended does not count for the next one, which its own timeout ends.
    world.report(A, "Unknown", "NodeRestarted", 100);
    let seen = world.run(100);
    assert!(seen.wakes(104) && seen.decision(A).is_blocking());
    assert_eq!(message(&world.run(104)), "not True within 4 s; before: status is Unknown (NodeRestarted)");
}

#[test]
fn a_gate_that_was_true_is_not_released_by_the_timer() {
    // req: 5233-20, 5233-51, 5233-63
    let mut world = World::new(Policy::kep(), &[gate_b()]).ready(0);
    world.report(B, "True", "Ok", 1);
    world.run(1);
    world.report(B, "False", "Upgrading", 5);
    for second in [5, 7, 100, 100_000] {
        let seen = world.run(second);
        assert!(!seen.schedulable && seen.changes().is_empty() && seen.requeue_at.is_none(), "at {second}");
    }
    // Restarts of kubelet, and of Ready, begin no timer for it.
    for (instance, status) in
        [("kubelet-2", "True"), ("kubelet-2", "False"), ("kubelet-3", "False"), ("kubelet-3", "True")]
    {
        world.instance = instance.to_owned();
        world.report("Ready", status, "Kubelet", 100_000);
        let seen = world.run(100_000);
        assert!(
            !seen.schedulable && seen.changes().is_empty() && seen.requeue_at.is_none(),
            "{instance}, Ready {status}"
        );
        assert_eq!(world.state.gates[B].phase, GatePhase::Regressed);
    }
    // The rollout goes through.
    world.report(B, "True", "Ok", 100_001);
    assert!(world.run(100_001).schedulable);
}

#[test]
fn changes_of_a_gate_while_it_waits() {
    let mut world = World::new(Policy::kep(), &[bypass_gate(B, 100)]).ready(0);
    world.run(0);
    world.node.gates[0].timeout_seconds = Some(200);
    assert!(world.run(50).wakes(200));
    world.node.gates[0].timeout_seconds = Some(10);
    assert_eq!(world.run(60).events(), ["GateBypassed"], "already past");
    world.node.gates[0].timeout_seconds = Some(1_000);
    assert_eq!(world.run(61).decision(B), GateDecision::Bypass, "a longer timeout does not take a release back");
}

#[test]
fn gates_that_would_be_invalid_are_never_released() {
    let other = |action| with(NodeReadinessGate::new(B, 2), |gate| gate.failure_action = action);
    let tainting = |key: &str, value: &str, effect: &str| {
        let taint = Taint { value: Some(value.to_owned()), ..taint(key, effect) };
        NodeReadinessGate::new(B, 2).with_taint(taint)
    };
    let broken = [
        other(FailureAction::from("Cordon")),
        other(FailureAction::Taint),
        bypass_gate(B, 0),
        bypass_gate(B, -5),
        with(bypass_gate(B, 1), |gate| gate.timeout_seconds = None),
        tainting("a", "", "noschedule"),
        tainting("a", "", ""),
        tainting("not a key", "", "NoSchedule"),
        tainting("a", "not a value", "NoSchedule"),
        tainting("node.kubernetes.io/not-ready", "", "NoSchedule"),
        tainting("node.cloudprovider.kubernetes.io/shutdown", "", "NoSchedule"),
        bypass_gate("MemoryPressure", 2),
        bypass_gate("b.example/Ready/Now", 2),
    ];
    for gate in broken {
        for policy in [Policy::kep(), Policy::hardened()] {
            let mut world = World::new(policy, &[gate.clone()]).ready(0);
            world.report("MemoryPressure", "False", "KubeletHasSufficientMemory", 0);
            assert_eq!(world.run(0).requeue_at, None);
            let seen = world.run(1_000_000);
            assert!(!seen.schedulable && seen.changes().is_empty());
        }
    }
}

#[test]
fn gates_that_would_be_invalid_touch_neither_taints_nor_conditions_of_others() {
    // The taint of a cordoned node is nobody's to adopt, and one that no node can have is not asked for.
    let unschedulable = taint("node.kubernetes.io/unschedulable", "NoSchedule");
    let mut world = World::new(Policy::hardened(), &[NodeReadinessGate::new(A, 3).with_taint(unschedulable.clone())]);
    world = world.ready(0);
    world.put_taint(unschedulable);
    world.report(A, "True", "Ok", 0);
    assert!(world.run(0).changes().is_empty());
    let mut world =
        World::new(Policy::kep(), &[NodeReadinessGate::new(A, 3).with_taint(taint("a", "noschedule"))]).ready(0);
    world.report(A, "Unknown", "TimeoutExceeded", 0);
    assert!(world.run(0).changes().is_empty());
    world.forget(A);
    assert!(world.run(1).changes().is_empty());
    // A reboot does not reset what kubelet says of itself.
    let mut world = World::new(Policy::kep(), &[bypass_gate("Ready", 3)]).ready(0);
    world.run(0);
    world.boot("boot-2");
    assert!(world.run(1).changes().is_empty());
}

#[test]
fn a_start_without_a_state() {
    for (from_ready, requeue_at) in [(false, 102), (true, 101)] {
        let mut policy = Policy::kep();
        policy.starts_from_ready = from_ready;
        let mut world = World::new(policy, &[gate_b()]).ready(99);
        assert!(world.run(100).wakes(requeue_at));
        // Not so for what is added later.
        world.node.gates.push(bypass_gate(A, 50));
        world.run(101);
        assert_eq!(world.state.gates[A].timer_started_at, Some(at(101)));
    }
    // A transition in the future counts as now.
    let mut policy = Policy::kep();
    policy.starts_from_ready = true;
    assert!(World::new(policy, &[gate_b()]).ready(500).run(100).wakes(102));

    let phases = [
        (ConditionStatus::True, GatePhase::Established),
        (ConditionStatus::TimeoutExceeded, GatePhase::TimedOut),
        (ConditionStatus::NodeRestarted, GatePhase::Waiting),
        (ConditionStatus::False, GatePhase::Waiting),
    ];
    for (observation, phase) in phases {
        for policy in [Policy::kep(), Policy::hardened()] {
            let mut world = World::new(policy, &[gate_b()]).ready(0);
            show(&mut world, observation, 0);
            world.run(10);
            assert_eq!(world.state.gates[B].phase, phase);
        }
    }
}

#[test]
fn a_true_that_must_last() {
    let mut policy = Policy::kep();
    policy.hold_down = Some(SignedDuration::from_secs(10));
    let mut world = World::new(policy, &[bypass_gate(B, 20)]).ready(0);
    world.run(0);
    world.report(B, "True", "Ok", 5);
    let seen = world.run(5);
    assert!(!seen.schedulable && seen.wakes(15));
    assert_eq!(
        seen.decision(B),
        GateDecision::Blocked { reason: BlockReason::Condition(EffectiveStatus::Stabilizing), deadline: Some(at(20)) }
    );
    assert!(world.run(15).schedulable);
    // A dip acts at once, and the count begins again.
    world.report(B, "False", "Dip", 16);
    assert!(!world.run(16).schedulable);
    world.report(B, "True", "Ok", 17);
    assert!(world.run(17).wakes(27) && !world.run(26).schedulable);
    assert!(world.run(27).schedulable);

    // The timer does not fire over a True that is still unstable.
    let mut world = World::new(world.policy, &[bypass_gate(B, 20)]).ready(0);
    world.run(0);
    world.report(B, "True", "Ok", 15);
    world.run(15);
    let seen = world.run(20);
    assert!(seen.changes().is_empty() && seen.wakes(25));
    assert_eq!(world.run(25).decision(B), GateDecision::Satisfied);
    // Once it has lasted it does, whatever becomes of the clock.
    assert_eq!(world.run(16).decision(B), GateDecision::Satisfied);
    assert_eq!(world.run(0).decision(B), GateDecision::Satisfied);
    // A clock that is set back far does not make it last for longer than that from then on.
    world.report(B, "False", "Dip", 100);
    world.run(100);
    world.report(B, "True", "Ok", 101);
    world.run(101);
    assert!(world.run(50).wakes(60));
    assert_eq!(world.run(60).decision(B), GateDecision::Satisfied);
}

#[test]
fn a_true_that_has_become_stale() {
    let mut stale = Policy::kep();
    stale.max_heartbeat_age = Some(SignedDuration::from_secs(60));
    let mut world = World::new(stale.clone(), &[bypass_gate(B, 20)]).ready(0);
    world.report(B, "True", "Ok", 0);
    assert!(world.run(0).wakes(60));
    let seen = world.run(60);
    assert_eq!(
        seen.decision(B),
        GateDecision::Blocked { reason: BlockReason::Condition(EffectiveStatus::Stale), deadline: None }
    );
    assert!(seen.changes().is_empty(), "an observed True is never overwritten");
    world.report(B, "True", "Ok", 61);
    assert!(world.run(61).schedulable);
    // Before the gate was ever met, the timer releases it as any other.
    for (gate, policy) in [(gate_a(), Policy::hardened()), (gate_b(), Policy::kep())] {
        let name = gate.condition_type.clone();
        let mut world = World::new(policy, &[gate]).ready(100);
        world.policy.max_heartbeat_age = stale.max_heartbeat_age;
        world.report(&name, "True", "Ok", 10);
        assert_eq!(world.run(100).decision(&name).reason(), "Stale");
        world.run(103);
        let seen = world.run(104);
        assert!(seen.schedulable && seen.changes().is_empty(), "{:?}", seen.decision(&name));
        assert_eq!(world.condition(&name).unwrap().0, "True", "an observed True is never overwritten");
    }
    // By default the last word counts, however old; an age that is not positive is none.
    for age in [0, -1] {
        let mut policy = Policy::kep();
        policy.max_heartbeat_age = Some(SignedDuration::from_secs(age));
        let mut world = World::new(policy, &[gate_b()]).ready(0);
        world.report(B, "True", "Ok", 0);
        let seen = world.run(100);
        assert!(seen.schedulable && seen.requeue_at.is_none());
    }
    let mut literal = World::new(Policy::kep(), &[gate_b()]).ready(0);
    literal.report(B, "True", "Ok", 0);
    assert!(literal.run(1_000_000).schedulable);
    // Nothing is known of a condition without heartbeats.
    world.report(B, "True", "Ok", 61);
    world.conditions().iter_mut().for_each(|condition| condition.last_heartbeat_time = None);
    assert!(world.run(1_000_000).schedulable);
}

#[test]
fn a_true_that_was_stale_must_last_anew() {
    let mut policy = Policy::kep();
    policy.hold_down = Some(SignedDuration::from_secs(30));
    policy.max_heartbeat_age = Some(SignedDuration::from_secs(60));
    let mut world = World::new(policy, &[bypass_gate(B, 900)]).ready(100);
    world.report(B, "True", "Ok", 0);
    assert_eq!(world.run(100).decision(B).reason(), "Stale");
    world.report(B, "True", "Ok", 140);
    let seen = world.run(140);
    assert_eq!(seen.decision(B).reason(), "Stabilizing");
    assert!(seen.wakes(170) && world.run(170).schedulable);
    // Stale acts at once, and then the count begins again.
    assert_eq!(world.run(200).decision(B).reason(), "Stale");
    world.report(B, "True", "Ok", 201);
    assert_eq!(world.run(201).decision(B).reason(), "Stabilizing");
}

#[test]
fn a_clock_that_goes_back() {
    let mut world = World::new(Policy::kep(), &[gate_b()]).ready(0);
    world.run(100);
    let seen = world.run(0);
    assert!(seen.changes().is_empty() && seen.wakes(2), "the timeout begins again, and is not longer for it");
    assert!(world.run(1).changes().is_empty());
    assert_eq!(world.run(2).events(), ["GateBypassed"]);
}

#[test]
fn a_clock_that_goes_back_ends_no_limit_later() {
    let mut policy = Policy::kep();
    policy.max_wait_per_boot = Some(SignedDuration::from_secs(60));
    policy.hold_down = Some(SignedDuration::from_secs(30));
    let mut world = World::new(policy, &[bypass_gate(B, 900)]).ready(0);
    world.run(1000);
    assert!(world.run(0).wakes(60), "the longest wait in one boot");
    world.report(B, "True", "Ok", 10);
    assert!(world.run(500).wakes(530));
    assert!(world.run(20).wakes(50), "the time for which it has been True");
}

#[test]
fn a_shift_that_the_caller_knows_moves_every_time() {
    for shift in [10_000, -10_000] {
        let mut policy = Policy::kep();
        policy.max_wait_per_boot = Some(SignedDuration::from_secs(60));
        let mut world = World::new(policy, &[bypass_gate(B, 50)]).ready(0);
        assert!(world.run(20_000).wakes(20_050));
        world.state.shift_clock(SignedDuration::from_secs(shift));
        let seen = world.run(20_010 + shift);
        assert!(!seen.schedulable && seen.wakes(20_050 + shift), "{shift}");
        assert_eq!(world.run(20_050 + shift).events(), ["GateBypassed"]);
    }
    // Beyond the range of timestamps nothing moves.
    let mut world = World::new(Policy::kep(), &[bypass_gate(B, 50)]).ready(0);
    world.run(0);
    let before = world.state.clone();
    world.state.shift_clock(SignedDuration::MAX);
    assert_eq!(world.state, before);
}

#[test]
fn flaps_are_counted_and_told() {
    let mut world = World::new(Policy::kep(), &[bypass_gate(B, 5)]).ready(0);
    world.run(0);
    let mut told = 0;
    for pass in 0..6 {
        world.report(B, "True", "Ok", pass * 10 + 3);
        world.run(pass * 10 + 3);
        world.report(B, "False", "Lost", pass * 10 + 4);
        told += world.run(pass * 10 + 4).events().iter().filter(|reason| **reason == "GateFlapping").count();
    }
    assert_eq!(told, 2, "at the third and the sixth");
    let counts = world.state.counters.metrics().map(|(_, count)| count);
    let [transitions, flaps, timeouts, bypasses, established, seconds_to_established, held, released] = counts;
    assert_eq!((flaps, transitions, timeouts, bypasses), (6, 12, 0, 0));
    assert_eq!((established, seconds_to_established), (1, 3));
    assert_eq!((released, held), (6, 6));
}

#[test]
fn another_uid_is_another_node() {
    let mut world = World::new(Policy::kep(), &[gate_a()]).ready(0);
    world.run(0);
    world.run(3);
    world.node.node.metadata.uid = Some("u2".to_owned());
    world.forget(A);
    let seen = world.run(50);
    assert!(seen.wakes(53));
    assert!(stored(&world.state, "ownedTaints").is_empty(), "the taint is not of this node's story");
}

#[test]
fn each_setting_has_one_spelling() {
    let policy: Policy = from_value(json!({"lateReport": "sticky", "timeoutWrite": "whenUnreported",
        "releaseWhen": "taintPresent", "adoptExistingTaints": true, "preexistingTimeout": "ignored"}))
    .unwrap();
    assert_eq!(policy, Policy::hardened());
    let policy: Policy = from_value(
        json!({"lateReport": "ownerWins", "rearmOnRegression": true, "holdDown": 5, "maxWaitPerBoot": null}),
    )
    .unwrap();
    assert!(policy.rearm_on_regression && !policy.ignores_late_reports);
    assert_eq!(policy.hold_down, Some(SignedDuration::from_secs(5)));
    let written: Policy = serde_json::from_str(&serde_json::to_string(&policy).unwrap()).unwrap();
    assert_eq!(written, policy);
    assert_eq!(from_value::<Policy>(json!({})).unwrap(), Policy::kep(), "missing fields are as in kep");
    for old in [json!({"lateReport": "OwnerWins"}), json!({"lateReport": "owner_wins"})] {
        assert!(from_value::<Policy>(old.clone()).is_err(), "{old}");
    }
    assert_eq!(serde_json::from_str::<EvaluatorRole>("\"nlc\"").unwrap(), EvaluatorRole::Nlc);
}
