//! The labels that show which gates a node has (KEP-5233, Labels for Readiness Gates).

use crate::name::{MAX_DOMAIN, domain, is_below, key_problems};
use crate::reconcile::output::Actor;

/// What label keys of gates begin with.
pub const LABEL_PREFIX: &str = "readiness-gate.";

/// The value of each such label: a text, not a bool.
pub const LABEL_VALUE: &str = "true";

/// Domains of labels that kubelets may set although they belong to Kubernetes.
const KUBELET_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// Domains that belong to Kubernetes.
const KUBERNETES_DOMAINS: [&str; 2] = ["kubernetes.io", "k8s.io"];

/// A condition type that makes no label key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{condition_type:?} makes no label key: {detail}")]
#[non_exhaustive]
pub struct LabelKeyError {
    /// The condition type.
    pub condition_type: String,
    /// What is wrong with the key.
    pub detail: &'static str,
}

/// The label key of a gate.
///
/// # Errors
/// A condition type that is no valid one, or whose domain is longer than 238 bytes: see
/// [`crate::validate::LengthPolicy`].
///
/// ```
/// use readiness::label::label_key;
/// assert_eq!(label_key("datadog.com/AgentReady")?, "readiness-gate.datadog.com/AgentReady");
/// assert!(label_key("Ready").is_err());
/// # Ok::<(), readiness::label::LabelKeyError>(())
/// ```
pub fn label_key(condition_type: &str) -> Result<String, LabelKeyError> {
    let error = |detail| LabelKeyError { condition_type: condition_type.to_owned(), detail };
    match key_problem(condition_type) {
        Some(detail) => Err(error(detail)),
        None => Ok(format!("{LABEL_PREFIX}{condition_type}")),
    }
}

/// The first thing that keeps a condition type from being made a label key.
pub(crate) fn key_problem(condition_type: &str) -> Option<&'static str> {
    let Some(domain) = domain(condition_type) else { return Some("prefix part must be non-empty") };
    if LABEL_PREFIX.len().saturating_add(domain.len()) > MAX_DOMAIN {
        return Some("prefix part must be no more than 253 bytes");
    }
    key_problems(condition_type).first().copied()
}

/// Whether the API server lets a kubelet set the label of a gate on its own node.
///
/// `NodeRestriction` refuses labels whose domain ends in `kubernetes.io` or `k8s.io`, other than below
/// `kubelet.kubernetes.io` and `node.kubernetes.io`; the kubelet's whole write of the node fails then. The KEP's own
/// example `network.kubernetes.io/CNIReady` is such a label: another actor has to set it.
///
/// ```
/// use readiness::label::is_writable_by_kubelet;
/// assert!(is_writable_by_kubelet("datadog.com/AgentReady"));
/// assert!(!is_writable_by_kubelet("network.kubernetes.io/CNIReady"));
/// assert!(is_writable_by_kubelet("node.kubernetes.io/Ready"));
/// ```
#[must_use]
pub fn is_writable_by_kubelet(condition_type: &str) -> bool {
    // The label's domain is the type's with a prefix: it ends in the same domains.
    let Some(domain) = domain(condition_type) else { return true };
    let is_one_of = |domains: [&str; 2]| domains.iter().any(|parent| is_below(domain, parent));
    !is_one_of(KUBERNETES_DOMAINS) || is_one_of(KUBELET_DOMAINS)
}

/// Who writes the label of a gate.
pub(crate) fn writer(condition_type: &str) -> Actor {
    if is_writable_by_kubelet(condition_type) { Actor::Kubelet } else { Actor::Nlc }
}
