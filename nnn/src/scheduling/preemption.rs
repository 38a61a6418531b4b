//! Preemption: eligibility of the preemptor, and clearing of lower nominations.

use crate::behavior::EvictionTiming;
use crate::command::Command;
use crate::nominator::Nominator;
use crate::pod::{PodSnapshot, PreemptionPolicy};
use crate::scheduling::cycle_result::CycleOutcome;

/// Filter status of the pod's nominated node in this cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NominatedNodeStatus {
    /// The pod has no nomination, or the node does not exist.
    #[default]
    Absent,
    /// The node does not fit now, and may once victims are gone.
    Unschedulable,
    /// The node does not fit, and no eviction helps.
    Unresolvable,
}

/// Checks if the pod may look for victims.
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

/// Returns the commands that clear the nominations of strictly lower priority to the node of a preemption.
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
