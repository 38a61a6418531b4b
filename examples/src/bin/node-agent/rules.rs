//! Rules of node-readiness-controller on the nodes of a timeline: dry runs, rules without a node, and what becomes of the gates
//! when labels, conditions or rules change.

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;
use readiness::GatedNode;
use readiness::rule::{Expansion, NodeReadinessRule};

use super::controller::{Memory, play};
use super::name_of;

/// Rules, with the timeout of the gates that they become.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleBook {
    rules: Vec<NodeReadinessRule>,
    /// Rules that were forgotten: the controller takes their taints along.
    deleted: Vec<NodeReadinessRule>,
    timeout_seconds: i32,
}

/// State of the rules on one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct OnNode {
    /// Types of the gates that rules have made.
    pub(crate) gates: BTreeSet<String>,
    /// Memory of the controller.
    pub(crate) memory: Memory,
}

impl RuleBook {
    pub(crate) fn new(rules: &[NodeReadinessRule], timeout_seconds: i32) -> Self {
        Self { rules: rules.to_vec(), deleted: Vec::new(), timeout_seconds }
    }

    /// Forgets a rule.
    pub(crate) fn remove(&mut self, name: &str) {
        let (deleted, rules) = std::mem::take(&mut self.rules).into_iter().partition(|rule| rule_name(rule) == name);
        self.rules = rules;
        self.deleted.extend::<Vec<_>>(deleted);
    }

    /// Returns the types of the gates that the rules make of a node.
    pub(crate) fn gates_of(&self, node: &GatedNode, now: Timestamp) -> BTreeSet<String> {
        let expansion = Expansion::from_rules(&self.rules, node, self.timeout_seconds, now).unwrap_or_default();
        expansion.gates.into_iter().map(|gate| gate.condition_type).collect()
    }

    /// Returns what is known of the rules on a node that has their gates already, and what node-readiness-controller does with
    /// the node before anything happens, in words.
    pub(crate) fn begin(&self, node: &mut GatedNode, now: Timestamp) -> (OnNode, Vec<String>) {
        let mut known = OnNode { gates: self.gates_of(node, now), memory: Memory::default() };
        let words = play(&self.rules, &self.deleted, &mut node.node, &mut known.memory);
        (known, words)
    }

    /// Makes gates and conditions of the rules that select a node now, in place of those that they have made before; beside
    /// them, node-readiness-controller writes its taints. Returns the changes in words.
    pub(crate) fn apply(&self, node: &mut GatedNode, known: &mut OnNode, now: Timestamp) -> Vec<String> {
        let mut words = self.apply_gates(node, &mut known.gates, now);
        words.extend(play(&self.rules, &self.deleted, &mut node.node, &mut known.memory));
        words
    }

    fn apply_gates(&self, node: &mut GatedNode, own: &mut BTreeSet<String>, now: Timestamp) -> Vec<String> {
        let expansion = match Expansion::from_rules(&self.rules, node, self.timeout_seconds, now) {
            Ok(expansion) => expansion,
            Err(error) => return vec![format!("the rules can't be used: {error}")],
        };
        let gates: BTreeSet<String> = expansion.gates.iter().map(|gate| gate.condition_type.clone()).collect();
        let gone = own.difference(&gates).map(|gate| format!("no rule asks for the gate {gate} any more"));
        let come = gates.difference(own).map(|gate| format!("a rule becomes the gate {gate}"));
        let mut words: Vec<String> = gone.chain(come).collect();
        node.gates.retain(|gate| !own.contains(&gate.condition_type) || gates.contains(&gate.condition_type));
        node.gates.extend(expansion.gates.into_iter().filter(|gate| !own.contains(&gate.condition_type)));
        let conditions = node.node.status.get_or_insert_default().conditions.get_or_insert_default();
        conditions.retain(|condition| !own.contains(&condition.type_) || gates.contains(&condition.type_));
        for condition in expansion.conditions {
            words.push(format!("the rule says {} {}", condition.type_, condition.status));
            conditions.retain(|known| known.type_ != condition.type_);
            conditions.push(condition);
        }
        *own = gates;
        words
    }

    /// Returns a line for each rule that does nothing on some nodes: a dry run with what it would do, or one that selects none;
    /// and what differs from the controller, if a rule does something.
    pub(crate) fn lines(&self, nodes: &[GatedNode], now: Timestamp) -> Vec<String> {
        let has_gates = nodes.iter().any(|node| !self.gates_of(node, now).is_empty());
        let differs = has_gates.then(|| {
            format!(
                "rules: node-readiness-controller taints at once, and does so here; the gate of a rule holds the node as well, and \
                 times out after {} s (--rule-timeout)",
                self.timeout_seconds
            )
        });
        self.rules.iter().flat_map(|rule| self.lines_of(rule, nodes, now)).chain(differs).collect()
    }

    fn lines_of(&self, rule: &NodeReadinessRule, nodes: &[GatedNode], now: Timestamp) -> Vec<String> {
        let (name, is_trial) = (rule_name(rule), rule.spec.dry_run);
        let mut alone = rule.clone();
        alone.spec.dry_run = false;
        let (mut lines, mut selected) = (Vec::new(), 0_usize);
        for node in nodes {
            let made = Expansion::from_rules(std::slice::from_ref(&alone), node, self.timeout_seconds, now);
            let Ok(Expansion { gates, conditions, .. }) = made else { return Vec::new() };
            let Some(gate) = gates.first() else { continue };
            selected = selected.saturating_add(1);
            if is_trial {
                let is_held = conditions.iter().any(|it| it.type_ == gate.condition_type && it.status != "True");
                let taint = &rule.spec.taint;
                let would = if is_held { "would hold" } else { "would not hold" };
                lines.push(format!(
                    "rule {name}: dry run: it {would} {} by the taint {}:{}",
                    name_of(node),
                    taint.key,
                    taint.effect
                ));
            }
        }
        if selected == 0 {
            lines.push(format!("rule {name}: selects no node of {}", nodes.len()));
        }
        lines
    }
}

pub(crate) fn rule_name(rule: &NodeReadinessRule) -> &str {
    rule.metadata.name.as_deref().unwrap_or_default()
}
