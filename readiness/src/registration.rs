//! How gates get from kubelet's configuration into the spec of its node (KEP-5233, Example Walkthrough step 1).

use serde::{Deserialize, Serialize};

use crate::gate::NodeReadinessGate;
use crate::validate::{Limits, Writer, validate_update};

/// The field that the KEP adds to `KubeletConfiguration` (`kubelet.config.k8s.io/v1beta1`); other fields are passed over.
/// `readinessGates`, the name in the Node, is read as well; both at once are an error.
///
/// ```
/// use readiness::registration::KubeletConfiguration;
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
    /// The gates of the node.
    #[cfg_attr(feature = "schemars", schemars(extend(
        "x-kubernetes-patch-strategy" = "merge",
        "x-kubernetes-patch-merge-key" = NodeReadinessGate::PATCH_MERGE_KEY,
    )))]
    #[serde(default, alias = "readinessGates", deserialize_with = "crate::gate::or_default")]
    pub node_readiness_gates: Vec<NodeReadinessGate>,
}

/// What a kubelet does with its gates when its node exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Registration {
    /// Nothing, as with taints: the spec belongs to whoever manages nodes.
    #[default]
    CreateOnly,
    /// Adds gates that are missing and takes over changes that strengthen a gate, as far as a node may do that
    /// ([`validate_update`]): nothing is removed or weakened, and no taint comes after the first registration.
    Sync,
}

/// The list that a kubelet writes at its registration. It writes and does not evaluate.
///
/// `stored` is None when the node does not exist: gates have to be in the object that creates it, or pods could come in
/// between. Each gate of `configured` is tried in its order; with [`Registration::Sync`] the strongest of one type counts.
///
/// ```
/// use readiness::gate::NodeReadinessGate;
/// use readiness::registration::{Registration, merge};
/// let gate = |seconds| NodeReadinessGate::new("a.example/Ready", seconds).bypassing();
/// assert_eq!(merge(None, &[gate(10)], Registration::CreateOnly), [gate(10)]);
/// assert_eq!(merge(Some(&[gate(10)]), &[gate(20)], Registration::CreateOnly), [gate(10)]);
/// assert_eq!(merge(Some(&[gate(10)]), &[gate(20)], Registration::Sync), [gate(20)]);
/// assert_eq!(merge(Some(&[gate(20)]), &[gate(10)], Registration::Sync), [gate(20)]);
/// ```
#[must_use]
pub fn merge(
    stored: Option<&[NodeReadinessGate]>,
    configured: &[NodeReadinessGate],
    registration: Registration,
) -> Vec<NodeReadinessGate> {
    let Some(stored) = stored else { return configured.to_vec() };
    let mut merged = stored.to_vec();
    if registration == Registration::CreateOnly {
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

/// Whether the API server lets the node write a gate, new or in place of another. Otherwise its whole write of the node
/// would fail.
fn may_write(old: &[NodeReadinessGate], new: &NodeReadinessGate) -> bool {
    validate_update(old, std::slice::from_ref(new), Writer::Node, &Limits::default()).is_valid()
}
