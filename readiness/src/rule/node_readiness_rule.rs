//! API types of node-readiness-controller.

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::{Deserialize, Serialize};

/// Condition that a rule requires.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "the fields are those of the API")]
pub struct ConditionRequirement {
    /// Type of the condition.
    #[serde(rename = "type", default)]
    pub type_: String,
    /// Required status: True, False or Unknown.
    #[serde(default)]
    pub required_status: String,
    /// Status that a missing condition counts as. Unknown by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_status: Option<String>,
}

/// Period for which a rule is enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "the values of the API")]
pub enum EnforcementMode {
    /// As long as the rule exists.
    #[default]
    Continuous,
    /// Until the rule is satisfied for the first time in a boot.
    BootstrapOnly,
}

/// Number of conditions that a rule needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_enums, reason = "the values of the API")]
pub enum ConditionPolicy {
    /// All conditions.
    #[default]
    AllOf,
    /// At least one condition.
    AnyOf,
}

/// `spec` of a `NodeReadinessRule`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::exhaustive_structs, reason = "the fields are those of the API")]
pub struct NodeReadinessRuleSpec {
    /// Required conditions.
    pub conditions: Vec<ConditionRequirement>,
    /// All or any of the conditions.
    pub condition_policy: ConditionPolicy,
    /// Period of enforcement.
    pub enforcement_mode: EnforcementMode,
    /// Taint of nodes that do not have the conditions.
    pub taint: Taint,
    /// Selector of nodes by label. Must not be empty.
    pub node_selector: LabelSelector,
    /// Tries the rule without effect: it is not expanded. See [`preview_gates`](crate::preview_gates).
    pub dry_run: bool,
}

/// Rule of node-readiness-controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::exhaustive_structs, reason = "the fields are those of the API")]
pub struct NodeReadinessRule {
    /// Metadata, of which name and UID are used.
    pub metadata: ObjectMeta,
    /// Spec of the rule.
    pub spec: NodeReadinessRuleSpec,
}
