//! Calls that evict a pod.

use dra_device::internal::PodFields;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Call to the API server that belongs to the eviction of a pod.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EvictionCall {
    /// Creates a normal event about the pod.
    Event {
        /// Reason of the event.
        reason: &'static str,
        /// Message of the event.
        message: &'static str,
    },
    /// Sets a condition in the pod's status; left out if the pod has it.
    SetCondition {
        /// Condition to set.
        condition: PodCondition,
    },
    /// Deletes the pod, if it still has the UID.
    Delete {
        /// Namespace of the pod.
        namespace: String,
        /// Name of the pod.
        name: String,
        /// UID of the pod, the precondition of the deletion.
        uid: String,
    },
}

/// Returns the calls that evict a pod, in their order; none for a pod that is being deleted.
///
/// The caller reads the pod anew before, and stops if it has another UID or is gone.
///
/// ```
/// use dra_alloc::eviction::{EvictionCall, evict};
/// use k8s_openapi::api::core::v1::Pod;
/// use k8s_openapi::jiff::Timestamp;
/// let calls = evict(&Pod::default(), Timestamp::UNIX_EPOCH);
/// assert!(matches!(calls[..], [EvictionCall::Event { .. }, EvictionCall::SetCondition { .. }, EvictionCall::Delete { .. }]));
/// ```
#[must_use]
pub fn evict(pod: &Pod, now: Timestamp) -> Vec<EvictionCall> {
    if pod.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let condition = PodCondition {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
        reason: Some("DeletionByDeviceTaintManager".to_owned()),
        message: Some("Device Taint manager: deleting due to NoExecute taint".to_owned()),
        last_transition_time: Some(Time(now)),
        ..PodCondition::default()
    };
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_set = |existing: &PodCondition| {
        (&existing.type_, &existing.status, &existing.reason, &existing.message)
            == (&condition.type_, &condition.status, &condition.reason, &condition.message)
    };
    let set = (!conditions.any(is_set)).then_some(EvictionCall::SetCondition { condition });
    let event = EvictionCall::Event { reason: "DeviceTaintManagerEviction", message: "Marking for deletion" };
    let delete = EvictionCall::Delete {
        namespace: pod.namespace().to_owned(),
        name: pod.metadata.name.clone().unwrap_or_default(),
        uid: pod.uid().to_owned(),
    };
    [event].into_iter().chain(set).chain([delete]).collect()
}
