//! API types of node-readiness-controller: rules that taint nodes without required conditions.

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::{Deserialize, Serialize};

use crate::words::{ConditionPolicy, EnforcementMode, Words};

/// Condition that a rule requires.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConditionRequirement {
    /// Type of the required condition.
    #[serde(rename = "type", default)]
    pub type_: String,
    /// Status that the condition must have: True, False or Unknown.
    #[serde(default)]
    pub required_status: String,
    /// Status assumed if the node does not have the condition. Unknown by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_status: Option<String>,
}

/// `spec` of a `NodeReadinessRule`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct NodeReadinessRuleSpec {
    /// Conditions that the rule requires of a node.
    pub conditions: Vec<ConditionRequirement>,
    /// True if one condition with its required status is enough (`anyOf`). Otherwise every condition must have it (`allOf`).
    /// In JSON `conditionPolicy`.
    #[serde(rename = "conditionPolicy", with = "Words::<ConditionPolicy>")]
    pub any_of: bool,
    /// True if the rule is enforced until it is satisfied for the first time in a boot (`bootstrap-only`). Otherwise it is
    /// enforced as long as it exists (`continuous`). In JSON `enforcementMode`.
    #[serde(rename = "enforcementMode", with = "Words::<EnforcementMode>")]
    pub bootstrap_only: bool,
    /// Taint for nodes that do not satisfy the rule.
    pub taint: Taint,
    /// Label selector of the nodes to which the rule applies. Must not be empty.
    pub node_selector: LabelSelector,
    /// True if the rule is a trial without effect, for which no gate is made. See
    /// [`GateProposal`](crate::GateProposal).
    pub dry_run: bool,
}

/// Rule of node-readiness-controller: selects nodes, and taints those that lack the required conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct NodeReadinessRule {
    /// Metadata, of which name and UID are used.
    pub metadata: ObjectMeta,
    /// Spec of the rule.
    pub spec: NodeReadinessRuleSpec,
}
