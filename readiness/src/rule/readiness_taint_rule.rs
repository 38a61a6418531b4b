//! Rule of a controller that removes a start-up taint when a condition is True.

use k8s_openapi::api::core::v1::Taint;
use serde::{Deserialize, Serialize};

use crate::condition::ConditionStatus;
use crate::node::GatedNodeView;
use crate::reconcile::{NodeChange, NodeWrite, WriteActor};

/// Rule of a controller that removes a start-up taint when a condition is True: the alternative that the KEP compares
/// gates with. A later False does not add the taint again. Other fields of the object, such as `metadata`, are ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "the fields are those of the KEP's sketch")]
pub struct ReadinessTaintRule {
    /// Type of the condition that must be True before the taint is removed.
    pub readiness_condition: String,
    /// Taint that the controller removes.
    pub target_taint: Taint,
}

impl ReadinessTaintRule {
    /// Returns the write that removes the taint, if the condition is True and the taint is on the node.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Taint;
    /// use readiness::{GatedNode, rule::ReadinessTaintRule};
    /// let node: GatedNode = serde_json::from_str(r#"{
    ///     "spec": {"taints": [{"key": "cni.example.com/pending", "effect": "NoSchedule"}]},
    ///     "status": {"conditions": [{"type": "cni.example.com/NetworkReady", "status": "True"}]}}"#)?;
    /// let rule = ReadinessTaintRule {
    ///     readiness_condition: "cni.example.com/NetworkReady".into(),
    ///     target_taint: node.view().taints()[0].clone(),
    /// };
    /// assert_eq!(rule.removal(&node.view()).unwrap().to_string(), "remove taint cni.example.com/pending:NoSchedule");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn removal(&self, view: &GatedNodeView<'_>) -> Option<NodeWrite> {
        let taint = view.taint(&self.target_taint.key, &self.target_taint.effect)?;
        let is_true =
            ConditionStatus::from_condition(view.condition(&self.readiness_condition)) == ConditionStatus::True;
        let resource_version = view.resource_version().map(str::to_owned);
        let change = NodeChange::RemoveTaint { taint: taint.clone(), resource_version };
        is_true.then_some(NodeWrite { actor: WriteActor::Nlc, change })
    }
}
