//! Whether a pod may look for victims, and whom it clears once it has found them.

use serde::Deserialize;

use crate::command::Command;
use crate::nominator::Nominator;
use crate::pod::{PodView, PreemptionPolicy};
use crate::scheduling::cycle::CycleOutcome;

/// How the pod's nominated node answered the filters of this cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NominatedNode {
    /// The pod has no nomination, or the node is not there.
    #[default]
    Absent,
    /// It does not fit now, and may once victims are gone.
    Unschedulable,
    /// No eviction helps there.
    Unresolvable,
}

/// May the pod look for victims? If not, how its cycle ends.
///
/// `pod` is the live copy: its present nomination counts. `on_node` are the pods of its nominated node, as far as they
/// may be its victims by the plugin's rules.
///
/// # Errors
/// [`CycleOutcome::PolicyNever`] or [`CycleOutcome::VictimsTerminating`].
///
/// ```
/// use nnn::pod::PodView;
/// use nnn::scheduling::cycle::CycleOutcome;
/// use nnn::scheduling::preemption::{NominatedNode, may_preempt};
/// let mut victim = PodView::pending("default", "victim").bound_to("node-1");
/// (victim.deleting, victim.preempted) = (true, true);
/// let pod = PodView::pending("default", "pod").with_priority(1).nominated_to("node-1");
/// assert_eq!(may_preempt(&pod, NominatedNode::Unschedulable, &[victim]), Err(CycleOutcome::VictimsTerminating));
/// ```
pub fn may_preempt(pod: &PodView, nominated: NominatedNode, on_node: &[PodView]) -> Result<(), CycleOutcome> {
    if pod.preemption_policy == PreemptionPolicy::Never {
        return Err(CycleOutcome::PolicyNever);
    }
    let is_victim = |other: &PodView| other.priority < pod.priority && other.deleting && other.preempted;
    match nominated {
        NominatedNode::Unschedulable if pod.nnn.is_some() && on_node.iter().any(is_victim) => {
            Err(CycleOutcome::VictimsTerminating)
        }
        _ => Ok(()),
    }
}

/// How victims are evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Eviction {
    /// Within the cycle.
    #[default]
    Sync,
    /// Beside it.
    Async,
    /// Beside it, and every victim is terminating already. Upstream then returns early and clears nobody.
    AsyncAllTerminating,
}

/// Who loses the nomination to a node that a preemptor has chosen: pods of strictly lower priority, on that node only.
/// Memory keeps them until the update of the status comes back.
///
/// ```
/// use nnn::command::Command;
/// use nnn::nominator::{Nomination, Nominator};
/// use nnn::pod::PodView;
/// use nnn::scheduling::preemption::{Eviction, clear_lower};
/// let lower = PodView::pending("default", "lower");
/// let mut nominator = Nominator::default();
/// nominator.insert(Nomination::new(&lower, "node-1"));
/// assert_eq!(clear_lower(&nominator, 1, "node-1", Eviction::Sync), [Command::ClearNnn { pod: lower.key }]);
/// assert!(clear_lower(&nominator, 0, "node-1", Eviction::Sync).is_empty());
/// ```
#[must_use]
pub fn clear_lower(nominator: &Nominator, priority: i32, node: &str, eviction: Eviction) -> Vec<Command> {
    if eviction == Eviction::AsyncAllTerminating {
        return Vec::new();
    }
    let lower = nominator.on_node(node).filter(|nomination| nomination.priority < priority);
    lower.map(|nomination| Command::ClearNnn { pod: nomination.pod.clone() }).collect()
}
