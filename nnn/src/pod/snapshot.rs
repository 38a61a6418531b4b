//! Snapshot of a pod: the fields that matter to nominations.

use std::fmt;

use dra_attrs::{QuantityError, Resources};
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

/// Identity of a pod. The UID alone identifies it; namespace and name are for look-ups and commands.
///
/// ```
/// use nnn::PodKey;
/// assert_eq!(PodKey::new("default", "web", "u-1").to_string(), "default/web");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct PodKey {
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`
    pub uid: String,
}

impl PodKey {
    /// Builds the identity of a pod from its namespace, name and UID.
    #[must_use]
    pub fn new(namespace: &str, name: &str, uid: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned(), uid: uid.to_owned() }
    }
}

impl fmt::Display for PodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Error of an object that can't be read as a pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PodError {
    /// A field that every pod in the API server has is missing.
    #[error("{field}: must be set")]
    Missing {
        /// Path of the field.
        field: &'static str,
    },
    /// A resource request of the pod is not a valid quantity.
    #[error("spec.containers: {source}")]
    Request {
        /// Reason why the text is not a valid quantity.
        source: QuantityError,
    },
    /// A node resource of the pod's claim is not a valid quantity.
    #[error("status.nodeAllocatableResourceClaimStatuses: {source}")]
    ClaimResource {
        /// Reason why the text is not a valid quantity.
        source: QuantityError,
    },
}

/// Condition `PodScheduled` of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct ScheduledCondition {
    /// `status` of the condition: `True`, `False` or any other text.
    pub status: String,
    /// `reason` of the condition: `Unschedulable`, `SchedulerError` or another reason.
    pub reason: String,
    /// `message` of the condition.
    pub message: String,
}

impl ScheduledCondition {
    /// Builds the condition of a pod whose scheduling or binding cycle failed: status `False`.
    #[must_use]
    pub fn failed(reason: &str, message: &str) -> Self {
        Self { status: "False".to_owned(), reason: reason.to_owned(), message: message.to_owned() }
    }

    /// Returns true if the status is `False` and the reason is `Unschedulable`.
    pub(crate) fn is_unschedulable(&self) -> bool {
        self.status == "False" && self.reason == "Unschedulable"
    }
}

/// Node of a pod: the node to which it is bound, or else nominated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodPlacement<'a> {
    /// Node in `spec.nodeName`. The nomination of a bound pod is ignored.
    Bound(&'a str),
    /// Node in `status.nominatedNodeName` of a pod that is not bound, whichever component wrote it.
    Nominated(&'a str),
    /// The pod has no node.
    None,
}

/// Snapshot of a pod at one resource version.
///
/// A node that is unset is `None` here, never the empty name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the pod's API object")]
pub struct PodSnapshot {
    /// Identity of the pod.
    pub key: PodKey,
    /// `spec.priority`, or 0 if unset
    pub priority: i32,
    /// `spec.nodeName`
    pub node: Option<String>,
    /// `status.nominatedNodeName`
    pub nnn: Option<String>,
    /// Field manager that wrote `status.nominatedNodeName`, from `metadata.managedFields`.
    pub nnn_manager: Option<String>,
    /// True if `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// Numeric value of `metadata.resourceVersion`; a later version is higher.
    pub resource_version: Option<u64>,
    /// True if `spec.schedulingGates` has an entry: the pod is not in the scheduling queue.
    pub gated: bool,
    /// `spec.schedulerName`
    pub scheduler_name: String,
    /// True if `spec.preemptionPolicy` is `Never`: the pod may not preempt others.
    pub never_preempts: bool,
    /// True if `status.phase` is `Succeeded` or `Failed`: the pod uses nothing any more.
    pub has_ended: bool,
    /// The condition `PodScheduled`.
    pub scheduled: Option<ScheduledCondition>,
    /// True if the pod is the victim of a preemption: condition `DisruptionTarget` with reason `PreemptionByScheduler`.
    pub preempted: bool,
    /// True if an in-place resize is deferred for lack of room: condition `PodResizePending` with reason `Deferred`.
    pub resize_deferred: bool,
    /// Resources that the pod requests on its node.
    pub requests: Resources,
}

impl PodSnapshot {
    /// Builds a pending pod whose UID is its name. Pods of other namespaces need other names.
    ///
    /// ```
    /// use nnn::PodSnapshot;
    /// let pod = PodSnapshot::pending("default", "web").with_priority(100).with_nomination("node-1");
    /// assert_eq!((pod.node.as_deref(), pod.nnn.as_deref()), (None, Some("node-1")));
    /// ```
    #[must_use]
    pub fn pending(namespace: &str, name: &str) -> Self {
        Self {
            key: PodKey::new(namespace, name, name),
            scheduler_name: "default-scheduler".to_owned(),
            ..Self::default()
        }
    }

    /// Builds the snapshot of a pod object from the API server.
    ///
    /// # Errors
    /// A pod without name or UID, or a request that is not a quantity.
    ///
    /// ```
    /// use nnn::PodSnapshot;
    /// let pod = serde_json::from_str(r#"{"metadata": {"namespace": "ns", "name": "p", "uid": "1"},
    ///     "status": {"nominatedNodeName": ""}}"#)?;
    /// assert_eq!(PodSnapshot::from_pod(&pod)?.nnn, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_pod(pod: &Pod) -> Result<Self, PodError> {
        let metadata = &pod.metadata;
        let spec = pod.spec.as_ref();
        let status = pod.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let request = |source| PodError::Request { source };
        let requests = spec.map_or_else(|| Ok(Resources::default()), Resources::requested_by).map_err(request)?;
        let has = |kind: &str, reason: &str| {
            let condition = conditions.iter().find(|condition| condition.type_ == kind);
            condition.is_some_and(|it| it.status == "True" && it.reason.as_deref() == Some(reason))
        };
        Ok(Self {
            key: PodKey {
                namespace: metadata.namespace.clone().unwrap_or_default(),
                name: required("metadata.name", metadata.name.as_deref())?,
                uid: required("metadata.uid", metadata.uid.as_deref())?,
            },
            priority: spec.and_then(|spec| spec.priority).unwrap_or_default(),
            node: parse_node_name(spec.and_then(|spec| spec.node_name.as_deref())),
            nnn: parse_node_name(status.and_then(|status| status.nominated_node_name.as_deref())),
            nnn_manager: nnn_manager(metadata),
            deleting: metadata.deletion_timestamp.is_some(),
            resource_version: metadata.resource_version.as_deref().and_then(|version| version.parse().ok()),
            gated: spec.and_then(|spec| spec.scheduling_gates.as_ref()).is_some_and(|gates| !gates.is_empty()),
            scheduler_name: spec.and_then(|spec| spec.scheduler_name.clone()).unwrap_or_default(),
            never_preempts: spec.and_then(|spec| spec.preemption_policy.as_deref()) == Some("Never"),
            has_ended: matches!(status.and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed")),
            scheduled: conditions.iter().find(|condition| condition.type_ == "PodScheduled").map(scheduled),
            preempted: has("DisruptionTarget", "PreemptionByScheduler"),
            resize_deferred: has("PodResizePending", "Deferred"),
            requests,
        })
    }

    /// Returns the node of the pod: the node to which it is bound, or else nominated.
    pub(crate) fn placement(&self) -> PodPlacement<'_> {
        match (&self.node, &self.nnn) {
            (Some(node), _) => PodPlacement::Bound(node),
            (None, Some(node)) => PodPlacement::Nominated(node),
            (None, None) => PodPlacement::None,
        }
    }

    /// Sets the priority.
    #[must_use]
    pub fn with_priority(self, priority: i32) -> Self {
        Self { priority, ..self }
    }

    /// Sets the UID.
    #[must_use]
    pub fn with_uid(mut self, uid: &str) -> Self {
        uid.clone_into(&mut self.key.uid);
        self
    }

    /// Sets the requests.
    #[must_use]
    pub fn with_requests(self, requests: Resources) -> Self {
        Self { requests, ..self }
    }

    /// Sets `status.nominatedNodeName`.
    #[must_use]
    pub fn with_nomination(self, node: &str) -> Self {
        Self { nnn: parse_node_name(Some(node)), ..self }
    }

    /// Sets `spec.nodeName`.
    #[cfg(test)]
    pub(crate) fn with_node(self, node: &str) -> Self {
        Self { node: parse_node_name(Some(node)), ..self }
    }
}

/// Reads a field with a node name. The empty name is `None`.
pub(crate) fn parse_node_name(name: Option<&str>) -> Option<String> {
    name.filter(|name| !name.is_empty()).map(str::to_owned)
}

fn required(field: &'static str, value: Option<&str>) -> Result<String, PodError> {
    parse_node_name(value).ok_or(PodError::Missing { field })
}

fn scheduled(condition: &PodCondition) -> ScheduledCondition {
    ScheduledCondition {
        status: condition.status.clone(),
        reason: condition.reason.clone().unwrap_or_default(),
        message: condition.message.clone().unwrap_or_default(),
    }
}

/// Returns the field manager whose `managedFields` entry owns `status.nominatedNodeName`.
fn nnn_manager(metadata: &ObjectMeta) -> Option<String> {
    metadata.managed_fields.iter().flatten().find_map(|entry| {
        let fields = &entry.fields_v1.as_ref()?.0;
        fields.get("f:status")?.get("f:nominatedNodeName")?;
        entry.manager.clone()
    })
}
