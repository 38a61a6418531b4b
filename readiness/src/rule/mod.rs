//! Conversion of node-readiness-controller's rules into gates, and the rule for start-up taints that the KEP compares
//! gates with (KEP-5233, Alternatives).
//!
//! A rule selects nodes, requires conditions of any status, all of them or any one, and has a taint. [`Expansion`] turns each
//! rule that selects a node into one gate and one condition. The caller writes the condition, as the agent of the gate. So
//! timeouts, reboots, taints and previews work for rules as for every gate. When a rule ceases to select a node, its gate is
//! removed, and its taint with it.
//!
//! Tests: `tests/it/helpers.rs`.

mod error;
mod expand;
mod node_readiness_rule;
mod readiness_taint_rule;

pub use error::ExpandError;
pub use expand::Expansion;
pub use node_readiness_rule::{ConditionRequirement, NodeReadinessRule, NodeReadinessRuleSpec};
pub use readiness_taint_rule::ReadinessTaintRule;

/// Domain of the condition types and taint keys of rules.
const RULE_DOMAIN: &str = "readiness.k8s.io";

/// Prefix of the annotation that marks a bootstrap-only rule as completed on a node. The UID of the rule follows.
const COMPLETED_PREFIX: &str = "readiness.k8s.io/bootstrap-completed-";
