//! Errors of rules that can't be turned into gates.

/// Reason that a rule can't be turned into a gate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpandError {
    /// The name of the rule can't be used in a condition type.
    #[error("rule {rule:?}: {detail}")]
    Name {
        /// Name of the rule.
        rule: String,
        /// Reason that the name is invalid, in the API server's words.
        detail: String,
    },
    /// The rule does not have 1 to 32 conditions.
    #[error("rule {rule:?}: {count} conditions, not 1 to 32")]
    Conditions {
        /// Name of the rule.
        rule: String,
        /// Number of conditions in the rule.
        count: usize,
    },
    /// A condition type is empty, longer than 316 bytes, or listed twice.
    #[error("rule {rule:?}: the condition type {type_:?} is there twice, or does not have 1 to 316 bytes")]
    ConditionType {
        /// Name of the rule.
        rule: String,
        /// Invalid or repeated condition type.
        type_: String,
    },
    /// A required or default status is not True, False or Unknown.
    #[error("rule {rule:?}: no status {status:?}")]
    Status {
        /// Name of the rule.
        rule: String,
        /// Status that is not True, False or Unknown.
        status: String,
    },
    /// The key of the taint does not have the form `readiness.k8s.io/NAME`.
    #[error("rule {rule:?}: the taint {key:?} is not \"readiness.k8s.io/\" and a name")]
    TaintKey {
        /// Name of the rule.
        rule: String,
        /// Invalid key of the taint.
        key: String,
    },
    /// The taint of the rule has an invalid value or effect, so that its gate could never time out.
    #[error("rule {rule:?}: the value or the effect of the taint is invalid")]
    Taint {
        /// Name of the rule.
        rule: String,
    },
    /// The node selector is empty, and so would select every node.
    #[error("rule {rule:?}: an empty nodeSelector")]
    EmptySelector {
        /// Name of the rule.
        rule: String,
    },
    /// The node selector has an unknown operator.
    #[error("rule {rule:?}: no operator {operator:?} of a nodeSelector")]
    Operator {
        /// Name of the rule.
        rule: String,
        /// Unknown operator.
        operator: String,
    },
    /// A bootstrap-only rule has `anyOf` or a `defaultStatus`, which only continuous rules may have.
    #[error("rule {rule:?}: bootstrap-only does not go with anyOf or a defaultStatus")]
    Bootstrap {
        /// Name of the rule.
        rule: String,
    },
    /// Two rules that select the node have the same taint.
    #[error("rules {first:?} and {second:?} hold the same taint on one node")]
    SharedTaint {
        /// Name of the first rule.
        first: String,
        /// Name of the second rule.
        second: String,
    },
}
