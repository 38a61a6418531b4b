//! Pods that nobody moves to another node.

use k8s_openapi::api::core::v1::Pod;

use crate::workload::controller;

/// Annotations by which autoscalers leave a pod where it is, with their values.
const STAYS: [(&str, &str); 2] =
    [("karpenter.sh/do-not-disrupt", "true"), ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false")];

/// Returns true for a pod with an annotation that forbids its eviction.
///
/// ```
/// use examples::movable::{is_fixed, must_stay};
/// let pod = |annotations| serde_json::from_value(serde_json::json!({"metadata": {"annotations": annotations}}));
/// let pod = pod(serde_json::json!({"karpenter.sh/do-not-disrupt": "true"}))?;
/// assert!(must_stay(&pod) && is_fixed(&pod));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn must_stay(pod: &Pod) -> bool {
    let annotations = pod.metadata.annotations.as_ref();
    let has = |(name, value): &(&str, &str)| annotations.and_then(|all| all.get(*name)).is_some_and(|is| is == value);
    STAYS.iter().any(has)
}

/// Returns true for a pod that must stay, and for one without a controller: nobody would make it anew.
#[must_use]
pub fn is_fixed(pod: &Pod) -> bool {
    must_stay(pod) || controller(&pod.metadata).is_none()
}
