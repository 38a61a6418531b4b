//! What a cluster autoscaler should know of gates (KEP-5233, Story 2). A filter without a taint is invisible to it.

use crate::condition::{Observation, TRUE};
use crate::gate::NodeReadinessGate;
use crate::node::NodeView;
use k8s_openapi::api::core::v1::NodeCondition;

/// Prefixes of taint keys by which the autoscaler knows that a node is starting.
pub const STARTUP_PREFIXES: [&str; 2] =
    ["startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/"];

/// How an autoscaler should take a node.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AutoscalerView {
    /// Whether the node is on its way: pods that wait for it need no other node. A gate that was released by a timeout is
    /// not waited for.
    pub is_starting: bool,
    /// Conditions for a node that is yet to be made in its likeness: every gate met.
    pub template_conditions: Vec<NodeCondition>,
}

/// How an autoscaler should take a node, by its gates.
///
/// ```
/// use readiness::{autoscaler::autoscaler_view, node::GatedNode};
/// let node: GatedNode = serde_json::from_str(r#"{
///     "spec": {"readinessGates": [{"conditionType": "nvidia.com/GPUReady", "timeoutSeconds": 600}]},
///     "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#)?;
/// let view = autoscaler_view(&node.view());
/// assert!(view.is_starting);
/// assert_eq!(view.template_conditions[0].status, "True");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn autoscaler_view(view: &NodeView<'_>) -> AutoscalerView {
    let waits = |gate: &NodeReadinessGate| {
        let observation = Observation::of(view.condition(&gate.condition_type));
        !matches!(observation, Observation::True | Observation::TimeoutExceeded)
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

/// Gates whose taint an autoscaler with these prefixes would not take for a start-up taint: it counts the node as one that
/// repels pods, and may add another. Some hosted autoscalers know [`STARTUP_PREFIXES`] only.
///
/// ```
/// use k8s_openapi::api::core::v1::Taint;
/// use readiness::autoscaler::{STARTUP_PREFIXES, not_startup_taints};
/// use readiness::gate::NodeReadinessGate;
/// let taint = Taint { key: "a.example/agent".into(), effect: "NoSchedule".into(), ..Taint::default() };
/// let gates = [NodeReadinessGate::new("a.example/Agent", 60).tainting(taint)];
/// assert_eq!(not_startup_taints(&gates, &STARTUP_PREFIXES), ["a.example/Agent"]);
/// ```
#[must_use]
pub fn not_startup_taints<'g>(gates: &'g [NodeReadinessGate], prefixes: &[&str]) -> Vec<&'g str> {
    let is_startup = |key: &str| prefixes.iter().any(|prefix| key.starts_with(prefix));
    let others = gates.iter().filter(|gate| gate.taint().is_some_and(|taint| !is_startup(&taint.key)));
    others.map(|gate| gate.condition_type.as_str()).collect()
}
