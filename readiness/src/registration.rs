//! Registration of gates: from kubelet's configuration into the spec of its node (KEP-5233, Example Walkthrough step 1).

use serde::{Deserialize, Serialize};

use crate::gate::NodeReadinessGate;
use crate::validate::{GateWriter, ValidationOptions, validate_gate_update};

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

/// Treatment of configured gates if kubelet's node exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistrationMode {
    /// Leaves the stored gates as they are, as for taints: after creation, the spec belongs to the administrator.
    #[default]
    CreateOnly,
    /// Adds missing gates, and applies changes that make a gate stricter, as far as the API server lets a node
    /// ([`validate_gate_update`]). No gate is removed or weakened, and no taint is added after the first registration.
    Sync,
}

/// Returns the list of gates that a kubelet writes when it registers its node.
///
/// `stored` is `None` if the node does not exist: the object that creates the node must have the gates, or pods could be
/// scheduled before they are added. Each gate of `configured` is tried in its order; with [`RegistrationMode::Sync`] the
/// strongest gate of one type counts.
///
/// ```
/// use readiness::{NodeReadinessGate, RegistrationMode, merge_gates};
/// let gate = |seconds| NodeReadinessGate::new("a.example/Ready", seconds).with_bypass_warning();
/// assert_eq!(merge_gates(None, &[gate(10)], RegistrationMode::CreateOnly), [gate(10)]);
/// assert_eq!(merge_gates(Some(&[gate(10)]), &[gate(20)], RegistrationMode::CreateOnly), [gate(10)]);
/// assert_eq!(merge_gates(Some(&[gate(10)]), &[gate(20)], RegistrationMode::Sync), [gate(20)]);
/// assert_eq!(merge_gates(Some(&[gate(20)]), &[gate(10)], RegistrationMode::Sync), [gate(20)]);
/// ```
#[must_use]
pub fn merge_gates(
    stored: Option<&[NodeReadinessGate]>,
    configured: &[NodeReadinessGate],
    mode: RegistrationMode,
) -> Vec<NodeReadinessGate> {
    let Some(stored) = stored else { return configured.to_vec() };
    let mut merged = stored.to_vec();
    if mode == RegistrationMode::CreateOnly {
        return merged;
    }
    let mut places: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    for (index, gate) in stored.iter().enumerate() {
        places.entry(&gate.condition_type).or_insert(index);
    }
    for gate in configured {
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

/// Returns true if the API server lets a node add the gate `new`, or replace its gate in `old` by `new`. A single
/// refused gate would make kubelet's whole write of the node fail.
fn may_write(old: &[NodeReadinessGate], new: &NodeReadinessGate) -> bool {
    validate_gate_update(old, std::slice::from_ref(new), GateWriter::Node, &ValidationOptions::default()).is_valid()
}
