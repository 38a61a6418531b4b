//! Pods with requirements on the node (KEP-5233, Pod-Level Node-Readiness API), and pods of daemon sets.

use dra_attrs::{TolerationOperators, first_untolerated_taint};
use k8s_openapi::api::core::v1::{Pod, Taint};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::gate::NodeReadinessGate;

/// Requirement of a pod: a condition of the node that must be True.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schemars", schemars(description = "A condition of the node that a pod wants to be True."))]
#[cfg_attr(feature = "schemars", schemars(extend("required" = ["conditionType", "status"])))]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "the fields are those of the API")]
pub struct NodeReadinessRequirement {
    /// Type of the condition.
    #[serde(default, deserialize_with = "crate::gate::or_default")]
    pub condition_type: String,
    /// Required status. The KEP defines only `True`.
    #[serde(default, deserialize_with = "crate::gate::or_default")]
    pub status: String,
}

/// Pod object with `spec.nodeReadinessRequirements`, which k8s-openapi's [`Pod`] does not have. An empty list is the same as
/// an absent one.
///
/// ```
/// use readiness::GatedPod;
/// let pod: GatedPod = serde_json::from_str(r#"{"metadata": {"name": "gpu-app-1"}, "spec": {"nodeReadinessRequirements":
///     [{"conditionType": "nvidia.com/GPUDriversReady", "status": "True"}]}}"#)?;
/// assert_eq!(pod.requirements.len(), 1);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "an object and the one field that its type lacks")]
pub struct GatedPod {
    /// Pod object.
    pub pod: Pod,
    /// Value of `spec.nodeReadinessRequirements`.
    pub requirements: Vec<NodeReadinessRequirement>,
}

#[derive(Default, Deserialize)]
struct Outline {
    spec: Option<RequirementList>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequirementList {
    node_readiness_requirements: Option<Vec<NodeReadinessRequirement>>,
}

impl<'de> Deserialize<'de> for GatedPod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tree = Value::deserialize(deserializer)?;
        let pod = Pod::deserialize(&tree).map_err(D::Error::custom)?;
        let outline = Outline::deserialize(&tree).map_err(D::Error::custom)?;
        let requirements = outline.spec.unwrap_or_default().node_readiness_requirements.unwrap_or_default();
        Ok(Self { pod, requirements })
    }
}

impl GatedPod {
    /// Borrows the pod and its requirements as the argument of [`filter`](crate::filter()).
    #[must_use]
    pub fn view(&self) -> GatedPodView<'_> {
        GatedPodView { pod: &self.pod, requirements: &self.requirements }
    }
}

/// Borrowed pod with its requirements, the argument of [`filter`](crate::filter()).
#[derive(Clone, Copy, Debug)]
pub struct GatedPodView<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) requirements: &'a [NodeReadinessRequirement],
}

impl<'a> GatedPodView<'a> {
    /// Creates a view of a pod without requirements.
    #[must_use]
    pub const fn new(pod: &'a Pod) -> Self {
        Self { pod, requirements: &[] }
    }

    /// Returns true if the pod is controlled by a `DaemonSet` of the group `apps`. Gates do not apply to such pods (KEP-5233,
    /// Non-Goals 4).
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use readiness::GatedPodView;
    /// let is_daemon = |api_version: &str, controller: bool| {
    ///     let pod: Pod = serde_json::from_value(serde_json::json!({"metadata": {"ownerReferences": [{"kind": "DaemonSet",
    ///         "apiVersion": api_version, "name": "agent", "uid": "1", "controller": controller}]}})).unwrap();
    ///     GatedPodView::new(&pod).is_daemon_pod()
    /// };
    /// assert!(is_daemon("apps/v1", true));
    /// assert!(!is_daemon("apps/v1", false));
    /// assert!(!is_daemon("apps.example.com/v1", true));
    /// ```
    #[must_use]
    pub fn is_daemon_pod(self) -> bool {
        let owners = self.pod.metadata.owner_references.as_deref().unwrap_or_default();
        owners.iter().any(|owner| {
            let group = owner.api_version.split_once('/').map(|(group, _)| group);
            owner.controller == Some(true) && owner.kind == "DaemonSet" && group == Some("apps")
        })
    }

    /// Returns the taints of gates that the pod does not tolerate. An agent that does not tolerate the taint of its own gate
    /// could never be scheduled to the node to meet the gate.
    ///
    /// The tolerations that the `DaemonSet` controller adds do not cover such taints. It adds tolerations of `not-ready` and
    /// `unreachable` with `NoExecute`, of the pressure taints, of `unschedulable`, and with `hostNetwork` of
    /// `network-unavailable`.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{Pod, Taint};
    /// use readiness::{GatedPodView, NodeReadinessGate};
    /// let taint = Taint { key: "a.example/agent".into(), effect: "NoSchedule".into(), ..Taint::default() };
    /// let gate = NodeReadinessGate::new("a.example/Agent", 60).with_taint(taint.clone());
    /// assert_eq!(GatedPodView::new(&Pod::default()).missing_tolerations(&[gate]), [&taint]);
    /// ```
    #[must_use]
    pub fn missing_tolerations(self, gates: &[NodeReadinessGate]) -> Vec<&Taint> {
        let tolerations = self.pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
        let taints = gates.iter().filter_map(NodeReadinessGate::taint);
        let is_missed = |taint: &&Taint| {
            let taint = std::slice::from_ref(*taint);
            first_untolerated_taint(taint, tolerations, TolerationOperators::Equality).is_some()
        };
        taints.filter(is_missed).collect()
    }
}
