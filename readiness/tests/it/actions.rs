//! Taints, labels, roles, and shutdown.

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use readiness::{
    EvaluatorRole, GateDecision, GateLabelError, GatePhase, NodeChange, NodeReadinessGate, Policy, PolicyMode,
};

use super::examples::{CNI, DATADOG};
use super::world::{A, B, World, at, gate_a, gate_b, stored, taint};

/// Returns a world whose gate A has timed out and has its taint on the node.
fn tainted(policy: Policy) -> World {
    let mut world = World::new(policy, &[gate_a()]).ready(0);
    world.run(0);
    world.run(3);
    assert_eq!(world.taints(), ["a:NoSchedule"]);
    world
}

fn label_key(condition_type: &str) -> Result<String, GateLabelError> {
    NodeReadinessGate::new(condition_type, 1).label_key()
}

#[test]
fn a_taint_of_ours_leaves_only_for_a_reason() {
    // req: 5233-28, 5233-32
    let mut world = tainted(Policy::kep());
    world.report(A, "False", "Broken", 10);
    assert!(world.run(10).changes().is_empty());
    world.instance = "kubelet-2".to_owned();
    assert!(world.run(11).changes().is_empty(), "not for a restart of kubelet");
    world.boot("boot-2");
    assert_eq!(world.run(12).changes(), ["a.example/Ready=NodeRestarted"], "not for a reboot");
    assert_eq!(world.state.gates[A].phase, GatePhase::Waiting);
    assert!(world.run(13).changes().is_empty());
    world.report("Ready", "Unknown", "NodeStatusUnknown", 14);
    assert!(world.run(14).changes().is_empty(), "not for a partition");
    assert_eq!(world.taints(), ["a:NoSchedule"]);

    let mut satisfied = world.clone();
    satisfied.report(A, "True", "Ok", 20);
    assert_eq!(satisfied.run(20).changes(), ["-a:NoSchedule"]);
    let mut removed = world.clone();
    removed.node.gates.clear();
    assert_eq!(removed.run(20).changes(), ["-a:NoSchedule"]);
    let mut bypassing = world.clone();
    bypassing.node.gates = vec![gate_a().with_bypass_warning()];
    assert_eq!(bypassing.run(20).changes(), ["-a:NoSchedule"]);
    let mut exchanged = world;
    exchanged.node.gates = vec![NodeReadinessGate::new(A, 3).with_taint(taint("b", "NoSchedule"))];
    assert_eq!(exchanged.run(20).changes(), ["-a:NoSchedule"]);
}

#[test]
fn a_taint_is_added_without_a_time() {
    // The API server sets the time, or the node lifecycle controller; what a gate says is not when the taint was added.
    let timed = Taint { time_added: Some(Time(at(1))), ..taint("a", "NoSchedule") };
    let mut world = World::new(Policy::kep(), &[NodeReadinessGate::new(A, 3).with_taint(timed)]).ready(0);
    world.run(0);
    let writes = world.run(3).writes;
    let added = writes.iter().filter_map(|write| match &write.change {
        NodeChange::AddTaint { taint, .. } => Some(taint.time_added.clone()),
        _ => None,
    });
    assert_eq!(added.collect::<Vec<_>>(), [None]);
}

#[test]
fn a_change_of_the_taint_while_it_is_in_force() {
    let mut world = tainted(Policy::hardened());
    world.node.gates = vec![NodeReadinessGate::new(A, 3).with_taint(taint("b", "NoSchedule"))];
    let seen = world.run(5);
    assert_eq!(seen.changes(), ["+b:NoSchedule", "-a:NoSchedule"], "the new one first");
    assert!(world.run(5).schedulable);
    world.node.gates = vec![gate_a().with_bypass_warning()];
    let seen = world.run(6);
    assert_eq!((seen.changes(), seen.decision(A)), (vec!["-b:NoSchedule".to_owned()], GateDecision::Bypass));
    // A change of the value only: found by key and effect, it is the same taint.
    let mut world = tainted(Policy::kep());
    world.node.gates[0].readiness_taint.as_mut().unwrap().value = Some("other".to_owned());
    assert!(world.run(5).changes().is_empty());
}

#[test]
fn a_taint_that_was_there_before() {
    for (adopt, removed) in [(false, vec![]), (true, vec!["-a:NoSchedule".to_owned()])] {
        let mut policy = Policy::kep();
        policy.adopt_existing_taints = adopt;
        // It is there while the gate times out.
        let mut world = World::new(policy.clone(), &[gate_a()]).ready(0);
        world.put_taint(taint("a", "NoSchedule"));
        world.run(0);
        assert_eq!(world.run(3).changes(), ["a.example/Ready=TimeoutExceeded"], "no second one");
        world.report(A, "True", "Ok", 4);
        assert_eq!(world.run(4).changes(), removed);
        // It is there, with another value, when the gate is True at once.
        let mut world = World::new(policy, &[gate_a()]).ready(0);
        let mut other = taint("a", "NoSchedule");
        other.value = Some("by-hand".to_owned());
        world.put_taint(other);
        world.put_taint(taint("a", "NoExecute"));
        world.report(A, "True", "Ok", 0);
        let seen = world.run(0);
        assert_eq!(seen.changes(), removed);
        assert_eq!(seen.events().contains(&"TaintAdopted"), adopt);
        assert!(world.taints().contains(&"a:NoExecute".to_owned()), "another effect is another taint");
    }
}

#[test]
fn a_taint_that_was_seen_before_its_gate_is_not_adopted() {
    let mut world = World::new(Policy::hardened(), &[]).ready(0);
    world.put_taint(taint("a", "NoSchedule"));
    world.report(A, "True", "Ok", 0);
    world.run(0);
    world.node.gates.push(gate_a());
    assert!(world.run(1).changes().is_empty(), "an administrator may have put it");
    world.report(A, "Unknown", "TimeoutExceeded", 2);
    assert!(world.run(2).schedulable, "it keeps pods away all the same");
    world.report(A, "True", "Ok", 3);
    assert!(world.run(3).changes().is_empty());
    // Also if a gate is changed to have it.
    world.node.gates = vec![gate_a().with_bypass_warning()];
    world.run(4);
    world.node.gates = vec![gate_a()];
    assert!(world.run(5).changes().is_empty());
    // Nor is it if only a gate had it that does not count, as another one of its type stands before it.
    let mut twice = World::new(Policy::hardened(), &[gate_a().with_bypass_warning(), gate_a()]).ready(0);
    twice.put_taint(taint("a", "NoSchedule"));
    twice.report(A, "True", "Ok", 0);
    twice.run(0);
    twice.node.gates.remove(0);
    assert!(twice.run(1).changes().is_empty());
    // Once it is gone, the next one is not that one.
    world.node.node.spec = None;
    world.report(A, "Unknown", "TimeoutExceeded", 6);
    assert_eq!(world.run(6).changes(), ["+a:NoSchedule"]);
    world.report(A, "True", "Ok", 7);
    assert_eq!(world.run(7).changes(), ["-a:NoSchedule"]);
}

#[test]
fn someone_else_removes_the_taint() {
    // It comes back while it is wanted; its removal, when nobody wants it, is no error.
    let mut world = tainted(Policy::kep());
    world.node.node.spec.as_mut().unwrap().taints = None;
    assert_eq!(world.run(4).changes(), ["+a:NoSchedule"]);
    world.report(A, "True", "Ok", 5);
    let seen = world.look(5);
    world.node.node.spec.as_mut().unwrap().taints = None;
    assert!(world.write(&seen.writes, 5).is_empty());
    assert!(world.run(6).writes.is_empty());
}

#[test]
fn writes_that_are_lost() {
    let mut world = World::new(Policy::kep(), &[gate_a()]).ready(0);
    world.run(0);
    world.look(3);
    assert_eq!(
        world.run(3).changes(),
        ["+a:NoSchedule", "a.example/Ready=TimeoutExceeded"],
        "missing things are written again"
    );
    world.report(A, "True", "Ok", 4);
    world.look(4);
    assert_eq!(world.run(5).changes(), ["-a:NoSchedule"]);
    assert!(world.run(6).writes.is_empty() && stored(&world.state, "leavingTaints").is_empty());
    // A gate that is lost again before the removal was seen: the taint is ours still.
    let mut world = tainted(Policy::kep());
    world.report(A, "True", "Ok", 4);
    world.look(4);
    world.report(A, "Unknown", "TimeoutExceeded", 5);
    assert!(world.run(5).changes().is_empty());
    world.report(A, "True", "Ok", 6);
    assert_eq!(world.run(6).changes(), ["-a:NoSchedule"]);
    // And it is put back if the removal is made after all.
    let mut world = tainted(Policy::kep());
    world.report(A, "True", "Ok", 4);
    world.look(4);
    world.report(A, "False", "Broken", 5);
    assert!(world.run(5).changes().is_empty());
    world.node.node.spec.as_mut().unwrap().taints = None;
    assert_eq!(world.run(6).changes(), ["+a:NoSchedule"]);
}

#[test]
fn writes_of_taints_carry_the_version_they_are_about() {
    let mut world =
        World::new(Policy::kep(), &[NodeReadinessGate::new(A, 3).with_taint(taint("a", "NoExecute"))]).ready(0);
    world.node.node.metadata.resource_version = Some("7".to_owned());
    world.run(0);
    let seen = world.look(3);
    let NodeChange::AddTaint { resource_version, evicting, .. } = &seen.writes[0].change else { panic!("{seen:?}") };
    assert_eq!((resource_version.as_deref(), *evicting), (Some("7"), true));
    world.node.node.metadata.resource_version = Some("8".to_owned());
    let refused = world.write(&seen.writes, 3);
    assert_eq!(refused, seen.writes[..1]);
    assert!(world.taints().is_empty());
    // An effect that does not evict is not marked; one that does has its time.
    assert_eq!(world.run(4).changes(), ["+a:NoExecute"]);
    assert!(world.node.node.spec.as_ref().unwrap().taints.as_ref().unwrap()[0].time_added.is_some());
    let mut mild =
        World::new(Policy::hardened(), &[NodeReadinessGate::new(A, 3).with_taint(taint("a", "PreferNoSchedule"))])
            .ready(0);
    mild.run(0);
    let seen = mild.run(3);
    assert!(matches!(seen.writes[0].change, NodeChange::AddTaint { evicting: false, .. }));
    assert!(mild.run(3).schedulable, "it counts as the hand-over");
}

#[test]
fn before_everything_is_known_nothing_is_removed() {
    let mut world = tainted(Policy::kep());
    world.is_synced = false;
    world.node.gates.clear();
    assert!(world.run(4).writes.is_empty());
    world.is_synced = true;
    assert_eq!(world.run(5).changes(), ["-a:NoSchedule"]);
    assert!(world.labels().is_empty());
}

#[test]
fn before_everything_is_known_no_gate_is_forgotten() {
    // A gate that was released stays released, and what is known of one that was lost stays known.
    let mut world = World::new(Policy::hardened(), &[gate_b()]).ready(0);
    world.run(0);
    world.look(2);
    world.run(3);
    let hidden = |world: &mut World, second: i64| {
        let gates = std::mem::take(&mut world.node.gates);
        world.is_synced = false;
        let seen = world.run(second);
        (world.node.gates, world.is_synced) = (gates, true);
        seen
    };
    assert!(hidden(&mut world, 4).schedulable, "open before");
    assert_eq!(world.run(5).decision(B), GateDecision::Bypass);

    let mut world = World::new(Policy::kep(), &[gate_b()]).ready(0);
    world.report(B, "True", "Ok", 0);
    world.run(0);
    hidden(&mut world, 4);
    world.report(B, "False", "Upgrading", 5);
    let seen = world.run(5);
    assert_eq!((world.state.gates[B].phase, seen.requeue_at), (GatePhase::Regressed, None), "no timer begins");

    // Restarts are not missed: a report from before the boot does not count, and timers begin with Ready.
    world.report(B, "True", "Ok", 6);
    world.run(6);
    world.boot("boot-2");
    hidden(&mut world, 7);
    assert!(!world.run(8).schedulable);
    world.report("Ready", "False", "KubeletStopped", 9);
    hidden(&mut world, 9);
    world.report("Ready", "True", "KubeletReady", 20);
    assert!(world.run(20).wakes(22));
}

#[test]
fn a_gate_that_was_out_of_sight_at_a_boot_is_reset_when_it_is_seen() {
    let mut world = World::new(Policy::kep(), &[gate_b()]).ready(0);
    world.report(B, "True", "Ok", 0);
    assert!(world.run(0).schedulable);
    world.boot("boot-2");
    let gates = std::mem::take(&mut world.node.gates);
    world.is_synced = false;
    assert!(!world.run(5).schedulable, "the boot has reset what is not seen");
    (world.node.gates, world.is_synced) = (gates, true);
    // Longer after the boot than the gate may take: its time begins now.
    let seen = world.run(100);
    assert_eq!(seen.changes(), ["b.example/Ready=NodeRestarted"]);
    assert!(!seen.schedulable && seen.wakes(102));
    world.report(B, "True", "Ok", 101);
    assert!(world.run(101).schedulable);
}

#[test]
fn before_everything_is_known_no_node_opens() {
    let mut world = World::new(Policy::kep(), &[gate_b()]).ready(0);
    world.is_synced = false;
    let gates = std::mem::take(&mut world.node.gates);
    assert!(!world.run(0).schedulable, "nothing is known of it");
    (world.node.gates, world.is_synced) = (gates.clone(), true);
    assert!(!world.run(1).schedulable);
    (world.node.gates, world.is_synced) = (Vec::new(), false);
    assert!(!world.run(2).schedulable, "the gate is not seen, which does not mean that it is gone");
    world.is_synced = true;
    assert!(world.run(3).schedulable, "it is gone");
    // A node that is open stays open, unless a gate that is seen blocks.
    world.is_synced = false;
    assert!(world.run(4).schedulable);
    world.node.gates = gates;
    assert!(!world.run(5).schedulable);
    world.report(B, "True", "Ok", 6);
    assert!(!world.run(6).schedulable, "there may be others");
}

#[test]
fn before_everything_is_known_taints_of_ours_stay_ours() {
    let mut world = tainted(Policy::kep());
    let taints = world.node.node.spec.take();
    let gates = std::mem::take(&mut world.node.gates);
    world.is_synced = false;
    world.run(4);
    (world.node.node.spec, world.node.gates, world.is_synced) = (taints, gates, true);
    world.report(A, "True", "Ok", 5);
    assert_eq!(world.run(5).changes(), ["-a:NoSchedule"]);
}

#[test]
fn labels_follow_the_list_of_gates() {
    // req: 5233-44, 5233-45, 5233-66
    let mut world = World::new(Policy::kep(), &[gate_a(), NodeReadinessGate::new(DATADOG, 9).with_bypass_warning()]);
    let seen = world.run(0);
    assert_eq!(
        seen.by_kubelet(),
        ["+readiness-gate.a.example/Ready=true", "+readiness-gate.datadog.com/AgentReady=true"]
    );
    assert_eq!(label_key(DATADOG).unwrap(), format!("readiness-gate.{DATADOG}"));
    // They show the configuration, not the state.
    world.report(A, "False", "Broken", 1);
    assert!(world.run(1).writes.is_empty());
    // A value that is not the text true is put right.
    world.node.node.metadata.labels.as_mut().unwrap().insert(label_key(A).unwrap(), "True".to_owned());
    assert_eq!(world.run(2).by_kubelet(), ["+readiness-gate.a.example/Ready=true"]);
    assert_eq!(NodeReadinessGate::LABEL_VALUE, "true");
    // Lost writes are made again.
    world.node.gates.remove(1);
    world.look(3);
    assert_eq!(world.run(3).by_kubelet(), ["-readiness-gate.datadog.com/AgentReady"]);
    assert_eq!(world.labels(), ["readiness-gate.a.example/Ready=true"]);
}

#[test]
fn labels_of_others_stay() {
    // req: 5233-46
    for (removes_foreign, stays) in [(false, true), (true, false)] {
        let mut kep = Policy::kep();
        kep.removes_foreign_labels = removes_foreign;
        let mut world = World::new(kep, &[gate_a()]);
        let labels = [(label_key(A).unwrap(), "true".to_owned()), (label_key(B).unwrap(), "true".to_owned())];
        world.node.node.metadata.labels =
            Some(labels.into_iter().chain([("mine".to_owned(), "1".to_owned())]).collect());
        world.run(0);
        world.node.gates.clear();
        world.run(1);
        let left = world.labels();
        assert!(left.contains(&"mine=1".to_owned()));
        assert_eq!(left.contains(&"readiness-gate.b.example/Ready=true".to_owned()), stays, "set to try a gate out");
        assert_eq!(left.contains(&"readiness-gate.a.example/Ready=true".to_owned()), stays, "there before us");
    }
}

#[test]
fn labels_that_kubelet_may_not_write_have_another_writer() {
    let gates = [NodeReadinessGate::new(CNI, 9).with_bypass_warning(), gate_b()];
    let seen = World::new(Policy::kep(), &gates).run(0);
    assert_eq!(seen.by_controller(), ["+readiness-gate.network.kubernetes.io/CNIReady=true"]);
    assert_eq!(seen.by_kubelet(), ["+readiness-gate.b.example/Ready=true"]);
    let kubelet = World::new(Policy::kep(), &gates).with_role(EvaluatorRole::Kubelet).run(0);
    assert_eq!((kubelet.writes.len(), kubelet.by_controller().len()), (1, 0));
    // What makes no label has none, and nothing else is wrong for it.
    let odd = [NodeReadinessGate::new("Ready", 9).with_bypass_warning()];
    assert!(World::new(Policy::kep(), &odd).run(0).writes.is_empty());
}

#[test]
fn kubelet_and_the_controller_divide_the_work() {
    // req: 5233-24, 5233-25, 5233-26, 5233-27, 5233-30
    let gates = [gate_a(), gate_b()];
    let mut kubelet = World::new(Policy::kep(), &gates).ready(0).with_role(EvaluatorRole::Kubelet);
    let mut nlc = World::new(Policy::kep(), &gates).ready(0).with_role(EvaluatorRole::Nlc);
    kubelet.run(0);
    assert_eq!(nlc.run(0).requeue_at, None, "it keeps no time");
    assert!(nlc.run(100).writes.is_empty());

    let by_kubelet = kubelet.run(3);
    assert_eq!(by_kubelet.changes(), ["a.example/Ready=TimeoutExceeded", "b.example/Ready=TimeoutExceeded"]);
    assert!(by_kubelet.events().is_empty());
    nlc.node = kubelet.node.clone();
    let by_nlc = nlc.run(3);
    assert_eq!(by_nlc.changes(), ["+a:NoSchedule"]);
    let mut events = by_nlc.events();
    events.sort_unstable();
    assert_eq!(events, ["GateBypassed", "GateTimedOut", "TaintAdded"]);

    kubelet.node = nlc.node.clone();
    kubelet.report(A, "True", "Ok", 4);
    nlc.node = kubelet.node.clone();
    assert!(kubelet.run(4).writes.is_empty());
    assert_eq!(nlc.run(4).changes(), ["-a:NoSchedule"]);
}

#[test]
fn taking_everything_back() {
    let mut world = tainted(Policy::hardened());
    world.put_taint(taint("b", "NoSchedule"));
    let writes = world.state.shutdown_writes();
    world.write(&writes, 9);
    assert_eq!(world.taints(), ["b:NoSchedule"]);
    assert!(world.labels().is_empty());
    assert_eq!(world.condition(A).unwrap().1, "TimeoutExceeded", "conditions are their owners'");
}

#[test]
fn switching_off_and_suspending() {
    // req: 5233-50
    let mut world = tainted(Policy::kep());
    world.policy.mode = PolicyMode::Off;
    world.is_synced = false;
    assert!(world.run(4).changes().is_empty(), "before everything is known, nothing is taken back");
    world.is_synced = true;
    let seen = world.run(5);
    assert_eq!(seen.changes(), ["-a:NoSchedule"]);
    assert!(seen.schedulable && seen.gates.is_empty() && seen.requeue_at.is_none());
    assert!(world.labels().is_empty());
    assert!(world.run(6).writes.is_empty());
    world.policy.mode = PolicyMode::Active;
    world.forget(A);
    assert!(world.run(7).wakes(10), "on again, it begins from the start");

    let mut world = World::new(Policy::kep(), &[gate_a(), gate_b()]).ready(0);
    world.policy.mode = PolicyMode::Suspended;
    assert!(world.run(0).wakes(2));
    let seen = world.run(100);
    assert!(seen.writes.is_empty() && !seen.schedulable, "timers run, nothing is written");
    world.policy.mode = PolicyMode::Active;
    let seen = world.run(101);
    assert_eq!(
        seen.changes(),
        ["+a:NoSchedule", "a.example/Ready=TimeoutExceeded", "b.example/Ready=TimeoutExceeded"],
        "what was held back is written"
    );
}

#[test]
fn a_label_of_somebody_else_is_not_taken_over_while_another_one_leaves() {
    let mut world = World::new(Policy::kep(), &[gate_a(), gate_b()]).ready(0);
    let label = label_key(A).unwrap();
    world.node.node.metadata.labels = Some([(label.clone(), NodeReadinessGate::LABEL_VALUE.to_owned())].into());
    world.run(0);
    world.node.gates.pop();
    world.look(1);
    world.look(2);
    assert_eq!(stored(&world.state, "leavingLabels").len(), 1, "the removal of the label of gate B is lost");
    world.node.gates.clear();
    world.run(3);
    assert_eq!(world.labels(), [format!("{label}=true")]);
}
