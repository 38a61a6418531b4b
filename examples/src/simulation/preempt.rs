//! Pods that give up their devices for one of higher priority.

use std::collections::BTreeMap;

use dra_alloc::Budget;
use dra_alloc::preemption::{Harm, Preemption, PreemptionAnswer, PreemptionView};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::jiff::Timestamp;

use super::arrivals::{Arrival, Kind};
use super::description::Preempting;
use super::scheduler::{Placed, Scheduler, objects};

/// Largest work of a search for pods to preempt.
const WORK: u64 = 1_000_000;

impl Scheduler<'_> {
    /// Returns the pods that have to go so that a pod fits, by position, the most important first; none if nobody makes room.
    ///
    /// # Complexity
    /// Linear in the number of pods with devices, beside the search.
    pub(super) fn victims(&self, pod: &Arrival, kind: &Kind, placed: &BTreeMap<usize, Placed>) -> Vec<usize> {
        let harm = match self.simulation.preempt {
            Preempting::Never => return Vec::new(),
            Preempting::Kube => Harm::Kube,
            Preempting::Least => Harm::KubeExact,
        };
        let running = || placed.iter().filter_map(|(position, placed)| Some((*position, placed.bound.as_ref()?)));
        if !running().any(|(_, other)| priority(other) < kind.priority) {
            return Vec::new();
        }
        let (asking, own) = objects(pod, kind);
        let claims: Vec<&ResourceClaim> = self.tracker.claims().map(|claim| &**claim).chain(&own).collect();
        let nodes = &self.simulation.cluster.nodes;
        let pods = running().map(|(_, pod)| pod).chain([&asking]);
        let view = PreemptionView::new(nodes, pods, claims.iter().copied());
        let preemption = Preemption::new(&self.allocator, self.tracker.state(), &view, Timestamp::UNIX_EPOCH);
        let Ok(PreemptionAnswer::Room(room)) = preemption.with_harm(harm).make_room(&asking, Budget::work(WORK)) else {
            return Vec::new();
        };
        let positions: BTreeMap<&str, usize> =
            running().filter_map(|(position, pod)| Some((pod.metadata.uid.as_deref()?, position))).collect();
        room.victims.iter().filter_map(|victim| positions.get(victim.uid.as_str()).copied()).collect()
    }
}

fn priority(pod: &Pod) -> i32 {
    pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default()
}
