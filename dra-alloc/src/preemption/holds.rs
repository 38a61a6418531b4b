//! Holds: devices that wait for pods which preempted others for them.
//!
//! A victim's devices are free some time after the preemption, and the preemptor is nominated until then. Others must not take the
//! devices meanwhile: pods of at most the preemptor's priority. Holds follow from the cluster alone, so that they are the same after
//! a restart.
//!
//! Source: KEP-5690, which records the preemptor's results in memory instead.

use std::collections::BTreeMap;

use dra_device::internal::PodFields;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::eligibility::terminates_by_preemption;
use super::halt::{Halt, PreemptionError, Unanswered};
use super::held_claim::{HeldClaim, User};
use super::occupant::Occupant;
use super::question::Preemption;
use super::view::{PreemptionView, claims_of, node_name};
use super::work::Work;
use crate::cluster::state::{AllocatedState, ClaimId};
use crate::pods::{KeptDevices, PodIdentity, PodOptions};
use crate::search::budget::Budget;

/// Devices that wait for nominated pods.
///
/// ```
/// use dra_alloc::preemption::Holds;
/// assert_eq!(Holds::default().iter().count(), 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holds {
    /// Holds by node, on each the most important pod first.
    by_node: BTreeMap<String, Vec<Hold>>,
    /// Claims that are allocated until their users are gone.
    released: Vec<ClaimId>,
}

/// Devices that wait for one nominated pod.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Hold {
    /// The pod.
    pub pod: PodIdentity,
    /// Priority of the pod. Only pods above it may take the devices.
    pub priority: i32,
    /// Name of the node that the pod is nominated for.
    pub node: String,
    /// Claims of the pod with the allocations that they get.
    pub results: Vec<(ClaimId, AllocationResult)>,
}

impl Holds {
    /// Finds the holds of a cluster: the nominated pods get their devices one after the other, the most important first, beside the
    /// devices in use. Claims count as free there whose users all go, because they are preempted or gone, and those that
    /// [`PreemptionView::with_releasing`](super::PreemptionView::with_releasing) names. A pod that has no place then holds nothing.
    ///
    /// # Errors
    /// A claim of a nominated pod is invalid, so that it has no place on any node.
    ///
    /// # Complexity
    /// Linear in the number of allocated claims, and an allocation for each nominated pod. Where the work of the budget ends,
    /// further pods hold nothing.
    pub fn of_cluster(preemption: &Preemption<'_>, budget: Budget<'_>) -> Result<Self, PreemptionError> {
        let view = preemption.view;
        let released = released(view);
        let state = {
            let mut state = preemption.state.clone();
            for held in &released {
                state.forget(held.claim);
            }
            state
        };
        let (work, mut unanswered) = (Work::new(budget), Unanswered::default());
        let mut released: Vec<ClaimId> = released.into_iter().map(|held| ClaimId::from(held.claim)).collect();
        released.sort_unstable();
        let mut holds = Self { by_node: BTreeMap::new(), released };
        for node in view.nodes() {
            match holds_on(preemption, &work, node, state.clone()) {
                Ok(found) if found.is_empty() => {}
                Ok(found) => drop(holds.by_node.insert(node_name(node).to_owned(), found)),
                Err(halt) => {
                    if unanswered.add(halt).is_err() {
                        break;
                    }
                }
            }
        }
        unanswered.into_error().map_or(Ok(holds), Err)
    }

    /// Returns the holds, sorted by node, on each the most important pod first.
    pub fn iter(&self) -> impl Iterator<Item = &Hold> {
        self.by_node.values().flatten()
    }

    /// Returns the devices in use as a pod on a node has to see them: with those that wait there for other pods that are not less
    /// important. A device that is free in the answer is free before the victims have gone, and afterwards.
    ///
    /// It is the larger use of both times ([`AllocatedState::max_state`]), so that one search is enough: of a shared device and of
    /// counters the larger amount counts.
    ///
    /// # Complexity
    /// Linear in the devices in use of the pools that the holds are about, and in the number of claims whose users go.
    #[must_use]
    pub fn beside(&self, state: &AllocatedState, pod: &Pod, node: &str) -> AllocatedState {
        KeptDevices::beside(self, state, pod, node).unwrap_or_else(|| state.clone())
    }
}

impl KeptDevices for Holds {
    fn beside(&self, state: &AllocatedState, pod: &Pod, node: &str) -> Option<AllocatedState> {
        let asking = Occupant::new(pod);
        let counts = |hold: &&Hold| hold.priority >= asking.priority && hold.pod.uid != pod.uid();
        let mut counting = self.by_node.get(node).into_iter().flatten().filter(counts).peekable();
        counting.peek()?;
        let mut after = state.clone();
        for claim in &self.released {
            after.forget_claim(claim);
        }
        for (claim, result) in counting.flat_map(|hold| &hold.results) {
            // An allocation that the allocator has built can be read.
            let _ = after.assume(&claim.to_claim(), result);
        }
        Some(state.max_state(&after))
    }
}

/// Returns the claims whose users all go, and those of which the caller says so.
fn released<'c>(view: &'c PreemptionView<'c>) -> Vec<&'c HeldClaim<'c>> {
    let is_preempted = |pod: usize| view.pod(pod).is_some_and(|pod| terminates_by_preemption(pod.pod));
    let goes = |user: &User<'_>| match user {
        User::Pod(pod) => is_preempted(*pod),
        User::Dead(_) => true,
        User::Group(_) | User::Other(_) => false,
    };
    let all_go = |held: &HeldClaim<'_>| {
        !held.users.is_empty() && held.users.iter().all(goes) && held.named_by.iter().all(|pod| is_preempted(*pod))
    };
    let all = view.all_held().enumerate();
    let released = all.filter(|(position, held)| view.releasing().contains(position) || all_go(held));
    released.map(|(_, held)| held).collect()
}

/// Returns the holds on a node, with the devices in use there once all victims are gone.
fn holds_on<'p>(
    preemption: &Preemption<'p>,
    work: &Work<'_>,
    node: &Node,
    mut state: AllocatedState,
) -> Result<Vec<Hold>, Halt> {
    let view = preemption.view;
    let mut pods: Vec<&Occupant<'p>> = view.nominated(node_name(node)).filter(|pod| !pod.is_done()).collect();
    work.count(pods.len())?;
    pods.sort_by_cached_key(|pod| pod.importance());
    let mut holds = Vec::new();
    for occupant in pods {
        let named = claims_of(occupant.pod).filter_map(|named| view.claim(&named.claim));
        let is_open = |claim: &&ResourceClaim| {
            claim.status.as_ref().is_none_or(|status| status.allocation.is_none())
                && state.devices_of_claim(&ClaimId::from(*claim)).is_none()
        };
        let open: Vec<&ResourceClaim> = named.filter(is_open).collect();
        if open.is_empty() {
            continue;
        }
        let attempt = preemption.allocator.attempt(preemption.state, open.iter().copied());
        let Some(results) = work.allocate(&attempt, &state, node)? else { continue };
        for (claim, result) in open.iter().zip(&results) {
            state.assume(claim, result)?;
        }
        holds.push(Hold {
            pod: PodIdentity::new(occupant.pod, PodOptions::new(preemption.allocator.scheduler())),
            priority: occupant.priority,
            node: node_name(node).to_owned(),
            results: open.iter().map(|claim| ClaimId::from(*claim)).zip(results).collect(),
        });
    }
    Ok(holds)
}
