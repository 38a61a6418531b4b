//! Filter: its decision table, its messages, and the examples of the KEP.

use k8s_openapi::api::core::v1::{Pod, Toleration};
use proptest::collection::vec;
use proptest::prelude::*;
use readiness::{
    FilterCause, FilterOptions, FilterOutcome, GatedNode, GatedPod, GatedPodView, NodeReadinessGate, Policy,
    PolicyMode, filter,
};
use serde_json::{Value, from_value, json};

use super::examples::{self, CNI, DATADOG, PATCH};
use super::world::{A, B, World, gate_a, gate_b, taint, with};

fn condition(name: &str, status: &str, reason: &str) -> Value {
    json!({"type": name, "status": status, "reason": reason})
}

fn node(gates: Value, conditions: &[Value]) -> GatedNode {
    from_value(json!({"spec": {"readinessGates": gates}, "status": {"conditions": conditions}})).unwrap()
}

fn gate(name: &str) -> Value {
    json!({"conditionType": name, "timeoutSeconds": 60, "failureAction": "BypassWithWarning"})
}

fn plain() -> GatedPod {
    GatedPod::default()
}

fn daemon() -> GatedPod {
    from_value(json!({"metadata": {"ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": true}]}}))
    .unwrap()
}

fn requiring(names: &[&str]) -> GatedPod {
    let list: Vec<Value> = names.iter().map(|name| json!({"conditionType": name, "status": "True"})).collect();
    from_value(json!({"spec": {"containers": [], "nodeReadinessRequirements": list}})).unwrap()
}

fn ask(node: &GatedNode, pod: &GatedPod) -> (FilterOutcome, Vec<String>) {
    let view = node.view();
    let verdict = filter(FilterOptions::kep(), &view, pod.view());
    let allowed = !matches!(verdict.outcome, FilterOutcome::NodeNotReady | FilterOutcome::Unmet);
    assert_eq!(verdict.is_allowed(), allowed);
    (verdict.outcome, verdict.reasons.iter().map(|reason| reason.condition_type.to_owned()).collect())
}

#[test]
fn each_row_of_the_decision_table() {
    // req: 5233-3, 5233-13, 5233-14, 5233-15, 5233-16, 5233-17, 5233-18, 5233-57
    let ready = condition("Ready", "True", "KubeletReady");
    let (met, released) = (condition(A, "True", "Ok"), condition(B, "Unknown", "TimeoutExceeded"));
    let both = || json!([gate(A), gate(B)]);
    let none: [&str; 0] = [];
    let rows: Vec<(GatedNode, GatedPod, FilterOutcome, &[&str])> = vec![
        (node(both(), &[]), daemon(), FilterOutcome::DaemonSetExempt, &none),
        (node(both(), &[condition("Ready", "False", "")]), daemon(), FilterOutcome::DaemonSetExempt, &none),
        (node(json!([]), &[]), plain(), FilterOutcome::NodeNotReady, &["Ready"]),
        (node(json!([]), &[condition("Ready", "False", "x")]), plain(), FilterOutcome::NodeNotReady, &["Ready"]),
        (node(json!([]), &[condition("Ready", "Unknown", "x")]), plain(), FilterOutcome::NodeNotReady, &["Ready"]),
        (node(json!([gate(A)]), &[met.clone()]), plain(), FilterOutcome::NodeNotReady, &["Ready"]),
        (node(json!([gate(A)]), &[]), plain(), FilterOutcome::NodeNotReady, &["Ready", A]),
        (node(json!([]), &[ready.clone()]), plain(), FilterOutcome::NoGates, &none),
        (node(json!([gate(A)]), &[ready.clone(), met.clone()]), plain(), FilterOutcome::GatesMet, &none),
        (node(both(), &[ready.clone(), met.clone(), released.clone()]), plain(), FilterOutcome::GatesMet, &[B]),
        (node(both(), &[ready.clone(), released.clone()]), plain(), FilterOutcome::Unmet, &[A]),
        (node(both(), &[ready.clone()]), plain(), FilterOutcome::Unmet, &[A, B]),
        (node(both(), &[ready.clone(), met.clone()]), requiring(&[A]), FilterOutcome::PodScoped, &none),
        (node(both(), &[ready.clone(), met.clone()]), requiring(&[B, A]), FilterOutcome::Unmet, &[B]),
        (node(both(), &[ready.clone(), released.clone()]), requiring(&[B]), FilterOutcome::Unmet, &[B]),
        (node(json!([]), &[met.clone()]), requiring(&[A]), FilterOutcome::NodeNotReady, &["Ready"]),
        (node(json!([]), &[]), requiring(&[A]), FilterOutcome::NodeNotReady, &["Ready", A]),
        (
            node(both(), &[]),
            from_value(json!({"spec": {"containers": [], "nodeReadinessRequirements": []}})).unwrap(),
            FilterOutcome::NodeNotReady,
            &["Ready", A, B],
        ),
    ];
    for (index, (node, pod, outcome, reasons)) in rows.into_iter().enumerate() {
        let (found, types) = ask(&node, &pod);
        assert_eq!(
            (found, types.iter().map(String::as_str).collect::<Vec<_>>().as_slice()),
            (outcome, reasons),
            "row {index}"
        );
    }
}

#[test]
fn what_satisfies_a_gate() {
    // req: 5233-15
    let rows = [
        ("True", "", true),
        ("True", "TimeoutExceeded", true),
        ("Unknown", "TimeoutExceeded", true),
        ("Unknown", "NodeRestarted", false),
        ("Unknown", "", false),
        ("Unknown", "timeoutexceeded", false),
        ("False", "", false),
        ("False", "TimeoutExceeded", false),
        ("true", "", false),
        ("", "", false),
        ("unknown", "TimeoutExceeded", false),
    ];
    for (status, reason, met) in rows {
        let node = node(json!([gate(A)]), &[condition("Ready", "True", ""), condition(A, status, reason)]);
        assert_eq!(ask(&node, &plain()).0 == FilterOutcome::GatesMet, met, "{status:?} {reason:?}");
    }
}

#[test]
fn the_first_of_several_conditions_counts() {
    let conditions = [condition("Ready", "True", ""), condition(A, "False", ""), condition(A, "True", "")];
    let mut node = node(json!([gate(A)]), &conditions);
    assert_eq!(ask(&node, &plain()).0, FilterOutcome::Unmet);
    node.node.status.as_mut().unwrap().conditions.as_mut().unwrap().swap(1, 2);
    assert_eq!(ask(&node, &plain()).0, FilterOutcome::GatesMet);
    let two_ready = [condition("Ready", "False", ""), condition("Ready", "True", "")];
    assert_eq!(ask(&super::filter::node(json!([]), &two_ready), &plain()).0, FilterOutcome::NodeNotReady);
}

#[test]
fn missing_and_unmet_are_told_apart() {
    let node =
        node(json!([gate(A), gate(B)]), &[condition("Ready", "True", ""), condition(B, "False", "Initializing")]);
    let pod = plain();
    let verdict = filter(FilterOptions::kep(), &node.view(), pod.view()).to_string();
    assert_eq!(
        verdict,
        "readiness gate \"a.example/Ready\": condition does not exist, readiness gate \"b.example/Ready\": condition \
         status is False (Initializing)"
    );
    let pod = requiring(&[A, B]);
    let verdict = filter(FilterOptions::kep(), &node.view(), pod.view()).to_string();
    assert_eq!(
        verdict,
        "required condition \"a.example/Ready\" does not exist, required condition \"b.example/Ready\" status is False \
         (Initializing)"
    );
}

#[test]
fn a_released_gate_may_have_to_wait_for_its_taint() {
    // req: 5233-61, 5233-62
    let taint_gate =
        json!({"conditionType": A, "timeoutSeconds": 3, "readinessTaint": {"key": "a", "effect": "NoSchedule"}});
    let conditions = [condition("Ready", "True", ""), condition(A, "Unknown", "TimeoutExceeded")];
    let pod = plain();
    let mut node = node(json!([taint_gate]), &conditions);
    let verdict = |node: &GatedNode, options| filter(options, &node.view(), pod.view()).is_allowed();
    assert!(verdict(&node, FilterOptions::kep()));
    assert!(!verdict(&node, FilterOptions::hardened()));
    let view = node.view();
    assert_eq!(filter(FilterOptions::hardened(), &view, pod.view()).reasons[0].cause, FilterCause::AwaitingTaint);

    // Any value will do, but not another effect.
    let mut other = taint("a", "NoExecute");
    node.node.spec.get_or_insert_default().taints = Some(vec![other.clone()]);
    assert!(!verdict(&node, FilterOptions::hardened()));
    other.effect = "NoSchedule".to_owned();
    other.value = Some("anything".to_owned());
    node.node.spec.get_or_insert_default().taints = Some(vec![other]);
    assert!(verdict(&node, FilterOptions::hardened()));
    // Now the taint decides: without the toleration the pod is still repelled.
    assert!(node.view().first_untolerated_taint(&[]).is_some());
    let toleration =
        Toleration { key: Some("a".to_owned()), operator: Some("Exists".to_owned()), ..Toleration::default() };
    assert_eq!(node.view().first_untolerated_taint(&[toleration]), None);

    // A gate that bypasses has no taint to wait for, and leaves none.
    let bypass = super::filter::node(json!([gate(A)]), &conditions);
    assert!(verdict(&bypass, FilterOptions::hardened()) && bypass.view().taints().is_empty());
    // What has no fallback is never taken over.
    let cordon = super::filter::node(json!([{"conditionType": A, "failureAction": "Cordon"}]), &conditions);
    assert!(verdict(&cordon, FilterOptions::kep()) && !verdict(&cordon, FilterOptions::hardened()));
}

#[test]
fn the_walkthrough() {
    // req: 5233-59, 5233-65
    let mut node: GatedNode = from_value(examples::node()).unwrap();
    let (ready, all) = (condition("Ready", "True", "KubeletReady"), [DATADOG, PATCH, CNI]);
    let snapshots: [(Vec<Value>, &[&str]); 5] = [
        (vec![condition("Ready", "False", "KubeletStarting")], &["Ready", DATADOG, PATCH, CNI]),
        (vec![ready.clone()], &all),
        (vec![ready.clone(), condition(CNI, "True", "CNIPluginReady")], &[DATADOG, PATCH]),
        (vec![ready.clone(), condition(CNI, "True", ""), condition(DATADOG, "True", "AgentHealthy")], &[PATCH]),
        (all.iter().map(|name| condition(name, "True", "")).chain([ready]).collect(), &[]),
    ];
    for (index, (conditions, unmet)) in snapshots.into_iter().enumerate() {
        node.node.status.get_or_insert_default().conditions = Some(from_value(json!(conditions)).unwrap());
        let (outcome, reasons) = ask(&node, &plain());
        assert_eq!(reasons, unmet);
        assert_eq!(outcome == FilterOutcome::GatesMet, index == 4, "snapshot {index}");
        assert_eq!(ask(&node, &daemon()).0, FilterOutcome::DaemonSetExempt, "agents come to the node all the time");
    }
}

#[test]
fn daemon_sets_are_exempt_from_gates_and_not_from_taints() {
    // req: 5233-65
    let agent: Pod = from_value(json!({"spec": {"containers": [], "tolerations": [
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]}}))
    .unwrap();
    let gates = [gate_a(), gate_b()];
    let missing = GatedPodView::new(&agent).missing_tolerations(&gates);
    assert_eq!(missing, [&taint("a", "NoSchedule")], "what the DaemonSet controller adds does not cover it");
    let mut tolerant = agent;
    tolerant
        .spec
        .as_mut()
        .unwrap()
        .tolerations
        .as_mut()
        .unwrap()
        .push(Toleration { operator: Some("Exists".to_owned()), ..Toleration::default() });
    assert!(GatedPodView::new(&tolerant).missing_tolerations(&gates).is_empty());
    // Whose controller is something else is no pod of a daemon set.
    let owner = |kind: &str, version: &str, controller: Value| {
        let owner = json!({"apiVersion": version, "kind": kind, "name": "x", "uid": "1", "controller": controller});
        from_value::<Pod>(json!({"metadata": {"ownerReferences": [owner]}})).unwrap()
    };
    let is_daemon = |pod: &Pod| GatedPodView::new(pod).is_daemon_pod();
    assert!(is_daemon(&owner("DaemonSet", "apps/v1", json!(true))));
    assert!(!is_daemon(&owner("ReplicaSet", "apps/v1", json!(true))));
    assert!(!is_daemon(&owner("DaemonSet", "example.com/v1", json!(true))));
    assert!(!is_daemon(&owner("DaemonSet", "v1", json!(true))));
    assert!(!is_daemon(&owner("DaemonSet", "apps/v1", json!(false))));
    assert!(!is_daemon(&owner("DaemonSet", "apps/v1", Value::Null)));
}

#[test]
fn requirements_of_pods() {
    // req: 5233-57, 5233-73
    let (proxy, gpu) = ("network.kubernetes.io/NetworkProxyReady", "nvidia.com/GPUDriversReady");
    let conditions =
        [condition("Ready", "True", ""), condition(proxy, "True", ""), condition(gpu, "False", "Installing")];
    let node = node(json!([gate(proxy), gate(gpu)]), &conditions);
    assert_eq!(ask(&node, &requiring(&[proxy])).0, FilterOutcome::PodScoped, "cpu-app-1");
    assert_eq!(ask(&node, &requiring(&[proxy, gpu])), (FilterOutcome::Unmet, vec![gpu.to_owned()]), "gpu-app-1");
    assert_eq!(ask(&node, &plain()), (FilterOutcome::Unmet, vec![gpu.to_owned()]), "legacy-pod");
    // An infrastructure team may want both.
    let view = node.view();
    let (cpu, additive) = (requiring(&[proxy]), FilterOptions::kep().with_added_requirements());
    assert_ne!(additive, FilterOptions::kep());
    assert!(!filter(additive, &view, cpu.view()).is_allowed());
    // A condition that is no gate of the node can be required; a status other than True can't.
    assert_eq!(ask(&node, &requiring(&["other.example/Missing"])).0, FilterOutcome::Unmet);
    let not_gpu: GatedPod = from_value(
        json!({"spec": {"containers": [], "nodeReadinessRequirements": [{"conditionType": gpu, "status": "False"}]}}),
    )
    .unwrap();
    assert_eq!(filter(FilterOptions::kep(), &view, not_gpu.view()).reasons[0].cause, FilterCause::UnsupportedStatus);
}

#[test]
fn the_first_of_several_gates_of_a_type_counts() {
    // Such a list was never valid. The reconciler reads it the same way.
    let tainting = with(gate_a(), |gate| gate.condition_type = B.to_owned());
    for (gates, allowed) in [([gate_b(), tainting.clone()], true), ([tainting, gate_b()], false)] {
        let mut world = World::new(Policy::hardened(), &gates).ready(0);
        world.report(B, "Unknown", "TimeoutExceeded", 0);
        let (view, pod) = (world.view(), plain());
        let verdict = filter(FilterOptions::hardened(), &view, pod.view());
        assert_eq!((verdict.is_allowed(), verdict.reasons.len()), (allowed, 1));
        assert_eq!(world.look(0).schedulable, allowed);
    }
    let world = World::new(Policy::kep(), &[gate_b(), gate_b()]).ready(0);
    assert_eq!(ask(&world.node, &plain()), (FilterOutcome::Unmet, vec![B.to_owned()]), "one reason");
}

#[test]
fn nodes_without_gates_are_as_before() {
    // req: 5233-48
    let ready = [condition("Ready", "True", "")];
    let old: GatedNode = from_value(json!({"metadata": {"name": "old"}, "status": {"conditions": ready}})).unwrap();
    let new = node(json!([gate(A)]), &ready);
    assert_eq!(ask(&old, &plain()).0, FilterOutcome::NoGates);
    assert_eq!(ask(&new, &plain()).0, FilterOutcome::Unmet);
    assert!(!serde_json::to_string(&old).unwrap().contains("readinessGates"));
    // Ready is asked for with gates and without.
    let lost = [condition("Ready", "Unknown", "NodeStatusUnknown")];
    let old: GatedNode = from_value(json!({"metadata": {"name": "old"}, "status": {"conditions": lost}})).unwrap();
    assert_eq!(ask(&old, &plain()).0, FilterOutcome::NodeNotReady);
}

#[test]
fn a_plugin_that_is_off_has_no_effect() {
    // req: 5233-50
    let node = node(json!([gate(A)]), &[condition("Ready", "False", ""), condition(A, "False", "Broken")]);
    let (view, pod) = (node.view(), plain());
    let mut policy = Policy::kep();
    policy.mode = PolicyMode::Off;
    let verdict = filter(FilterOptions::from(&policy), &view, pod.view());
    assert_eq!((verdict.outcome, verdict.reasons.len()), (FilterOutcome::Disabled, 0));
    // A node that is read and written has the field still, and its condition can be looked at.
    assert_eq!(serde_json::to_value(&node).unwrap()["spec"]["readinessGates"], json!([gate(A)]));
    assert_eq!(view.condition(A).unwrap().reason.as_deref(), Some("Broken"));
}

#[test]
fn gates_come_and_go() {
    // req: 5233-20, 5233-49, 5233-67, 5233-68
    let mut world = World::new(Policy::kep(), &[]).ready(0);
    let open = |world: &World| ask(&world.node, &plain()).0;
    assert_eq!(open(&world), FilterOutcome::NoGates);
    world.node.gates.push(gate_a());
    assert_eq!(open(&world), FilterOutcome::Unmet, "new pods wait");
    world.report(A, "True", "Ok", 1);
    assert_eq!(open(&world), FilterOutcome::GatesMet);
    world.report(A, "False", "Upgrading", 2);
    assert_eq!(open(&world), FilterOutcome::Unmet, "and again");
    // Without the gate, Ready and taints decide; a taint that is left over still repels.
    world.put_taint(taint("a", "NoSchedule"));
    world.node.gates.clear();
    assert_eq!(open(&world), FilterOutcome::NoGates);
    assert!(world.view().first_untolerated_taint(&[]).is_some());
}

#[test]
fn labels_select_nodes() {
    // req: 5233-66
    let node: GatedNode = from_value(examples::node()).unwrap();
    let labels = node.node.metadata.labels.clone().unwrap();
    for gate in &node.gates {
        assert_eq!(labels.get(&gate.label_key().unwrap()).map(String::as_str), Some(NodeReadinessGate::LABEL_VALUE));
    }
    // nodeSelector {"readiness-gate.datadog.com/AgentReady": "true"}, and Exists on the other.
    assert_eq!(labels["readiness-gate.datadog.com/AgentReady"], "true");
    assert!(labels.contains_key("readiness-gate.ai-corp.com/RuntimePatchApplied"));
}

#[test]
fn both_spellings_of_the_field() {
    // req: 5233-1
    let read = |spec: Value| from_value::<GatedNode>(json!({"spec": spec}));
    for field in ["readinessGates", "nodeReadinessGates"] {
        let node = read(json!({field: [gate(A)]})).unwrap();
        assert_eq!(node.gates.len(), 1);
        let written = serde_json::to_value(&node).unwrap();
        assert_eq!(written["spec"]["readinessGates"][0]["conditionType"], A);
    }
    let error = read(json!({"readinessGates": [gate(A)], "nodeReadinessGates": []})).unwrap_err();
    assert!(error.to_string().contains("duplicate field"), "{error}");
    assert!(read(json!({"readinessGates": null})).unwrap().gates.is_empty());
    assert!(read(json!({"readinessGates": [{"timeoutSeconds": "soon"}]})).is_err());
    assert_eq!(NodeReadinessGate::PATCH_MERGE_KEY, "conditionType");
    // kubelet's configuration has the other name, and takes this one too.
    let config = |text: Value| from_value::<readiness::KubeletConfiguration>(text);
    assert_eq!(
        config(json!({"readinessGates": [gate(A)]})).unwrap(),
        config(json!({"nodeReadinessGates": [gate(A)]})).unwrap()
    );
    assert!(config(json!({"readinessGates": [], "nodeReadinessGates": []})).is_err());
}

#[cfg(feature = "schemars")]
#[test]
fn lists_of_gates_merge_by_type() {
    // req: 5233-1
    let schema = schemars::schema_for!(readiness::KubeletConfiguration);
    let gates = &schema.as_value()["properties"]["nodeReadinessGates"];
    assert_eq!(gates["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(gates["x-kubernetes-patch-merge-key"], NodeReadinessGate::PATCH_MERGE_KEY);
}

fn any_condition() -> impl Strategy<Value = Value> {
    let status = prop_oneof![Just("True"), Just("False"), Just("Unknown"), Just("true")];
    let reason = prop_oneof![Just("TimeoutExceeded"), Just("NodeRestarted"), Just("Ok")];
    let name = prop_oneof![3 => Just("Ready"), 2 => Just(A), 2 => Just(B), 1 => Just(CNI)];
    (name, status, reason).prop_map(|(name, status, reason)| condition(name, status, reason))
}

fn any_node() -> impl Strategy<Value = GatedNode> {
    let gates = proptest::sample::subsequence(vec![gate(A), gate(B), gate(CNI)], 0..=3);
    (gates, vec(any_condition(), 0..6)).prop_map(|(gates, conditions)| {
        let mut all: Vec<Value> = Vec::new();
        for condition in conditions {
            if !all.iter().any(|other| other["type"] == condition["type"]) {
                all.push(condition);
            }
        }
        node(json!(gates), &all)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Checks that Ready is required, that a condition which becomes True never blocks, and that another gate never opens.
    #[test]
    fn the_filter_is_monotone(node in any_node(), which in 0_usize..4) {
        let allows = |node: &GatedNode| ask(node, &plain()).0;
        let before = ask(&node, &plain());
        let is_open = !matches!(before.0, FilterOutcome::NodeNotReady | FilterOutcome::Unmet);
        prop_assert!(!is_open || node.view().is_ready());
        prop_assert!(!(node.gates.is_empty() && node.view().is_ready()) || is_open);

        let name = ["Ready", A, B, CNI][which];
        let mut better = node.clone();
        let conditions = better.node.status.get_or_insert_default().conditions.get_or_insert_default();
        conditions.retain(|condition| condition.type_ != name);
        conditions.push(from_value(condition(name, "True", "Ok")).unwrap());
        prop_assert!(!is_open || !matches!(allows(&better), FilterOutcome::NodeNotReady | FilterOutcome::Unmet));

        let mut stricter = node.clone();
        stricter.gates.push(gate_a());
        prop_assert!(is_open || matches!(allows(&stricter), FilterOutcome::NodeNotReady | FilterOutcome::Unmet));
    }

    /// Checks that the order of gates and conditions changes only the order of the reasons.
    #[test]
    fn order_does_not_matter(node in any_node()) {
        let mut turned = node.clone();
        turned.gates.reverse();
        turned.node.status.get_or_insert_default().conditions.get_or_insert_default().reverse();
        let ((outcome, mut reasons), (other, mut others)) = (ask(&node, &plain()), ask(&turned, &plain()));
        reasons.sort();
        others.sort();
        prop_assert_eq!((outcome, reasons), (other, others));
    }

    /// Checks that every pod is allowed with the feature off.
    #[test]
    fn off_allows(node in any_node()) {
        let mut options = FilterOptions::hardened();
        (options.mode, options.waits_for_taint) = (PolicyMode::Off, true);
        prop_assert!(filter(options, &node.view(), plain().view()).is_allowed());
    }
}
