//! Node labels, one for each readiness gate of the node (KEP-5233, Labels for Readiness Gates).

use dra_attrs::NameFormat;

use crate::condition::{domain, is_same_or_subdomain};

/// Prefix of the keys of node labels that name readiness gates.
pub(crate) const GATE_LABEL_PREFIX: &str = "readiness-gate.";

/// Subdomains of `kubernetes.io` whose labels the admission plugin `NodeRestriction` lets a kubelet set.
const KUBELET_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// Domains whose labels `NodeRestriction` does not let a kubelet set, apart from those of [`KUBELET_DOMAINS`].
const KUBERNETES_DOMAINS: [&str; 2] = ["kubernetes.io", "k8s.io"];

/// Error of a condition type that can't be used in a label key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{condition_type:?} makes no label key: {detail}")]
#[non_exhaustive]
pub struct GateLabelError {
    /// Condition type that can't be used in a label key.
    pub condition_type: String,
    /// Reason that the label key is invalid, in the API server's words.
    pub detail: String,
}

/// Returns the first error of the label key for a gate of this condition type; `None` if the key is valid.
pub(crate) fn key_problem(condition_type: &str) -> Option<String> {
    let Some(domain) = domain(condition_type) else { return Some("prefix part must be non-empty".to_owned()) };
    if GATE_LABEL_PREFIX.len().saturating_add(domain.len()) > NameFormat::MAX_SUBDOMAIN_LEN {
        return Some(format!("prefix part must be no more than {} bytes", NameFormat::MAX_SUBDOMAIN_LEN));
    }
    NameFormat::LabelKey.problems(condition_type).into_iter().next()
}

/// Returns true if the API server lets a kubelet set the label of a gate on its own node.
///
/// `NodeRestriction` refuses labels whose domain ends in `kubernetes.io` or `k8s.io`, other than below
/// `kubelet.kubernetes.io` and `node.kubernetes.io`; then kubelet's whole write of the node fails. The KEP's own
/// example `network.kubernetes.io/CNIReady` is such a label: another component has to set it.
pub(crate) fn is_writable_by_kubelet(condition_type: &str) -> bool {
    // The domain of the label has the domain of the type as its suffix, so both belong to the same parents.
    let Some(domain) = domain(condition_type) else { return true };
    let is_one_of = |domains: [&str; 2]| domains.iter().any(|parent| is_same_or_subdomain(domain, parent));
    !is_one_of(KUBERNETES_DOMAINS) || is_one_of(KUBELET_DOMAINS)
}

#[cfg(test)]
mod tests {
    use super::is_writable_by_kubelet;

    #[test]
    fn which_labels_a_kubelet_may_write() {
        let rows = [
            ("datadog.com/AgentReady", true),
            ("network.kubernetes.io/CNIReady", false),
            ("kubernetes.io/A", false),
            ("k8s.io/A", false),
            ("readiness.k8s.io/A", false),
            ("node.kubernetes.io/A", true),
            ("x.node.kubernetes.io/A", true),
            ("kubelet.kubernetes.io/A", true),
            ("xnode.kubernetes.io/A", false),
            ("node-restriction.kubernetes.io/A", false),
            ("mykubernetes.io/A", true),
        ];
        for (name, may) in rows {
            assert_eq!(is_writable_by_kubelet(name), may, "{name}");
        }
    }
}
