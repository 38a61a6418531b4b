//! States of a pod that its controller looks at.

use k8s_openapi::api::core::v1::Pod;

/// Returns the phase of a pod; empty if there is none yet.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Returns true for a pod that counts for its controller.
pub(crate) fn is_active(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase(pod), "Succeeded" | "Failed")
}

/// Returns true for a pod that says it is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    is_active(pod) && conditions.any(|condition| (&*condition.type_, &*condition.status) == ("Ready", "True"))
}

/// Returns the value of a label; empty if there is none.
pub(crate) fn label<'p>(pod: &'p Pod, key: &str) -> &'p str {
    pod.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str).unwrap_or_default()
}

/// Returns the number that follows the name of the owner in the name of a pod: `2` of `db-2`, and of `job-2-x7f`.
pub(crate) fn number(pod: &Pod, owner: &str) -> Option<usize> {
    let rest = pod.metadata.name.as_deref()?.strip_prefix(owner)?.strip_prefix('-')?;
    rest.split('-').next()?.parse().ok()
}
