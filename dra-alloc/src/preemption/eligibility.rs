//! Eligibility of a pod to preempt others.
//!
//! Source: `PodEligibleToPreemptOthers` of kube-scheduler 1.37; KEP-5690 for devices that are being given back.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use nnn::scheduling::VictimDevices;

use super::occupant::Occupant;
use crate::pods::StatusCode;

/// Situation of a pod that asks to preempt others: its nominated node, and its group.
///
/// The default is that of a pod without a nomination and without a group.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "a caller says each of them")]
pub struct PreemptorSituation<'s> {
    /// Pods on the node that the pod is nominated for; `None` if the pod has no nomination, or there is no such node.
    pub on_nominated: Option<&'s [&'s Pod]>,
    /// Code of the nominated node's filter in the last cycle, if it was filtered.
    pub nominated_status: Option<StatusCode>,
    /// State of the claims that the pod's last preemption frees.
    pub devices: VictimDevices,
    /// Treatment of the pod's group, if it has one.
    pub group: GroupPreemption,
}

/// Treatment of a pod's group by a scheduler that preempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupPreemption {
    /// The pod has no group, or its group leaves preemption to the pod.
    #[default]
    ByPod,
    /// The group preempts as a whole (`WorkloadAwarePreemption`).
    ByGroup,
    /// The group has constraints on the placement of its pods.
    Constrained,
}

/// Answer of [`may_preempt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Eligibility {
    /// The pod may preempt others.
    Eligible,
    /// The pod's group preempts as a whole.
    ByGroup,
    /// The pod's group has constraints on placement.
    Constrained,
    /// The pod's `preemptionPolicy` is `Never`.
    PolicyNever,
    /// A pod that was preempted for this one still terminates on the nominated node.
    TerminatingVictim,
    /// A claim that the pod's last preemption frees is still allocated.
    DevicesReclaimed,
}

impl Eligibility {
    /// Returns kube-scheduler's text; `None` if the pod may preempt others, and for the rule of devices, which has none yet.
    ///
    /// ```
    /// use dra_alloc::preemption::Eligibility;
    /// let message = Eligibility::PolicyNever.message();
    /// assert_eq!(message, Some("preemption: not eligible due to preemptionPolicy=Never."));
    /// ```
    #[must_use]
    pub const fn message(self) -> Option<&'static str> {
        match self {
            Self::Eligible | Self::DevicesReclaimed => None,
            Self::ByGroup => Some("preemption: not eligible due to workload aware preemption enabled"),
            Self::Constrained => {
                Some("preemption: not eligible due to placement-based pod group scheduling limitation")
            }
            Self::PolicyNever => Some("preemption: not eligible due to preemptionPolicy=Never."),
            Self::TerminatingVictim => Some("preemption: not eligible due to a terminating pod on the nominated node."),
        }
    }
}

/// Decides if a pod may preempt others, in the order of kube-scheduler's checks. Asked of the live copy of the pod.
///
/// A pod waits for its victims ([`Eligibility::TerminatingVictim`]), and for their devices
/// ([`Eligibility::DevicesReclaimed`]), unless its nominated node can't serve it in any case.
///
/// ```
/// use dra_alloc::preemption::{Eligibility, PreemptorSituation, may_preempt};
/// use k8s_openapi::api::core::v1::Pod;
/// let pod: Pod = serde_json::from_value(serde_json::json!({
///     "metadata": {"name": "patient"}, "spec": {"containers": [], "preemptionPolicy": "Never"},
/// }))?;
/// assert_eq!(may_preempt(&pod, &PreemptorSituation::default()), Eligibility::PolicyNever);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Complexity
/// Linear in the number of pods on the nominated node.
#[must_use]
pub fn may_preempt(pod: &Pod, situation: &PreemptorSituation<'_>) -> Eligibility {
    match situation.group {
        GroupPreemption::ByGroup => return Eligibility::ByGroup,
        GroupPreemption::Constrained => return Eligibility::Constrained,
        GroupPreemption::ByPod => {}
    }
    if pod.spec.as_ref().and_then(|spec| spec.preemption_policy.as_deref()) == Some("Never") {
        return Eligibility::PolicyNever;
    }
    let is_nominated = pod
        .status
        .as_ref()
        .and_then(|status| status.nominated_node_name.as_deref())
        .is_some_and(|node| !node.is_empty());
    let is_lost = situation.nominated_status == Some(StatusCode::UnschedulableAndUnresolvable);
    let Some(on_node) = situation.on_nominated.filter(|_| is_nominated && !is_lost) else {
        return Eligibility::Eligible;
    };
    let priority = Occupant::new(pod).priority;
    if on_node.iter().any(|other| Occupant::new(other).priority < priority && terminates_by_preemption(other)) {
        return Eligibility::TerminatingVictim;
    }
    match situation.devices {
        VictimDevices::Reclaimed => Eligibility::DevicesReclaimed,
        VictimDevices::Free => Eligibility::Eligible,
    }
}

/// Returns true if a pod is being deleted, and its first condition of that type says that a scheduler preempted it.
pub(super) fn terminates_by_preemption(pod: &Pod) -> bool {
    let is_by_preemption = |condition: &PodCondition| {
        condition.status == "True" && condition.reason.as_deref() == Some("PreemptionByScheduler")
    };
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    pod.metadata.deletion_timestamp.is_some()
        && conditions.find(|condition| condition.type_ == "DisruptionTarget").is_some_and(is_by_preemption)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn victim(priority: i32, conditions: &Value) -> Pod {
        from_value(json!({
            "metadata": {"name": "v", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"containers": [], "priority": priority, "nodeName": "n"}, "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    fn preempted() -> Value {
        json!([{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}])
    }

    fn pod(policy: &str, nominated: &str) -> Pod {
        from_value(json!({
            "spec": {"containers": [], "priority": 100, "preemptionPolicy": policy},
            "status": {"nominatedNodeName": nominated},
        }))
        .unwrap()
    }

    #[test]
    fn checks_come_in_kube_schedulers_order() {
        use Eligibility::{ByGroup, Constrained, DevicesReclaimed, Eligible, PolicyNever, TerminatingVictim};
        let (lower, equal) = (victim(0, &preempted()), victim(100, &preempted()));
        let other =
            victim(0, &json!([{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]));
        let second = victim(
            0,
            &json!([
                {"type": "DisruptionTarget", "status": "False"},
                {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
            ]),
        );
        let (of_lower, of_equal, of_other, of_second) = ([&lower], [&equal], [&other], [&second]);
        let default = PreemptorSituation::default();
        let on = |pods| PreemptorSituation { on_nominated: Some(pods), ..default };
        let lost = Some(StatusCode::UnschedulableAndUnresolvable);
        let reclaimed = VictimDevices::Reclaimed;
        let (by_group, constrained) = (GroupPreemption::ByGroup, GroupPreemption::Constrained);
        let table = vec![
            ("no nomination", pod("", ""), on(&of_lower), Eligible),
            ("never", pod("Never", "n"), on(&of_lower), PolicyNever),
            ("group before policy", pod("Never", "n"), PreemptorSituation { group: by_group, ..default }, ByGroup),
            ("placement", pod("", ""), PreemptorSituation { group: constrained, ..default }, Constrained),
            ("terminating victim", pod("", "n"), on(&of_lower), TerminatingVictim),
            ("of equal priority", pod("", "n"), on(&of_equal), Eligible),
            ("terminates for another reason", pod("", "n"), on(&of_other), Eligible),
            ("the first condition counts", pod("", "n"), on(&of_second), Eligible),
            ("lost node", pod("", "n"), PreemptorSituation { nominated_status: lost, ..on(&of_lower) }, Eligible),
            ("unknown node", pod("", "n"), PreemptorSituation { devices: reclaimed, ..default }, Eligible),
            ("reclaimed", pod("", "n"), PreemptorSituation { devices: reclaimed, ..on(&[]) }, DevicesReclaimed),
            ("not nominated", pod("", ""), PreemptorSituation { devices: reclaimed, ..on(&[]) }, Eligible),
        ];
        for (name, pod, situation, expected) in table {
            assert_eq!(may_preempt(&pod, &situation), expected, "{name}");
        }
    }
}
