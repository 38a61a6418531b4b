//! Life of one node, with both presets.

use k8s_openapi::api::core::v1::Pod;
use readiness::{
    BlockReason, ConditionStatus, EffectiveStatus, FilterOptions, GateDecision, GatePhase, GatedPodView, Policy, filter,
};

use super::world::{A, B, World, at, gate_a, gate_b, stored, taint};

fn open(world: &World) -> bool {
    filter(FilterOptions::from(&world.policy), &world.view(), GatedPodView::new(&Pod::default())).is_allowed()
}

#[test]
fn a_node_through_its_life() {
    for policy in [Policy::kep(), Policy::hardened()] {
        let is_kep = policy == Policy::kep();
        let mut world = World::new(policy, &[gate_a(), gate_b()]);
        world.report("Ready", "False", "KubeletStarting", 0);

        // 0: not ready.
        let seen = world.run(0);
        assert!(!seen.schedulable);
        assert_eq!(seen.requeue_at, None);
        assert_eq!(world.labels(), ["readiness-gate.a.example/Ready=true", "readiness-gate.b.example/Ready=true"]);

        // 1: ready, timers begin.
        world.report("Ready", "True", "KubeletReady", 1);
        let seen = world.run(1);
        assert!(seen.wakes(3) && seen.writes.is_empty());
        let reason = BlockReason::Condition(EffectiveStatus::Observed(ConditionStatus::Missing));
        assert_eq!(seen.decision(A), GateDecision::Blocked { reason, deadline: Some(at(4)) });

        // 3: B times out.
        let seen = world.run(3);
        assert_eq!(seen.changes(), ["b.example/Ready=TimeoutExceeded"]);
        assert_eq!(seen.events(), ["GateBypassed"]);
        assert!(!seen.schedulable && seen.wakes(4));
        assert_eq!(seen.decision(B), GateDecision::Bypass);

        // 4: A times out; the taint comes first.
        let seen = world.run(4);
        assert_eq!(seen.changes(), ["+a:NoSchedule", "a.example/Ready=TimeoutExceeded"]);
        assert_eq!(seen.events(), ["GateTimedOut", "TaintAdded"]);
        assert_eq!(seen.schedulable, is_kep, "hardened waits for the taint");
        if !is_kep {
            assert_eq!(seen.decision(A), GateDecision::Blocked { reason: BlockReason::AwaitingTaint, deadline: None });
        }
        let seen = world.run(4);
        assert!(seen.schedulable && seen.writes.is_empty() && open(&world));
        assert_eq!(seen.decision(A), GateDecision::TaintHandoff);

        // 5: the agent of B reports late.
        world.report(B, "False", "Broken", 5);
        let seen = world.run(5);
        assert!(seen.writes.is_empty());
        let late = GateDecision::Blocked {
            reason: BlockReason::LateReport(EffectiveStatus::Observed(ConditionStatus::False)),
            deadline: None,
        };
        assert_eq!(seen.decision(B), if is_kep { late } else { GateDecision::Bypass });

        // 6: both are True.
        world.report(A, "True", "Ok", 6);
        world.report(B, "True", "Ok", 6);
        let seen = world.run(6);
        assert_eq!(seen.changes(), ["-a:NoSchedule"]);
        assert!(seen.schedulable && world.taints().is_empty() && stored(&world.state, "ownedTaints").is_empty());

        // 7: B is lost; no timer runs.
        world.report(B, "False", "Lost", 7);
        let seen = world.run(7);
        assert_eq!(seen.events(), ["GateRegressed"]);
        assert!(!seen.schedulable && seen.requeue_at.is_none());
        assert_eq!(world.state.gates[B].phase, GatePhase::Regressed);

        // 8: the node boots.
        world.boot("boot-2");
        world.report("Ready", "False", "KubeletStarting", 8);
        let seen = world.run(8);
        assert_eq!(seen.changes(), ["a.example/Ready=NodeRestarted", "b.example/Ready=NodeRestarted"]);
        assert_eq!(seen.events(), ["GatesResetByReboot"]);
        assert!(world.state.gates.values().all(|gate| gate.phase == GatePhase::Waiting));

        // 9: kubelet starts anew and is ready.
        world.instance = "kubelet-2".to_owned();
        world.report("Ready", "True", "KubeletReady", 9);
        assert!(world.run(9).wakes(11));

        // 11: B times out again.
        let seen = world.run(11);
        assert_eq!(seen.changes(), ["b.example/Ready=TimeoutExceeded"]);

        // 12: gate A is removed before its deadline does anything.
        world.node.gates.retain(|gate| gate.condition_type != A);
        let seen = world.run(12);
        assert!(seen.changes().is_empty() && seen.schedulable);
        assert_eq!(world.labels(), ["readiness-gate.b.example/Ready=true"]);

        // 13: it comes back, and its timer begins now.
        world.node.gates.push(gate_a());
        let seen = world.run(13);
        assert_eq!(world.condition(A).unwrap().1, "NodeRestarted");
        assert_eq!(world.state.gates[A].timer_started_at, Some(at(13)));
        assert!(seen.wakes(16));
    }
}

#[test]
fn true_at_the_deadline_wins() {
    // req: 5233-64
    let mut world = World::new(Policy::kep(), &[gate_a()]).ready(0);
    world.run(0);
    world.report(A, "True", "Ok", 3);
    let seen = world.run(3);
    assert!(seen.schedulable && seen.changes().is_empty());
}

#[test]
fn two_gates_with_one_taint() {
    let other = |name: &str| readiness::NodeReadinessGate::new(name, 3).with_taint(taint("a", "NoSchedule"));
    let mut world = World::new(Policy::kep(), &[gate_a(), other(B)]).ready(0);
    world.run(0);
    assert_eq!(
        world.run(3).changes(),
        ["+a:NoSchedule", "a.example/Ready=TimeoutExceeded", "b.example/Ready=TimeoutExceeded"]
    );
    world.report(A, "True", "Ok", 4);
    assert!(world.run(4).changes().is_empty(), "B still wants it");
    world.report(B, "True", "Ok", 5);
    assert_eq!(world.run(5).changes(), ["-a:NoSchedule"]);
}
