//! Order in which active pods are tried.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

/// Order of the active pods: kube-scheduler's [`PrioritySort`], or the caller's.
pub trait QueueOrder {
    /// Place of pods in the order. The least is tried first; of equal ones, the one that came first.
    type Rank: Ord + Clone + fmt::Debug;

    /// Returns the place of one pod, or of the pods of a group, of which there is at least one. `since` is the time since
    /// which they wait: when they came, or when their last attempt ended.
    ///
    /// The queue asks again when the pods change or come back, and never in between.
    fn rank(&self, pods: &[Arc<Pod>], since: Timestamp) -> Self::Rank;
}

/// Order of kube-scheduler's plugin `PrioritySort`: higher priority first, then who waits longer. A group has the highest
/// priority of its pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the order has no settings")]
pub struct PrioritySort;

impl QueueOrder for PrioritySort {
    type Rank = (Reverse<i32>, Timestamp);

    fn rank(&self, pods: &[Arc<Pod>], since: Timestamp) -> Self::Rank {
        let priority = |pod: &Arc<Pod>| pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default();
        (Reverse(pods.iter().map(priority).max().unwrap_or_default()), since)
    }
}
