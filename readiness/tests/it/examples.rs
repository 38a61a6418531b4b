//! Objects from the text of the KEP.

use serde_json::{Value, json};

pub(crate) const DATADOG: &str = "datadog.com/AgentReady";
pub(crate) const PATCH: &str = "ai-corp.com/RuntimePatchApplied";
pub(crate) const CNI: &str = "network.kubernetes.io/CNIReady";

fn gates() -> Value {
    json!([
        {"conditionType": DATADOG, "timeoutSeconds": 180, "failureAction": "BypassWithWarning"},
        {"conditionType": PATCH, "timeoutSeconds": 300, "failureAction": "Taint", "readinessTaint":
            {"key": "ai-corp.com/runtime-patch-not-installed", "effect": "NoSchedule", "value": "true"}},
        {"conditionType": CNI, "timeoutSeconds": 180, "failureAction": "Taint", "readinessTaint":
            {"key": "node.cilium.io/agent-not-ready", "effect": "NoSchedule"}},
    ])
}

/// Returns kubelet's configuration, step 1 of the walkthrough.
pub(crate) fn configuration() -> Value {
    json!({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "maxPods": 110,
        "nodeReadinessGates": gates()})
}

/// Returns the node, step 1 of the walkthrough.
pub(crate) fn node() -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-123", "labels": {
        "readiness-gate.datadog.com/AgentReady": "true",
        "readiness-gate.ai-corp.com/RuntimePatchApplied": "true",
        "readiness-gate.network.kubernetes.io/CNIReady": "true"}},
        "spec": {"readinessGates": gates()}})
}
