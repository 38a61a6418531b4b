//! Registration, network, previews, autoscalers and rules.

use k8s_openapi::api::core::v1::{NodeCondition, Pod, Toleration};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use readiness::network::{Aggregate, HoldDown, LocalNetwork, NetworkCondition, PodNetworkAdmission};
use readiness::rule::{ExpandError, Expansion, NodeReadinessRule, ReadinessTaintRule};
use readiness::validate::{ValidationOptions, validate_gate_update};
use readiness::{
    ConditionStatus, FilterOptions, GateProposal, GatedNode, GatedNodeView, GatedPodView, KubeletConfiguration,
    NodePreview, NodeReadinessGate, NodeState, Policy, filter,
};
use serde_json::{Value, from_value, json, to_value};

use super::examples;
use super::world::{A, B, Seen, World, at, gate_a, gate_b, taint};

const CNI: &str = "network.kubernetes.io/CNIReady";
const PROXY: &str = "network.kubernetes.io/NetworkProxyReady";

fn gate(name: &str, seconds: i32) -> NodeReadinessGate {
    NodeReadinessGate::new(name, seconds).with_bypass_warning()
}

#[test]
fn statuses_are_written_as_people_read_them() {
    let texts = [
        (ConditionStatus::Missing, "Missing"),
        (ConditionStatus::True, "True"),
        (ConditionStatus::False, "False"),
        (ConditionStatus::Unknown, "Unknown"),
        (ConditionStatus::TimeoutExceeded, "TimeoutExceeded"),
        (ConditionStatus::NodeRestarted, "NodeRestarted"),
    ];
    for (status, text) in texts {
        assert_eq!(status.to_string(), text);
    }
}

#[test]
fn registration() {
    // req: 5233-2, 5233-47
    let config: KubeletConfiguration = from_value(examples::configuration()).unwrap();
    let created = config.node_readiness_gates.clone();
    assert_eq!(created.len(), 3);
    // It is in the object from the first moment: there is no time at which a pod could come in between.
    let node = GatedNode { gates: created, ..GatedNode::default() };
    let pod = Pod::default();
    assert!(!filter(FilterOptions::kep(), &node.view(), GatedPodView::new(&pod)).is_allowed());

    let stored = [gate(A, 10), gate(B, 20)];
    let rows = [
        (vec![gate(A, 99)], vec![gate(A, 99), gate(B, 20)]),
        (vec![gate(A, 1)], vec![gate(A, 10), gate(B, 20)]),
        (vec![gate(CNI, 5), gate(CNI, 6)], vec![gate(A, 10), gate(B, 20), gate(CNI, 6)]),
        (vec![], stored.to_vec()),
        // A taint comes with the first registration or not from the node.
        (vec![gate_a(), gate(CNI, 5).with_taint(taint("a", "NoSchedule"))], stored.to_vec()),
        // One gate that is refused would keep out the others.
        (vec![NodeReadinessGate::new(CNI, 5), gate(A, 0), gate(PROXY, 0)], stored.to_vec()),
    ];
    for (configured, expected) in rows {
        let merged = KubeletConfiguration { node_readiness_gates: configured }.merge_gates(&stored);
        assert!(validate_gate_update(&stored, &merged, &ValidationOptions::default().by_node()).is_valid());
        assert_eq!(merged, expected);
    }
}

#[test]
fn several_network_gates_as_one() {
    // req: 5233-52
    let mut world = World::new(Policy::kep(), &[gate(CNI, 9), gate(A, 9), gate(PROXY, 9)]);
    let all = |world: &World| Aggregate::from_gates(&world.view(), Aggregate::NETWORK_PREFIX);
    let unknown = |name: &str| Some(Aggregate::Unknown(name.to_owned()));
    assert_eq!(all(&world), unknown(CNI));
    world.report(CNI, "True", "Ok", 0);
    assert_eq!(all(&world), unknown(PROXY), "missing");
    world.report(PROXY, "Unknown", "TimeoutExceeded", 0);
    assert_eq!(all(&world), unknown(PROXY), "a timeout is not True");
    world.report(PROXY, "True", "Ok", 0);
    assert_eq!(all(&world), Some(Aggregate::True), "whatever other gates say");
    world.report(PROXY, "False", "Broken", 0);
    world.report(CNI, "Unknown", "Lost", 0);
    assert_eq!(all(&world), Some(Aggregate::False(PROXY.to_owned())), "False before Unknown");
    world.node.gates = vec![gate(A, 9)];
    assert_eq!(all(&world), None, "nothing to say of no gates");
    // kubelet itself aggregates nothing: the reconciler never writes such a condition.
    world.node.gates = vec![gate(CNI, 2)];
    let mut world = world.ready(0);
    for second in 0..9 {
        world.run(second);
    }
    assert_eq!(world.condition(NetworkCondition::TYPE), None);
}

/// Decision of kubelet on a new pod, or on one that was there before.
type Admit = fn(&LocalNetwork, &Pod, Timestamp) -> PodNetworkAdmission;

#[test]
fn admission_by_local_signals() {
    use {ConditionStatus::Missing, ConditionStatus::TimeoutExceeded, ConditionStatus::True};
    let on_network = |is_host: bool| from_value(json!({"spec": {"containers": [], "hostNetwork": is_host}})).unwrap();
    let (pod, host): (Pod, Pod) = (on_network(false), on_network(true));
    let (new, existing): (Admit, Admit) = (LocalNetwork::admit_new, LocalNetwork::admit_existing);
    // req: 5233-53, 5233-54, 5233-55
    assert_eq!(LocalNetwork::DEFAULT_TIMEOUT, SignedDuration::from_secs(120));
    assert_eq!(
        (NetworkCondition::TYPE, "KubeletNetworkPrerequisiteTimeout"),
        ("node.kubernetes.io/NetworkReady", "KubeletNetworkPrerequisiteTimeout")
    );
    let local = |network, ready_since: Option<i64>, timeout| LocalNetwork {
        ready_since: ready_since.map(at),
        network,
        timeout: SignedDuration::from_secs(timeout),
    };
    let until = |seconds| PodNetworkAdmission::Reject { until: Some(at(seconds)) };
    let rows = [
        (local(None, Some(0), 120), &pod, new, 1, PodNetworkAdmission::Admit),
        (local(Some(True), Some(0), 120), &pod, new, 1, PodNetworkAdmission::Admit),
        (local(Some(Missing), Some(0), 120), &host, new, 1, PodNetworkAdmission::Admit),
        (local(Some(Missing), Some(0), 120), &pod, new, 1, until(120)),
        (local(Some(TimeoutExceeded), Some(0), 120), &pod, new, 1, until(120)),
        (local(Some(Missing), Some(0), 120), &pod, existing, 119, until(120)),
        (local(Some(Missing), Some(0), 120), &pod, existing, 120, PodNetworkAdmission::AdmitDegraded),
        (local(Some(Missing), Some(0), 120), &pod, new, 120, until(120)),
        (local(Some(Missing), Some(0), 30), &pod, existing, 30, PodNetworkAdmission::AdmitDegraded),
        (local(Some(Missing), None, 120), &pod, existing, 9_999, PodNetworkAdmission::Reject { until: None }),
        (local(Some(Missing), Some(0), i64::MAX), &pod, existing, 9_999, PodNetworkAdmission::Reject { until: None }),
    ];
    for (index, (local, pod, admit, now, expected)) in rows.into_iter().enumerate() {
        assert_eq!(admit(&local, pod, at(now)), expected, "row {index}");
    }
    assert!(PodNetworkAdmission::AdmitDegraded.to_string().contains("KubeletNetworkPrerequisiteTimeout"));
}

#[test]
fn all_network_gates_together_open_admission() {
    // req: 5233-53
    let mut world = World::new(Policy::kep(), &[gate(CNI, 9), gate(A, 9), gate(PROXY, 9)]);
    let mut network = HoldDown::new(SignedDuration::from_secs(10));
    let mut admit = |world: &World, second| {
        let reported =
            network.observe(&Aggregate::from_gates(&world.view(), Aggregate::NETWORK_PREFIX).unwrap(), at(second));
        let condition = json!({"type": NetworkCondition::TYPE, "status": reported.status, "reason": reported.reason});
        let condition: NodeCondition = from_value(condition).unwrap();
        let network = Some(ConditionStatus::from_condition(Some(&condition)));
        let local = LocalNetwork { ready_since: Some(at(0)), network, timeout: SignedDuration::from_secs(120) };
        (condition.status, local.admit_new(&Pod::default(), at(second)) == PodNetworkAdmission::Admit)
    };
    assert_eq!(admit(&world, 0), ("Unknown".to_owned(), false));
    world.report(CNI, "True", "Ok", 1);
    assert_eq!(admit(&world, 1), ("Unknown".to_owned(), false), "one of two");
    world.report(PROXY, "True", "Ok", 2);
    assert_eq!(admit(&world, 2), ("False".to_owned(), false), "it has to last");
    assert_eq!(admit(&world, 12), ("True".to_owned(), true));
    world.report(CNI, "False", "Broken", 13);
    assert_eq!(admit(&world, 13), ("False".to_owned(), false));
}

#[test]
fn a_hold_of_a_part_of_a_second() {
    // req: 5233-56
    let mut network = HoldDown::new(SignedDuration::from_millis(1_500));
    network.observe(&Aggregate::True, at(0));
    assert_eq!(network.observe(&Aggregate::True, at(1)).status, "False", "not before its time");
    assert_eq!(network.observe(&Aggregate::True, at(2)).status, "True");
}

#[test]
fn a_clock_that_is_set_back_is_no_dip() {
    // req: 5233-56
    let mut network = HoldDown::new(SignedDuration::from_secs(10));
    let mut observe = |second| network.observe(&Aggregate::True, at(second)).status;
    assert_eq!([100, 50, 59, 60, 20].map(&mut observe), ["False", "False", "False", "True", "True"]);
    let stored = to_value(&network).unwrap();
    assert_eq!((&stored["trueSince"], &stored["flaps"]), (&json!(at(20)), &json!(0)));
    network.observe(&Aggregate::False(CNI.to_owned()), at(21));
    assert_eq!(network.observe(&Aggregate::True, at(22)).status, "False", "a dip is one");
}

#[test]
fn null_is_absent() {
    // req: 5233-1, 5233-2, 5233-3
    let config: KubeletConfiguration = from_value(json!({"nodeReadinessGates": null})).unwrap();
    assert_eq!(config, KubeletConfiguration::default());
    let node: GatedNode = from_value(json!({"spec": {"readinessGates": [{"conditionType": null}]}})).unwrap();
    assert_eq!(node.gates, [NodeReadinessGate::default()]);
}

#[test]
fn a_network_that_flaps() {
    // req: 5233-56
    let mut network = HoldDown::new(SignedDuration::from_secs(10));
    let (up, down) = (Aggregate::True, Aggregate::False(CNI.to_owned()));
    let rows = [
        (0, &down, "False", "NetworkNotReady", 0),
        (1, &up, "False", "Stabilizing", 0),
        (10, &up, "False", "Stabilizing", 0),
        (11, &up, "True", "NetworkReady", 0),
        (12, &down, "False", "NetworkNotReady", 1),
        (13, &up, "False", "Stabilizing", 1),
        (14, &down, "False", "NetworkNotReady", 2),
        (15, &up, "False", "Stabilizing", 2),
        (16, &down, "False", "NetworkFlapping", 3),
        (17, &up, "False", "NetworkFlapping", 3),
        (27, &up, "True", "NetworkReady", 3),
    ];
    for (second, aggregate, status, reason, flaps) in rows {
        let reported = network.observe(aggregate, at(second));
        assert_eq!(reported.message.contains("lost 3 times"), flaps == 3, "{}", reported.message);
        assert_eq!((reported.status, reported.reason), (status, reason), "at {second}");
        assert_eq!(to_value(&network).unwrap()["flaps"], json!(flaps), "at {second}");
    }
    assert_eq!(network.observe(&up, at(28)).message, "all conditions are True; it was lost 3 times");
    let read: HoldDown = serde_json::from_str(&serde_json::to_string(&network).unwrap()).unwrap();
    assert_eq!(read, network);
    // Without a time, True counts at once; an unknown network is no network.
    let mut at_once = HoldDown::new(SignedDuration::ZERO);
    assert_eq!(at_once.observe(&up, at(0)).status, "True");
    assert_eq!(at_once.observe(&Aggregate::Unknown(CNI.to_owned()), at(1)).status, "Unknown");
}

fn closes(node: &NodePreview) -> bool {
    node.open_before && !node.open_after
}

fn opens(node: &NodePreview) -> bool {
    !node.open_before && node.open_after
}

#[test]
fn a_preview_counts_and_changes_nothing() {
    let ready = json!({"type": "Ready", "status": "True"});
    let node = |name: &str, conditions: Value, taints: Value| -> GatedNode {
        from_value(
            json!({"metadata": {"name": name}, "spec": {"taints": taints}, "status": {"conditions": conditions}}),
        )
        .unwrap()
    };
    let met = json!([ready, {"type": A, "status": "True"}]);
    let nodes = [
        node("met", met, json!([{"key": "a", "effect": "NoSchedule"}])),
        node("unreported", json!([ready]), json!([])),
        node("released", json!([ready, {"type": A, "status": "Unknown", "reason": "TimeoutExceeded"}]), json!([])),
        node("unready", json!([]), json!([])),
        node("unchanged", json!([ready]), json!([])),
    ];
    let (proposed, state) = ([gate_a()], NodeState::default());
    let proposals = nodes.iter().map(|node| {
        let name = node.node.metadata.name.as_deref().unwrap();
        let current: &[NodeReadinessGate] = if name == "unchanged" { &proposed } else { &[] };
        GateProposal { node: &node.node, current, proposed: &proposed, state: &state }
    });
    let before = nodes.clone();
    let preview = |proposal: GateProposal<'_>| proposal.preview(&Policy::hardened(), at(0));
    let previews: Vec<NodePreview> = proposals.filter_map(preview).collect();
    let count = |is_such: fn(&NodePreview) -> bool| previews.iter().filter(|node| is_such(node)).count();
    assert_eq!((previews.len(), count(closes), count(opens)), (4, 2, 0));
    assert_eq!(count(|node| !node.unreported.is_empty()), 2);
    let taints = previews.iter().map(|node| [node.taints_to_add, node.taints_to_remove]);
    assert_eq!(taints.reduce(|all, one| [all[0] + one[0], all[1] + one[1]]), Some([1, 1]), "an adopted one goes");
    let node_named = |name: &str| previews.iter().find(|node| node.name == name).unwrap();
    assert!(node_named("met").open_before && node_named("met").open_after && node_named("met").reason.is_empty());
    assert_eq!(node_named("unreported").unreported, [A]);
    assert!(node_named("unreported").reason.contains("does not exist"));
    assert_eq!(nodes, before);
    // The other way round.
    let proposals =
        nodes.iter().map(|node| GateProposal { node: &node.node, current: &proposed, proposed: &[], state: &state });
    let previews: Vec<NodePreview> = proposals.filter_map(preview).collect();
    let count = |is_such: fn(&NodePreview) -> bool| previews.iter().filter(|node| is_such(node)).count();
    assert_eq!((previews.len(), count(closes), count(opens)), (5, 0, 3));
}

#[test]
fn autoscalers() {
    let startup = "startup-taint.cluster-autoscaler.kubernetes.io/gpu";
    let mut world =
        World::new(Policy::kep(), &[gate_a(), gate_b(), gate(CNI, 1).with_taint(taint(startup, "NoSchedule"))]);
    assert!(world.view().is_starting());
    world.report(A, "True", "Ok", 0);
    world.report(B, "Unknown", "TimeoutExceeded", 0);
    assert!(world.view().is_starting());
    world.report(CNI, "True", "Ok", 0);
    assert!(!world.view().is_starting());
    let conditions = world.view().template_conditions();
    let types: Vec<&str> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
    assert_eq!(types, [A, B, CNI]);
    // A node made in its likeness passes the filter.
    let mut template = GatedNode { gates: world.node.gates.clone(), ..GatedNode::default() };
    template.node.status.get_or_insert_default().conditions = Some(conditions);
    let ready = from_value(json!({"type": "Ready", "status": "True"})).unwrap();
    template.node.status.as_mut().unwrap().conditions.as_mut().unwrap().push(ready);
    let pod = Pod::default();
    assert!(filter(FilterOptions::kep(), &template.view(), GatedPodView::new(&pod)).is_allowed());
    assert_eq!(world.view().gates_without_startup_taint(&GatedNodeView::STARTUP_TAINT_PREFIXES), [A]);
    assert!(world.view().gates_without_startup_taint(&["startup-taint.", "a"]).is_empty());
}

fn rule(name: &str, spec: Value) -> NodeReadinessRule {
    let mut all = json!({
        "taint": {"key": format!("readiness.k8s.io/{name}"), "effect": "NoSchedule"},
        "nodeSelector": {"matchLabels": {"pool": "gpu"}},
        "conditions": [{"type": "gpu.example/Ready", "requiredStatus": "True"}],
    });
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    from_value(json!({"metadata": {"name": name, "uid": format!("uid-{name}")}, "spec": all})).unwrap()
}

fn labelled(conditions: Value) -> GatedNode {
    from_value(json!({"metadata": {"labels": {"pool": "gpu", "zone": "1"}}, "status": {"conditions": conditions}}))
        .unwrap()
}

#[test]
fn rules_become_gates() {
    let report = |spec: Value, conditions: Value| {
        let expansion = Expansion::from_rules(&[rule("gpu", spec)], &labelled(conditions), 60, at(0)).unwrap();
        assert_eq!(expansion.gates.len(), 1);
        assert_eq!(expansion.gates[0].condition_type, "readiness.k8s.io/gpu");
        assert_eq!(expansion.gates[0].taint().unwrap().key, "readiness.k8s.io/gpu");
        expansion.conditions.first().map(|condition| condition.status.clone())
    };
    let some = |status: &str| Some(status.to_owned());
    let met = json!({"type": "gpu.example/Ready", "status": "True"});
    assert_eq!(report(json!({}), json!([met])), some("True"));
    assert_eq!(report(json!({}), json!([])), some("False"));
    let pressure = json!([{"type": "Pressure", "requiredStatus": "False"}]);
    assert_eq!(report(json!({"conditions": pressure}), json!([{"type": "Pressure", "status": "False"}])), some("True"));
    assert_eq!(report(json!({"conditions": pressure}), json!([])), some("False"), "a missing one is Unknown");
    let defaulted = json!([{"type": "Pressure", "requiredStatus": "False", "defaultStatus": "False"}]);
    assert_eq!(report(json!({"conditions": defaulted}), json!([])), some("True"));
    let two =
        json!([{"type": "gpu.example/Ready", "requiredStatus": "True"}, {"type": "Other", "requiredStatus": "True"}]);
    assert_eq!(report(json!({"conditions": two}), json!([met])), some("False"));
    assert_eq!(report(json!({"conditions": two, "conditionPolicy": "anyOf"}), json!([met])), some("True"));
    // What is stored and right is not written again; a timeout stays until the rule is satisfied.
    let stored = |status: &str, reason: &str| {
        json!({"type": "readiness.k8s.io/gpu", "status": status, "reason": reason,
        "message": "as required: gpu.example/Ready", "lastTransitionTime": "2026-01-01T00:00:50Z"})
    };
    assert_eq!(report(json!({}), json!([met, stored("True", "RuleSatisfied")])), None);
    assert_eq!(report(json!({}), json!([stored("Unknown", "TimeoutExceeded")])), None);
    assert_eq!(report(json!({}), json!([met, stored("Unknown", "TimeoutExceeded")])), some("True"));
    // After a reboot only fresh reports count.
    let reported = |time: &str| json!({"type": "gpu.example/Ready", "status": "True", "lastHeartbeatTime": time});
    let restarted = stored("Unknown", "NodeRestarted");
    assert_eq!(report(json!({}), json!([reported("2026-01-01T00:00:49Z"), restarted])), None);
    assert_eq!(report(json!({}), json!([reported("2026-01-01T00:00:50Z"), restarted])), some("True"));
}

/// Node that rules select. The rules are expanded and the reconciler steps in turn.
struct Ruled {
    rules: Vec<NodeReadinessRule>,
    world: World,
}

impl Ruled {
    fn new(policy: Policy, spec: Value) -> Self {
        let mut world = World::new(policy, &[]).ready(0);
        world.node.node.metadata.labels = Some([("pool".to_owned(), "gpu".to_owned())].into());
        Self { rules: vec![rule("gpu", spec)], world }
    }

    fn run(&mut self, now: i64) -> Seen {
        let expansion = Expansion::from_rules(&self.rules, &self.world.node, 5, at(now)).unwrap();
        (self.world.node.gates, self.world.bootstrap_only) = (expansion.gates, expansion.bootstrap_only);
        let conditions = self.world.conditions();
        for report in expansion.conditions {
            conditions.retain(|condition| condition.type_ != report.type_);
            conditions.push(report);
        }
        self.world.run(now)
    }
}

#[test]
fn a_bootstrap_rule_that_was_met_blocks_no_more() {
    let mut ruled = Ruled::new(Policy::kep(), json!({"enforcementMode": "bootstrap-only"}));
    ruled.world.report("gpu.example/Ready", "True", "Ok", 0);
    assert!(ruled.run(0).schedulable);
    ruled.world.report("gpu.example/Ready", "False", "Down", 1);
    assert!(ruled.run(1).schedulable);
    let pod = Pod::default();
    assert!(filter(FilterOptions::kep(), &ruled.world.view(), GatedPodView::new(&pod)).is_allowed());
    // Nor with an evaluator that has lost its state.
    ruled.world.state = NodeState::default();
    ruled.run(2);
    assert!(ruled.run(7).changes().is_empty());
    // A boot begins anew.
    ruled.world.boot("boot-2");
    assert!(!ruled.run(10).schedulable);
}

#[test]
fn a_rule_takes_no_report_from_before_the_boot_also_after_a_timeout() {
    for policy in [Policy::kep(), Policy::hardened()] {
        let mut ruled = Ruled::new(policy, json!({}));
        ruled.world.report("gpu.example/Ready", "True", "Ok", 0);
        ruled.run(0);
        ruled.world.boot("boot-2");
        ruled.run(10);
        ruled.run(15);
        assert!(ruled.run(16).changes().is_empty());
        assert_eq!(ruled.world.taints(), ["readiness.k8s.io/gpu:NoSchedule"]);
        ruled.world.report("gpu.example/Ready", "True", "Ok", 17);
        assert_eq!(ruled.run(17).changes(), ["-readiness.k8s.io/gpu:NoSchedule"]);
    }
}

#[test]
fn what_a_rule_reports_names_what_is_missing_now() {
    let two =
        json!([{"type": "gpu.example/Ready", "requiredStatus": "True"}, {"type": "Other", "requiredStatus": "True"}]);
    let mut ruled = Ruled::new(Policy::kep(), json!({"conditions": two}));
    ruled.run(0);
    ruled.world.report("Other", "True", "Ok", 1);
    ruled.run(2);
    let view = ruled.world.view();
    let reported = view.condition("readiness.k8s.io/gpu").unwrap();
    assert_eq!(reported.message.as_deref(), Some("not as required: gpu.example/Ready"));
    assert_eq!(reported.last_transition_time.as_ref().unwrap().0, at(0), "the status is the same");
}

#[test]
fn rules_select_nodes() {
    let matches = |selector: Value| {
        let node = labelled(json!([]));
        Expansion::from_rules(&[rule("gpu", json!({"nodeSelector": selector}))], &node, 60, at(0))
            .map(|expansion| expansion.gates.len() == 1)
    };
    let expression = |key: &str, operator: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    let rows = [
        (json!({"matchLabels": {"pool": "gpu", "zone": "1"}}), true),
        (json!({"matchLabels": {"pool": "gpu", "zone": "2"}}), false),
        (expression("zone", "In", json!(["1", "2"])), true),
        (expression("zone", "In", json!(["2"])), false),
        (expression("zone", "NotIn", json!(["2"])), true),
        (expression("zone", "NotIn", json!(["1"])), false),
        (expression("none", "NotIn", json!(["1"])), true),
        (expression("zone", "Exists", json!(null)), true),
        (expression("none", "Exists", json!(null)), false),
        (expression("none", "DoesNotExist", json!(null)), true),
        (expression("zone", "DoesNotExist", json!(null)), false),
    ];
    for (selector, expected) in rows {
        assert_eq!(matches(selector.clone()), Ok(expected), "{selector}");
    }
    assert!(matches!(matches(json!({})), Err(ExpandError::EmptySelector { .. })));
    assert!(matches!(matches(expression("zone", "Gt", json!(["1"]))), Err(ExpandError::Operator { .. })));
    let tried =
        Expansion::from_rules(&[rule("gpu", json!({"dryRun": true}))], &labelled(json!([])), 60, at(0)).unwrap();
    assert!(tried.gates.is_empty());
}

#[test]
fn rules_that_can_not_be() {
    let refused = |name: &str, spec: Value| {
        Expansion::from_rules(&[rule(name, spec)], &labelled(json!([])), 60, at(0)).unwrap_err()
    };
    assert!(matches!(refused("Gpu", json!({})), ExpandError::Name { .. }));
    assert!(matches!(refused(&"g".repeat(64), json!({})), ExpandError::Name { .. }));
    assert!(matches!(refused("gpu", json!({"conditions": []})), ExpandError::Conditions { count: 0, .. }));
    let many: Vec<Value> = (0..33).map(|n| json!({"type": n.to_string(), "requiredStatus": "True"})).collect();
    assert!(matches!(refused("gpu", json!({"conditions": many})), ExpandError::Conditions { count: 33, .. }));
    let asked = |types: &[&str]| -> Value {
        types.iter().map(|name| json!({"type": name, "requiredStatus": "True"})).collect()
    };
    for types in [&[""][..], &["x", "x"], &[&"x".repeat(317)]] {
        assert!(matches!(refused("gpu", json!({"conditions": asked(types)})), ExpandError::ConditionType { .. }));
    }
    assert!(
        Expansion::from_rules(
            &[rule("gpu", json!({"conditions": asked(&[&"x".repeat(316)])}))],
            &labelled(json!([])),
            60,
            at(0)
        )
        .is_ok()
    );
    for (value, effect) in [("v".repeat(64), "NoSchedule"), (String::new(), "Never"), (String::new(), "")] {
        let taint = json!({"key": "readiness.k8s.io/gpu", "value": value, "effect": effect});
        assert!(matches!(refused("gpu", json!({"taint": taint})), ExpandError::Taint { .. }), "{effect}");
    }
    assert!(matches!(
        refused("gpu", json!({"conditions": [{"type": "x", "requiredStatus": "yes"}]})),
        ExpandError::Status { .. }
    ));
    for key in ["other/x", "readiness.k8s.io", "readiness.k8s.io/", "readiness.k8s.io/a/b", "readiness.k8s.io/-"] {
        let error = refused("gpu", json!({"taint": {"key": key, "effect": "NoSchedule"}}));
        assert!(matches!(error, ExpandError::TaintKey { .. }), "{key}");
    }
    let any = json!({"enforcementMode": "bootstrap-only", "conditionPolicy": "anyOf"});
    assert!(matches!(refused("gpu", any), ExpandError::Bootstrap { .. }));
    let shared = json!({"taint": {"key": "readiness.k8s.io/x", "effect": "NoSchedule"}});
    let error =
        Expansion::from_rules(&[rule("one", shared.clone()), rule("two", shared)], &labelled(json!([])), 60, at(0))
            .unwrap_err();
    assert_eq!(error.to_string(), "rules \"one\" and \"two\" hold the same taint on one node");
}

#[test]
fn a_rule_that_ceases_to_select_takes_its_taint_away() {
    let rules = [rule("gpu", json!({}))];
    let mut world = World::new(Policy::hardened(), &[]).ready(0);
    world.node.node.metadata.labels = Some([("pool".to_owned(), "gpu".to_owned())].into());
    let adapt = |world: &mut World, now: i64| {
        let expansion = Expansion::from_rules(&rules, &world.node, 5, at(now)).unwrap();
        (world.node.gates, world.bootstrap_only) = (expansion.gates, expansion.bootstrap_only);
        for condition in expansion.conditions {
            world.report(&condition.type_, &condition.status, condition.reason.as_deref().unwrap_or_default(), now);
        }
        world.run(now)
    };
    adapt(&mut world, 0);
    assert_eq!(adapt(&mut world, 5).changes(), ["+readiness.k8s.io/gpu:NoSchedule"]);
    world.node.node.metadata.labels.as_mut().unwrap().remove("pool");
    assert_eq!(adapt(&mut world, 6).changes(), ["-readiness.k8s.io/gpu:NoSchedule"]);
}

#[test]
fn a_bootstrap_rule_is_done_once() {
    let rule = rule("gpu", json!({"enforcementMode": "bootstrap-only"}));
    let mut node = labelled(json!([]));
    let expansion = Expansion::from_rules(std::slice::from_ref(&rule), &node, 60, at(0)).unwrap();
    assert_eq!(expansion.bootstrap_only, ["readiness.k8s.io/gpu"]);
    let done = ("readiness.k8s.io/bootstrap-completed-uid-gpu".to_owned(), "true".to_owned());
    node.node.metadata.annotations = Some([done].into());
    assert!(
        Expansion::from_rules(std::slice::from_ref(&rule), &node, 60, at(0)).unwrap().gates.is_empty(),
        "never again"
    );
    // A rule of the same name with another UID is another rule.
    let mut again = rule;
    again.metadata.uid = Some("uid-2".to_owned());
    assert_eq!(Expansion::from_rules(&[again], &node, 60, at(0)).unwrap().gates.len(), 1);
}

#[test]
fn gates_compared_with_a_startup_taint() {
    // req: 5233-74
    let (name, pending) = ("cni.example.com/NetworkReady", "cni.example.com/pending");
    let rule = ReadinessTaintRule { readiness_condition: name.to_owned(), target_taint: taint(pending, "NoSchedule") };
    let mut world = World::new(Policy::kep(), &[gate(name, 600)]).ready(0);
    world.put_taint(taint(pending, "NoSchedule"));
    let tolerates =
        |world: &World, tolerations: &[Toleration]| world.view().first_untolerated_taint(tolerations).is_none();
    assert_eq!(rule.removal(&world.view()), None);
    world.report(name, "True", "Ok", 1);
    let removal = rule.removal(&world.view()).unwrap();
    world.write(&[removal], 1);
    assert!(tolerates(&world, &[]) && world.run(1).schedulable);
    // Later the component is down: the controller has nothing left to do, the gate blocks again.
    world.report(name, "False", "Down", 2);
    assert_eq!(rule.removal(&world.view()), None);
    assert!(tolerates(&world, &[]), "the taint is gone for good");
    assert!(!world.run(2).schedulable);
}

#[test]
fn objects_of_any_form_get_an_answer() {
    // Ten thousand conditions and gates, many of one type.
    let conditions: Vec<Value> =
        (0..10_000).map(|n| json!({"type": format!("c{}/x", n % 7_000), "status": "True"})).collect();
    let gates: Vec<Value> = (0..10_000)
        .map(|n| json!({"conditionType": format!("c{}/x", n % 7_000), "timeoutSeconds": i32::MAX}))
        .collect();
    let node: GatedNode =
        from_value(json!({"spec": {"readinessGates": gates}, "status": {"conditions": conditions}})).unwrap();
    let step = readiness::step(
        &Policy::hardened(),
        readiness::EvaluatorRole::Combined,
        &node.view(),
        at(0),
        NodeState::default(),
    );
    assert_eq!(step.verdict.gates.len(), 7_000);
    assert!(step.verdict.gates.iter().all(|(_, decision)| !decision.is_blocking()));
    let report = readiness::validate::validate_gates(&node.gates, &ValidationOptions::default());
    assert!(!report.is_valid());
}
