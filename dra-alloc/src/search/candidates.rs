//! Devices of a node in the order in which the search tries them, read pool by pool.
//!
//! Pools without binding conditions come first; otherwise pools are ordered by driver and name. A pool is read only
//! when the search reaches it, since most searches end in the first pool.

use std::cell::RefCell;
use std::ops::Range;

use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use smallvec::SmallVec;

use crate::cluster::inventory::device::{DeviceFacts, Facts};
use crate::cluster::inventory::pool::{Pool, PoolState, slice_devices};
use crate::cluster::inventory::view::View;

/// Device of a node, with its slice and pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'s> {
    /// Position of the device's pool.
    pub(crate) pool: usize,
    pub(crate) slice: &'s ResourceSlice,
    pub(crate) device: &'s Device,
    known: &'s DeviceFacts,
}

impl Candidate<'_> {
    pub(crate) fn facts(self) -> Facts {
        self.known.look(self.device)
    }
}

/// Devices of a node's complete pools, read from the pools when the search needs them.
pub(crate) struct Candidates<'s> {
    view: &'s View,
    seen: RefCell<Seen<'s>>,
}

/// Pools and devices that were read so far.
#[derive(Default)]
struct Seen<'s> {
    devices: Vec<Candidate<'s>>,
    /// Pools in search order, each with the range of its device positions.
    order: SmallVec<[(usize, Range<usize>); 2]>,
    /// Position of the next pool to read, in the order of driver and pool name.
    next: usize,
    /// Pools with binding conditions, to be read after all others.
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

    /// Returns the number of devices in all pools, read or not.
    pub(crate) const fn capacity(&self) -> usize {
        self.view.devices
    }

    /// Returns the device at a position among the devices that were already read.
    pub(crate) fn known(&self, device: usize) -> Candidate<'s> {
        self.seen.borrow().devices[device]
    }

    /// Returns true if there is a device at the position, after reading as many pools as needed.
    pub(crate) fn reach(&self, device: usize) -> bool {
        while self.seen.borrow().devices.len() <= device {
            if !self.look() {
                return false;
            }
        }
        true
    }

    /// Reads all pools and returns the number of devices.
    pub(crate) fn all(&self) -> usize {
        while self.look() {}
        self.seen.borrow().devices.len()
    }

    /// Returns all pools in search order, each with the range of its device positions.
    pub(crate) fn order(&self) -> Vec<(usize, Range<usize>)> {
        self.all();
        self.seen.borrow().order.to_vec()
    }

    /// Reads the next pool. Returns false if there is no further pool.
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

/// Adds the devices of a pool to those that were read.
fn enter<'s>(seen: &mut Seen<'s>, position: usize, pool: &'s Pool) {
    let first = seen.devices.len();
    if pool.state() == PoolState::Complete {
        for (slice, facts) in pool.known_devices() {
            let devices = slice_devices(slice).iter().zip(facts);
            seen.devices.extend(devices.map(|(device, known)| Candidate { pool: position, slice, device, known }));
        }
    }
    let end = seen.devices.len();
    seen.order.push((position, first..end));
}
