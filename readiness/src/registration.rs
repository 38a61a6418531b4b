//! Registration of gates: from kubelet's configuration into the spec of its node (KEP-5233, Example Walkthrough step 1).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::gate::NodeReadinessGate;
use crate::validate::{ValidationOptions, validate_gate_update};

/// Part of `KubeletConfiguration` (`kubelet.config.k8s.io/v1beta1`) that the KEP adds: the gates of the node. Other
/// fields of the configuration are ignored. The name `readinessGates`, as in the Node, is read as well; both at once
/// are an error.
///
/// ```
/// use readiness::KubeletConfiguration;
/// let config: KubeletConfiguration = serde_json::from_str(r#"{"kind": "KubeletConfiguration", "nodeReadinessGates": [
///     {"conditionType": "datadog.com/AgentReady", "timeoutSeconds": 180, "failureAction": "BypassWithWarning"}]}"#)?;
/// assert_eq!(config.node_readiness_gates.len(), 1);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "the one field of the object that is ours")]
pub struct KubeletConfiguration {
    /// Gates that kubelet registers on its node.
    #[cfg_attr(feature = "schemars", schemars(extend(
        "x-kubernetes-patch-strategy" = "merge",
        "x-kubernetes-patch-merge-key" = NodeReadinessGate::PATCH_MERGE_KEY,
    )))]
    #[serde(default, alias = "readinessGates", deserialize_with = "crate::gate::gate_list")]
    pub node_readiness_gates: Vec<NodeReadinessGate>,
}

impl KubeletConfiguration {
    /// Returns the gates of an existing node with those of the configuration: missing gates are added, and changes that make
    /// a gate stricter are made, as far as the API server lets a node ([`validate_gate_update`]). No gate is removed or
    /// weakened, and no taint is added after the first registration. Each configured gate is tried in its order; the
    /// strongest of one type counts.
    ///
    /// A kubelet that creates its node writes [`KubeletConfiguration::node_readiness_gates`] as they are, in the object that
    /// creates it: pods could be scheduled before gates that are added later. A kubelet that leaves the spec of a node to
    /// the administrator from then on, as for taints, does not merge.
    ///
    /// ```
    /// use readiness::{KubeletConfiguration, NodeReadinessGate};
    /// let gate = |seconds| NodeReadinessGate::new("a.example/Ready", seconds).with_bypass_warning();
    /// let kubelet = |seconds| KubeletConfiguration { node_readiness_gates: vec![gate(seconds)] };
    /// assert_eq!(kubelet(20).merge_gates(&[gate(10)]), [gate(20)]);
    /// assert_eq!(kubelet(10).merge_gates(&[gate(20)]), [gate(20)]);
    /// ```
    #[must_use]
    pub fn merge_gates(&self, stored: &[NodeReadinessGate]) -> Vec<NodeReadinessGate> {
        let mut merged = stored.to_vec();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, gate) in stored.iter().enumerate() {
            places.entry(&gate.condition_type).or_insert(index);
        }
        for gate in &self.node_readiness_gates {
            let place = places.get(gate.condition_type.as_str()).copied();
            match place.and_then(|index| merged.get_mut(index)) {
                Some(old) if may_write(std::slice::from_ref(old), gate) => old.clone_from(gate),
                None if may_write(&[], gate) => {
                    places.insert(&gate.condition_type, merged.len());
                    merged.push(gate.clone());
                }
                _ => {}
            }
        }
        merged
    }
}

/// Returns true if the API server lets a node add the gate `new`, or replace its gate in `old` by `new`. A single
/// refused gate would make kubelet's whole write of the node fail.
fn may_write(old: &[NodeReadinessGate], new: &NodeReadinessGate) -> bool {
    validate_gate_update(old, std::slice::from_ref(new), &ValidationOptions::default().by_node()).is_valid()
}
