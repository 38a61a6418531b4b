//! Occupants: pods as preemption sees them, and their order of importance.

use std::cmp::Reverse;

use dra_device::internal::PodFields;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use smallvec::SmallVec;

/// A pod, as preemption sees it.
#[derive(Clone, Debug)]
pub(super) struct Occupant<'c> {
    pub(super) pod: &'c Pod,
    pub(super) priority: i32,
    /// Time when the kubelet took the pod; `None` if that is not known, so that the pod counts as the youngest.
    pub(super) start: Option<Timestamp>,
    pub(super) place: Place<'c>,
    /// Stage at which the scheduler holds the pod's place in memory.
    pub(super) stage: Option<InMemoryStage>,
    /// Positions of the allocated claims that the pod may give back.
    pub(super) claims: SmallVec<[usize; 2]>,
}

/// Place of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place<'c> {
    /// On the node, or about to be bound to it.
    On(&'c str),
    /// Nominated for the node.
    Nominated(&'c str),
    Nowhere,
}

/// Stage of a pod that holds a place in the scheduler's memory and is not bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InMemoryStage {
    /// The pod waits in `Permit`. Its preemption rejects it.
    Permit,
    /// The pod's binding is on its way. Its preemption cancels it.
    PreBind,
}

impl<'c> Occupant<'c> {
    pub(super) fn new(pod: &'c Pod) -> Self {
        let status = pod.status.as_ref();
        let filled = |name: Option<&'c String>| name.map(String::as_str).filter(|name| !name.is_empty());
        let bound = filled(pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()));
        let nominated = filled(status.and_then(|status| status.nominated_node_name.as_ref()));
        Self {
            pod,
            priority: pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default(),
            start: status.and_then(|status| status.start_time.as_ref()).map(|start| start.0),
            place: bound.map(Place::On).or_else(|| nominated.map(Place::Nominated)).unwrap_or(Place::Nowhere),
            stage: None,
            claims: SmallVec::new(),
        }
    }

    /// Returns true if the pod is being deleted.
    pub(super) const fn is_leaving(&self) -> bool {
        self.pod.metadata.deletion_timestamp.is_some()
    }

    /// Returns true if the pod has ended.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.pod.status.as_ref().and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed"))
    }

    /// Returns the node that the pod is on, or about to be bound to.
    pub(super) const fn node(&self) -> Option<&'c str> {
        match self.place {
            Place::On(node) => Some(node),
            Place::Nominated(_) | Place::Nowhere => None,
        }
    }

    /// Returns namespace and name of the pod's group.
    pub(super) fn group(&self) -> Option<[&'c str; 2]> {
        self.pod.group_name().map(|group| [self.pod.namespace(), group])
    }

    /// Returns namespace and name.
    pub(super) fn name(&self) -> [&'c str; 2] {
        [self.pod.namespace(), self.pod.metadata.name.as_deref().unwrap_or_default()]
    }

    /// Returns a key that sorts pods by importance: by priority, the highest first, then by start, the oldest first, and by name.
    pub(super) fn importance(&self) -> impl Ord + use<'c> {
        (Reverse(self.priority), self.start.is_none(), self.start, self.name())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn importance_is_priority_then_age_then_name() {
        let pods: [Pod; 5] = from_value(json!([
            {"metadata": {"name": "young"}, "spec": {"priority": 5}, "status": {"startTime": "2026-01-02T00:00:00Z"}},
            {"metadata": {"name": "b"}, "spec": {"priority": 5}, "status": {"startTime": "2026-01-01T00:00:00Z"}},
            {"metadata": {"name": "never-started"}, "spec": {"priority": 5}},
            {"metadata": {"name": "low"}, "status": {"startTime": "2025-01-01T00:00:00Z"}},
            {"metadata": {"name": "a"}, "spec": {"priority": 5}, "status": {"startTime": "2026-01-01T00:00:00Z"}},
        ]))
        .unwrap();
        let mut occupants: Vec<Occupant<'_>> = pods.iter().map(Occupant::new).collect();
        occupants.sort_by_key(Occupant::importance);
        let names: Vec<&str> = occupants.iter().map(|occupant| occupant.name()[1]).collect();
        assert_eq!(names, ["a", "b", "young", "never-started", "low"]);
    }

    #[test]
    fn an_empty_node_name_is_none() {
        let pod: Pod =
            from_value(json!({"spec": {"nodeName": "", "containers": []}, "status": {"nominatedNodeName": "n"}}))
                .unwrap();
        assert_eq!(Occupant::new(&pod).place, Place::Nominated("n"));
    }
}
