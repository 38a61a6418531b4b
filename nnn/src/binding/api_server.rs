//! Binding of a pod by kube-apiserver, which clears `nominatedNodeName` (KEP-5278, Kube-apiserver clears
//! `NominatedNodeName` when receiving binding requests).

use dra_attrs::{Gate, GateSet};
use k8s_openapi::api::core::v1::{Binding, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use crate::pod::parse_node_name;

/// Error of a binding that the API server refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindingError {
    /// The UID in the binding differs from that of the pod.
    #[error("the UID in the precondition ({wanted}) does not match the UID in record ({found})")]
    Uid {
        /// UID in the binding.
        wanted: String,
        /// UID of the pod.
        found: String,
    },
    /// The resource version in the binding differs from that of the pod.
    #[error("the resource version in the precondition ({wanted}) does not match that in record ({found})")]
    ResourceVersion {
        /// Resource version in the binding.
        wanted: String,
        /// Resource version of the pod.
        found: String,
    },
    /// The target of the binding is not a node.
    #[error("target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\"")]
    TargetKind {
        /// Kind of the target in the binding.
        kind: String,
    },
    /// The binding names no node.
    #[error("target.name: must be set")]
    NoTarget,
    /// The pod is being deleted.
    #[error("pod is being deleted, cannot be assigned to a host")]
    Deleting,
    /// The pod is already bound to a node.
    #[error("pod is already assigned to node {node:?}")]
    Bound {
        /// Node to which the pod is bound.
        node: String,
    },
    /// The pod has scheduling gates.
    #[error("pod has non-empty .spec.schedulingGates")]
    Gated,
}

/// Applies a binding to a pod like kube-apiserver: in one write it sets the node and the condition `PodScheduled` and,
/// with the gate [`Gate::ClearingNominatedNodeNameAfterBinding`] on, clears `nominatedNodeName`.
///
/// The pod gets its node, the annotations of the binding, and the condition `PodScheduled` without the reason and
/// message of earlier failures. It gets the labels of the binding if `PodTopologyLabelsAdmission` is on, and loses its
/// nomination if `ClearingNominatedNodeNameAfterBinding` is on.
///
/// # Errors
/// The binding is refused, and nothing is written. Errors of the binding itself are found before its preconditions are
/// compared with the pod.
///
/// ```
/// use dra_attrs::Profile;
/// use dra_attrs::GateSet;
/// use k8s_openapi::api::core::v1::{Binding, Pod};
/// use k8s_openapi::jiff::Timestamp;
/// use nnn::binding::apply_binding;
/// use nnn::PodSnapshot;
/// use dra_attrs::Gate;
/// use serde_json::{from_value, json};
/// let pod: Pod = from_value(json!({"metadata": {"name": "p", "uid": "1"}, "status": {"nominatedNodeName": "old"}}))?;
/// let binding: Binding = from_value(json!({"metadata": {"name": "p"}, "target": {"name": "node-1"}}))?;
/// let bound = apply_binding(&pod, &binding, GateSet::of(Profile::V1_37), Timestamp::UNIX_EPOCH)?;
/// assert_eq!(PodSnapshot::from_pod(&bound)?.nnn, None);
/// let stale = apply_binding(&pod, &binding, GateSet::of(Profile::V1_37).without(Gate::ClearingNominatedNodeNameAfterBinding), Timestamp::UNIX_EPOCH)?;
/// assert_eq!(PodSnapshot::from_pod(&stale)?.nnn.as_deref(), Some("old"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn apply_binding(pod: &Pod, binding: &Binding, gates: GateSet, now: Timestamp) -> Result<Pod, BindingError> {
    let node = target(binding)?;
    check(pod, binding)?;
    let mut bound = pod.clone();
    bound.spec.get_or_insert_default().node_name = Some(node);
    let status = bound.status.get_or_insert_default();
    if gates.has(Gate::ClearingNominatedNodeNameAfterBinding) {
        status.nominated_node_name = None;
    }
    set_scheduled(status.conditions.get_or_insert_default(), now);
    let metadata = &mut bound.metadata;
    if let Some(annotations) = &binding.metadata.annotations {
        metadata.annotations.get_or_insert_default().extend(annotations.clone());
    }
    if gates.has(Gate::PodTopologyLabelsAdmission)
        && let Some(labels) = &binding.metadata.labels
    {
        metadata.labels.get_or_insert_default().extend(labels.clone());
    }
    Ok(bound)
}

/// Returns the node of a binding.
fn target(binding: &Binding) -> Result<String, BindingError> {
    match binding.target.kind.as_deref() {
        None | Some("" | "Node") => parse_node_name(binding.target.name.as_deref()).ok_or(BindingError::NoTarget),
        Some(kind) => Err(BindingError::TargetKind { kind: kind.to_owned() }),
    }
}

/// Sets the condition `PodScheduled` to `True` in place. Its transition time becomes `now` if the status changes.
fn set_scheduled(conditions: &mut Vec<PodCondition>, now: Timestamp) {
    let mut scheduled = PodCondition {
        type_: "PodScheduled".to_owned(),
        status: "True".to_owned(),
        last_transition_time: Some(Time(now)),
        ..PodCondition::default()
    };
    let Some(known) = conditions.iter_mut().find(|condition| condition.type_ == scheduled.type_) else {
        conditions.push(scheduled);
        return;
    };
    if known.status == scheduled.status {
        scheduled.last_transition_time.clone_from(&known.last_transition_time);
    }
    *known = scheduled;
}

fn check(pod: &Pod, binding: &Binding) -> Result<(), BindingError> {
    let mismatch = |wanted: &Option<String>, found: &Option<String>| {
        let wanted = wanted.clone().filter(|wanted| !wanted.is_empty())?;
        let found = found.clone().unwrap_or_default();
        (wanted != found).then_some((wanted, found))
    };
    if let Some((wanted, found)) = mismatch(&binding.metadata.uid, &pod.metadata.uid) {
        return Err(BindingError::Uid { wanted, found });
    }
    if let Some((wanted, found)) = mismatch(&binding.metadata.resource_version, &pod.metadata.resource_version) {
        return Err(BindingError::ResourceVersion { wanted, found });
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return Err(BindingError::Deleting);
    }
    let spec = pod.spec.as_ref();
    if let Some(node) = parse_node_name(spec.and_then(|spec| spec.node_name.as_deref())) {
        return Err(BindingError::Bound { node });
    }
    if spec.is_some_and(|spec| spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty())) {
        return Err(BindingError::Gated);
    }
    Ok(())
}
