//! One attempt to place a pod, or the pods of a group.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

/// Attempt that a queue has begun. It ends with [`SchedulingQueue::done`](super::SchedulingQueue::done),
/// [`refused`](super::SchedulingQueue::refused) or [`failed`](super::SchedulingQueue::failed), each of which takes it: its pods
/// are in flight until then, also if it is dropped.
#[derive(Debug)]
#[must_use = "the pods stay in flight until the attempt is given back to the queue"]
pub struct QueueAttempt {
    pub(super) unit: u64,
    pub(super) number: u32,
    pub(super) pods: Vec<Arc<Pod>>,
}

impl QueueAttempt {
    /// Returns the pod to place, or the pods of a group, in the order in which they came.
    #[must_use]
    pub fn pods(&self) -> &[Arc<Pod>] {
        &self.pods
    }

    /// Returns the number of the attempt: 1 for the first.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }
}
