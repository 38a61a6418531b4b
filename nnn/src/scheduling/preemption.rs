//! Preemption: permission to preempt, and clearing of the nominations of lower-priority pods.

use crate::commands::Command;
use crate::config::behavior::EvictionTiming;
use crate::nomination::Nominator;
use crate::pod::{PodSnapshot, PreemptionPolicy};
use crate::scheduling::cycle_result::CycleOutcome;

/// Filter status of the pod's nominated node in the current scheduling cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NominatedNodeStatus {
    /// The pod has no nomination, or the node does not exist.
    #[default]
    Absent,
    /// The pod does not fit the node now, but may after evictions.
    Unschedulable,
    /// The pod does not fit the node, and no eviction would help.
    Unresolvable,
}

/// Checks that the pod may preempt other pods.
///
/// `pod` is the live copy, because its present nomination counts. `on_node` are the pods of its nominated node that the
/// preemption plugin may choose as victims.
///
/// # Errors
/// The result of the cycle if it may not: [`CycleOutcome::PolicyNever`] or [`CycleOutcome::VictimsTerminating`].
///
/// ```
/// use nnn::scheduling::{NominatedNodeStatus, may_preempt};
/// use nnn::{CycleOutcome, PodSnapshot};
/// let mut victim = PodSnapshot::pending("default", "victim").with_node("node-1");
/// (victim.deleting, victim.preempted) = (true, true);
/// let pod = PodSnapshot::pending("default", "pod").with_priority(1).with_nomination("node-1");
/// assert_eq!(may_preempt(&pod, NominatedNodeStatus::Unschedulable, &[victim]), Err(CycleOutcome::VictimsTerminating));
/// ```
pub fn may_preempt(
    pod: &PodSnapshot,
    nominated: NominatedNodeStatus,
    on_node: &[PodSnapshot],
) -> Result<(), CycleOutcome> {
    if pod.preemption_policy == PreemptionPolicy::Never {
        return Err(CycleOutcome::PolicyNever);
    }
    let is_victim = |other: &PodSnapshot| other.priority < pod.priority && other.deleting && other.preempted;
    match nominated {
        NominatedNodeStatus::Unschedulable if pod.nnn.is_some() && on_node.iter().any(is_victim) => {
            Err(CycleOutcome::VictimsTerminating)
        }
        _ => Ok(()),
    }
}

/// Returns the commands that clear nominations of pods below `priority` to the node of a preemption.
///
/// Memory keeps the nominations until the watch shows the cleared statuses.
///
/// ```
/// use nnn::behavior::{Behavior, EvictionTiming};
/// use nnn::scheduling::clear_lower_nominations;
/// use nnn::{Command, Nomination, Nominator, PodSnapshot};
/// let lower = PodSnapshot::pending("default", "lower");
/// let mut nominator = Nominator::new(Behavior::SAFE);
/// nominator.insert(Nomination::new(&lower, "node-1"));
/// let clear = |priority| clear_lower_nominations(&nominator, priority, "node-1", EvictionTiming::Sync);
/// assert_eq!(clear(1), [Command::ClearNnn { pod: lower.key }]);
/// assert!(clear(0).is_empty());
/// ```
#[must_use]
pub fn clear_lower_nominations(
    nominator: &Nominator,
    priority: i32,
    node: &str,
    eviction: EvictionTiming,
) -> Vec<Command> {
    if eviction == EvictionTiming::AsyncAllTerminating {
        return Vec::new();
    }
    let lower = nominator.on_node(node).filter(|nomination| nomination.priority < priority);
    lower.map(|nomination| Command::ClearNnn { pod: nomination.pod.clone() }).collect()
}
