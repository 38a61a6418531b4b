//! The devices of a node, pool by pool, in the order in which they are tried.
//!
//! Pools without binding conditions come first; otherwise the order is that of driver and name. A pool is looked into when
//! a search comes to it, since most searches end in the first pool.

use std::cell::RefCell;
use std::ops::Range;

use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use smallvec::SmallVec;

use crate::inventory::device::{DeviceFacts, Facts};
use crate::inventory::pool::{Pool, PoolState, devices_of};
use crate::inventory::view::View;

/// A device that a request may get.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'s> {
    /// Position of its pool.
    pub(crate) pool: usize,
    pub(crate) slice: &'s ResourceSlice,
    pub(crate) device: &'s Device,
    known: &'s DeviceFacts,
}

impl Candidate<'_> {
    pub(crate) fn facts(self) -> Facts {
        self.known.of(self.device)
    }
}

/// The devices of the pools that can be allocated from.
pub(crate) struct Candidates<'s> {
    view: &'s View,
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
    pub(crate) fn new(view: &'s View) -> Self {
        Self { view, seen: RefCell::default() }
    }

    pub(crate) const fn pools(&self) -> &'s [Pool] {
        &self.view.pools
    }

    /// The most devices that there may be.
    pub(crate) const fn capacity(&self) -> usize {
        self.view.devices
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
        if let Some(pool) = self.view.pools.get(seen.next) {
            let position = seen.next;
            seen.next += 1;
            if pool.state() == PoolState::Complete && pool.has_binding_conditions() {
                seen.last.push(position);
            } else {
                enter(&mut seen, position, pool);
            }
            return true;
        }
        let next = seen.last.get(seen.taken).copied();
        if let Some(position) = next {
            seen.taken += 1;
            enter(&mut seen, position, &self.view.pools[position]);
        }
        next.is_some()
    }
}

/// Adds the devices of a pool.
fn enter<'s>(seen: &mut Seen<'s>, position: usize, pool: &'s Pool) {
    let first = seen.devices.len();
    if pool.state() == PoolState::Complete {
        for (slice, facts) in pool.known_devices() {
            let devices = devices_of(slice).iter().zip(facts);
            seen.devices.extend(devices.map(|(device, known)| Candidate { pool: position, slice, device, known }));
        }
    }
    let end = seen.devices.len();
    seen.order.push((position, first..end));
}
