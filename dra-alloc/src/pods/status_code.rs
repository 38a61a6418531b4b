//! Status codes of kube-scheduler's extension points.

use serde::Serialize;

/// Status of an extension point, as kube-scheduler's framework tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[expect(clippy::exhaustive_enums, reason = "the framework has these codes for a plugin of claims")]
pub enum StatusCode {
    /// The pod may go on.
    Success,
    /// The plugin has nothing to do for the pod.
    Skip,
    /// The pod can't be scheduled now. Preemption may help.
    Unschedulable,
    /// The pod can't be scheduled now, and no preemption helps. An event has to come first.
    UnschedulableAndUnresolvable,
    /// The attempt failed. It is repeated after a while, without waiting for an event.
    Error,
}
