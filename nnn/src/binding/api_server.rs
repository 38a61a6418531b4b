//! What the API server does with a binding (DT-11; KEP-5278, Kube-apiserver clears `NominatedNodeName` when receiving
//! binding requests).

use k8s_openapi::api::core::v1::{Binding, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use crate::gates::{Gate, Gates};
use crate::pod::node_name;

/// Why a binding is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindingConflict {
    /// It is meant for another pod of that name.
    #[error("the UID in the precondition ({wanted}) does not match the UID in record ({found})")]
    Uid {
        /// The UID in the binding.
        wanted: String,
        /// The pod's.
        found: String,
    },
    /// It is meant for another version of the pod.
    #[error("the resource version in the precondition ({wanted}) does not match that in record ({found})")]
    ResourceVersion {
        /// The version in the binding.
        wanted: String,
        /// The pod's.
        found: String,
    },
    /// It names no node.
    #[error("target.name: must be set")]
    NoTarget,
    /// The pod is being deleted.
    #[error("pod is being deleted, cannot be assigned to a host")]
    Deleting,
    /// The pod has a node.
    #[error("pod is already assigned to node {node:?}")]
    Bound {
        /// The node.
        node: String,
    },
    /// The pod has scheduling gates.
    #[error("pod has non-empty .spec.schedulingGates")]
    Gated,
}

/// The pod after a binding, in one write: its node, annotations and labels of the binding, the condition `PodScheduled`,
/// and no nomination any more if `ClearingNominatedNodeNameAfterBinding` is on.
///
/// # Errors
/// The binding is refused, and nothing is written.
///
/// ```
/// use k8s_openapi::api::core::v1::{Binding, Pod};
/// use k8s_openapi::jiff::Timestamp;
/// use nnn::binding::api_server::bind;
/// use nnn::gates::{Gate, Gates};
/// use nnn::pod::PodView;
/// use serde_json::{from_value, json};
/// let pod: Pod = from_value(json!({"metadata": {"name": "p", "uid": "1"}, "status": {"nominatedNodeName": "old"}}))?;
/// let binding: Binding = from_value(json!({"metadata": {"name": "p"}, "target": {"name": "node-1"}}))?;
/// let bound = bind(&pod, &binding, Gates::default(), Timestamp::UNIX_EPOCH)?;
/// assert_eq!(PodView::from_pod(&bound)?.nnn, None);
/// let stale = bind(&pod, &binding, Gates::default().without(Gate::Clearing), Timestamp::UNIX_EPOCH)?;
/// assert_eq!(PodView::from_pod(&stale)?.nnn.as_deref(), Some("old"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn bind(pod: &Pod, binding: &Binding, gates: Gates, now: Timestamp) -> Result<Pod, BindingConflict> {
    check(pod, binding)?;
    let mut bound = pod.clone();
    let node = node_name(binding.target.name.as_deref()).ok_or(BindingConflict::NoTarget)?;
    bound.spec.get_or_insert_default().node_name = Some(node);
    let status = bound.status.get_or_insert_default();
    if gates.has(Gate::Clearing) {
        status.nominated_node_name = None;
    }
    let conditions = status.conditions.get_or_insert_default();
    let was_scheduled = |it: &PodCondition| it.type_ == "PodScheduled" && it.status == "True";
    if !conditions.iter().any(was_scheduled) {
        conditions.retain(|condition| condition.type_ != "PodScheduled");
        conditions.push(PodCondition {
            type_: "PodScheduled".to_owned(),
            status: "True".to_owned(),
            last_transition_time: Some(Time(now)),
            ..PodCondition::default()
        });
    }
    let metadata = &mut bound.metadata;
    if let Some(annotations) = &binding.metadata.annotations {
        metadata.annotations.get_or_insert_default().extend(annotations.clone());
    }
    if let Some(labels) = &binding.metadata.labels {
        metadata.labels.get_or_insert_default().extend(labels.clone());
    }
    Ok(bound)
}

fn check(pod: &Pod, binding: &Binding) -> Result<(), BindingConflict> {
    let mismatch = |wanted: &Option<String>, found: &Option<String>| {
        let wanted = wanted.clone().filter(|wanted| !wanted.is_empty())?;
        let found = found.clone().unwrap_or_default();
        (wanted != found).then_some((wanted, found))
    };
    if let Some((wanted, found)) = mismatch(&binding.metadata.uid, &pod.metadata.uid) {
        return Err(BindingConflict::Uid { wanted, found });
    }
    if let Some((wanted, found)) = mismatch(&binding.metadata.resource_version, &pod.metadata.resource_version) {
        return Err(BindingConflict::ResourceVersion { wanted, found });
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return Err(BindingConflict::Deleting);
    }
    let spec = pod.spec.as_ref();
    if let Some(node) = node_name(spec.and_then(|spec| spec.node_name.as_deref())) {
        return Err(BindingConflict::Bound { node });
    }
    if spec.is_some_and(|spec| spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty())) {
        return Err(BindingConflict::Gated);
    }
    Ok(())
}
