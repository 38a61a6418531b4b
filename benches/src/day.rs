//! A day of pods that come, stay and go, placed by the allocator alone.
#![allow(
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a stay is drawn"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dra_alloc::{
    AllocatedState, Allocator, Attempt, Budget, Classes, Fit, FollowedNodes, Index, Inventory, InventoryEvent,
    NodeVerdicts, Outcome, Profile,
};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim, ResourceSlice};
use serde_json::json;

use crate::objects::{GPU, NIC, ask, by_name, claim, class, local, some};
use crate::random::Random;

/// Pods between two slices that a driver publishes anew.
const REPUBLISHED: usize = 50;
/// Largest work of a search on a node.
const WORK: u64 = 100_000;

/// Day that is played: pods come evenly, stay for a while and go. Each takes the first node that fits, from the node of the last
/// pod on. Of 20 pods 12 ask for a GPU, 5 for two GPUs and a NIC on one NUMA node, one for 8 GPUs, two for the first of two
/// alternatives.
#[derive(Clone, Copy, Debug)]
pub struct Day {
    /// Number of nodes, with 8 GPUs and 4 NICs each.
    pub nodes: usize,
    /// Number of pods of the day.
    pub pods: usize,
    /// Mean time that a pod stays.
    pub mean_stay_hours: usize,
    /// True if nodes that have refused a kind of pods are remembered; otherwise each pod asks all nodes anew.
    pub keeps_verdicts: bool,
}

/// Result of a day.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// Node of each pod; none if no node had room.
    pub placed: Vec<Option<usize>>,
    /// Number of nodes that were asked.
    pub asked: usize,
    /// Largest number of devices in use, in percent.
    pub most_used: usize,
    /// Time of all decisions.
    pub time: Duration,
}

impl Played {
    /// Returns the number of pods that have found a node.
    #[must_use]
    pub fn placed(&self) -> usize {
        self.placed.iter().flatten().count()
    }
}

/// Scheduler of a day: what it knows from pod to pod.
struct Scheduler {
    nodes: Vec<Node>,
    keeps_verdicts: bool,
    verdicts: NodeVerdicts<usize>,
    /// Node that the last pod has taken.
    latest: Index<Node>,
    asked: usize,
}

impl Scheduler {
    /// Returns a node for a pod of a kind, with the allocation of its claim.
    fn place(
        &mut self,
        allocator: &Allocator<'_>,
        state: &AllocatedState,
        kind: usize,
        claim: &ResourceClaim,
    ) -> Option<(usize, AllocationResult)> {
        let attempt = allocator.attempt(state, [claim]);
        let found = if self.keeps_verdicts {
            let mut nodes = self.verdicts.follow(allocator, state, &self.nodes);
            first_fit(&attempt, &mut nodes, &self.nodes, kind, self.latest, &mut self.asked)?
        } else {
            let (nodes, from) = (&self.nodes, usize::from(self.latest));
            let mut order = (from..nodes.len()).chain(0..from).inspect(|_| self.asked += 1);
            Index::from(order.find(|node| fit(&attempt, &nodes[*node]) == Fit::Yes)?)
        };
        self.latest = found;
        let found = usize::from(found);
        match attempt.allocate(&self.nodes[found], Budget::default()).expect("a verdict").outcome {
            Outcome::Allocated(results) => results.into_iter().next().map(|allocation| (found, allocation)),
            outcome => panic!("the node fitted: {outcome:?}"),
        }
    }
}

/// Returns the first node that fits, and remembers those that don't.
fn first_fit(
    attempt: &Attempt<'_>,
    followed: &mut FollowedNodes<'_, usize, Node>,
    nodes: &[Node],
    kind: usize,
    from: Index<Node>,
    asked: &mut usize,
) -> Option<Index<Node>> {
    for node in followed.undecided(&kind, from) {
        *asked += 1;
        match fit(attempt, &nodes[usize::from(node)]) {
            Fit::Yes => return Some(node),
            Fit::No => followed.refuse(&kind, node),
            Fit::Stopped(_) => {}
        }
    }
    None
}

fn fit(attempt: &Attempt<'_>, node: &Node) -> Fit {
    attempt.fits(node, Budget::work(WORK)).expect("no error")
}

impl Day {
    /// Plays the day.
    #[must_use]
    pub fn play(self) -> Played {
        let slices = local(self.nodes, by_name);
        let nodes = some(self.nodes, self.nodes);
        let classes = Classes::new([("gpu", GPU), ("nic", NIC)].map(|(name, driver)| class(name, driver)));
        let kinds = kinds();
        let mut inventory = Inventory::new(slices.iter().cloned());
        let (mut state, mut random) = (AllocatedState::default(), Draws(Random(1)));
        Allocator::new(Profile::V1_37, &inventory, &classes).prepare(&state, &nodes);
        let mut scheduler = Scheduler {
            nodes,
            keeps_verdicts: self.keeps_verdicts,
            verdicts: NodeVerdicts::default(),
            latest: Index::FIRST,
            asked: 0,
        };
        let mut leaving: BTreeMap<(usize, usize), ResourceClaim> = BTreeMap::new();
        let (mut played, mut most) = (Played::default(), 0);
        let begin = Instant::now();
        for pod in 0..self.pods {
            while let Some(entry) = leaving.first_entry().filter(|entry| entry.key().0 <= pod) {
                state.forget(&entry.remove());
            }
            if pod % REPUBLISHED == 0 {
                republish(&mut inventory, &slices[random.below(slices.len())]);
            }
            let kind = random.kind();
            let mut claim = kinds[kind].clone();
            claim.metadata.uid = Some(pod.to_string());
            let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
            let found = scheduler.place(&allocator, &state, kind, &claim);
            played.placed.push(found.as_ref().map(|(node, _)| *node));
            let Some((_, allocation)) = found else { continue };
            state.assume(&claim, &allocation).expect("an allocation");
            most = most.max(state.len());
            let stay = random.stay(self.mean_stay_hours * self.pods / 24);
            leaving.insert((pod + 1 + stay, pod), claim);
        }
        Played { asked: scheduler.asked, most_used: most * 100 / (self.nodes * 12), time: begin.elapsed(), ..played }
    }
}

fn republish(inventory: &mut Inventory, slice: &Arc<ResourceSlice>) {
    inventory.apply(InventoryEvent::Slice(Arc::clone(slice))).expect("a named slice");
}

/// Returns a claim of each kind of pods.
fn kinds() -> [ResourceClaim; 4] {
    let near = json!([{"matchAttribute": "resource.kubernetes.io/numaNode"}]);
    let two = json!([
        {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 2}},
        {"name": "nic", "exactly": {"deviceClassName": "nic"}},
    ]);
    let list = json!([{"name": "r", "firstAvailable": [
        {"name": "four", "deviceClassName": "gpu", "count": 4}, {"name": "two", "deviceClassName": "gpu", "count": 2}]}]);
    [ask("gpu", 1), claim(&two, &near), ask("gpu", 8), claim(&list, &json!([]))].map(|[claim]| claim)
}

/// Pods that are drawn.
struct Draws(Random);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.0.next() >> 8).unwrap_or_default() % end
    }

    /// Draws the kind of a pod.
    fn kind(&mut self) -> usize {
        match self.below(20) {
            0..12 => 0,
            12..17 => 1,
            17 => 2,
            _ => 3,
        }
    }

    /// Draws a stay: exponential, by inversion of a number in 1..=1000.
    fn stay(&mut self, mean: usize) -> usize {
        let chance = (self.below(1_000) + 1) as f64 / 1_000.0;
        (-chance.ln() * mean as f64) as usize
    }
}
