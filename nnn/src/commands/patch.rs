//! Writes of a pod's status: the decision that one is needed, and its body.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::command::{Command, NoPatchReason};
use crate::nomination::NominatingInfo;

impl NominatingInfo {
    /// Returns the reason that a status write is not needed, `None` if it is. `known` is the current
    /// `status.nominatedNodeName`. A write of another condition than the stored one is always needed; this is for a condition
    /// that is unchanged.
    ///
    /// ```
    /// use nnn::{NoPatchReason, NominatingInfo};
    /// assert_eq!(NominatingInfo::clear().no_patch_reason(Some("a")), None);
    /// assert_eq!(NominatingInfo::Noop.no_patch_reason(Some("a")), Some(NoPatchReason::ModeNoop));
    /// ```
    #[must_use]
    pub fn no_patch_reason(&self, known: Option<&str>) -> Option<NoPatchReason> {
        match self {
            Self::Noop => Some(NoPatchReason::ModeNoop),
            Self::Override(node) => (node.as_deref() == known).then_some(NoPatchReason::AlreadySet),
        }
    }
}

impl Command {
    /// Returns the body of the PATCH that the command asks for: a strategic merge patch of the pod's subresource `status`, with
    /// the pod's UID as precondition. `None` for a command that is no PATCH ([`Command::is_patch`]).
    ///
    /// `since` is the time since which the condition `PodScheduled` has its status: that of the stored condition if its status
    /// is the same, else the present time. A command without a condition ignores it.
    ///
    /// ```
    /// use k8s_openapi::jiff::Timestamp;
    /// use nnn::{Command, PodKey};
    /// use serde_json::json;
    /// let (pod, node) = (PodKey::new("default", "train", "u-1"), "node-1".to_owned());
    /// let patch = |command: Command| command.patch(Timestamp::UNIX_EPOCH);
    /// let body = json!({"metadata": {"uid": "u-1"}, "status": {"nominatedNodeName": "node-1"}});
    /// assert_eq!(patch(Command::PatchNnn { pod: pod.clone(), node: node.clone() }), Some(body));
    /// let body = json!({"metadata": {"uid": "u-1"}, "status": {"nominatedNodeName": null}});
    /// assert_eq!(patch(Command::ClearNnn { pod: pod.clone() }), Some(body));
    /// assert_eq!(patch(Command::Bind { pod, node }), None);
    /// ```
    #[must_use]
    pub fn patch(&self, since: Timestamp) -> Option<Value> {
        let pod = self.patched()?;
        let mut status = Map::new();
        if let Some(condition) = self.written_condition() {
            let condition = json!({"type": "PodScheduled", "status": condition.status, "reason": condition.reason,
                "message": condition.message, "lastTransitionTime": Time(since)});
            status.insert("conditions".to_owned(), json!([condition]));
        }
        if let Some((_, node)) = self.written_nnn() {
            status.insert("nominatedNodeName".to_owned(), json!(node));
        }
        Some(json!({"metadata": {"uid": pod.uid}, "status": status}))
    }
}
