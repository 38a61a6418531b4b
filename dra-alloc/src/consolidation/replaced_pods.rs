//! Replaced pods: those that controllers have made in place of pods of a plan.
//!
//! An evicted pod does not come back. Its controller makes another one, with another UID and often another name; the claims of a
//! template are made anew, too. Pods of one controller are alike, so that any pod which it has made since the plan stands in for
//! any pod of the plan that is gone: first the ones that are where the plan wants them, then those that wait for a node.
//!
//! A UID decides that a pod is new, and not a time: the clock of whoever makes a plan is not that of the API server.

use std::collections::{BTreeMap, BTreeSet};

use dra_device::internal::{PodFields, controller};
use k8s_openapi::api::core::v1::Pod;

use super::move_plan::{MovePlan, PodMove};
use super::unit::node_of;
use crate::autoscaler::{ClusterSnapshot, ends_with_its_node};

/// Pods by the UID of the pod of the plan whose place they take.
#[derive(Debug, Default)]
pub(super) struct ReplacedPods<'c> {
    by_planned: BTreeMap<String, &'c Pod>,
}

impl<'c> ReplacedPods<'c> {
    /// Finds the pods that stand in for moves whose pods are gone.
    ///
    /// Linear in the pods and in the moves, apart from sorting.
    pub(super) fn find(plan: &MovePlan, snapshot: &ClusterSnapshot<'c>) -> Self {
        let there: BTreeSet<&str> =
            snapshot.pods().filter(|pod| !ends_with_its_node(pod)).map(PodFields::uid).collect();
        let mut gone: BTreeMap<&str, Vec<&PodMove>> = BTreeMap::new();
        for moved in plan.moves().filter(|moved| !there.contains(moved.pod.uid.as_str())) {
            if let Some(controller) = &moved.controller {
                gone.entry(controller).or_default().push(moved);
            }
        }
        let mut made: BTreeMap<&str, Vec<&'c Pod>> = BTreeMap::new();
        for pod in snapshot.pods().filter(|pod| !plan.known_pods.contains(pod.uid()) && !ends_with_its_node(pod)) {
            let uid = controller(&pod.metadata).map(|owner| owner.uid.as_str());
            if let Some(uid) = uid.filter(|uid| gone.contains_key(uid)) {
                made.entry(uid).or_default().push(pod);
            }
        }
        let mut replaced = Self::default();
        for (controller, moves) in gone {
            replaced.assign(moves, made.remove(controller).unwrap_or_default());
        }
        replaced
    }

    /// Gives each move one of the new pods of its controller, if there are enough.
    fn assign(&mut self, moves: Vec<&PodMove>, pods: Vec<&'c Pod>) {
        let mut by_node: BTreeMap<&str, Vec<&'c Pod>> = BTreeMap::new();
        for pod in pods.into_iter().rev() {
            by_node.entry(node_of(pod)).or_default().push(pod);
        }
        let mut left = Vec::new();
        for moved in moves {
            // Without a node it waits, which is what an eviction wants.
            let wanted = moved.to.as_deref().unwrap_or_default();
            match by_node.get_mut(wanted).and_then(Vec::pop) {
                Some(pod) => self.add(moved, pod),
                None => left.push(moved),
            }
        }
        // The empty name of those that wait is the first one.
        let others = by_node.into_values().flat_map(|pods| pods.into_iter().rev());
        left.into_iter().zip(others).for_each(|(moved, pod)| self.add(moved, pod));
    }

    fn add(&mut self, moved: &PodMove, pod: &'c Pod) {
        self.by_planned.insert(moved.pod.uid.clone(), pod);
    }

    /// Returns the pod that stands in for a pod of the plan.
    pub(super) fn of(&self, planned: &str) -> Option<&'c Pod> {
        self.by_planned.get(planned).copied()
    }

    /// Returns the UIDs of all pods that stand in for others.
    pub(super) fn uids(&self) -> impl Iterator<Item = &'c str> {
        self.by_planned.values().map(|pod| pod.uid())
    }
}

impl MovePlan {
    /// Notes which pods the controllers of moved pods have, so that pods that they make later are told apart.
    pub(super) fn knowing(mut self, snapshot: &ClusterSnapshot<'_>) -> Self {
        let controllers: BTreeSet<&str> = self.moves().filter_map(|moved| moved.controller.as_deref()).collect();
        let is_of_one =
            |pod: &&Pod| controller(&pod.metadata).is_some_and(|one| controllers.contains(one.uid.as_str()));
        self.known_pods = snapshot.pods().filter(is_of_one).map(|pod| pod.uid().to_owned()).collect();
        self
    }
}
