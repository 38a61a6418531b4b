//! Network readiness of a node, and kubelet's admission of pods by it (KEP-5233, Node Admission Control).

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use readiness::network::{Aggregate, HoldDown, LocalNetwork, NetworkCondition};
use readiness::{ConditionStatus, GatedNodeView, GatedPod};

/// Condition that combines the network gates of one node.
#[derive(Clone, Debug)]
pub(crate) struct NetworkWatch {
    hold_down: HoldDown,
    /// Status and reason of the condition as reported last.
    reported: Option<(&'static str, &'static str)>,
}

impl NetworkWatch {
    /// Creates a watch: all network gates must be True for so many seconds.
    pub(crate) fn new(seconds: i64) -> Self {
        Self { hold_down: HoldDown::new(SignedDuration::from_secs(seconds)), reported: None }
    }

    pub(crate) fn shift_clock(&mut self, shift: SignedDuration) {
        self.hold_down.shift_clock(shift);
    }

    /// Looks at the gates of the node. Returns the condition if its status or reason is another one than before.
    pub(crate) fn observe(&mut self, view: &GatedNodeView<'_>, now: Timestamp) -> Option<NetworkCondition> {
        let condition = self.hold_down.observe(&Aggregate::from_gates(view, Aggregate::NETWORK_PREFIX)?, now);
        let seen = (condition.status, condition.reason);
        (self.reported.replace(seen) != Some(seen)).then_some(condition)
    }

    /// Returns the time at which the gates will have been True for long enough; `None` if they have been, or are not True.
    pub(crate) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.hold_down.stable_from(now)
    }

    /// Returns kubelet's decision on a pod, in words. A pod that the manifest puts on the node was there before kubelet
    /// started.
    pub(crate) fn admission(&self, view: &GatedNodeView<'_>, pod: &GatedPod, now: Timestamp) -> String {
        let ready = view.condition(GatedNodeView::READY).filter(|_| view.is_ready());
        let local = LocalNetwork {
            ready_since: ready.and_then(|ready| Some(ready.last_transition_time.as_ref()?.0)),
            network: self.reported.map(|(status, _)| match status {
                "True" => ConditionStatus::True,
                "False" => ConditionStatus::False,
                _ => ConditionStatus::Unknown,
            }),
            timeout: LocalNetwork::DEFAULT_TIMEOUT,
        };
        let spec = pod.pod.spec.as_ref();
        let is_here = spec.is_some_and(|spec| spec.node_name == view.node().metadata.name);
        let admission = if is_here { local.admit_existing(&pod.pod, now) } else { local.admit_new(&pod.pod, now) };
        admission.to_string()
    }
}
