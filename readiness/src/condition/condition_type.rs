//! Condition types of gates: a domain, a slash and a name (KEP-5233, Standardized Condition Patterns).

/// Condition type of a pod network (CNI) that is configured and works.
const CNI_READY: &str = "network.kubernetes.io/CNIReady";

/// Condition type of a network proxy (kube-proxy) that works.
const NETWORK_PROXY_READY: &str = "network.kubernetes.io/NetworkProxyReady";

/// Returns true if a condition type belongs to Kubernetes: its domain is `kubernetes.io` or a subdomain of it.
pub(crate) fn is_standard(condition_type: &str) -> bool {
    domain(condition_type).is_some_and(|domain| is_same_or_subdomain(domain, "kubernetes.io"))
}

/// Returns true if KEP-5233 defines the condition type: `CNIReady` or `NetworkProxyReady` below `network.kubernetes.io`.
pub(crate) fn is_known(condition_type: &str) -> bool {
    [CNI_READY, NETWORK_PROXY_READY].contains(&condition_type)
}

/// Returns the domain of a condition type or label key: the part before the slash.
pub(crate) fn domain(key: &str) -> Option<&str> {
    key.split_once('/').map(|(domain, _)| domain)
}

/// Returns true if `domain` equals `parent` or is a subdomain of it.
pub(crate) fn is_same_or_subdomain(domain: &str, parent: &str) -> bool {
    domain.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
