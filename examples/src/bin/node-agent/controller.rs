//! node-readiness-controller itself on the nodes of a timeline, beside the gates: it taints at once.
//!
//! It looks at the nodes that a rule selects, and at no others: a node that a rule lets go keeps the taint.

use std::collections::BTreeSet;

use dra_attrs::label_selector_matches;
use k8s_openapi::api::core::v1::{Node, Taint};
use readiness::rule::{ConditionRequirement, NodeReadinessRule};

use super::rules::rule_name;

/// Status of a condition that nobody reports.
const UNKNOWN: &str = "Unknown";

/// Beginning of the annotation that marks a rule for the start of a node as satisfied; the rule's UID follows.
const COMPLETED_PREFIX: &str = "readiness.k8s.io/bootstrap-completed-";

/// Memory of the controller about a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// Names of the rules for the start of a node that were satisfied once: they never taint it again.
    completed: BTreeSet<String>,
    /// Names of the rules whose taint the node has from the controller.
    tainted: BTreeSet<String>,
}

/// Plays the controller on a node: with the rules that there are, and those that were deleted. Returns what it does in words.
pub(crate) fn play(
    rules: &[NodeReadinessRule],
    deleted: &[NodeReadinessRule],
    node: &mut Node,
    memory: &mut Memory,
) -> Vec<String> {
    let rules = rules.iter().filter(|rule| !rule.spec.dry_run).map(|rule| (rule, false));
    let mut words = Vec::new();
    for (rule, is_deleted) in rules.chain(deleted.iter().map(|rule| (rule, true))) {
        words.extend(follow(rule, is_deleted, node, memory));
    }
    words
}

/// Follows one rule.
fn follow(rule: &NodeReadinessRule, is_deleted: bool, node: &mut Node, memory: &mut Memory) -> Option<String> {
    let (name, taint) = (rule_name(rule), &rule.spec.taint);
    let has_taint = taints_of(node).any(|other| is_same(other, taint));
    let told = format!("{}:{}", taint.key, taint.effect);
    if !is_selected(rule, node) {
        let is_left = memory.tainted.remove(name) && has_taint;
        return is_left.then(|| {
            format!("node-readiness-controller leaves the taint {told}: it looks only at nodes that {name} selects")
        });
    }
    if is_deleted {
        memory.completed.remove(name);
        return (memory.tainted.remove(name) && has_taint).then(|| remove(node, taint, &told));
    }
    if rule.spec.bootstrap_only && (memory.completed.contains(name) || is_completed(rule, node)) {
        return None;
    }
    match (is_met(rule, node), has_taint) {
        (true, _) => {
            memory.completed.insert(name.to_owned());
            memory.tainted.remove(name);
            has_taint.then(|| remove(node, taint, &told))
        }
        (false, true) => {
            memory.tainted.insert(name.to_owned());
            None
        }
        (false, false) => {
            memory.tainted.insert(name.to_owned());
            node.spec.get_or_insert_default().taints.get_or_insert_default().push(taint.clone());
            Some(format!("node-readiness-controller adds the taint {told}"))
        }
    }
}

fn remove(node: &mut Node, taint: &Taint, told: &str) -> String {
    let taints = node.spec.get_or_insert_default().taints.get_or_insert_default();
    taints.retain(|other| !is_same(other, taint));
    format!("node-readiness-controller removes the taint {told}")
}

fn taints_of(node: &Node) -> impl Iterator<Item = &Taint> {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten())
}

fn is_same(one: &Taint, other: &Taint) -> bool {
    one.key == other.key && one.effect == other.effect
}

fn is_selected(rule: &NodeReadinessRule, node: &Node) -> bool {
    let labels = node.metadata.labels.clone().unwrap_or_default();
    label_selector_matches(&rule.spec.node_selector, &labels).unwrap_or_default()
}

fn is_completed(rule: &NodeReadinessRule, node: &Node) -> bool {
    let uid = rule.metadata.uid.as_deref().unwrap_or_default();
    let keys = node.metadata.annotations.iter().flatten().map(|(key, _)| key.strip_prefix(COMPLETED_PREFIX));
    keys.flatten().any(|completed| completed == uid)
}

/// Returns true if a node has the conditions that a rule requires. When they were reported does not matter to the controller.
fn is_met(rule: &NodeReadinessRule, node: &Node) -> bool {
    let has = |required: &ConditionRequirement| {
        let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let status = conditions.find(|condition| condition.type_ == required.type_).map(|known| known.status.as_str());
        status.or(required.default_status.as_deref()).unwrap_or(UNKNOWN) == required.required_status
    };
    let mut all = rule.spec.conditions.iter();
    if rule.spec.any_of { all.any(has) } else { all.all(has) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    fn rule(mode: &str) -> NodeReadinessRule {
        from_value(json!({"metadata": {"name": "net"}, "spec": {
            "conditions": [{"type": "Up", "requiredStatus": "True"}], "enforcementMode": mode,
            "taint": {"key": "readiness.k8s.io/net", "effect": "NoSchedule"},
            "nodeSelector": {"matchLabels": {"tier": "front"}}}}))
        .unwrap()
    }

    fn set(node: &mut Node, tier: &str, up: &str) {
        node.metadata.labels = Some([("tier".to_owned(), tier.to_owned())].into());
        node.status = from_value(json!({"conditions": [{"type": "Up", "status": up}]})).unwrap();
    }

    /// Plays states of label and condition, and returns whether the node has the taint after each.
    fn played(mode: &str, states: &[(&str, &str)]) -> Vec<bool> {
        let (rules, mut node, mut memory) = ([rule(mode)], Node::default(), Memory::default());
        let state = states.iter().map(|(tier, up)| {
            set(&mut node, tier, up);
            play(&rules, &[], &mut node, &mut memory);
            taints_of(&node).next().is_some()
        });
        state.collect()
    }

    #[test]
    fn a_node_is_tainted_at_once_and_again() {
        let states = [("front", "False"), ("front", "True"), ("front", "False")];
        assert_eq!(played("continuous", &states), [true, false, true]);
        assert_eq!(played("bootstrap-only", &states), [true, false, false]);
    }

    #[test]
    fn a_node_that_a_rule_lets_go_keeps_the_taint() {
        let states = [("front", "False"), ("back", "False"), ("back", "True"), ("front", "True")];
        assert_eq!(played("continuous", &states), [true, true, true, false]);
    }

    #[test]
    fn a_rule_that_is_deleted_takes_its_taint_along() {
        let (mut node, mut memory) = (Node::default(), Memory::default());
        set(&mut node, "front", "False");
        assert_eq!(play(&[rule("continuous")], &[], &mut node, &mut memory).len(), 1);
        let words = play(&[], &[rule("continuous")], &mut node, &mut memory);
        assert_eq!(words, ["node-readiness-controller removes the taint readiness.k8s.io/net:NoSchedule"]);
        assert_eq!(play(&[], &[rule("continuous")], &mut node, &mut memory), [""; 0]);
    }
}
