//! Rules for gates, reports of agents and the network of a node: nothing panics, a rule that was applied has nothing to write, a report
//! is written once, and a network is never reported early.
#![no_main]

use k8s_openapi::api::core::v1::{NodeCondition, Pod};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use libfuzzer_sys::fuzz_target;
use readiness::network::{Aggregate, HoldDown, LocalNetwork, PodNetworkAdmission};
use readiness::reporter::{ProbeResult, Reporter};
use readiness::rule::{Expansion, NodeReadinessRule, ReadinessTaintRule};
use readiness::validate::{ValidationOptions, validate_gates};
use readiness::{ConditionStatus, GatedNode};

type Input = (Vec<NodeReadinessRule>, ReadinessTaintRule, Vec<(i64, GatedNode)>, (i32, i64, String), Pod);

fuzz_target!(|text: &[u8]| {
    let Ok((rules, taint_rule, nodes, (timeout, hold, prefix), pod)) = serde_json::from_slice::<Input>(text) else {
        return;
    };
    let mut network = HoldDown::new(SignedDuration::from_secs(hold));
    for (second, mut node) in nodes {
        let Ok(now) = Timestamp::from_second(second) else { continue };
        expand(&rules, &mut node, timeout, now);
        if let Some(write) = taint_rule.removal(&node.view()) {
            let taints = node.view().taints().len();
            write.apply(&mut node.node, now);
            assert!(node.view().taints().len() <= taints);
        }
        if let Some(aggregate) = Aggregate::from_gates(&node.view(), &prefix) {
            watch_network(&mut network, &aggregate, now);
        }
        let conditions = node.node.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
        conditions.for_each(|condition| report(condition, now));
        admit(&node, &pod, timeout, now);
    }
});

/// Applied conditions are not written again, whatever was stored.
fn expand(rules: &[NodeReadinessRule], node: &mut GatedNode, timeout: i32, now: Timestamp) {
    let Ok(expansion) = Expansion::from_rules(rules, node, timeout, now) else { return };
    assert!(expansion.gates.len() <= rules.len());
    // The timeout is the caller's; all else of a gate is by the rules.
    let with_time = Expansion::from_rules(rules, node, 600, now).expect("the rules are the same");
    assert!(validate_gates(&with_time.gates, &ValidationOptions::default()).is_valid(), "{:?}", with_time.gates);
    let stored = node.node.status.get_or_insert_default().conditions.get_or_insert_default();
    for condition in expansion.conditions {
        stored.retain(|old| old.type_ != condition.type_);
        stored.push(condition);
    }
    let again = Expansion::from_rules(rules, node, timeout, now).expect("the rules are the same");
    assert_eq!(again.conditions, []);
}

fn watch_network(network: &mut HoldDown, aggregate: &Aggregate, now: Timestamp) {
    let told = network.observe(aggregate, now);
    assert!(told.status != "True" || *aggregate == Aggregate::True);
    assert!(network.stable_from(now).is_none_or(|at| at > now && told.status != "True"));
    let text = serde_json::to_string(network).expect("writable");
    assert_eq!(HoldDown::from_json(&text).as_ref().ok(), Some(&*network));
}

fn report(stored: &NodeCondition, now: Timestamp) {
    let mut agent = Reporter::new(&stored.type_);
    (agent.ends_on_success, agent.unknown_when_unreachable) = (stored.reason.is_some(), stored.message.is_some());
    let (reason, message) = (stored.reason.clone().unwrap_or_default(), stored.message.clone().unwrap_or_default());
    let success = ProbeResult::Success { reason: reason.clone(), message: message.clone() };
    for probe in [ProbeResult::Starting, success, ProbeResult::Failure { reason, message }, ProbeResult::Unreachable] {
        let (written, next) = agent.report(Some(stored), &probe, now);
        assert!(next.is_none_or(|next| next >= now));
        let Some(written) = written else { continue };
        assert_eq!(agent.report(Some(&written), &probe, now), (None, next), "a report is written once");
    }
}

fn admit(node: &GatedNode, pod: &Pod, timeout: i32, now: Timestamp) {
    let ready = node.view().condition("Ready").and_then(|ready| ready.last_transition_time.as_ref()).map(|time| time.0);
    let network =
        node.gates.first().map(|gate| ConditionStatus::from_condition(node.view().condition(&gate.condition_type)));
    let local = LocalNetwork { ready_since: ready, network, timeout: SignedDuration::from_secs(i64::from(timeout)) };
    let (new, old) = (local.admit_new(pod, now), local.admit_existing(pod, now));
    assert!(
        new == old || matches!((new, old), (PodNetworkAdmission::Reject { .. }, PodNetworkAdmission::AdmitDegraded))
    );
    if let PodNetworkAdmission::Reject { until: Some(until) } = old {
        assert_eq!(local.admit_existing(pod, until), PodNetworkAdmission::AdmitDegraded);
    }
}
