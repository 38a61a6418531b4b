//! Application of writes to a node object in memory.

use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::node_write::{NodeChange, NodeWrite};
use crate::taint::{NO_EXECUTE, is_same};

impl NodeWrite {
    /// Applies the write to a node object as an API server would, for simulators and tests. An event changes nothing.
    ///
    /// Returns false if the write was refused because its precondition failed: the stored condition or the
    /// `resourceVersion` was another one.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Node;
    /// use readiness::NodeState;
    /// let mut node: Node = serde_json::from_str(r#"{"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}"#)?;
    /// let state: NodeState =
    ///     serde_json::from_str(r#"{"version": 1, "ownedTaints": [{"key": "a", "effect": "NoSchedule"}]}"#)?;
    /// for write in state.shutdown_writes() {
    ///     assert!(write.apply(&mut node, "2026-01-01T00:00:00Z".parse().unwrap()));
    /// }
    /// assert_eq!(node.spec.unwrap().taints, Some(vec![]));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn apply(&self, node: &mut Node, now: Timestamp) -> bool {
        apply_change(node, &self.change, now)
    }
}

fn apply_change(node: &mut Node, change: &NodeChange, now: Timestamp) -> bool {
    match change {
        NodeChange::AddTaint { taint, resource_version, .. } => {
            let is_current = is_current(node, resource_version.as_deref());
            if is_current {
                add_taint(node, taint, now);
            }
            is_current
        }
        NodeChange::RemoveTaint { taint, resource_version } => {
            let is_current = is_current(node, resource_version.as_deref());
            if let (true, Some(taints)) = (is_current, node.spec.as_mut().and_then(|spec| spec.taints.as_mut())) {
                taints.retain(|other| other.key != taint.key || other.effect != taint.effect);
            }
            is_current
        }
        NodeChange::PatchCondition { .. } => patch_condition(node, change, now),
        NodeChange::SetLabel { key, value } => {
            node.metadata.labels.get_or_insert_default().insert(key.clone(), value.clone());
            true
        }
        NodeChange::RemoveLabel { key } => {
            node.metadata.labels.as_mut().map(|labels| labels.remove(key));
            true
        }
        NodeChange::Event { .. } => true,
    }
}

fn is_current(node: &Node, version: Option<&str>) -> bool {
    version.is_none() || node.metadata.resource_version.as_deref() == version
}

fn add_taint(node: &mut Node, taint: &Taint, now: Timestamp) {
    let taints = node.spec.get_or_insert_default().taints.get_or_insert_default();
    if !taints.iter().any(|other| is_same(other, taint)) {
        let time_added = (taint.effect == NO_EXECUTE).then_some(Time(now));
        taints.push(Taint { time_added, ..taint.clone() });
    }
}

fn patch_condition(node: &mut Node, change: &NodeChange, now: Timestamp) -> bool {
    let NodeChange::PatchCondition { condition_type, status, reason, message, expected } = change else {
        return false;
    };
    let conditions = node.status.get_or_insert_default().conditions.get_or_insert_default();
    let place = conditions.iter().position(|condition| condition.type_ == *condition_type);
    let old = place.and_then(|index| conditions.get(index));
    let holds = match (expected, old) {
        (Some(expected), Some(old)) => expected.matches(old),
        (None, None) => true,
        _ => false,
    };
    if !holds {
        return false;
    }
    let kept = old.filter(|old| old.status == *status).and_then(|old| old.last_transition_time.clone());
    let new = NodeCondition {
        type_: condition_type.clone(),
        status: status.clone(),
        reason: Some(reason.clone()),
        message: Some(message.clone()),
        last_heartbeat_time: Some(Time(now)),
        last_transition_time: kept.or(Some(Time(now))),
    };
    match place.and_then(|index| conditions.get_mut(index)) {
        Some(old) => *old = new,
        None => conditions.push(new),
    }
    true
}
