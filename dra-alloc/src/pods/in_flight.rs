//! Allocations in flight: chosen by this scheduler, and not known to the API server, or not known to be.
//!
//! A write is in doubt from the moment that it is handed out until an answer, a later version of the claim or its deletion settles
//! it. Its devices are in use until then, even if the cycle has ended, and the claim's next cycle takes the same allocation.
//! A write whose answer was lost may be stored at any time, as long as the claim stays in the version that it was made from:
//! a refusal of the same write, made once more, tells nothing about it, and nor does a look at the claim.
//!
//! Source: `inFlightAllocations` of the plugin's `dra_manager.go`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use dra_device::internal::ResourceVersion;
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::lookup::allocation_of;

/// Claims whose allocation is in flight, by UID.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    claims: BTreeMap<String, Shared>,
    ends: Arc<AtomicU64>,
}

/// A claim with the allocation that is in flight, and everybody who counts on it.
#[derive(Clone, Debug)]
struct Shared {
    claim: Arc<ResourceClaim>,
    /// Cycles of pods. One that is dropped counts no more.
    cycles: Vec<Weak<Life>>,
    /// True while somebody else than a cycle counts on it.
    is_elsewhere: bool,
    open_write: Option<OpenWrite>,
}

/// Write that may be stored or not.
#[derive(Clone, Copy, Debug)]
struct OpenWrite {
    /// Version of the claim that the write was made from.
    from: ResourceVersion,
    /// True if the answer to a write from this version was lost.
    is_lost: bool,
}

/// Share of one cycle in an allocation in flight. The allocation ends with the last copy of the last share.
#[derive(Clone, Debug)]
pub(super) struct Share(Arc<Life>);

#[derive(Debug)]
struct Life {
    ends: Arc<AtomicU64>,
}

impl Drop for Life {
    fn drop(&mut self) {
        self.ends.fetch_add(1, Ordering::Release);
    }
}

/// Cycles that have a share are alike.
impl PartialEq for Share {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Shared {
    fn new(claim: Arc<ResourceClaim>) -> Self {
        Self { claim, cycles: Vec::new(), is_elsewhere: false, open_write: None }
    }

    fn has_cycles(&self) -> bool {
        self.cycles.iter().any(|cycle| cycle.strong_count() > 0)
    }

    fn is_in_doubt(&self) -> bool {
        self.open_write.is_some() && !self.is_elsewhere && !self.has_cycles()
    }

    fn lives(&self) -> bool {
        self.is_elsewhere || self.open_write.is_some() || self.has_cycles()
    }
}

impl InFlight {
    /// Returns the number of shares that have ended so far, here and in copies.
    pub(super) fn ends(&self) -> u64 {
        self.ends.load(Ordering::Acquire)
    }

    pub(super) fn get(&self, uid: &str) -> Option<&Arc<ResourceClaim>> {
        self.claims.get(uid).filter(|shared| shared.lives()).map(|shared| &shared.claim)
    }

    pub(super) fn claims(&self) -> impl Iterator<Item = &Arc<ResourceClaim>> {
        self.claims.values().filter(|shared| shared.lives()).map(|shared| &shared.claim)
    }

    /// Returns the claims whose allocation nobody counts on any more.
    pub(super) fn ended(&self) -> impl Iterator<Item = &Arc<ResourceClaim>> {
        self.claims.values().filter(|shared| !shared.lives()).map(|shared| &shared.claim)
    }

    /// Returns the claims with an allocation that may be stored or not, and that no cycle has.
    pub(super) fn in_doubt(&self) -> impl Iterator<Item = &Arc<ResourceClaim>> {
        self.claims.values().filter(|shared| shared.is_in_doubt()).map(|shared| &shared.claim)
    }

    /// Returns the allocation of a claim if it may be stored or not, and no cycle has it.
    pub(super) fn doubtful(&self, uid: &str) -> Option<&AllocationResult> {
        let shared = self.claims.get(uid).filter(|shared| shared.is_in_doubt())?;
        allocation_of(&shared.claim)
    }

    /// Adds a share of a cycle. If an allocation is in flight for the claim, it stays.
    pub(super) fn add(&mut self, uid: &str, claim: &Arc<ResourceClaim>) -> Share {
        let life = Arc::new(Life { ends: Arc::clone(&self.ends) });
        self.entry(uid, claim).cycles.push(Arc::downgrade(&life));
        Share(life)
    }

    /// Adds an allocation that somebody else than a cycle counts on.
    pub(super) fn add_elsewhere(&mut self, uid: &str, claim: &Arc<ResourceClaim>) {
        self.entry(uid, claim).is_elsewhere = true;
    }

    fn entry(&mut self, uid: &str, claim: &Arc<ResourceClaim>) -> &mut Shared {
        self.claims.entry(uid.to_owned()).or_insert_with(|| Shared::new(Arc::clone(claim)))
    }

    /// Takes a share back. Returns the claim if its allocation is no longer in flight.
    pub(super) fn release(&mut self, uid: &str, share: &Share) -> Option<Arc<ResourceClaim>> {
        let shared = self.claims.get_mut(uid)?;
        shared.cycles.retain(|cycle| !std::ptr::eq(cycle.as_ptr(), Arc::as_ptr(&share.0)));
        self.drop_ended(uid)
    }

    /// Ends what somebody else than a cycle counts on. Returns the claim if its allocation is no longer in flight.
    pub(super) fn end_elsewhere(&mut self, uid: &str) -> Option<Arc<ResourceClaim>> {
        self.claims.get_mut(uid)?.is_elsewhere = false;
        self.drop_ended(uid)
    }

    /// Ends an allocation for everybody.
    pub(super) fn end(&mut self, uid: &str) -> Option<Arc<ResourceClaim>> {
        self.claims.remove(uid).map(|shared| shared.claim)
    }

    /// Ends an allocation for everybody but cycles. Returns the claim if its allocation is no longer in flight.
    pub(super) fn end_but_cycles(&mut self, uid: &str) -> Option<Arc<ResourceClaim>> {
        let shared = self.claims.get_mut(uid)?;
        (shared.is_elsewhere, shared.open_write) = (false, None);
        self.drop_ended(uid)
    }

    /// Notes that the allocation is being written, from a version of the claim.
    pub(super) fn begin_write(&mut self, uid: &str, from: ResourceVersion) {
        if let Some(shared) = self.claims.get_mut(uid) {
            let is_lost = shared.open_write.is_some_and(|open| open.is_lost && open.from == from);
            shared.open_write = Some(OpenWrite { from, is_lost });
        }
    }

    /// Notes that the answer to the write was lost: it may be stored at any time.
    pub(super) fn lose_write(&mut self, uid: &str) {
        if let Some(open) = self.claims.get_mut(uid).and_then(|shared| shared.open_write.as_mut()) {
            open.is_lost = true;
        }
    }

    /// Notes that the server has refused the write. Returns the claim if its allocation is no longer in flight.
    pub(super) fn refuse_write(&mut self, uid: &str) -> Option<Arc<ResourceClaim>> {
        let shared = self.claims.get_mut(uid)?;
        shared.open_write = shared.open_write.filter(|open| open.is_lost);
        self.drop_ended(uid)
    }

    /// Notes that the allocation is not stored, and will not be. Returns the claim if its allocation is no longer in flight.
    pub(super) fn end_write(&mut self, uid: &str) -> Option<Arc<ResourceClaim>> {
        self.claims.get_mut(uid)?.open_write = None;
        self.drop_ended(uid)
    }

    /// Notes a claim as the API server has it. A write from an earlier version, or of an allocation that is stored by now, is
    /// part of it or can't be stored any more; and an allocation made elsewhere has come to its end if it is the stored one.
    pub(super) fn show(&mut self, uid: &str, claim: &ResourceClaim) {
        let Some(shared) = self.claims.get_mut(uid) else { return };
        let (version, is_allocated) = (ResourceVersion::of(&claim.metadata), allocation_of(claim).is_some());
        shared.open_write = shared.open_write.filter(|open| !is_allocated && !version.is_newer_than(open.from));
        let devices = |claim: &ResourceClaim| allocation_of(claim).map(|allocation| allocation.devices.clone());
        shared.is_elsewhere &= devices(&shared.claim) != devices(claim);
        // Who counts the claim counts it anew after this.
        drop(self.drop_ended(uid));
    }

    /// Removes the allocations that nobody counts on any more, and returns their claims.
    pub(super) fn take_ended(&mut self) -> Vec<Arc<ResourceClaim>> {
        let ended = self.ended().cloned().collect();
        self.claims.retain(|_, shared| shared.lives());
        ended
    }

    fn drop_ended(&mut self, uid: &str) -> Option<Arc<ResourceClaim>> {
        if self.claims.get(uid)?.lives() {
            return None;
        }
        self.end(uid)
    }
}
