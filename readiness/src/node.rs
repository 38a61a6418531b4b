//! Nodes with their gates.

use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::condition::{ConditionStatus, READY};
use crate::gate::NodeReadinessGate;
use crate::lookup::Lookup;

/// Node object with the gates of its spec. k8s-openapi's [`Node`] does not have the field `readinessGates`, so this type
/// holds it beside the object.
///
/// One bullet of the KEP spells the field `nodeReadinessGates`, which is read as well. Both at once are an error. The field
/// is written as `readinessGates`, and only if there are gates.
///
/// ```
/// use readiness::GatedNode;
/// let node: GatedNode = serde_json::from_str(r#"{"metadata": {"name": "node-1"}, "spec": {"podCIDR": "10.0.0.0/24",
///     "readinessGates": [{"conditionType": "datadog.com/AgentReady", "timeoutSeconds": 180}]}}"#)?;
/// assert_eq!(node.gates.len(), 1);
/// assert_eq!(node.node.spec.as_ref().and_then(|spec| spec.pod_cidr.as_deref()), Some("10.0.0.0/24"));
/// assert!(serde_json::to_string(&node)?.contains("readinessGates"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "an object and the one field that its type lacks")]
pub struct GatedNode {
    /// Node object.
    pub node: Node,
    /// `spec.readinessGates`.
    pub gates: Vec<NodeReadinessGate>,
}

#[derive(Default, Deserialize)]
struct Outline {
    spec: Option<GateList>,
}

#[derive(Default, Deserialize)]
struct GateList {
    #[serde(rename = "readinessGates", alias = "nodeReadinessGates")]
    gates: Option<Vec<NodeReadinessGate>>,
}

impl<'de> Deserialize<'de> for GatedNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tree = Value::deserialize(deserializer)?;
        let node = Node::deserialize(&tree).map_err(D::Error::custom)?;
        let outline = Outline::deserialize(&tree).map_err(D::Error::custom)?;
        Ok(Self { node, gates: outline.spec.unwrap_or_default().gates.unwrap_or_default() })
    }
}

impl Serialize for GatedNode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tree = serde_json::to_value(&self.node).map_err(S::Error::custom)?;
        if let (false, Some(fields)) = (self.gates.is_empty(), tree.as_object_mut()) {
            let spec = fields.entry("spec").or_insert_with(|| Value::Object(serde_json::Map::new()));
            if let Some(spec) = spec.as_object_mut() {
                let gates = serde_json::to_value(&self.gates).map_err(S::Error::custom)?;
                spec.insert("readinessGates".to_owned(), gates);
            }
        }
        tree.serialize(serializer)
    }
}

impl GatedNode {
    /// Returns the view that [`step`](crate::step()), [`filter`](crate::filter()) and the other functions take.
    #[must_use]
    pub fn view(&self) -> GatedNodeView<'_> {
        GatedNodeView::new(&self.node, &self.gates)
    }
}

/// Completeness of the caller's cache (`HasSynced` in client-go).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CacheSync {
    /// The caller has seen all objects.
    #[default]
    Synced,
    /// Objects may be missing.
    Partial,
}

/// View of a node and its gates at one instant, with what the caller knows besides. Of several conditions or gates of one
/// type the first counts.
///
/// # Complexity
/// Created in constant time for up to 32 gates and conditions, `n log n` beyond.
#[derive(Clone, Debug)]
pub struct GatedNodeView<'a> {
    node: &'a Node,
    gates: Lookup<'a, NodeReadinessGate>,
    conditions: Lookup<'a, NodeCondition>,
    pub(crate) kubelet_instance: Option<&'a str>,
    pub(crate) cache_sync: CacheSync,
    pub(crate) bootstrap_only: &'a [String],
}

impl<'a> GatedNodeView<'a> {
    /// Creates a view of a node and its gates.
    #[must_use]
    pub fn new(node: &'a Node, gates: &'a [NodeReadinessGate]) -> Self {
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        Self {
            node,
            gates: Lookup::new(gates),
            conditions: Lookup::new(conditions),
            kubelet_instance: None,
            cache_sync: CacheSync::default(),
            bootstrap_only: &[],
        }
    }

    /// Names the running instance of kubelet, for example by its start time. Another instance than in the previous step is a
    /// restart. Without a name restarts are not detected.
    #[must_use]
    pub fn with_kubelet_instance(self, instance: &'a str) -> Self {
        Self { kubelet_instance: Some(instance), ..self }
    }

    /// Marks the caller's cache as not synced yet: nothing is removed or forgotten, and a node that was closed is not
    /// opened.
    #[must_use]
    pub fn with_unsynced_cache(self) -> Self {
        Self { cache_sync: CacheSync::Partial, ..self }
    }

    /// Names the gates that stay satisfied until the next boot after they were satisfied once (rules with the enforcement
    /// mode `bootstrap-only`, see [`rule`](crate::rule)).
    #[must_use]
    pub fn with_bootstrap_only(self, condition_types: &'a [String]) -> Self {
        Self { bootstrap_only: condition_types, ..self }
    }

    /// Returns the node object.
    #[must_use]
    pub const fn node(&self) -> &'a Node {
        self.node
    }

    /// Returns the gates in their order.
    #[must_use]
    pub const fn gates(&self) -> &'a [NodeReadinessGate] {
        self.gates.items()
    }

    /// Returns the first gate of a type.
    #[must_use]
    pub fn gate(&self, condition_type: &str) -> Option<&'a NodeReadinessGate> {
        self.gates.find(condition_type)
    }

    /// Returns true if `gate`, a gate of this node, is the first of its type.
    pub(crate) fn is_first(&self, gate: &NodeReadinessGate) -> bool {
        self.gates.is_first(gate)
    }

    /// Returns the gates without later gates of the same type.
    pub(crate) fn distinct_gates(&self) -> impl Iterator<Item = &'a NodeReadinessGate> + '_ {
        self.gates.distinct()
    }

    /// Returns the first condition of a type.
    #[must_use]
    pub fn condition(&self, condition_type: &str) -> Option<&'a NodeCondition> {
        self.conditions.find(condition_type)
    }

    pub(crate) const fn conditions(&self) -> &'a [NodeCondition] {
        self.conditions.items()
    }

    /// Returns true if kubelet's own condition Ready is True. A node without it is not ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        ConditionStatus::from_condition(self.condition(READY)) == ConditionStatus::True
    }

    /// Returns the taint with a key and an effect. A node has at most one.
    #[must_use]
    pub fn taint(&self, key: &str, effect: &str) -> Option<&'a Taint> {
        self.taints().iter().find(|taint| taint.key == key && taint.effect == effect)
    }

    /// Returns all taints of the node.
    #[must_use]
    pub fn taints(&self) -> &'a [Taint] {
        self.node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
    }

    pub(crate) fn label(&self, key: &str) -> Option<&'a str> {
        self.node.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    pub(crate) fn uid(&self) -> &'a str {
        self.node.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(crate) fn resource_version(&self) -> Option<&'a str> {
        self.node.metadata.resource_version.as_deref()
    }

    pub(crate) fn boot_id(&self) -> &'a str {
        let info = self.node.status.as_ref().and_then(|status| status.node_info.as_ref());
        info.map(|info| info.boot_id.as_str()).unwrap_or_default()
    }
}
