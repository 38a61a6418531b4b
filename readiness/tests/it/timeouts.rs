//! Timeout conditions: their writes, repeated requests for lost writes, and timeouts from before their gate.

use readiness::{
    BlockReason, ConditionStatus, EffectiveStatus, EvaluatorRole, ExpectedCondition, GateDecision, NodeChange,
    NodeReadinessGate, NodeState, Policy, PolicyMode,
};

use super::world::{A, B, World, blocked, gate_a, gate_b};

#[test]
fn what_is_written_at_a_timeout() {
    // req: 5233-24
    let mut world = World::new(Policy::kep(), &[gate_b()]).ready(0);
    world.report(B, "False", "Initializing", 0);
    world.run(0);
    let seen = world.look(2);
    let NodeChange::PatchCondition { condition_type, status, reason, message, expected } = &seen.writes[0].change
    else {
        panic!("{:?}", seen.writes)
    };
    assert_eq!((condition_type.as_str(), status.as_str(), reason.as_str()), (B, "Unknown", "TimeoutExceeded"));
    assert_eq!(message, "not True within 2 s; before: status is False (Initializing)");
    // The agent comes first: the write is refused, and the agent's word stays.
    let expected: &ExpectedCondition = expected.as_ref().unwrap();
    assert_eq!((expected.status.as_str(), expected.reason.as_deref()), ("False", Some("Initializing")));
    world.report(B, "True", "Ok", 2);
    assert_eq!(world.write(&seen.writes[..1], 2).len(), 1);
    assert_eq!(world.condition(B).unwrap().0, "True");
    assert_eq!(world.run(2).decision(B), GateDecision::Satisfied);

    let warning = world_with_event(Policy::kep());
    assert_eq!(warning, (true, "GateBypassed".to_owned()));
}

fn world_with_event(policy: Policy) -> (bool, String) {
    let mut world = World::new(policy, &[gate_b()]).ready(0);
    world.run(0);
    let seen = world.run(2);
    let found = seen.writes.iter().find_map(|write| match &write.change {
        NodeChange::Event { is_warning, reason, .. } => Some((*is_warning, reason.clone())),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn a_late_report() {
    // req: 5233-28, 5233-33
    let mut world = World::new(Policy::kep(), &[gate_a()]).ready(0);
    world.run(0);
    world.run(3);
    assert_eq!(world.taints(), ["a:NoSchedule"]);
    // The owner has the last word: what it says is never overwritten again.
    world.report(A, "False", "Slow", 4);
    for second in 4..20 {
        assert!(world.run(second).changes().is_empty());
    }
    assert_eq!(world.condition(A).unwrap(), ("False".to_owned(), "Slow".to_owned()));
    world.report(A, "True", "Ok", 20);
    assert_eq!(world.run(20).changes(), ["-a:NoSchedule"]);
    assert!(world.run(20).schedulable);
}

#[test]
fn a_timeout_that_was_not_written_is_asked_for_again() {
    for (status, reason, policy) in [("False", "Initializing", Policy::kep()), ("Unknown", "Lost", Policy::hardened())]
    {
        let mut world = World::new(policy, &[gate_b()]).ready(0);
        world.report(B, status, reason, 0);
        world.run(0);
        let first = world.look(2);
        assert_eq!(first.events(), ["GateBypassed"]);
        let counters = world.state.counters.clone();
        for second in 3..6 {
            let seen = world.look(second);
            assert_eq!(seen.writes, first.writes[..1], "the same write, and no other event");
            assert_eq!((seen.decision(B), seen.schedulable), (GateDecision::Bypass, true));
        }
        assert_eq!(world.state.counters, counters);
        world.run(6);
        assert!(world.run(7).writes.is_empty());
        // A sign of life of the owner is a report, which is never overwritten.
        world.report(B, "Unknown", "Lost", 8);
        assert!(world.run(8).writes.is_empty());
    }
    let late = |observation| {
        let reason = BlockReason::LateReport(EffectiveStatus::Observed(observation));
        GateDecision::Blocked { reason, deadline: None }
    };
    let mut world = World::new(Policy::kep(), &[gate_b()]).ready(0);
    world.report(B, "False", "Initializing", 0);
    world.run(0);
    world.look(2);
    let mut suspended = world.clone();
    world.report(B, "False", "Initializing", 3);
    let seen = world.run(3);
    assert_eq!((seen.decision(B), seen.writes.len()), (late(ConditionStatus::False), 0));
    suspended.policy.mode = PolicyMode::Suspended;
    let seen = suspended.run(3);
    assert_eq!((seen.decision(B), seen.writes.len()), (blocked(ConditionStatus::False), 0), "nobody has said more");
}

#[test]
fn a_condition_that_is_deleted_is_written_again() {
    for policy in [Policy::kep(), Policy::hardened()] {
        let mut world = World::new(policy, &[gate_b()]).ready(0);
        world.run(0);
        world.run(2);
        for second in 3..6 {
            world.forget(B);
            assert_eq!(world.run(second).changes(), ["b.example/Ready=TimeoutExceeded"]);
        }
    }
}

#[test]
fn a_timeout_that_is_there_already_is_not_written_again() {
    for (role, writes) in [(EvaluatorRole::Combined, false), (EvaluatorRole::Kubelet, true)] {
        let mut world = World::new(Policy::hardened(), &[gate_b()]).ready(0).with_role(role);
        let mut written = false;
        // The message quotes what was there before, so that it is the same from the third time on.
        for pass in 0..3 {
            world.run(pass * 10);
            let seen = world.run(pass * 10 + 2);
            written = !seen.changes().is_empty();
            assert_eq!(seen.decision(B), GateDecision::Bypass);
            let gates = std::mem::take(&mut world.node.gates);
            world.run(pass * 10 + 5);
            world.node.gates = gates;
        }
        assert_eq!(written, writes, "the controller has to see a new one");
    }
}

#[test]
fn a_timeout_left_over_from_a_removed_gate() {
    for (is_ignored, is_open) in [(false, true), (true, false)] {
        let mut policy = Policy::kep();
        policy.ignores_older_timeouts = is_ignored;
        let mut world = World::new(policy, &[gate_b()]).ready(0);
        world.run(0);
        world.run(2);
        world.node.gates.clear();
        assert!(world.run(5).schedulable);
        assert_eq!(world.condition(B).unwrap().1, "TimeoutExceeded", "the condition is its owner's");
        world.node.gates.push(gate_b());
        let seen = world.run(10);
        assert_eq!(seen.schedulable, is_open);
        if !is_open {
            assert!(seen.wakes(12));
            assert_eq!(world.run(12).decision(B), GateDecision::Bypass);
            assert!(world.run(13).writes.is_empty());
        }
    }
}

#[test]
fn a_timeout_that_is_written_later_is_no_leftover() {
    // Unknown since long before the gate: that is the time of its last transition, whatever kubelet's clock says.
    for kubelets_clock in [160, 1] {
        let mut world = World::new(Policy::hardened(), &[]).ready(0).with_role(EvaluatorRole::Nlc);
        world.report(A, "Unknown", "Lost", 50);
        world.run(90);
        world.node.gates.push(gate_a());
        assert!(world.run(100).changes().is_empty());
        world.report(A, "Unknown", "TimeoutExceeded", kubelets_clock);
        assert_eq!(world.run(160).changes(), ["+a:NoSchedule"]);
    }
    // Nor is one that is first seen together with its gate: kubelet may have been faster.
    let mut world = World::new(Policy::hardened(), &[]).ready(0).with_role(EvaluatorRole::Nlc);
    world.run(90);
    world.node.gates.push(gate_a());
    world.report(A, "Unknown", "TimeoutExceeded", 20);
    assert_eq!(world.run(160).changes(), ["+a:NoSchedule"]);
}

#[test]
fn a_clock_that_is_set_back_makes_no_leftovers() {
    let mut world = World::new(Policy::hardened(), &[]).ready(0).with_role(EvaluatorRole::Nlc);
    world.run(10);
    world.node.gates.push(gate_a());
    world.run(10);
    world.run(5);
    // Written after the gate was added, whatever the clock said then.
    world.report(A, "Unknown", "TimeoutExceeded", 8);
    world.run(8);
    assert_eq!(world.taints(), ["a:NoSchedule"]);
}

#[test]
fn a_gate_that_never_times_out_is_not_released_by_the_timeout_of_the_gate_before_it() {
    for is_ignored in [false, true] {
        let mut policy = Policy::kep();
        policy.ignores_late_reports = is_ignored;
        let mut kubelet = World::new(policy, &[gate_a()]).ready(0).with_role(EvaluatorRole::Kubelet);
        kubelet.report(A, "False", "Broken", 0);
        kubelet.run(0);
        kubelet.boot("boot-2");
        assert_eq!(kubelet.look(1).changes(), ["a.example/Ready=NodeRestarted"], "which is lost");
        let seen = kubelet.look(4);
        assert_eq!(seen.changes(), ["a.example/Ready=TimeoutExceeded"], "which is lost, too");
        assert!(seen.schedulable);
        // Nobody but kubelet knows of the timeout, and it can't be written any more.
        kubelet.node.gates = vec![NodeReadinessGate::new(A, 3)];
        let seen = kubelet.run(5);
        assert!(seen.decision(A).is_blocking() && seen.changes().is_empty());
        let mut nlc = kubelet.clone().with_role(EvaluatorRole::Nlc);
        nlc.state = NodeState::default();
        assert!(nlc.run(5).decision(A).is_blocking(), "and so says the controller");
        // A timeout that stands in the condition counts for every gate.
        kubelet.report(A, "Unknown", "TimeoutExceeded", 6);
        assert!(!kubelet.run(6).decision(A).is_blocking());
    }
}
