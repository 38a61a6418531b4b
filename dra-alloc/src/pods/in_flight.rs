//! Allocations in flight: chosen by this scheduler, and not yet in the API server.
//!
//! Source: `inFlightAllocations` of the plugin's `dra_manager.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::resource::v1::ResourceClaim;

/// Claims whose allocation is in flight, by UID.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct InFlight {
    claims: BTreeMap<String, Shared>,
}

/// A claim with the allocation that is in flight, and the number of pods that count on it.
#[derive(Clone, Debug, PartialEq)]
struct Shared {
    claim: Arc<ResourceClaim>,
    sharers: usize,
}

/// Extent of the end of an allocation in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// One pod less counts on it. The allocation ends with the last pod.
    OneSharer,
    /// The allocation ends for all pods.
    All,
}

impl InFlight {
    pub(super) fn get(&self, uid: &str) -> Option<&Arc<ResourceClaim>> {
        self.claims.get(uid).map(|shared| &shared.claim)
    }

    pub(super) fn claims(&self) -> impl Iterator<Item = &Arc<ResourceClaim>> {
        self.claims.values().map(|shared| &shared.claim)
    }

    /// Adds an allocation. If one is in flight for the claim, it stays and has one sharer more.
    pub(super) fn add(&mut self, uid: &str, claim: Arc<ResourceClaim>) {
        let shared = self.claims.entry(uid.to_owned()).or_insert_with(|| Shared { claim, sharers: 0 });
        shared.sharers = shared.sharers.saturating_add(1);
    }

    /// Ends an allocation for one sharer or for all. Returns the claim if its allocation is no longer in flight.
    pub(super) fn release(&mut self, uid: &str, release: Release) -> Option<Arc<ResourceClaim>> {
        let shared = self.claims.get_mut(uid)?;
        if release == Release::OneSharer && shared.sharers > 1 {
            shared.sharers -= 1;
            return None;
        }
        self.claims.remove(uid).map(|shared| shared.claim)
    }
}
