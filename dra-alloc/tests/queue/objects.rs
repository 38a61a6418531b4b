//! Objects of the tests, and the words for them.

use std::sync::Arc;

use dra_alloc::claims::ClaimKey;
use dra_alloc::queue::{ClusterEvent, ObjectChange, PrioritySort, QueueOptions, Remedy, SchedulingQueue, WhenIdle};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, from_value, json};

/// Time in milliseconds after the beginning.
pub(crate) fn at(milliseconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_millis(milliseconds)
}

pub(crate) fn queue(when_idle: WhenIdle) -> SchedulingQueue {
    SchedulingQueue::new(PrioritySort, QueueOptions::default().when_idle(when_idle))
}

/// A pod whose UID is its name.
pub(crate) fn pod(name: &str, priority: i32, group: Option<&str>) -> Value {
    let group = group.map(|group| json!({"podGroupName": group}));
    json!({"metadata": {"namespace": "ns", "name": name, "uid": name},
        "spec": {"containers": [], "priority": priority, "schedulingGroup": group}})
}

pub(crate) fn read(pod: &Value) -> Arc<Pod> {
    Arc::new(from_value(pod.clone()).unwrap())
}

/// Shows a queue a pod, and returns the number of units that are let out.
pub(crate) fn show(queue: &mut SchedulingQueue, old: Option<&Value>, new: Option<&Value>, now: Timestamp) -> usize {
    let (old, new) = (old.map(read), new.map(read));
    let change = match (&old, &new) {
        (None, Some(new)) => ObjectChange::Added(new),
        (Some(old), Some(new)) => ObjectChange::Updated { old, new },
        (Some(old), None) => ObjectChange::Deleted(old),
        (None, None) => return 0,
    };
    queue.observe(&ClusterEvent::Pod(change), now).unwrap()
}

/// Reads a remedy: `kind` or `kind:name`.
pub(crate) fn remedy(text: &str) -> Remedy {
    let (kind, name) = text.split_once(':').unwrap_or((text, ""));
    let owned = || name.to_owned();
    match kind {
        "any-devices" => Remedy::AnyDevices,
        "devices" => Remedy::Devices { driver: owned() },
        "class" => Remedy::Class { name: owned() },
        "resource" => Remedy::ExtendedResource { name: owned() },
        "claim" => Remedy::Claim { claim: ClaimKey::new("ns", name) },
        "group" => Remedy::Group { namespace: "ns".to_owned(), name: owned() },
        "node-added" => Remedy::NodeAdded,
        "node-labels" => Remedy::NodeLabels,
        "node-annotations" => Remedy::NodeAnnotations,
        "node-taints" => Remedy::NodeTaints,
        "node-allocatable" => Remedy::NodeAllocatable,
        "node-conditions" => Remedy::NodeConditions,
        "node-features" => Remedy::NodeFeatures,
        "room" => Remedy::Room,
        "neighbors" => Remedy::Neighbors,
        "own-claims" => Remedy::OwnClaims,
        "own-labels" => Remedy::OwnLabels,
        "own-requests" => Remedy::OwnRequests,
        "own-tolerations" => Remedy::OwnTolerations,
        "members" => Remedy::Members,
        _ => panic!("no remedy is called {kind}"),
    }
}
