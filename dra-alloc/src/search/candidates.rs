//! Devices of a node in the order in which the search tries them, read pool by pool.
//!
//! Pools without binding conditions come first; otherwise pools are ordered by driver and name. A pool is read only
//! when the search reaches it, since most searches end in the first pool.

use std::cell::RefCell;
use std::collections::VecDeque;

use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use smallvec::SmallVec;

use super::ix::{ByDevice, DeviceIx, IxRange, PoolIx, next};
use crate::cluster::inventory::device::{DeviceFacts, Facts};
use crate::cluster::inventory::pool::{Pool, PoolState, slice_devices};
use crate::cluster::inventory::view::View;

/// Device of a node, with its slice and pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'s> {
    /// Position of the device's pool.
    pub(crate) pool: PoolIx,
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
struct Seen<'s> {
    devices: ByDevice<Candidate<'s>>,
    /// Pools in search order, each with the positions of its devices.
    order: SmallVec<[(PoolIx, IxRange<Device>); 2]>,
    /// Position of the next pool to read, in the order of driver and pool name.
    next: PoolIx,
    /// Pools with binding conditions, to be read after all others.
    last: VecDeque<PoolIx>,
}

impl<'s> Candidates<'s> {
    pub(crate) fn new(view: &'s View) -> Self {
        let seen =
            Seen { devices: ByDevice::default(), order: SmallVec::new(), next: PoolIx::FIRST, last: VecDeque::new() };
        Self { view, seen: RefCell::new(seen) }
    }

    pub(crate) const fn pools(&self) -> &'s [Pool] {
        &self.view.pools
    }

    #[expect(clippy::indexing_slicing, reason = "positions of pools are those of the view")]
    pub(crate) fn pool(&self, pool: PoolIx) -> &'s Pool {
        &self.view.pools[usize::from(pool)]
    }

    /// Returns the position after the last device of all pools, read or not.
    pub(crate) fn end(&self) -> DeviceIx {
        DeviceIx::from(self.view.devices)
    }

    /// Returns the device at a position among the devices that were already read.
    pub(crate) fn known(&self, device: DeviceIx) -> Candidate<'s> {
        self.seen.borrow().devices[device]
    }

    /// Returns true if there is a device at the position, after reading as many pools as needed.
    pub(crate) fn reach(&self, device: DeviceIx) -> bool {
        while self.seen.borrow().devices.end() <= device {
            if !self.look() {
                return false;
            }
        }
        true
    }

    /// Reads all pools and returns the positions of all devices.
    pub(crate) fn all(&self) -> IxRange<Device> {
        while self.look() {}
        self.seen.borrow().devices.range()
    }

    /// Returns all pools in search order, each with the positions of its devices.
    pub(crate) fn order(&self) -> Vec<(PoolIx, IxRange<Device>)> {
        self.all();
        self.seen.borrow().order.to_vec()
    }

    /// Reads the next pool. Returns false if there is no further pool.
    fn look(&self) -> bool {
        let mut seen = self.seen.borrow_mut();
        if let Some(pool) = seen.next.of(&self.view.pools) {
            let position = seen.next;
            seen.next = next(position);
            if pool.state() == PoolState::Complete && pool.has_binding_conditions() {
                seen.last.push_back(position);
            } else {
                enter(&mut seen, position, pool);
            }
            return true;
        }
        let Some(position) = seen.last.pop_front() else { return false };
        enter(&mut seen, position, self.pool(position));
        true
    }
}

/// Adds the devices of a pool to those that were read.
fn enter<'s>(seen: &mut Seen<'s>, position: PoolIx, pool: &'s Pool) {
    let first = seen.devices.end();
    if pool.state() == PoolState::Complete {
        for (slice, facts) in pool.known_devices() {
            let devices = slice_devices(slice).iter().zip(facts);
            seen.devices.extend(devices.map(|(device, known)| Candidate { pool: position, slice, device, known }));
        }
    }
    let devices = IxRange::new(first, seen.devices.end());
    seen.order.push((position, devices));
}
