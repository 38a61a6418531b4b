//! A pod as far as nominations are concerned.

use std::fmt;

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use crate::amount::{AmountError, Resources};

/// What identifies a pod. Identity is the UID alone; namespace and name are for look-ups and commands.
///
/// ```
/// use nnn::pod::PodKey;
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
    /// Namespace, name, UID.
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

/// Why an object can't be read as a pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PodError {
    /// A field that every stored pod has is missing.
    #[error("{field}: must be set")]
    Missing {
        /// Its path.
        field: &'static str,
    },
    /// A request is no quantity.
    #[error("spec.containers: {error}")]
    Request {
        /// What is wrong with it.
        error: AmountError,
    },
    /// A resource that a claim brings is no quantity.
    #[error("status.nodeAllocatableResourceClaimStatuses: {error}")]
    ClaimResource {
        /// What is wrong with it.
        error: AmountError,
    },
}

/// `spec.preemptionPolicy`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum PreemptionPolicy {
    /// The pod may preempt others.
    #[default]
    LowerPriority,
    /// The pod may not preempt.
    Never,
}

/// `status.phase`, as far as it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum Phase {
    /// The pod uses what it has, or will.
    #[default]
    Active,
    /// Succeeded or failed: it uses nothing any more.
    Terminal,
}

/// The condition `PodScheduled`, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct ScheduledCondition {
    /// `True` or `False`, or what somebody else wrote.
    pub status: String,
    /// `Unschedulable`, `SchedulerError`, ...
    pub reason: String,
    /// The text.
    pub message: String,
}

impl ScheduledCondition {
    /// The condition of a pod that a cycle did not place.
    #[must_use]
    pub fn failed(reason: &str, message: &str) -> Self {
        Self { status: "False".to_owned(), reason: reason.to_owned(), message: message.to_owned() }
    }

    /// Not scheduled, with the reason `Unschedulable`.
    #[must_use]
    pub fn is_unschedulable(&self) -> bool {
        self.status == "False" && self.reason == "Unschedulable"
    }
}

/// Where a pod is or is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum Placement<'a> {
    /// `spec.nodeName`; a nomination beside it says nothing.
    Bound(&'a str),
    /// `status.nominatedNodeName` of a pod that is not bound, whoever wrote it.
    Nominated(&'a str),
    /// Nowhere yet.
    None,
}

/// A pod as far as nominations are concerned.
///
/// `None` and the empty name mean the same wherever a node is named; this type has `None` only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PodView {
    /// Who it is.
    pub key: PodKey,
    /// `spec.priority`; a pod without one has 0.
    pub priority: i32,
    /// `spec.nodeName`
    pub node: Option<String>,
    /// `status.nominatedNodeName`
    pub nnn: Option<String>,
    /// Who wrote `nnn`, as `metadata.managedFields` tells.
    pub nnn_manager: Option<String>,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// The number in `metadata.resourceVersion`, which later versions exceed.
    pub resource_version: Option<u64>,
    /// `spec.schedulerName`
    pub scheduler_name: String,
    /// `spec.preemptionPolicy`
    pub preemption_policy: PreemptionPolicy,
    /// `status.phase`
    pub phase: Phase,
    /// The condition `PodScheduled`.
    pub scheduled: Option<ScheduledCondition>,
    /// A preemption by a scheduler ends the pod: condition `DisruptionTarget`, reason `PreemptionByScheduler`.
    pub preempted: bool,
    /// A resize in place that waits for room: condition `PodResizePending`, reason `Deferred`.
    pub resize_deferred: bool,
    /// What it requests of a node.
    pub requests: Resources,
}

impl PodView {
    /// A pod that waits, with its name as UID: in other namespaces, pods need other names.
    ///
    /// ```
    /// use nnn::pod::{Placement, PodView};
    /// let pod = PodView::pending("default", "web").with_priority(100).nominated_to("node-1");
    /// assert_eq!(pod.placement(), Placement::Nominated("node-1"));
    /// ```
    #[must_use]
    pub fn pending(namespace: &str, name: &str) -> Self {
        Self {
            key: PodKey::new(namespace, name, name),
            scheduler_name: "default-scheduler".to_owned(),
            ..Self::default()
        }
    }

    /// Reads what the API server has.
    ///
    /// # Errors
    /// A pod without name or UID, or with a request that is no quantity.
    ///
    /// ```
    /// use nnn::pod::PodView;
    /// let pod = serde_json::from_str(r#"{"metadata": {"namespace": "ns", "name": "p", "uid": "1"},
    ///     "status": {"nominatedNodeName": ""}}"#)?;
    /// assert_eq!(PodView::from_pod(&pod)?.nnn, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_pod(pod: &Pod) -> Result<Self, PodError> {
        let metadata = &pod.metadata;
        let spec = pod.spec.as_ref();
        let status = pod.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let request = |error| PodError::Request { error };
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
            node: node_name(spec.and_then(|spec| spec.node_name.as_deref())),
            nnn: node_name(status.and_then(|status| status.nominated_node_name.as_deref())),
            nnn_manager: nnn_manager(metadata),
            deleting: metadata.deletion_timestamp.is_some(),
            resource_version: metadata.resource_version.as_deref().and_then(|version| version.parse().ok()),
            scheduler_name: spec.and_then(|spec| spec.scheduler_name.clone()).unwrap_or_default(),
            preemption_policy: match spec.and_then(|spec| spec.preemption_policy.as_deref()) {
                Some("Never") => PreemptionPolicy::Never,
                _ => PreemptionPolicy::LowerPriority,
            },
            phase: match status.and_then(|status| status.phase.as_deref()) {
                Some("Succeeded" | "Failed") => Phase::Terminal,
                _ => Phase::Active,
            },
            scheduled: conditions.iter().find(|condition| condition.type_ == "PodScheduled").map(scheduled),
            preempted: has("DisruptionTarget", "PreemptionByScheduler"),
            resize_deferred: has("PodResizePending", "Deferred"),
            requests,
        })
    }

    /// Where readers should see it. The node of a bound pod wins over whatever `nominatedNodeName` says.
    #[must_use]
    pub fn placement(&self) -> Placement<'_> {
        match (&self.node, &self.nnn) {
            (Some(node), _) => Placement::Bound(node),
            (None, Some(node)) => Placement::Nominated(node),
            (None, None) => Placement::None,
        }
    }

    /// The same pod with a priority.
    #[must_use]
    pub fn with_priority(self, priority: i32) -> Self {
        Self { priority, ..self }
    }

    /// The same pod with a UID.
    #[must_use]
    pub fn with_uid(mut self, uid: &str) -> Self {
        uid.clone_into(&mut self.key.uid);
        self
    }

    /// The same pod with requests.
    #[must_use]
    pub fn with_requests(self, requests: Resources) -> Self {
        Self { requests, ..self }
    }

    /// The same pod with a nomination in its status.
    #[must_use]
    pub fn nominated_to(self, node: &str) -> Self {
        Self { nnn: node_name(Some(node)), ..self }
    }

    /// The same pod on a node.
    #[must_use]
    pub fn bound_to(self, node: &str) -> Self {
        Self { node: node_name(Some(node)), ..self }
    }
}

/// A name of a node; the empty one is none.
///
/// ```
/// assert_eq!(nnn::pod::node_name(Some("")), None);
/// ```
#[must_use]
pub fn node_name(name: Option<&str>) -> Option<String> {
    name.filter(|name| !name.is_empty()).map(str::to_owned)
}

fn required(field: &'static str, value: Option<&str>) -> Result<String, PodError> {
    node_name(value).ok_or(PodError::Missing { field })
}

fn scheduled(condition: &PodCondition) -> ScheduledCondition {
    ScheduledCondition {
        status: condition.status.clone(),
        reason: condition.reason.clone().unwrap_or_default(),
        message: condition.message.clone().unwrap_or_default(),
    }
}

/// The manager whose entry of the subresource owns the field.
fn nnn_manager(metadata: &ObjectMeta) -> Option<String> {
    metadata.managed_fields.iter().flatten().find_map(|entry| {
        let fields = &entry.fields_v1.as_ref()?.0;
        fields.get("f:status")?.get("f:nominatedNodeName")?;
        entry.manager.clone()
    })
}
