//! Scheduling gates, which keep a pod out of the scheduling queue.
//!
//! Source: the plugin `SchedulingGates` of kube-scheduler, KEP-3521.

use k8s_openapi::api::core::v1::Pod;

/// Gates that a pod waits for. Displayed in kube-scheduler's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("waiting for scheduling gates: [{}]", gates.join(" "))]
#[non_exhaustive]
pub struct SchedulingGatesError {
    /// Names of the gates, in the order of the spec.
    pub gates: Vec<String>,
}

/// Checks that a pod has no scheduling gates left.
///
/// ```
/// use dra_alloc::fit::check_scheduling_gates;
/// let pod = serde_json::from_str(r#"{"spec": {"containers": [], "schedulingGates": [{"name": "a"}, {"name": "b"}]}}"#)?;
/// let waits = check_scheduling_gates(&pod).unwrap_err();
/// assert_eq!(waits.to_string(), "waiting for scheduling gates: [a b]");
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// The gates of the pod.
///
/// # Complexity
/// Linear in the number of gates.
pub fn check_scheduling_gates(pod: &Pod) -> Result<(), SchedulingGatesError> {
    let gates = pod.spec.iter().flat_map(|spec| spec.scheduling_gates.iter().flatten());
    let gates: Vec<String> = gates.map(|gate| gate.name.clone()).collect();
    if gates.is_empty() { Ok(()) } else { Err(SchedulingGatesError { gates }) }
}
