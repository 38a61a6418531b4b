//! Joint places: nodes for several guests at once, with the claims of all guests on a node allocated together.
//!
//! The search is complete where no two nodes see one device: it tries each guest on each node, and the allocator tries all devices.
//! Nodes of one class are interchangeable, so that of those without a guest only the first is tried.

use std::collections::BTreeSet;
use std::sync::Arc;

use dra_device::claims::ClaimKey;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::unit::Unit;
use super::work::{Ended, Work};
use crate::allocator::Allocator;
use crate::autoscaler::{ScaleSimulator, claims_of, name_of, only_node, takes_pods};
use crate::cluster::state::AllocatedState;
use crate::pods::{ClaimLookup, ClaimTracker, FitQuestion, PodIdentity};
use crate::search::outcome::Outcome;

/// Pods that get a node together, with their claims.
pub(super) struct Guest<'g> {
    pods: Vec<(PodIdentity, &'g Pod)>,
    claims: Vec<Arc<ResourceClaim>>,
    /// Position of the node that it has to get; `None` for any.
    node: Option<usize>,
}

/// Node of each guest, with the allocations of its claims.
pub(super) type Places = Vec<(usize, Vec<(ClaimKey, AllocationResult)>)>;

/// Question for the places of guests.
pub(super) struct JointPlaces<'j> {
    pub(super) simulator: &'j ScaleSimulator<'j>,
    pub(super) allocator: &'j Allocator<'j>,
    pub(super) nodes: &'j [&'j Node],
    /// Class of each node.
    pub(super) classes: &'j [usize],
    /// Nodes that are of no class now: guests have left them.
    pub(super) special: BTreeSet<usize>,
    /// Devices in use without those of the guests.
    pub(super) state: &'j AllocatedState,
    pub(super) gone: &'j [&'j Pod],
    pub(super) work: &'j Work<'j>,
}

/// A guest on a node.
struct Step {
    node: usize,
    /// Allocations of all guests on the node, this one included.
    results: Vec<(ClaimKey, AllocationResult)>,
}

impl<'g> Guest<'g> {
    /// Reads pods with their claims as a tracker has them. `None` if a claim is not there.
    pub(super) fn new(
        pods: impl IntoIterator<Item = &'g Pod>,
        tracker: &ClaimTracker,
        simulator: &ScaleSimulator<'_>,
        node: Option<usize>,
    ) -> Option<Self> {
        let pods: Vec<_> = pods.into_iter().map(|pod| (PodIdentity::new(pod, simulator.options()), pod)).collect();
        let mut claims: Vec<Arc<ResourceClaim>> = Vec::new();
        for named in pods.iter().flat_map(|(_, pod)| claims_of(pod)) {
            let claim = tracker.claim(&named.claim.namespace, &named.claim.name)?;
            if !claims.iter().any(|known| Arc::ptr_eq(known, claim)) {
                claims.push(Arc::clone(claim));
            }
        }
        Some(Self { pods, claims, node })
    }

    pub(super) fn of_unit(unit: &'g Unit<'_>, tracker: &ClaimTracker, simulator: &ScaleSimulator<'_>) -> Option<Self> {
        Self::new(unit.pods(), tracker, simulator, None)
    }
}

impl JointPlaces<'_> {
    /// Searches places for all guests, in their order; `None` if there are none.
    pub(super) fn search(&self, guests: &[Guest<'_>]) -> Result<Option<Places>, Ended> {
        let mut path: Vec<Step> = Vec::new();
        let mut tries: Vec<Vec<usize>> = vec![self.candidates(guests, &path)];
        while path.len() < guests.len() {
            let Some(node) = tries.last_mut().and_then(Vec::pop) else {
                tries.pop();
                if path.pop().is_none() {
                    return Ok(None);
                }
                continue;
            };
            if let Some(results) = self.put(guests, &path, node)? {
                path.push(Step { node, results });
                tries.push(self.candidates(guests, &path));
            }
        }
        // The last step on a node has the allocations of all guests there.
        let of_node = |node: usize| path.iter().rev().find(|step| step.node == node).map(|step| &step.results);
        let places = guests.iter().zip(&path).map(|(guest, step)| {
            let keys: BTreeSet<ClaimKey> =
                guest.claims.iter().map(|claim| ClaimKey::from_metadata(&claim.metadata)).collect();
            let all = of_node(step.node).into_iter().flatten();
            (step.node, all.filter(|(key, _)| keys.contains(key)).cloned().collect())
        });
        Ok(Some(places.collect()))
    }

    /// Returns the nodes to try for the next guest, the first one last.
    fn candidates(&self, guests: &[Guest<'_>], path: &[Step]) -> Vec<usize> {
        let Some(guest) = guests.get(path.len()) else { return Vec::new() };
        if let Some(node) = guest.node {
            return vec![node];
        }
        let mut tried = BTreeSet::new();
        let mut is_new = |node: &usize| {
            let is_special = self.special.contains(node) || path.iter().any(|step| step.node == *node);
            is_special || self.classes.get(*node).is_some_and(|class| tried.insert(*class))
        };
        let open = (0..self.nodes.len()).filter(|node| self.nodes.get(*node).is_some_and(|node| takes_pods(node)));
        let mut nodes: Vec<usize> = open.filter(|node| is_new(node)).collect();
        nodes.reverse();
        nodes
    }

    /// Allocates the claims of a guest on a node together with those of the guests there.
    fn put(
        &self,
        guests: &[Guest<'_>],
        path: &[Step],
        node: usize,
    ) -> Result<Option<Vec<(ClaimKey, AllocationResult)>>, Ended> {
        self.work.count(1)?;
        let (Some(guest), Some(object)) = (guests.get(path.len()), self.nodes.get(node).copied()) else {
            return Ok(None);
        };
        if self.refuses(guests, path, object) {
            return Ok(None);
        }
        let here = guests.iter().zip(path).filter(|(_, step)| step.node == node).map(|(guest, _)| guest);
        let mut claims: Vec<&Arc<ResourceClaim>> = Vec::new();
        for claim in here.chain([guest]).flat_map(|guest| &guest.claims) {
            if !claims.iter().any(|known| Arc::ptr_eq(known, claim)) {
                claims.push(claim);
            }
        }
        if claims.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let mut state = self.state.clone();
        for (guest, step) in guests.iter().zip(path).filter(|(_, step)| step.node != node) {
            for claim in &guest.claims {
                let key = ClaimKey::from_metadata(&claim.metadata);
                if let Some((_, result)) = step.results.iter().find(|(known, _)| *known == key) {
                    state.assume(claim, result).map_err(|_| Ended::Invalid)?;
                }
            }
        }
        let attempt = self.allocator.attempt(self.state, claims.iter().copied());
        let (outcome, work) = attempt.allocate_beside(&state, object, self.work.rest()).map_err(|_| Ended::Invalid)?;
        self.work.count(usize::try_from(work).unwrap_or(usize::MAX))?;
        match outcome {
            Outcome::Allocated(results) => {
                let keys = claims.iter().map(|claim| ClaimKey::from_metadata(&claim.metadata));
                self.note_spread(&results, object);
                Ok(Some(keys.zip(results).collect()))
            }
            Outcome::Stopped(_) => {
                self.work.is_open.set(true);
                Ok(None)
            }
            Outcome::Unsatisfied | Outcome::FailedOnNode(_) => Ok(None),
        }
    }

    /// Notes that a choice of devices may be in the way of a guest on another node.
    fn note_spread(&self, results: &[AllocationResult], node: &Node) {
        let is_here =
            |result: &AllocationResult| result.node_selector.as_ref().and_then(only_node) == Some(name_of(node));
        if !results.iter().all(is_here) {
            self.work.is_open.set(true);
        }
    }

    /// Asks the caller's check of nodes for the next guest.
    fn refuses(&self, guests: &[Guest<'_>], path: &[Step], node: &Node) -> bool {
        let Some(guest) = guests.get(path.len()).filter(|_| self.simulator.is_checked()) else { return false };
        let with_node = guests.iter().zip(path).filter_map(|(guest, step)| Some((guest, *self.nodes.get(step.node)?)));
        let mut placed: Vec<(&PodIdentity, &str)> = with_node
            .flat_map(|(guest, node)| guest.pods.iter().map(move |(identity, _)| (identity, name_of(node))))
            .collect();
        guest.pods.iter().any(|(identity, pod)| {
            let question = FitQuestion::new(pod, node).with_planned(&placed).with_gone(self.gone);
            let refuses = self.simulator.check(&question).is_err();
            placed.push((identity, name_of(node)));
            refuses
        })
    }
}
