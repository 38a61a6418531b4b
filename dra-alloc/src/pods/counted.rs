//! Devices in use as a tracker counts them, also after cycles were dropped that nobody took back.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::in_flight::InFlight;
use super::lookup::{allocation_of, uid_of};
use crate::cluster::state::{AllocatedState, StateError};

/// Devices that claims hold, with those in flight.
#[derive(Clone, Debug)]
pub(super) struct Held {
    state: AllocatedState,
    /// UIDs of the claims with an allocation in flight while the API server has another one: both are counted.
    beside: BTreeSet<String>,
}

impl Held {
    /// Counts the allocations of a claim anew: the cached one, and the one in flight if it is another one. They differ when
    /// somebody else has written the claim; both are held then.
    pub(super) fn count(
        &mut self,
        claim: &ResourceClaim,
        cached: Option<&ResourceClaim>,
        in_flight: Option<&ResourceClaim>,
    ) -> Result<(), StateError> {
        let [cached, in_flight] = [cached, in_flight].map(|claim| claim.and_then(allocation_of));
        let other = in_flight.filter(|in_flight| cached.is_some_and(|cached| cached.devices != in_flight.devices));
        if other.is_some() {
            self.beside.insert(uid_of(claim).to_owned());
        }
        if other.is_some() || self.beside.remove(uid_of(claim)) {
            count(&mut self.state, &in_flight_beside(claim), other)?;
        }
        count(&mut self.state, claim, cached.or(in_flight))
    }
}

/// Counts an allocation of a claim, or that it has none. If the allocation can't be counted, the claim holds nothing.
fn count(
    state: &mut AllocatedState,
    claim: &ResourceClaim,
    allocation: Option<&AllocationResult>,
) -> Result<(), StateError> {
    let counted = allocation.map(|allocation| state.assume(claim, allocation));
    if !matches!(counted, Some(Ok(_))) {
        state.forget(claim);
    }
    counted.transpose().map(drop)
}

/// Returns the identity under which an allocation in flight is counted while the API server has another one.
fn in_flight_beside(claim: &ResourceClaim) -> ResourceClaim {
    let mut beside = ResourceClaim::default();
    beside.metadata.namespace.clone_from(&claim.metadata.namespace);
    beside.metadata.name.clone_from(&claim.metadata.name);
    beside.metadata.uid = Some(format!("{} in flight", uid_of(claim)));
    beside
}

/// Devices in use when a number of shares in allocations in flight had ended.
///
/// A cycle can be dropped at any time, and has no access to the tracker then. The tracker gives back what it had with the next
/// change; until then, whoever asks for the state gets one without it, which is made once.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    held: Held,
    ends: u64,
    /// The state after more shares had ended.
    later: OnceLock<Arc<Self>>,
}

impl Counted {
    pub(super) const fn new(state: AllocatedState, ends: u64) -> Self {
        Self { held: Held { state, beside: BTreeSet::new() }, ends, later: OnceLock::new() }
    }

    /// Returns the state as it was counted last.
    pub(super) const fn state(&self) -> &AllocatedState {
        &self.held.state
    }

    pub(super) const fn held_mut(&mut self) -> &mut Held {
        &mut self.held
    }

    /// Forgets states that were made for who asked, since the count goes on. Returns true if more shares than before have ended.
    pub(super) fn forget_later(&mut self, ends: u64) -> bool {
        self.later.take();
        std::mem::replace(&mut self.ends, ends) != ends
    }

    /// Returns the state without what shares had that have ended since. `give_back` takes an allocation out of a state.
    pub(super) fn without_ended(
        &self,
        in_flight: &InFlight,
        give_back: impl Fn(&mut Held, &ResourceClaim),
    ) -> &AllocatedState {
        let mut counted = self;
        loop {
            let ends = in_flight.ends();
            if counted.ends == ends {
                return &counted.held.state;
            }
            counted = counted.later.get_or_init(|| {
                let mut held = self.held.clone();
                in_flight.ended().for_each(|claim| give_back(&mut held, claim));
                Arc::new(Self { held, ends, later: OnceLock::new() })
            });
        }
    }
}
