//! Conversion of rules into gates and conditions.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::{LabelSelectorError, NameFormat, label_selector_matches};
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::{COMPLETED_PREFIX, ConditionRequirement, ExpandError, NodeReadinessRule, RULE_DOMAIN};
use crate::condition::{ConditionStatus, FALSE, TRUE, UNKNOWN, domain, is_reset_by_boot};
use crate::gate::NodeReadinessGate;
use crate::node::{GatedNode, GatedNodeView};
use crate::taint::is_usable;

/// Largest number of conditions of a rule.
const MAX_CONDITIONS: usize = 32;

/// Longest condition type of a rule, in bytes.
const MAX_TYPE_LEN: usize = 316;

/// Result of converting rules for one node: its gates, and the conditions to write.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Expansion {
    /// Gates of the node, one for each rule that selects it.
    pub gates: Vec<NodeReadinessGate>,
    /// Conditions of the gates that the caller must write, because they differ from the stored ones.
    pub conditions: Vec<NodeCondition>,
    /// Condition types of gates that must be True only once in each boot, for [`GatedNodeView::with_bootstrap_only`].
    pub bootstrap_only: Vec<String>,
}

impl Expansion {
    /// Converts the rules that select a node into gates and conditions. `timeout_seconds` is the timeout of every gate,
    /// since rules have none.
    ///
    /// After a reboot (the stored condition has the reason `NodeRestarted`, or a timeout was written over that), a required
    /// condition counts only if it was reported since.
    ///
    /// # Errors
    /// A rule that node-readiness-controller's schema or webhook would refuse, or two that hold one taint on this node.
    ///
    /// ```
    /// use readiness::GatedNode;
    /// use readiness::rule::{Expansion, NodeReadinessRule};
    /// let rule: NodeReadinessRule = serde_json::from_str(r#"{"metadata": {"name": "gpu"}, "spec": {
    ///     "conditions": [{"type": "nvidia.com/GPUReady", "requiredStatus": "True"}],
    ///     "taint": {"key": "readiness.k8s.io/gpu", "effect": "NoSchedule"},
    ///     "nodeSelector": {"matchLabels": {"pool": "gpu"}}}}"#)?;
    /// let node: GatedNode = serde_json::from_str(r#"{"metadata": {"labels": {"pool": "gpu"}}}"#)?;
    /// let now = "2026-01-01T00:00:00Z".parse().unwrap();
    /// let expansion = Expansion::from_rules(&[rule], &node, 600, now).unwrap();
    /// assert_eq!(expansion.gates[0].condition_type, "readiness.k8s.io/gpu");
    /// assert_eq!(expansion.conditions[0].status, "False");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn from_rules(
        rules: &[NodeReadinessRule],
        node: &GatedNode,
        timeout_seconds: i32,
        now: Timestamp,
    ) -> Result<Self, ExpandError> {
        let view = node.view();
        let mut expansion = Self::default();
        let mut taints: BTreeMap<(&str, &str), &str> = BTreeMap::new();
        for rule in rules.iter().filter(|rule| !rule.spec.dry_run) {
            check(rule)?;
            if !selects(rule, &node.node)? || is_completed(rule, &node.node) {
                continue;
            }
            let (name, taint) = (name(rule), &rule.spec.taint);
            if let Some(first) = taints.insert((&taint.key, &taint.effect), name) {
                return Err(ExpandError::SharedTaint { first: first.to_owned(), second: name.to_owned() });
            }
            let condition_type = format!("{RULE_DOMAIN}/{name}");
            expansion.conditions.extend(condition_to_write(rule, &condition_type, &view, now));
            if rule.spec.bootstrap_only {
                expansion.bootstrap_only.push(condition_type.clone());
            }
            expansion.gates.push(NodeReadinessGate::new(condition_type, timeout_seconds).with_taint(taint.clone()));
        }
        Ok(expansion)
    }
}

fn name(rule: &NodeReadinessRule) -> &str {
    rule.metadata.name.as_deref().unwrap_or_default()
}

fn check(rule: &NodeReadinessRule) -> Result<(), ExpandError> {
    let (spec, name) = (&rule.spec, name(rule));
    let rule = || name.to_owned();
    if let Some(detail) =
        NameFormat::LabelKeyName.problems(name).into_iter().chain(NameFormat::LabelKeyPrefix.problems(name)).next()
    {
        return Err(ExpandError::Name { rule: rule(), detail });
    }
    let count = spec.conditions.len();
    if count == 0 || count > MAX_CONDITIONS {
        return Err(ExpandError::Conditions { rule: rule(), count });
    }
    let mut types = BTreeSet::new();
    let mut named = spec.conditions.iter().map(|one| one.type_.as_str());
    if let Some(type_) = named.find(|type_| !(1..=MAX_TYPE_LEN).contains(&type_.len()) || !types.insert(*type_)) {
        return Err(ExpandError::ConditionType { rule: rule(), type_: type_.to_owned() });
    }
    let statuses = spec.conditions.iter().flat_map(|one| [Some(&one.required_status), one.default_status.as_ref()]);
    if let Some(status) = statuses.flatten().find(|status| ![TRUE, FALSE, UNKNOWN].contains(&status.as_str())) {
        return Err(ExpandError::Status { rule: rule(), status: status.clone() });
    }
    let key = &spec.taint.key;
    if domain(key) != Some(RULE_DOMAIN) || !NameFormat::LabelKey.problems(key).is_empty() {
        return Err(ExpandError::TaintKey { rule: rule(), key: spec.taint.key.clone() });
    }
    if !is_usable(&spec.taint) {
        return Err(ExpandError::Taint { rule: rule() });
    }
    let is_bootstrap = spec.bootstrap_only;
    let has_default = spec.conditions.iter().any(|one| one.default_status.is_some());
    if is_bootstrap && (has_default || spec.any_of) {
        return Err(ExpandError::Bootstrap { rule: rule() });
    }
    Ok(())
}

fn selects(rule: &NodeReadinessRule, node: &Node) -> Result<bool, ExpandError> {
    let selector = &rule.spec.node_selector;
    let is_empty = |len: Option<usize>| len.is_none_or(|len| len == 0);
    if is_empty(selector.match_labels.as_ref().map(BTreeMap::len))
        && is_empty(selector.match_expressions.as_ref().map(Vec::len))
    {
        return Err(ExpandError::EmptySelector { rule: name(rule).to_owned() });
    }
    let no_labels = BTreeMap::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&no_labels);
    let unknown =
        |error: LabelSelectorError| ExpandError::Operator { rule: name(rule).to_owned(), operator: error.operator };
    label_selector_matches(selector, labels).map_err(unknown)
}

/// Returns true if an annotation of the node marks a bootstrap-only rule as completed, so that its taint is never added
/// again.
fn is_completed(rule: &NodeReadinessRule, node: &Node) -> bool {
    let uid = rule.metadata.uid.as_deref().unwrap_or_default();
    rule.spec.bootstrap_only
        && node.metadata.annotations.iter().flatten().any(|(key, _)| key.strip_prefix(COMPLETED_PREFIX) == Some(uid))
}

/// Returns the condition to write for a rule; `None` if the stored condition stays.
fn condition_to_write(
    rule: &NodeReadinessRule,
    condition_type: &str,
    view: &GatedNodeView<'_>,
    now: Timestamp,
) -> Option<NodeCondition> {
    let stored = view.condition(condition_type);
    let stored_status = ConditionStatus::from_condition(stored);
    if rule.spec.bootstrap_only && stored_status == ConditionStatus::True {
        // Satisfied until a reboot resets it.
        return None;
    }
    let since = stored.filter(|stored| is_reset_by_boot(stored));
    let since = since.and_then(|stored| stored.last_transition_time.as_ref()).map(|time| time.0);
    let (met, unmet): (Vec<_>, Vec<_>) =
        rule.spec.conditions.iter().partition(|required| is_met(required, view, since));
    let is_satisfied = if rule.spec.any_of { !met.is_empty() } else { unmet.is_empty() };
    let status = if is_satisfied { TRUE } else { FALSE };
    // A timeout or a reset stays until the rule is satisfied.
    let is_held = matches!(stored_status, ConditionStatus::TimeoutExceeded | ConditionStatus::NodeRestarted);
    if is_held && !is_satisfied {
        return None;
    }
    let names =
        |list: &[&ConditionRequirement]| list.iter().map(|one| one.type_.as_str()).collect::<Vec<_>>().join(", ");
    let (reason, message) = if is_satisfied {
        ("RuleSatisfied", format!("as required: {}", names(&met)))
    } else {
        ("RuleNotSatisfied", format!("not as required: {}", names(&unmet)))
    };
    let same = stored.filter(|stored| stored.status == status);
    let is_same = |stored: &NodeCondition| {
        stored.reason.as_deref() == Some(reason) && stored.message.as_deref() == Some(message.as_str())
    };
    if same.is_some_and(is_same) {
        return None;
    }
    let kept = same.and_then(|stored| stored.last_transition_time.clone());
    Some(NodeCondition {
        type_: condition_type.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_heartbeat_time: Some(Time(now)),
        last_transition_time: kept.or(Some(Time(now))),
    })
}

fn is_met(required: &ConditionRequirement, view: &GatedNodeView<'_>, since: Option<Timestamp>) -> bool {
    let Some(condition) = view.condition(&required.type_) else {
        return required.default_status.as_deref().unwrap_or(UNKNOWN) == required.required_status;
    };
    let times = [&condition.last_heartbeat_time, &condition.last_transition_time];
    let is_fresh = since.is_none_or(|since| times.into_iter().flatten().any(|time| time.0 >= since));
    is_fresh && condition.status == required.required_status
}
