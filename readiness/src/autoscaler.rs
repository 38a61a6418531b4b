//! Support for cluster autoscalers, which see taints but not readiness gates (KEP-5233, Story 2).

use crate::condition::{ConditionStatus, TRUE};
use crate::gate::NodeReadinessGate;
use crate::node::GatedNodeView;
use k8s_openapi::api::core::v1::NodeCondition;

/// Prefixes of the taint keys by which the cluster autoscaler recognises a node that is starting.
pub const STARTUP_TAINT_PREFIXES: [&str; 2] =
    ["startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/"];

/// Gates of a node as a cluster autoscaler needs them: if the node is still starting, and the conditions of a new node.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AutoscalerView {
    /// True if the condition of at least one gate is neither True nor timed out. Pods may then wait for this node
    /// instead of a new one.
    pub is_starting: bool,
    /// Conditions for the autoscaler's template of a new node of this kind: the condition of every gate is True.
    pub template_conditions: Vec<NodeCondition>,
}

/// Computes from a node's gates if a cluster autoscaler should treat the node as still starting, and the conditions of
/// a new node of its kind.
///
/// ```
/// use readiness::{GatedNode, autoscaler_view};
/// let node: GatedNode = serde_json::from_str(r#"{
///     "spec": {"readinessGates": [{"conditionType": "nvidia.com/GPUReady", "timeoutSeconds": 600}]},
///     "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#)?;
/// let view = autoscaler_view(&node.view());
/// assert!(view.is_starting);
/// assert_eq!(view.template_conditions[0].status, "True");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn autoscaler_view(view: &GatedNodeView<'_>) -> AutoscalerView {
    let waits = |gate: &NodeReadinessGate| {
        let status = ConditionStatus::from_condition(view.condition(&gate.condition_type));
        !matches!(status, ConditionStatus::True | ConditionStatus::TimeoutExceeded)
    };
    let met = |gate: &NodeReadinessGate| NodeCondition {
        type_: gate.condition_type.clone(),
        status: TRUE.to_owned(),
        reason: Some("Template".to_owned()),
        ..NodeCondition::default()
    };
    AutoscalerView {
        is_starting: view.distinct_gates().any(waits),
        template_conditions: view.distinct_gates().map(met).collect(),
    }
}

/// Returns the condition types of gates whose taint key begins with none of `prefixes`. A cluster autoscaler does not
/// recognise such a taint as a start-up taint, and may add another node. Some hosted autoscalers accept only
/// [`STARTUP_TAINT_PREFIXES`].
///
/// ```
/// use k8s_openapi::api::core::v1::Taint;
/// use readiness::{NodeReadinessGate, STARTUP_TAINT_PREFIXES, gates_without_startup_taint};
/// let taint = Taint { key: "a.example/agent".into(), effect: "NoSchedule".into(), ..Taint::default() };
/// let gates = [NodeReadinessGate::new("a.example/Agent", 60).with_taint(taint)];
/// assert_eq!(gates_without_startup_taint(&gates, &STARTUP_TAINT_PREFIXES), ["a.example/Agent"]);
/// ```
#[must_use]
pub fn gates_without_startup_taint<'g>(gates: &'g [NodeReadinessGate], prefixes: &[&str]) -> Vec<&'g str> {
    let is_startup = |key: &str| prefixes.iter().any(|prefix| key.starts_with(prefix));
    let others = gates.iter().filter(|gate| gate.taint().is_some_and(|taint| !is_startup(&taint.key)));
    others.map(|gate| gate.condition_type.as_str()).collect()
}
