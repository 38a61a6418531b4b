//! Preemption: permission to preempt, and clearing of the nominations of lower-priority pods.

use super::cycle_result::CycleOutcome;
use crate::commands::Command;
use crate::nomination::Nominator;
use crate::pod::PodSnapshot;

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

/// State of the devices that the pod's last preemption frees (KEP-5690): a victim's claims are allocated some time longer than
/// the victim lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "one of the claims is still allocated, or none is")]
pub enum VictimDevices {
    /// None of the claims is allocated any longer, or there are none.
    #[default]
    Free,
    /// One of the claims is still allocated.
    Reclaimed,
}

impl PodSnapshot {
    /// Returns the result of the cycle if the pod may not preempt other pods: [`CycleOutcome::PolicyNever`],
    /// [`CycleOutcome::VictimsTerminating`] or [`CycleOutcome::DevicesReclaimed`].
    ///
    /// Asked of the live copy, because its present nomination counts. `on_node` are the pods of its nominated node that the
    /// preemption plugin may choose as victims, `devices` are those of the pod's last victims.
    ///
    /// ```
    /// use nnn::scheduling::{NominatedNodeStatus, VictimDevices};
    /// use nnn::{CycleOutcome, PodSnapshot};
    /// let mut victim = PodSnapshot::pending("default", "victim");
    /// victim.node = Some("node-1".to_owned());
    /// (victim.deleting, victim.preempted) = (true, true);
    /// let pod = PodSnapshot::pending("default", "pod").with_priority(1).with_nomination("node-1");
    /// let refusal =
    ///     |on_node: &[_], devices| pod.preemption_refusal(NominatedNodeStatus::Unschedulable, on_node, devices);
    /// assert_eq!(refusal(&[victim], VictimDevices::Reclaimed), Some(CycleOutcome::VictimsTerminating));
    /// assert_eq!(refusal(&[], VictimDevices::Reclaimed), Some(CycleOutcome::DevicesReclaimed));
    /// assert_eq!(refusal(&[], VictimDevices::Free), None);
    /// ```
    #[must_use]
    pub fn preemption_refusal(
        &self,
        nominated: NominatedNodeStatus,
        on_node: &[Self],
        devices: VictimDevices,
    ) -> Option<CycleOutcome> {
        if self.never_preempts {
            return Some(CycleOutcome::PolicyNever);
        }
        if nominated != NominatedNodeStatus::Unschedulable || self.nnn.is_none() {
            return None;
        }
        let is_victim = |other: &Self| other.priority < self.priority && other.deleting && other.preempted;
        if on_node.iter().any(is_victim) {
            return Some(CycleOutcome::VictimsTerminating);
        }
        match devices {
            VictimDevices::Free => None,
            VictimDevices::Reclaimed => Some(CycleOutcome::DevicesReclaimed),
        }
    }
}

/// Returns the commands that clear nominations of pods below `priority` to the node of a preemption.
///
/// Memory keeps the nominations until the watch shows the cleared statuses.
pub(crate) fn clear_lower_nominations(nominator: &Nominator, priority: i32, node: &str) -> Vec<Command> {
    let lower = nominator.on_node(node).filter(|nomination| nomination.priority < priority);
    lower.map(|nomination| Command::ClearNnn { pod: nomination.pod.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::clear_lower_nominations;
    use crate::commands::Command;
    use crate::config::Behavior;
    use crate::nomination::{Nomination, Nominator};
    use crate::pod::PodSnapshot;

    #[test]
    fn a_preemption_clears_strictly_lower_nominations_of_its_node_alone() {
        let pod = |name: &str, priority| PodSnapshot::pending("default", name).with_priority(priority);
        let mut nominator = Nominator::new(Behavior::Safe);
        for (name, priority, node) in [("low", 1, "n"), ("equal", 5, "n"), ("high", 9, "n"), ("elsewhere", 1, "m")] {
            nominator.insert(Nomination::new(&pod(name, priority), node));
        }
        let cleared = clear_lower_nominations(&nominator, 5, "n");
        assert_eq!(cleared, [Command::ClearNnn { pod: pod("low", 1).key }]);
        assert_eq!(nominator.len(), 4, "memory waits for the update");
    }
}
