//! Rules in the style of node-readiness-controller as gates, and the start-up taint that gates are compared with
//! (KEP-5233, Alternatives).
//!
//! A rule selects nodes, asks for conditions of any status, all of them or any one, and holds a taint. Here each rule that
//! selects a node becomes one gate and one condition: the adapter is the agent that reports on it. So timeouts, reboots,
//! taints and previews work for rules as for every gate; a rule that ceases to select a node takes its gate, and with it its
//! taint, away.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::condition::{FALSE, Observation, TRUE, UNKNOWN, is_since_boot};
use crate::gate::NodeReadinessGate;
use crate::name::{domain, domain_problems, key_problems, name_problems};
use crate::node::{GatedNode, NodeView};
use crate::reconcile::output::{Actor, Change, Output};
use crate::taint::is_usable;

/// Domain of the gates that rules become, and of their taints.
pub const RULE_DOMAIN: &str = "readiness.k8s.io";

/// Annotation that says a bootstrap-only rule is done with a node; the UID of the rule follows.
pub const COMPLETED_PREFIX: &str = "readiness.k8s.io/bootstrap-completed-";

const MAX_CONDITIONS: usize = 32;
const MAX_TYPE: usize = 316;

/// A condition that a rule asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "the fields are those of the API")]
pub struct RequiredCondition {
    /// Its type.
    #[serde(rename = "type", default)]
    pub type_: String,
    /// The status that it must have.
    #[serde(default)]
    pub required_status: String,
    /// The status that it counts as while it is missing; Unknown by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_status: Option<String>,
}

/// How long a rule matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "the values of the API")]
pub enum Enforcement {
    /// As long as it is there.
    #[default]
    Continuous,
    /// Until it is satisfied for the first time in a boot.
    BootstrapOnly,
}

/// Which conditions a rule needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_enums, reason = "the values of the API")]
pub enum ConditionPolicy {
    /// Every one.
    #[default]
    AllOf,
    /// Any one.
    AnyOf,
}

/// `spec` of a `NodeReadinessRule`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::exhaustive_structs, reason = "the fields are those of the API")]
pub struct RuleSpec {
    /// What is asked for.
    pub conditions: Vec<RequiredCondition>,
    /// All or any of it.
    pub condition_policy: ConditionPolicy,
    /// For how long.
    pub enforcement_mode: Enforcement,
    /// The taint of nodes that do not have it.
    pub taint: Taint,
    /// The nodes.
    pub node_selector: LabelSelector,
    /// Whether the rule is only tried out: then it is not expanded. See [`crate::preview`].
    pub dry_run: bool,
}

/// A rule, as node-readiness-controller has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::exhaustive_structs, reason = "the fields are those of the API")]
pub struct NodeReadinessRule {
    /// Name and UID.
    pub metadata: ObjectMeta,
    /// The rule.
    pub spec: RuleSpec,
}

/// What the rules make of one node.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Expansion {
    /// One gate for each rule that selects the node.
    pub gates: Vec<NodeReadinessGate>,
    /// Their conditions, as far as they differ from what is stored: to be written by the adapter.
    pub reports: Vec<NodeCondition>,
    /// Gates that are satisfied for good once they were; for [`NodeView::with_bootstrap_only`].
    pub bootstrap_only: Vec<String>,
}

/// Why rules can't be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpandError {
    /// The name makes no condition type.
    #[error("rule {rule:?}: {detail}")]
    Name {
        /// The rule.
        rule: String,
        /// What is wrong.
        detail: &'static str,
    },
    /// There must be 1 to 32 conditions.
    #[error("rule {rule:?}: {count} conditions, not 1 to 32")]
    Conditions {
        /// The rule.
        rule: String,
        /// How many there are.
        count: usize,
    },
    /// The type of a condition is empty, too long or there twice.
    #[error("rule {rule:?}: the condition type {type_:?} is there twice, or does not have 1 to 316 bytes")]
    ConditionType {
        /// The rule.
        rule: String,
        /// The type.
        type_: String,
    },
    /// A status is not True, False or Unknown.
    #[error("rule {rule:?}: no status {status:?}")]
    Status {
        /// The rule.
        rule: String,
        /// The status.
        status: String,
    },
    /// The taint's key is not the domain of rules, a slash and a name.
    #[error("rule {rule:?}: the taint {key:?} is not \"readiness.k8s.io/\" and a name")]
    TaintKey {
        /// The rule.
        rule: String,
        /// The key.
        key: String,
    },
    /// The value of the taint is no label value, or its effect is none: no gate with it would ever be released.
    #[error("rule {rule:?}: the value or the effect of the taint is invalid")]
    Taint {
        /// The rule.
        rule: String,
    },
    /// The selector selects everything.
    #[error("rule {rule:?}: an empty nodeSelector")]
    EmptySelector {
        /// The rule.
        rule: String,
    },
    /// The selector has an unknown operator.
    #[error("rule {rule:?}: no operator {operator:?} of a nodeSelector")]
    Operator {
        /// The rule.
        rule: String,
        /// The operator.
        operator: String,
    },
    /// `anyOf` and default statuses are for continuous rules.
    #[error("rule {rule:?}: bootstrap-only does not go with anyOf or a defaultStatus")]
    Bootstrap {
        /// The rule.
        rule: String,
    },
    /// Two rules select the node and hold the same taint.
    #[error("rules {first:?} and {second:?} hold the same taint on one node")]
    SharedTaint {
        /// One rule.
        first: String,
        /// The other.
        second: String,
    },
}

/// Expands rules for one node. `timeout_seconds` is the timeout of every gate: rules have none.
///
/// After a reboot (the stored condition says `NodeRestarted`, or a timeout over that), a condition counts only if it was
/// reported since.
///
/// # Errors
/// A rule that node-readiness-controller's schema or webhook would refuse, or two that hold one taint on this node.
///
/// ```
/// use readiness::node::GatedNode;
/// use readiness::rule::{NodeReadinessRule, expand};
/// let rule: NodeReadinessRule = serde_json::from_str(r#"{"metadata": {"name": "gpu"}, "spec": {
///     "conditions": [{"type": "nvidia.com/GPUReady", "requiredStatus": "True"}],
///     "taint": {"key": "readiness.k8s.io/gpu", "effect": "NoSchedule"},
///     "nodeSelector": {"matchLabels": {"pool": "gpu"}}}}"#)?;
/// let node: GatedNode = serde_json::from_str(r#"{"metadata": {"labels": {"pool": "gpu"}}}"#)?;
/// let now = "2026-01-01T00:00:00Z".parse().unwrap();
/// let expansion = expand(&[rule], &node, 600, now).unwrap();
/// assert_eq!(expansion.gates[0].condition_type, "readiness.k8s.io/gpu");
/// assert_eq!(expansion.reports[0].status, "False");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn expand(
    rules: &[NodeReadinessRule],
    node: &GatedNode,
    timeout_seconds: i32,
    now: Timestamp,
) -> Result<Expansion, ExpandError> {
    let view = node.view();
    let mut expansion = Expansion::default();
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
        expansion.reports.extend(report(rule, &condition_type, &view, now));
        if rule.spec.enforcement_mode == Enforcement::BootstrapOnly {
            expansion.bootstrap_only.push(condition_type.clone());
        }
        expansion.gates.push(NodeReadinessGate::new(condition_type, timeout_seconds).tainting(taint.clone()));
    }
    Ok(expansion)
}

fn name(rule: &NodeReadinessRule) -> &str {
    rule.metadata.name.as_deref().unwrap_or_default()
}

fn check(rule: &NodeReadinessRule) -> Result<(), ExpandError> {
    let (spec, name) = (&rule.spec, name(rule));
    let rule = || name.to_owned();
    if let Some(detail) = name_problems(name).chain(domain_problems(name)).next() {
        return Err(ExpandError::Name { rule: rule(), detail });
    }
    let count = spec.conditions.len();
    if count == 0 || count > MAX_CONDITIONS {
        return Err(ExpandError::Conditions { rule: rule(), count });
    }
    let mut types = BTreeSet::new();
    let mut named = spec.conditions.iter().map(|one| one.type_.as_str());
    if let Some(type_) = named.find(|type_| !(1..=MAX_TYPE).contains(&type_.len()) || !types.insert(*type_)) {
        return Err(ExpandError::ConditionType { rule: rule(), type_: type_.to_owned() });
    }
    let statuses = spec.conditions.iter().flat_map(|one| [Some(&one.required_status), one.default_status.as_ref()]);
    if let Some(status) = statuses.flatten().find(|status| ![TRUE, FALSE, UNKNOWN].contains(&status.as_str())) {
        return Err(ExpandError::Status { rule: rule(), status: status.clone() });
    }
    let key = &spec.taint.key;
    if domain(key) != Some(RULE_DOMAIN) || !key_problems(key).is_empty() {
        return Err(ExpandError::TaintKey { rule: rule(), key: spec.taint.key.clone() });
    }
    if !is_usable(&spec.taint) {
        return Err(ExpandError::Taint { rule: rule() });
    }
    let is_bootstrap = spec.enforcement_mode == Enforcement::BootstrapOnly;
    let has_default = spec.conditions.iter().any(|one| one.default_status.is_some());
    if is_bootstrap && (has_default || spec.condition_policy == ConditionPolicy::AnyOf) {
        return Err(ExpandError::Bootstrap { rule: rule() });
    }
    Ok(())
}

fn selects(rule: &NodeReadinessRule, node: &Node) -> Result<bool, ExpandError> {
    let selector = &rule.spec.node_selector;
    let labels = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.as_deref().unwrap_or_default();
    if labels.clone().next().is_none() && expressions.is_empty() {
        return Err(ExpandError::EmptySelector { rule: name(rule).to_owned() });
    }
    let value = |key: &str| node.metadata.labels.as_ref().and_then(|labels| labels.get(key));
    let mut is_selected = labels.into_iter().all(|(key, wanted)| value(key) == Some(wanted));
    for expression in expressions {
        let LabelSelectorRequirement { key, operator, values } = expression;
        let is_one = value(key).is_some_and(|value| values.iter().flatten().any(|one| one == value));
        is_selected &= match operator.as_str() {
            "In" => is_one,
            "NotIn" => !is_one,
            "Exists" => value(key).is_some(),
            "DoesNotExist" => value(key).is_none(),
            other => {
                return Err(ExpandError::Operator { rule: name(rule).to_owned(), operator: other.to_owned() });
            }
        };
    }
    Ok(is_selected)
}

/// Whether a bootstrap-only rule is done with the node: its taint must never come back.
fn is_completed(rule: &NodeReadinessRule, node: &Node) -> bool {
    let uid = rule.metadata.uid.as_deref().unwrap_or_default();
    rule.spec.enforcement_mode == Enforcement::BootstrapOnly
        && node.metadata.annotations.iter().flatten().any(|(key, _)| key.strip_prefix(COMPLETED_PREFIX) == Some(uid))
}

/// The condition of a rule, if it is to be written.
fn report(
    rule: &NodeReadinessRule,
    condition_type: &str,
    view: &NodeView<'_>,
    now: Timestamp,
) -> Option<NodeCondition> {
    let stored = view.condition(condition_type);
    let observation = Observation::of(stored);
    if rule.spec.enforcement_mode == Enforcement::BootstrapOnly && observation == Observation::True {
        // Satisfied for good, until a boot resets it.
        return None;
    }
    let since = stored.filter(|stored| is_since_boot(stored));
    let since = since.and_then(|stored| stored.last_transition_time.as_ref()).map(|time| time.0);
    let (met, unmet): (Vec<_>, Vec<_>) =
        rule.spec.conditions.iter().partition(|required| is_met(required, view, since));
    let is_satisfied = match rule.spec.condition_policy {
        ConditionPolicy::AllOf => unmet.is_empty(),
        ConditionPolicy::AnyOf => !met.is_empty(),
    };
    let status = if is_satisfied { TRUE } else { FALSE };
    // A timeout or a reset stays until the rule is satisfied.
    let is_held = matches!(observation, Observation::TimeoutExceeded | Observation::NodeRestarted);
    if is_held && !is_satisfied {
        return None;
    }
    let names = |list: &[&RequiredCondition]| list.iter().map(|one| one.type_.as_str()).collect::<Vec<_>>().join(", ");
    let (reason, message) = if is_satisfied {
        ("RuleSatisfied", format!("as required: {}", names(&met)))
    } else {
        ("RuleNotSatisfied", format!("not as required: {}", names(&unmet)))
    };
    let same = stored.filter(|stored| stored.status == status);
    let says_so = |stored: &NodeCondition| {
        stored.reason.as_deref() == Some(reason) && stored.message.as_deref() == Some(message.as_str())
    };
    if same.is_some_and(says_so) {
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

fn is_met(required: &RequiredCondition, view: &NodeView<'_>, since: Option<Timestamp>) -> bool {
    let Some(condition) = view.condition(&required.type_) else {
        return required.default_status.as_deref().unwrap_or(UNKNOWN) == required.required_status;
    };
    let times = [&condition.last_heartbeat_time, &condition.last_transition_time];
    let is_fresh = since.is_none_or(|since| times.into_iter().flatten().any(|time| time.0 >= since));
    is_fresh && condition.status == required.required_status
}

/// The controller that the KEP compares gates with: a start-up taint goes when a condition is True. The intent goes with it:
/// a later False changes nothing.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the fields are those of the KEP's sketch")]
pub struct ReadinessTaintRule {
    /// Type of the condition.
    pub readiness_condition: String,
    /// The taint that it removes.
    pub target_taint: Taint,
}

impl ReadinessTaintRule {
    /// The removal of the taint, if the condition is True and the taint is there.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Taint;
    /// use readiness::{node::GatedNode, rule::ReadinessTaintRule};
    /// let node: GatedNode = serde_json::from_str(r#"{
    ///     "spec": {"taints": [{"key": "cni.example.com/pending", "effect": "NoSchedule"}]},
    ///     "status": {"conditions": [{"type": "cni.example.com/NetworkReady", "status": "True"}]}}"#)?;
    /// let rule = ReadinessTaintRule {
    ///     readiness_condition: "cni.example.com/NetworkReady".into(),
    ///     target_taint: node.view().taints()[0].clone(),
    /// };
    /// assert_eq!(rule.removal(&node.view()).unwrap().to_string(), "remove taint cni.example.com/pending:NoSchedule");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn removal(&self, view: &NodeView<'_>) -> Option<Output> {
        let taint = view.taint(&self.target_taint.key, &self.target_taint.effect)?;
        let is_true = Observation::of(view.condition(&self.readiness_condition)) == Observation::True;
        let resource_version = view.resource_version().map(str::to_owned);
        let change = Change::RemoveTaint { taint: taint.clone(), resource_version };
        is_true.then_some(Output { actor: Actor::Nlc, change })
    }
}
