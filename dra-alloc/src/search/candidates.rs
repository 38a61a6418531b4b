//! The devices of a node, pool by pool, in the order in which they are tried.
//!
//! Pools without binding conditions come first; otherwise the order is that of driver and name. A pool is looked into when
//! a search comes to it, since most searches end in the first pool.

use std::cell::{OnceCell, RefCell};
use std::ops::Range;

use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use smallvec::SmallVec;

use crate::features::Features;
use crate::inventory::pool::{Pool, PoolState, devices_of};

/// A device that a request may get.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'s> {
    /// Position of its pool.
    pub(crate) pool: usize,
    pub(crate) slice: &'s ResourceSlice,
    pub(crate) device: &'s Device,
}

/// The devices of the pools that can be allocated from.
pub(crate) struct Candidates<'s> {
    features: Features,
    pools: &'s [Pool<'s>],
    states: Vec<OnceCell<PoolState>>,
    seen: RefCell<Seen<'s>>,
}

/// What has been looked into.
#[derive(Default)]
struct Seen<'s> {
    devices: Vec<Candidate<'s>>,
    /// Pools in their order, with the positions of their devices.
    order: SmallVec<[(usize, Range<usize>); 2]>,
    /// The next pool by driver and name.
    next: usize,
    /// Pools with binding conditions, kept for the end, and how many of them have been looked into.
    last: Vec<usize>,
    taken: usize,
}

#[expect(clippy::indexing_slicing, reason = "pools and devices are positions in the lists here")]
impl<'s> Candidates<'s> {
    pub(crate) fn new(pools: &'s [Pool<'s>], features: Features) -> Self {
        let states = std::iter::repeat_with(OnceCell::new).take(pools.len()).collect();
        Self { features, pools, states, seen: RefCell::default() }
    }

    pub(crate) const fn pools(&self) -> &'s [Pool<'s>] {
        self.pools
    }

    /// Whether a pool can be allocated from.
    pub(crate) fn state(&self, pool: usize) -> &PoolState {
        self.states[pool].get_or_init(|| self.pools[pool].checked_state(self.features))
    }

    /// The most devices that there may be.
    pub(crate) fn capacity(&self) -> usize {
        self.pools.iter().flat_map(|pool| &pool.slices).map(|slice| devices_of(slice).len()).sum()
    }

    /// A device that has been looked at.
    pub(crate) fn known(&self, device: usize) -> Candidate<'s> {
        self.seen.borrow().devices[device]
    }

    /// Whether there is a device at a position; looks into further pools if need be.
    pub(crate) fn reach(&self, device: usize) -> bool {
        while self.seen.borrow().devices.len() <= device {
            if !self.look() {
                return false;
            }
        }
        true
    }

    /// Looks into all pools. The number of devices.
    pub(crate) fn all(&self) -> usize {
        while self.look() {}
        self.seen.borrow().devices.len()
    }

    /// All pools in their order, with the positions of their devices.
    pub(crate) fn order(&self) -> Vec<(usize, Range<usize>)> {
        self.all();
        self.seen.borrow().order.to_vec()
    }

    /// Looks into the next pool.
    fn look(&self) -> bool {
        let mut seen = self.seen.borrow_mut();
        if seen.next < self.pools.len() {
            let pool = seen.next;
            seen.next += 1;
            if *self.state(pool) == PoolState::Complete && self.pools[pool].has_binding_conditions() {
                seen.last.push(pool);
            } else {
                self.enter(&mut seen, pool);
            }
            return true;
        }
        let next = seen.last.get(seen.taken).copied();
        if let Some(pool) = next {
            seen.taken += 1;
            self.enter(&mut seen, pool);
        }
        next.is_some()
    }

    fn enter(&self, seen: &mut Seen<'s>, pool: usize) {
        let first = seen.devices.len();
        if *self.state(pool) == PoolState::Complete {
            let devices = self.pools[pool].slices.iter().map(|slice| devices_of(slice).len());
            seen.devices.reserve(devices.sum());
            for slice in self.pools[pool].slices.iter().copied() {
                seen.devices.extend(devices_of(slice).iter().map(|device| Candidate { pool, slice, device }));
            }
        }
        let end = seen.devices.len();
        seen.order.push((pool, first..end));
    }
}
