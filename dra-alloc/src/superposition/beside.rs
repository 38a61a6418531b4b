//! Other nodes that do not exist yet either: what they may take of the cluster, and where their claims can be used.
//!
//! As long as nobody has decided which shape a node becomes, each of its ways may come true. Of each device and counter the largest
//! use by one of them is taken; a claim can be used where all of them allow it.

use std::collections::{BTreeMap, BTreeSet};

use dra_device::claims::ClaimKey;
use dra_device::internal::of_allocation;
use k8s_openapi::api::core::v1::{NodeSelector, Pod};
use k8s_openapi::api::resource::v1::AllocationResult;

use super::answer::{Superposed, Survivor, Way};
use crate::autoscaler::claims_of;
use crate::cluster::state::{AllocatedState, ClaimId};
use crate::pods::{ClaimLookup, ClaimTracker, KeptDevices, with_allocation};

/// Other nodes that do not exist yet.
#[derive(Clone, Copy)]
pub(super) struct Beside<'b>(pub(super) &'b [&'b Superposed]);

/// Nodes where a claim can be used that is allocated, or will be for another node.
pub(super) struct Required<'r> {
    pub(super) claim: ClaimKey,
    /// Selector of these nodes; `None` for no node.
    pub(super) nodes: Option<&'r NodeSelector>,
}

impl Superposed {
    fn ways(&self) -> impl Iterator<Item = (&Survivor, &Way)> {
        self.survivors.iter().flat_map(|survivor| survivor.ways.iter().map(move |way| (survivor, way)))
    }

    /// Returns the devices in use with the largest use by one of the ways; `None` if none takes a device of the cluster.
    fn largest_use(&self, state: &AllocatedState) -> Option<AllocatedState> {
        let ids: BTreeSet<&ClaimId> = self.ways().flat_map(|(_, way)| &way.claims).map(|(claim, _)| claim).collect();
        let with_way = |(survivor, way): (&Survivor, &Way)| {
            let mut used = state.clone();
            for claim in &ids {
                used.forget_claim(claim);
            }
            for (claim, result) in &way.claims {
                // An allocation that the allocator has built can be read.
                let _ = used.assume(&claim.to_claim(), &survivor.of_the_cluster(result));
            }
            used
        };
        self.ways().map(with_way).reduce(|one, other| one.max_state(&other))
    }
}

impl Survivor {
    fn is_own(&self, driver: &str, pool: &str) -> bool {
        self.own_pools.iter().any(|[own_driver, own]| own_driver == driver && own == pool)
    }

    /// Returns an allocation without the devices that come with the node.
    fn of_the_cluster(&self, result: &AllocationResult) -> AllocationResult {
        let mut of_cluster = result.clone();
        for results in of_cluster.devices.iter_mut().flat_map(|devices| &mut devices.results) {
            results.retain(|one| !self.is_own(&one.driver, &one.pool));
        }
        of_cluster
    }

    fn has_own_device(&self, result: &AllocationResult) -> bool {
        of_allocation(result).iter().any(|one| self.is_own(&one.driver, &one.pool))
    }
}

impl KeptDevices for Beside<'_> {
    fn beside(&self, state: &AllocatedState, _: &Pod, _: &str) -> Option<AllocatedState> {
        self.0.iter().fold(None, |kept, other| other.largest_use(kept.as_ref().unwrap_or(state)).or(kept))
    }
}

impl<'b> Beside<'b> {
    /// Returns the claims as pods see them that are asked about: those of other nodes are allocated.
    pub(super) fn claims_for(self, pods: &[&Pod], tracker: &ClaimTracker) -> ClaimTracker {
        let named = named_by(pods);
        let mut seen = tracker.clone();
        for (claim, result) in self.0.iter().filter_map(|other| other.ways().next()).flat_map(|(_, way)| &way.claims) {
            let key = ClaimKey::new(&claim.namespace, &claim.name);
            let known = tracker.claim(&claim.namespace, &claim.name);
            if let Some(known) = known.filter(|_| named.contains(&key)) {
                // An allocation that the allocator has built can be read.
                let _ = seen.observe(with_allocation(known, result.clone()));
            }
        }
        seen
    }

    /// Returns where the claims of pods can be used that are allocated, here or for other nodes.
    pub(super) fn required<'r>(self, pods: &[&Pod], tracker: &'r ClaimTracker) -> Vec<Required<'r>>
    where
        'b: 'r,
    {
        let named = named_by(pods);
        let mut required = Vec::new();
        for claim in &named {
            let known = tracker.claim(&claim.namespace, &claim.name);
            let stored = known.and_then(|known| known.status.as_ref()?.allocation.as_ref());
            if let Some(nodes) = stored.and_then(|allocation| allocation.node_selector.as_ref()) {
                required.push(Required { claim: claim.clone(), nodes: Some(nodes) });
            }
        }
        let mut of_others: BTreeMap<ClaimKey, Vec<Option<&NodeSelector>>> = BTreeMap::new();
        for (survivor, way) in self.0.iter().flat_map(|other| other.ways()) {
            for (claim, result) in &way.claims {
                let key = ClaimKey::new(&claim.namespace, &claim.name);
                let nodes = of_others.entry(key).or_default();
                match (survivor.has_own_device(result), &result.node_selector) {
                    (true, _) => nodes.push(None),
                    (false, Some(selector)) => nodes.push(Some(selector)),
                    (false, None) => {}
                }
            }
        }
        let of_others = of_others.into_iter().filter(|(claim, _)| named.contains(claim));
        required.extend(
            of_others.flat_map(|(claim, nodes)| {
                nodes.into_iter().map(move |nodes| Required { claim: claim.clone(), nodes })
            }),
        );
        required
    }
}

/// Returns the claims that pods name.
fn named_by(pods: &[&Pod]) -> BTreeSet<ClaimKey> {
    pods.iter().flat_map(|pod| claims_of(pod)).map(|named| named.claim).collect()
}
