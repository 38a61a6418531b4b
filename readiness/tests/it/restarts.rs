//! Reboots, restarts of kubelet, network partitions, and agents during each of them.

use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::jiff::SignedDuration;
use readiness::reporter::{ProbeResult, Reporter};
use readiness::{EvaluatorRole, GateDecision, GatePhase, NodeReadinessGate, Policy};

use super::world::{A, B, World, at, gate_a, gate_b, taint};

fn gate(name: &str) -> NodeReadinessGate {
    NodeReadinessGate::new(name, 300).with_bypass_warning()
}

/// Returns a world in which both gates are True, at 10 s.
fn established() -> World {
    let mut world = World::new(Policy::kep(), &[gate(A), gate(B)]).ready(0);
    world.report(A, "True", "Ok", 1);
    world.report(B, "True", "Ok", 1);
    assert!(world.run(10).schedulable);
    world
}

#[test]
fn a_reboot_makes_every_report_stale() {
    // req: 5233-36
    let mut world = established();
    world.forget(B);
    world.run(11);
    world.boot("boot-2");
    let seen = world.run(20);
    assert_eq!(seen.changes(), ["a.example/Ready=NodeRestarted"], "what is missing stays missing");
    assert_eq!(world.condition(A).unwrap(), ("Unknown".to_owned(), "NodeRestarted".to_owned()));
    assert!(!seen.schedulable);
    assert!(world.run(21).writes.is_empty(), "once");
    // Whatever the reports say.
    for (status, reason) in [("False", "Broken"), ("Unknown", "Lost"), ("Unknown", "TimeoutExceeded")] {
        let mut world = established();
        world.report(A, status, reason, 11);
        world.run(11);
        world.boot("boot-2");
        let expected = ["a.example/Ready=NodeRestarted", "b.example/Ready=NodeRestarted"];
        assert_eq!(world.run(20).changes(), expected, "{status} ({reason})");
    }
    // Without the old or the new id nothing is known of a boot.
    let mut world = established();
    world.boot("");
    assert!(world.run(20).changes().is_empty());
    world.boot("boot-1");
    assert!(world.run(21).changes().is_empty() && world.run(21).schedulable);
    world.boot("boot-2");
    assert_eq!(world.run(22).changes().len(), 2);
}

#[test]
fn a_fresh_report_is_not_overwritten() {
    // The evaluator is late: the agent has reported after the boot, and the write is refused.
    let mut world = established();
    world.boot("boot-2");
    let seen = world.look(20);
    world.report(A, "True", "Verified", 21);
    let refused = world.write(&seen.writes, 21);
    assert_eq!(refused.len(), 1);
    let seen = world.run(22);
    assert_eq!(seen.decision(A), GateDecision::Satisfied);
    assert!(seen.decision(B).is_blocking());
}

#[test]
fn a_report_from_before_the_boot_does_not_count_when_the_reset_is_lost() {
    let mut world = established();
    world.boot("boot-2");
    world.look(20);
    let seen = world.run(21);
    assert!(!seen.schedulable && seen.changes().is_empty(), "asked for once, and still not trusted");
    world.report(A, "True", "Ok", 22);
    world.report(B, "True", "Ok", 22);
    assert!(world.run(22).schedulable, "a heartbeat is a report");
    // The timer protects from a lock-out; the True is not overwritten.
    let mut world = established();
    world.boot("boot-2");
    world.look(20);
    let seen = world.run(320);
    assert!(seen.schedulable && seen.changes().is_empty());
    assert_eq!(seen.decision(A), GateDecision::Bypass);
}

#[test]
fn a_timeout_from_before_the_boot_is_written_anew_when_the_reset_is_lost() {
    let mut kubelet = World::new(Policy::kep(), &[gate_a()]).ready(0).with_role(EvaluatorRole::Kubelet);
    let mut nlc = kubelet.clone().with_role(EvaluatorRole::Nlc);
    kubelet.run(0);
    assert_eq!(kubelet.run(3).changes(), ["a.example/Ready=TimeoutExceeded"]);
    nlc.node = kubelet.node.clone();
    assert_eq!(nlc.run(3).changes(), ["+a:NoSchedule"]);

    kubelet.node = nlc.node.clone();
    kubelet.boot("boot-2");
    assert_eq!(kubelet.look(10).changes(), ["a.example/Ready=NodeRestarted"], "which is lost");
    nlc.node = kubelet.node.clone();
    assert!(!nlc.run(10).schedulable);
    assert!(kubelet.look(11).changes().is_empty());
    assert_eq!(kubelet.look(13).changes(), ["a.example/Ready=TimeoutExceeded"]);
    assert_eq!(kubelet.run(14).changes(), ["a.example/Ready=TimeoutExceeded"], "the write before was lost, too");
    assert!(kubelet.run(15).writes.is_empty());
    nlc.node = kubelet.node.clone();
    assert!(nlc.run(15).schedulable);
}

#[test]
fn agents_after_a_reboot() {
    // req: 5233-37, 5233-34
    for through_initializing in [true, false] {
        let mut world = established();
        world.boot("boot-2");
        world.report("Ready", "False", "KubeletStarting", 20);
        world.run(20);
        world.report("Ready", "True", "KubeletReady", 21);
        assert!(!world.run(21).schedulable);
        for name in [A, B] {
            if through_initializing {
                world.report(name, "False", "Initializing", 22);
                assert!(!world.run(22).schedulable);
            }
            world.report(name, "True", "Verified", 23);
        }
        assert!(world.run(23).schedulable, "either way");
    }
    // An agent that never comes back does not lock the node out.
    let mut world = established();
    world.boot("boot-2");
    world.run(20);
    assert!(world.run(320).schedulable);
    assert_eq!(world.condition(A).unwrap().1, "TimeoutExceeded");
    let changed = world.view().condition(A).unwrap().last_transition_time.as_ref().unwrap().0;
    assert_eq!(changed, at(20), "Unknown all the time");
}

#[test]
fn a_restart_of_kubelet_and_two_agents() {
    // req: 5233-38, 5233-58
    let mut world = established();
    world.instance = "kubelet-2".to_owned();
    world.report("Ready", "False", "KubeletStarting", 20);
    assert!(!world.run(20).schedulable);
    world.report("Ready", "True", "KubeletReady", 21);
    let seen = world.run(21);
    assert!(seen.schedulable && seen.writes.is_empty(), "an agent that does not depend on kubelet stays True");
    world.report(B, "False", "Reconnecting", 22);
    assert!(!world.run(22).schedulable, "one that does says so");
    world.report(B, "True", "Connected", 30);
    let seen = world.run(30);
    assert!(seen.schedulable && seen.changes().is_empty());
}

#[test]
fn three_named_scenarios() {
    // req: 5233-69
    let (config, kernel, service) = (
        "node.my-corp.com/CustomConfigApplied",
        "feature.my-corp.com/KernelFeatureXActive",
        "systemd.my-corp.com/MyServiceHealthy",
    );
    let mut world = World::new(Policy::kep(), &[gate(config), gate(kernel), gate(service)]).ready(0);
    for name in [config, kernel] {
        world.report(name, "True", "Ok", 0);
    }
    let seen = world.run(1);
    assert!(seen.decision(service).is_blocking(), "the service is being installed");
    world.report(service, "True", "Running", 2);
    assert!(world.run(2).schedulable);

    // The configuration changes, kubelet restarts, the agent verifies.
    world.report(config, "False", "Restarting", 10);
    world.instance = "kubelet-2".to_owned();
    assert!(world.run(10).decision(config).is_blocking());
    world.report(config, "True", "Applied", 12);
    assert!(world.run(12).schedulable);

    // A kernel parameter changes, the node boots: unknown until it is checked.
    world.boot("boot-2");
    world.run(20);
    assert_eq!(world.condition(kernel).unwrap().1, "NodeRestarted");
    for (second, name) in [(21, config), (22, service), (23, kernel)] {
        assert!(!world.run(second).schedulable);
        world.report(name, "True", "Checked", second);
    }
    assert!(world.run(24).schedulable);
}

/// Marks the node as unreachable, as the node lifecycle controller does after its `node-monitor-grace-period`.
fn lose(world: &mut World, seconds: i64) {
    world.report("Ready", "Unknown", "NodeStatusUnknown", seconds);
    for effect in ["NoSchedule", "NoExecute"] {
        world.put_taint(taint("node.kubernetes.io/unreachable", effect));
    }
}

#[test]
fn a_partition() {
    // req: 5233-39, 5233-40, 5233-43
    let mut world = established();
    assert!(world.run(50).schedulable);
    lose(&mut world, 51);
    let seen = world.run(51);
    assert!(!seen.schedulable && seen.changes().is_empty());
    assert_eq!(world.condition(A).unwrap(), ("True".to_owned(), "Ok".to_owned()), "gates keep their last status");
    assert_eq!(seen.decision(A), GateDecision::Satisfied, "the node is blocked whatever the gates say");

    // It heals: Ready first, then the reports of the agents.
    world.node.node.spec.as_mut().unwrap().taints = None;
    world.report("Ready", "True", "KubeletReady", 400);
    world.report(B, "False", "Reconnecting", 400);
    assert!(!world.run(400).schedulable);
    world.report(B, "True", "Ok", 410);
    let seen = world.run(410);
    assert!(seen.schedulable && seen.changes().is_empty());
}

#[test]
fn an_owner_elsewhere_during_a_partition() {
    // req: 5233-41
    let mut operator = Reporter::new(A);
    let mut world = established();
    let stored = world.conditions().iter().find(|condition| condition.type_ == A).cloned();
    let (patch, next) = operator.report(stored.as_ref(), &ProbeResult::Unreachable, at(60));
    assert_eq!((patch, next), (None, Some(at(90))), "the last word stays, and it tries again");
    operator.unknown_when_unreachable = true;
    let (patch, next) = operator.report(stored.as_ref(), &ProbeResult::Unreachable, at(60));
    let patch = patch.unwrap();
    assert_eq!((patch.status.as_str(), next), ("Unknown", Some(at(90))));
    world.report(A, &patch.status, patch.reason.as_deref().unwrap(), 60);
    assert_eq!(world.run(60).decision(A).name(), "Blocked");
}

#[test]
fn gates_evict_nobody() {
    // req: 5233-19, 5233-67
    let mut world = World::new(Policy::kep(), &[gate_a(), gate_b()]).ready(0);
    world.run(0);
    world.run(3);
    world.report(B, "False", "Broken", 4);
    assert!(!world.run(4).schedulable);
    assert!(!world.taints().is_empty() && world.view().taints().iter().all(|taint| taint.effect != "NoExecute"));
    // Only a readinessTaint with the effect NoExecute evicts, as every such taint does.
    let evicting = NodeReadinessGate::new(A, 3).with_taint(taint("a", "NoExecute"));
    let mut world = World::new(Policy::kep(), &[evicting]).ready(0);
    world.run(0);
    world.run(3);
    assert!(world.view().taint("a", "NoExecute").is_some_and(|taint| taint.time_added.is_some()));
}

#[test]
fn what_an_agent_writes() {
    // req: 5233-11, 5233-34, 5233-35, 5233-72
    let agent = Reporter::new(A);
    let success = |message: &str| ProbeResult::Success { reason: "Ok".to_owned(), message: message.to_owned() };
    let failure = ProbeResult::Failure { reason: "Broken".to_owned(), message: "no answer".to_owned() };
    let mut stored: Option<NodeCondition> = None;
    // Result of the probe, time; the status that is written, if any.
    let rows = [
        (ProbeResult::Starting, 0, Some("False")),
        (ProbeResult::Starting, 30, None),
        (success("v1"), 60, Some("True")),
        (success("v1"), 90, None),
        (success("v2"), 120, Some("True")),
        (failure.clone(), 150, Some("False")),
        (failure, 180, None),
        (success("v2"), 210, Some("True")),
    ];
    let mut node = Node::default();
    for (probe, second, status) in rows {
        let (patch, next) = agent.report(stored.as_ref(), &probe, at(second));
        assert_eq!(patch.as_ref().map(|patch| patch.status.as_str()), status, "at {second}");
        assert_eq!(next, Some(at(second + 30)));
        stored = patch.or(stored);
    }
    let stored = stored.unwrap();
    assert_eq!(stored.last_transition_time.as_ref().unwrap().0, at(210));
    // An agent that starts again does not trust what it said before, until it has verified it.
    let (patch, _) = agent.report(Some(&stored), &ProbeResult::Starting, at(240));
    let patch = patch.unwrap();
    assert_eq!((patch.status.as_str(), patch.reason.as_deref()), ("False", Some("Initializing")));
    // A change of the reason alone is a change.
    let other = ProbeResult::Success { reason: "Degraded".to_owned(), message: "v2".to_owned() };
    assert_eq!(agent.report(Some(&stored), &other, at(240)).0.unwrap().reason.as_deref(), Some("Degraded"));
    // The status is all that an agent writes: with it in status.conditions, the gate is met.
    node.status.get_or_insert_default().conditions = Some(vec![stored]);
    let gates = [gate(A)];
    let view = readiness::GatedNodeView::new(&node, &gates);
    assert_eq!(view.condition(A).unwrap().status, "True");

    // A change of the message alone keeps the time of the transition.
    let (first, _) = agent.report(None, &success("v1"), at(0));
    let (second, _) = agent.report(first.as_ref(), &success("v2"), at(50));
    assert_eq!(second.unwrap().last_transition_time.unwrap().0, at(0));

    let mut once = Reporter::new(A);
    once.ends_on_success = true;
    assert_eq!(once.report(None, &ProbeResult::Starting, at(0)).1, Some(at(30)));
    let broken = ProbeResult::Failure { reason: "Broken".to_owned(), message: String::new() };
    assert_eq!(once.report(None, &broken, at(0)).1, Some(at(30)), "only a success ends it");
    once.poll_interval = SignedDuration::from_secs(7);
    assert_eq!(once.report(None, &broken, at(0)).1, Some(at(7)));
    let (patch, next) = once.report(None, &success("done"), at(30));
    assert_eq!((patch.unwrap().status.as_str(), next), ("True", None));
}

#[test]
fn the_reconciler_writes_no_heartbeats() {
    // req: 5233-35
    let mut world = World::new(Policy::kep(), &[gate_a(), gate_b()]).ready(0);
    world.run(0);
    world.run(3);
    for second in 4..400 {
        assert!(world.run(second).writes.is_empty(), "at {second}");
    }
}

#[test]
fn a_gate_that_needs_to_be_met_once() {
    let mut world = World::new(Policy::kep(), &[gate(A)]).ready(0);
    world.bootstrap_only = vec![A.to_owned()];
    assert!(!world.run(0).schedulable);
    world.report(A, "True", "Ok", 1);
    assert!(world.run(1).schedulable);
    world.report(A, "False", "Gone", 2);
    assert!(world.run(2).schedulable);
    // Until the next boot.
    world.boot("boot-2");
    assert!(!world.run(3).schedulable);
    assert_eq!(world.state.gates[A].phase, GatePhase::Waiting);
}

#[test]
fn a_report_of_the_same_second_that_says_something_else_is_a_new_one() {
    let mut world = World::new(Policy::kep(), &[gate_a()]).ready(0);
    world.report(A, "False", "Broken", 5);
    world.run(5);
    world.boot("boot-2");
    world.look(6);
    assert!(world.run(7).decision(A).is_blocking(), "the reset is lost");
    world.report(A, "True", "Ok", 5);
    assert_eq!(world.run(8).decision(A), GateDecision::Satisfied);
}
