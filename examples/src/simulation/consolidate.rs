//! Nodes that are emptied: their pods move to other nodes.

use std::collections::BTreeMap;

use dra_alloc::Budget;
use dra_alloc::autoscaler::{ClusterSnapshot, ScaleSimulator};
use dra_alloc::consolidation::MoveRules;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::jiff::Timestamp;

use super::arrivals::{Arrival, Kind};
use super::scheduler::{Changed, Placed, Scheduler, name_of_node};

/// Largest work of a search on a node.
const WORK: u64 = 100_000;

/// Largest number of nodes that are candidates, those with the fewest devices in use.
const MOST_CANDIDATES: usize = 1_000;

impl Scheduler<'_> {
    /// Plans which pods move so that nodes are empty: the position of each pod with that of its new node, in an order in which each
    /// finds its devices free. Nodes without pods stay so.
    ///
    /// # Complexity
    /// That of [`ScaleSimulator::consolidate`] for the nodes in use.
    pub(super) fn moves(&self, placed: &BTreeMap<usize, Placed>) -> Vec<(usize, usize)> {
        let cluster = &self.simulation.cluster;
        let mut used = BTreeMap::<usize, usize>::new();
        for pod in placed.values() {
            *used.entry(pod.node).or_default() += pod.devices.len();
        }
        let nodes: Vec<&Node> = used.keys().filter_map(|index| cluster.nodes.get(*index)).collect();
        let pods = || placed.iter().filter_map(|(position, pod)| Some((*position, pod.bound.as_ref()?)));
        let snapshot = ClusterSnapshot::new(nodes, pods().map(|(_, pod)| pod));
        let fixed = pods().filter(|(position, _)| self.is_fixed(*position)).map(|(_, pod)| uid_of(pod));
        let rules = MoveRules::default().with_pinned(fixed);
        let mut candidates: Vec<(usize, usize)> = used.into_iter().map(|(node, devices)| (devices, node)).collect();
        candidates.sort_unstable();
        let candidates = candidates.iter().filter_map(|(_, index)| cluster.nodes.get(*index)).map(name_of_node);
        let (options, now) = (self.simulation.options, Timestamp::UNIX_EPOCH);
        let simulator = ScaleSimulator::new(&cluster.classes, &cluster.selectors, options, now);
        let simulator = simulator.with_budget(Budget::work(WORK));
        // A question may add to an inventory for a while, and a cluster belongs to all days.
        let mut inventory = cluster.inventory.clone();
        let candidates = candidates.take(MOST_CANDIDATES);
        let plan = simulator.consolidate(&mut inventory, &self.tracker, &snapshot, candidates, &rules).plan;
        let position_of: BTreeMap<&str, usize> = pods().map(|(position, pod)| (uid_of(pod), position)).collect();
        let index_of: BTreeMap<&str, usize> =
            cluster.nodes.iter().enumerate().map(|(index, node)| (name_of_node(node), index)).collect();
        let moves = plan.waves.iter().flatten().filter_map(|moved| {
            let pod = position_of.get(moved.pod.uid.as_str())?;
            Some((*pod, *index_of.get(moved.to.as_deref()?)?))
        });
        moves.collect()
    }

    /// Moves a pod to a node, and returns its new place. If that has no room, the pod keeps the old one.
    pub(super) fn relocate(&mut self, pod: &Arrival, kind: &Kind, old: &Placed, node: usize) -> Option<Placed> {
        let claims: Vec<ResourceClaim> =
            old.claims.iter().filter_map(|key| self.server.claims().get(key).cloned()).collect();
        self.free(old);
        let new = self.place(pod, kind, Changed::Node(node)).ok();
        if new.is_none() {
            for claim in claims {
                // It was read before, so that its amounts can be read.
                let _ = self.tracker.observe(self.server.put(claim));
            }
            self.note(self.changed_by(old));
        }
        new
    }

    fn is_fixed(&self, pod: usize) -> bool {
        let arrivals = &self.simulation.arrivals;
        let kind = arrivals.pods.get(pod).and_then(|pod| arrivals.kinds.get(pod.kind));
        kind.is_some_and(|kind| kind.is_fixed)
    }
}

fn uid_of(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}
