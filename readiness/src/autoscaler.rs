//! Support for cluster autoscalers, which see taints but not readiness gates (KEP-5233, Story 2).

use crate::condition::{ConditionStatus, TRUE};
use crate::gate::NodeReadinessGate;
use crate::node::GatedNodeView;
use k8s_openapi::api::core::v1::NodeCondition;

impl<'a> GatedNodeView<'a> {
    /// Prefixes of the taint keys by which the cluster autoscaler recognises a node that is starting.
    pub const STARTUP_TAINT_PREFIXES: [&'static str; 2] =
        ["startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/"];

    /// Returns true if the condition of at least one gate is neither True nor timed out. A cluster autoscaler should then
    /// treat the node as still starting: pods may wait for it instead of a new one.
    ///
    /// ```
    /// use readiness::GatedNode;
    /// let node: GatedNode = serde_json::from_str(r#"{
    ///     "spec": {"readinessGates": [{"conditionType": "nvidia.com/GPUReady", "timeoutSeconds": 600}]},
    ///     "status": {"conditions": [{"type": "Ready", "status": "True"}]}}"#)?;
    /// assert!(node.view().is_starting());
    /// assert_eq!(node.view().template_conditions()[0].status, "True");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn is_starting(&self) -> bool {
        self.distinct_gates().any(|gate| {
            let status = ConditionStatus::from_condition(self.condition(&gate.condition_type));
            !matches!(status, ConditionStatus::True | ConditionStatus::TimeoutExceeded)
        })
    }

    /// Returns the conditions for an autoscaler's template of a new node of this kind: the condition of every gate is True.
    #[must_use]
    pub fn template_conditions(&self) -> Vec<NodeCondition> {
        let met = |gate: &NodeReadinessGate| NodeCondition {
            type_: gate.condition_type.clone(),
            status: TRUE.to_owned(),
            reason: Some("Template".to_owned()),
            ..NodeCondition::default()
        };
        self.distinct_gates().map(met).collect()
    }

    /// Returns the condition types of gates whose taint key begins with none of `prefixes`. A cluster autoscaler does not
    /// recognise such a taint as a start-up taint, and may add another node. Some hosted autoscalers accept only
    /// [`GatedNodeView::STARTUP_TAINT_PREFIXES`].
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{Node, Taint};
    /// use readiness::{GatedNodeView, NodeReadinessGate};
    /// let taint = Taint { key: "a.example/agent".into(), effect: "NoSchedule".into(), ..Taint::default() };
    /// let gates = [NodeReadinessGate::new("a.example/Agent", 60).with_taint(taint)];
    /// let (node, known) = (Node::default(), GatedNodeView::STARTUP_TAINT_PREFIXES);
    /// assert_eq!(GatedNodeView::new(&node, &gates).gates_without_startup_taint(&known), ["a.example/Agent"]);
    /// ```
    #[must_use]
    pub fn gates_without_startup_taint(&self, prefixes: &[&str]) -> Vec<&'a str> {
        let is_startup = |key: &str| prefixes.iter().any(|prefix| key.starts_with(prefix));
        let others = self.gates().iter().filter(|gate| gate.taint().is_some_and(|taint| !is_startup(&taint.key)));
        others.map(|gate| gate.condition_type.as_str()).collect()
    }
}
