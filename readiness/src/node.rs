//! Node objects together with their readiness gates.

use dra_attrs::{TolerationOperators, first_untolerated_taint};
use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint, Toleration};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::condition::{ConditionStatus, READY};
use crate::gate::{FailureAction, NodeReadinessGate, gate_list};
use crate::lookup::Lookup;

/// Node object together with `spec.readinessGates`, a field that k8s-openapi's [`Node`] does not have.
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
    /// Node object, without its gates.
    pub node: Node,
    /// Value of `spec.readinessGates`.
    pub gates: Vec<NodeReadinessGate>,
}

#[derive(Default, Deserialize)]
struct Outline {
    spec: Option<GateList>,
}

#[derive(Default, Deserialize)]
struct GateList {
    #[serde(rename = "readinessGates", alias = "nodeReadinessGates", default, deserialize_with = "gate_list")]
    gates: Vec<NodeReadinessGate>,
}

impl<'de> Deserialize<'de> for GatedNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tree = Value::deserialize(deserializer)?;
        let node = Node::deserialize(&tree).map_err(D::Error::custom)?;
        let outline = Outline::deserialize(&tree).map_err(D::Error::custom)?;
        Ok(Self { node, gates: outline.spec.unwrap_or_default().gates })
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
    /// Borrows the node and its gates as the argument of [`step`](crate::step()), [`filter`](crate::filter()) and
    /// similar functions.
    #[must_use]
    pub fn view(&self) -> GatedNodeView<'_> {
        GatedNodeView::new(&self.node, &self.gates)
    }
}

/// Completeness of the caller's cache (`HasSynced` in client-go).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CacheSync {
    /// The initial list is complete, so that no gate of the node is missing.
    #[default]
    Synced,
    /// The initial list is not complete, so that gates of the node may be missing.
    Partial,
}

/// Borrowed node with its gates, and facts that the object does not show: the kubelet process, cache sync,
/// bootstrap-only gates. Of several conditions or gates of one type, only the first is used.
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
    /// Type of the condition by which kubelet reports that its node is ready.
    pub const READY: &'static str = READY;

    /// Creates a view of a node and its gates, with a synced cache.
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

    /// Identifies the running kubelet process, for example by its start time. A value other than in the previous step
    /// means that kubelet has restarted; without a value, restarts are not detected.
    #[must_use]
    pub fn with_kubelet_instance(self, instance: &'a str) -> Self {
        Self { kubelet_instance: Some(instance), ..self }
    }

    /// Marks the caller's cache as not synced yet: [`step`](crate::step()) then removes no taint, label or state of a
    /// gate, and does not make a blocked node schedulable.
    #[must_use]
    pub fn with_unsynced_cache(self) -> Self {
        Self { cache_sync: CacheSync::Partial, ..self }
    }

    /// Sets the gates that must be True only once in each boot: from then on they count as satisfied until the next
    /// reboot. Rules with the enforcement mode `bootstrap-only` have such gates, see [`rule`](crate::rule).
    #[must_use]
    pub fn with_bootstrap_only(self, condition_types: &'a [String]) -> Self {
        Self { bootstrap_only: condition_types, ..self }
    }

    /// Returns the node object.
    #[must_use]
    pub const fn node(&self) -> &'a Node {
        self.node
    }

    /// Returns the gates in the order of `spec.readinessGates`.
    #[must_use]
    pub const fn gates(&self) -> &'a [NodeReadinessGate] {
        self.gates.items()
    }

    /// Returns the first gate with the given condition type.
    #[must_use]
    pub fn gate(&self, condition_type: &str) -> Option<&'a NodeReadinessGate> {
        self.gates.find(condition_type)
    }

    /// Returns true if no earlier gate of the node has the condition type of `gate`, which must be a gate of the node.
    pub(crate) fn is_first(&self, gate: &NodeReadinessGate) -> bool {
        self.gates.is_first(gate)
    }

    /// Returns the first gate of each condition type, in the order of `spec.readinessGates`.
    pub(crate) fn distinct_gates(&self) -> impl Iterator<Item = &'a NodeReadinessGate> + '_ {
        self.gates.distinct()
    }

    /// Returns the first condition of the node with the given type.
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

    /// Returns the taint of the node with the given key and effect, of which there is at most one.
    #[must_use]
    pub fn taint(&self, key: &str, effect: &str) -> Option<&'a Taint> {
        self.taints().iter().find(|taint| taint.key == key && taint.effect == effect)
    }

    /// Returns all taints of the node.
    #[must_use]
    pub fn taints(&self) -> &'a [Taint] {
        self.node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
    }

    /// Returns the first taint that keeps a pod with these tolerations away from the node.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Toleration;
    /// use readiness::GatedNode;
    /// let node: GatedNode =
    ///     serde_json::from_str(r#"{"spec": {"taints": [{"key": "a.example/agent", "effect": "NoSchedule"}]}}"#)?;
    /// let everything = Toleration { operator: Some("Exists".into()), ..Toleration::default() };
    /// assert_eq!(node.view().first_untolerated_taint(&[everything.clone()]), None);
    /// let evicting = Toleration { effect: Some("NoExecute".into()), ..everything };
    /// assert!(node.view().first_untolerated_taint(&[evicting]).is_some());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn first_untolerated_taint(&self, tolerations: &[Toleration]) -> Option<&'a Taint> {
        first_untolerated_taint(self.taints(), tolerations, TolerationOperators::Equality)
    }

    /// Returns true if the failure action of a gate has taken effect: its taint is on the node, or the action is
    /// `BypassWithWarning`.
    pub(crate) fn has_failure_action(&self, gate: &NodeReadinessGate) -> bool {
        match gate.usable_taint() {
            Some(taint) => self.taint(&taint.key, &taint.effect).is_some(),
            None => gate.failure_action == FailureAction::BypassWithWarning,
        }
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
