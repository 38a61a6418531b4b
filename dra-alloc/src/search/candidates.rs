//! Devices of a node in the order in which the search tries them, read pool by pool.
//!
//! Pools without binding conditions come first; otherwise pools are ordered by driver and name. A pool is read only
//! when the search reaches it, since most searches end in the first pool. Devices that no request can get have no
//! position, so that a search costs nothing for them:
//!
//! - those that a claim holds exclusively, unless a request has admin access or asks for all devices: the search would pass
//!   over them before it looks at anything else;
//! - those of pools whose devices the selectors of every request reject because of their driver.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

use dra_device::pool::slice_devices;
use dra_selector::internal::Searched;
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};

use super::context::Context;
use super::elisions::Elision;
use super::ix::{DeviceIx, IxRange, PoolIx, next};
use super::request::{Alternative, Mode, Plan};
use crate::cluster::expression::Compiler;
use crate::cluster::inventory::device::{DeviceFacts, Facts};
use crate::cluster::inventory::pool::{Pool, PoolState};
use crate::cluster::inventory::view::View;
use crate::cluster::state::{AllocatedState, DeviceUsage, Occupancy, PoolUse};

/// Number of devices and of pools from which, and up to which, all pools are entered at once: the number of devices with a
/// position is then known, and tables are no larger than needed.
const MANY_DEVICES: usize = 64;
const FEW_POOLS: usize = 16;
/// Number of devices of a pool for which there is room at first.
const FIRST_READ: usize = 16;

/// Device of a node, with its slice and pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'s> {
    /// Position of the device's pool.
    pub(crate) pool: PoolIx,
    pub(crate) slice: &'s ResourceSlice,
    pub(crate) device: &'s Device,
    /// True if a claim holds or shares the device.
    pub(crate) is_used: bool,
    /// True if a claim holds the device exclusively.
    pub(crate) is_held: bool,
    /// Shares of a device that no claim holds exclusively.
    pub(super) shares: Option<&'s DeviceUsage>,
    /// Number of the device in its pool.
    number: u32,
    known: &'s DeviceFacts,
}

impl Candidate<'_> {
    /// Returns the number of the device in its pool.
    pub(crate) fn number(self) -> usize {
        usize::try_from(self.number).unwrap_or(usize::MAX)
    }

    pub(crate) fn facts(self) -> Facts {
        self.known.look(self.device)
    }

    pub(crate) fn consumes_counters(self) -> bool {
        self.device.consumes_counters.as_ref().is_some_and(|consumed| !consumed.is_empty())
    }
}

/// Devices that have a position.
#[derive(Clone, Copy)]
pub(crate) enum Universe<'s> {
    /// All devices of complete pools.
    All,
    /// Those that a plan may get.
    Needed(&'s Context<'s>, &'s Plan<'s>),
}

/// Devices of a node's complete pools, read from the pools when the search needs them.
pub(crate) struct Candidates<'s> {
    view: &'s View<'s>,
    state: &'s AllocatedState,
    universe: Universe<'s>,
    keeps_held: bool,
    end: DeviceIx,
    seen: RefCell<Seen<'s>>,
    /// Device that was asked for last. The search asks many questions about one device after the other.
    last: Cell<Option<(DeviceIx, Candidate<'s>)>>,
}

/// Pools that were entered so far.
struct Seen<'s> {
    /// Pools in search order.
    pools: Vec<Entered<'s>>,
    /// Position after the last device of these pools.
    end: DeviceIx,
    /// Position of the next pool to enter, in the order of driver and pool name.
    next: PoolIx,
    /// Pools with binding conditions, to be entered after all others.
    last: VecDeque<PoolIx>,
}

/// One pool with the positions of its devices, and those that were read.
struct Entered<'s> {
    ix: PoolIx,
    pool: &'s Pool,
    range: IxRange<Device>,
    used: Option<&'s PoolUse>,
    occupancy: Option<Arc<Occupancy>>,
    /// Devices from the start of the range on.
    devices: Vec<Candidate<'s>>,
    rest: Rest,
}

/// Place in a pool after the devices that were read.
#[derive(Clone, Copy, Default)]
struct Rest {
    /// Number of the next device among all devices of the pool.
    device: usize,
    /// Number of the slice, and of its first device among all devices of the pool.
    slice: usize,
    slice_start: usize,
}

impl<'s> Candidates<'s> {
    pub(crate) fn new(view: &'s View<'s>, state: &'s AllocatedState, universe: Universe<'s>) -> Self {
        let end = DeviceIx::FIRST;
        let seen = RefCell::new(Seen { pools: Vec::new(), end, next: PoolIx::FIRST, last: VecDeque::new() });
        let keeps_held = match universe {
            Universe::All => true,
            Universe::Needed(context, plan) => {
                !context.elisions.has(Elision::FreeDevices) || plan.alternatives.iter().any(needs_held)
            }
        };
        let mut candidates = Self { view, state, universe, keeps_held, end, seen, last: Cell::new(None) };
        candidates.end = if view.devices() > MANY_DEVICES && view.len() <= FEW_POOLS {
            candidates.all().end
        } else {
            DeviceIx::from(view.devices())
        };
        candidates
    }

    pub(crate) fn pools(&self) -> impl Iterator<Item = &'s Pool> {
        self.view.pools()
    }

    pub(crate) fn pool_count(&self) -> usize {
        self.view.len()
    }

    #[expect(clippy::expect_used, reason = "positions of pools are those of the view")]
    pub(crate) fn pool(&self, pool: PoolIx) -> &'s Pool {
        self.view.pool(pool.into()).expect("a pool of the view")
    }

    /// Returns the use of a pool by claims; `None` if all its devices are free.
    pub(crate) fn pool_use(&self, pool: PoolIx) -> Option<&'s PoolUse> {
        let seen = self.seen.borrow();
        let known = seen.pools.get(usize::from(pool)).filter(|entered| entered.ix == pool && !entered.range.is_empty());
        known.map_or_else(|| self.use_of(self.pool(pool)), |entered| entered.used)
    }

    fn use_of(&self, pool: &Pool) -> Option<&'s PoolUse> {
        if self.state.is_empty() {
            return None;
        }
        self.state.pool_hashed(pool.hash(), pool.driver(), pool.name())
    }

    /// Returns a position after the last device of all pools, read or not.
    pub(crate) const fn end(&self) -> DeviceIx {
        self.end
    }

    /// Returns true if no device has a position.
    pub(crate) fn is_empty(&self) -> bool {
        !self.reach(DeviceIx::FIRST)
    }

    /// Returns the device at a position of a pool that was entered.
    #[inline]
    pub(crate) fn known(&self, device: DeviceIx) -> Candidate<'s> {
        match self.last.get() {
            Some((last, known)) if last == device => known,
            _ => {
                let known = self.entered(device);
                self.last.set(Some((device, known)));
                known
            }
        }
    }

    #[expect(clippy::indexing_slicing, reason = "positions are those of pools that were entered")]
    fn entered(&self, device: DeviceIx) -> Candidate<'s> {
        let seen = self.seen.borrow();
        let entered = seen.pools.partition_point(|pool| pool.range.end <= device);
        let pool = &seen.pools[entered];
        let number = usize::from(device) - usize::from(pool.range.start);
        if let Some(known) = pool.at_once(number).or_else(|| pool.devices.get(number).copied()) {
            return known;
        }
        drop(seen);
        let mut seen = self.seen.borrow_mut();
        let pool = &mut seen.pools[entered];
        pool.read(number, self.keeps_held);
        pool.devices[number]
    }

    /// Returns the pool of a position that was reached, and the positions of its devices.
    pub(crate) fn pool_at(&self, device: DeviceIx) -> Option<(PoolIx, IxRange<Device>)> {
        let seen = self.seen.borrow();
        let entered = seen.pools.get(seen.pools.partition_point(|pool| pool.range.end <= device))?;
        Some((entered.ix, entered.range))
    }

    /// Returns true if there is a device at the position, after entering as many pools as needed.
    pub(crate) fn reach(&self, device: DeviceIx) -> bool {
        while self.seen.borrow().end <= device {
            if !self.look() {
                return false;
            }
        }
        true
    }

    /// Enters all pools and returns the positions of all devices.
    pub(crate) fn all(&self) -> IxRange<Device> {
        while self.look() {}
        IxRange::new(DeviceIx::FIRST, self.seen.borrow().end)
    }

    /// Returns the pools that pass a test, each with the number of its devices that have a position. Enters all pools.
    pub(crate) fn counted<'c>(
        &'c self,
        admits: impl Fn(&Pool) -> bool + 'c,
    ) -> impl Iterator<Item = (&'s Pool, usize)> + 'c {
        self.all();
        let pool =
            |number: usize| self.seen.borrow().pools.get(number).map(|entered| (entered.pool, entered.range.len()));
        (0..).map_while(pool).filter(move |(pool, _)| admits(pool))
    }

    /// Returns all pools in search order, each with the positions of its devices.
    pub(crate) fn order(&self) -> Vec<(PoolIx, IxRange<Device>)> {
        self.all();
        self.seen.borrow().pools.iter().map(|pool| (pool.ix, pool.range)).collect()
    }

    /// Enters the next pool. Returns false if there is no further pool.
    fn look(&self) -> bool {
        let mut seen = self.seen.borrow_mut();
        if let Some(pool) = self.view.pool(seen.next.into()) {
            let ix = seen.next;
            seen.next = next(ix);
            // An incomplete pool has no devices, unless the release uses those that are there.
            if self.is_needed(pool) && pool.state() != PoolState::Invalid {
                if pool.has_binding_conditions() {
                    seen.last.push_back(ix);
                } else {
                    self.enter(&mut seen, ix, pool);
                }
            } else {
                let range = IxRange::new(seen.end, seen.end);
                seen.pools.push(Entered {
                    ix,
                    pool,
                    range,
                    used: None,
                    occupancy: None,
                    devices: Vec::new(),
                    rest: Rest::default(),
                });
            }
            return true;
        }
        let Some(ix) = seen.last.pop_front() else { return false };
        self.enter(&mut seen, ix, self.pool(ix));
        true
    }

    fn enter(&self, seen: &mut Seen<'s>, ix: PoolIx, pool: &'s Pool) {
        let used = self.use_of(pool);
        let occupancy = used.map(|used| used.occupancy(pool.devices()));
        let count = match &occupancy {
            Some(occupancy) if !self.keeps_held => occupancy.open_count(),
            _ => pool.len(),
        };
        let range = IxRange::new(seen.end, DeviceIx::from(usize::from(seen.end) + count));
        seen.end = range.end;
        seen.pools.push(Entered { ix, pool, range, used, occupancy, devices: Vec::new(), rest: Rest::default() });
    }

    /// Returns true if a request may get a device of the pool.
    fn is_needed(&self, pool: &Pool) -> bool {
        match self.universe {
            Universe::All => true,
            Universe::Needed(context, plan) => {
                !context.elisions.has(Elision::PoolsByDriver)
                    || plan.alternatives.iter().any(|asked| may_admit(asked, pool, context.selectors))
            }
        }
    }
}

/// Returns the number of a device in half the space. One that is too large becomes `u32::MAX`, which no pool has.
fn short(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl<'s> Entered<'s> {
    /// Returns a device of a pool with one slice and no device in use, which needs no reading.
    fn at_once(&self, number: usize) -> Option<Candidate<'s>> {
        let (slice, None) = (self.pool.only_slice()?, &self.occupancy) else { return None };
        let (device, known) = (slice_devices(slice).get(number)?, self.pool.facts(number)?);
        let number = short(number);
        Some(Candidate { pool: self.ix, slice, device, is_used: false, is_held: false, shares: None, number, known })
    }

    /// Reads the devices up to a number, counted from the first device with a position.
    fn read(&mut self, number: usize, keeps_held: bool) {
        if self.devices.is_empty() {
            self.devices.reserve(self.range.len().min(FIRST_READ));
        }
        let occupancy = self.occupancy.as_deref();
        while self.devices.len() <= number {
            let device = match occupancy {
                Some(occupancy) if !keeps_held => occupancy.next_open(self.rest.device),
                _ => Some(self.rest.device),
            };
            let Some(position) = device else { return };
            let Some((slice, device, known)) = self.rest.device_at(self.pool, position) else { return };
            let is_used = occupancy.is_some_and(|occupancy| occupancy.is_used(position));
            let is_held = is_used && occupancy.is_some_and(|occupancy| occupancy.is_held(position));
            let shares = self.used.filter(|_| is_used && !is_held).and_then(|used| used.device(&device.name));
            self.devices.push(Candidate {
                pool: self.ix,
                slice,
                device,
                is_used,
                is_held,
                shares,
                number: short(position),
                known,
            });
            self.rest.device = position + 1;
        }
    }
}

impl Rest {
    /// Returns the device at a position that is not before the last one, with its slice and the facts about it.
    fn device_at<'p>(
        &mut self,
        pool: &'p Pool,
        position: usize,
    ) -> Option<(&'p ResourceSlice, &'p Device, &'p DeviceFacts)> {
        loop {
            let slice = pool.slice(self.slice)?;
            let devices = slice_devices(slice);
            if let Some(device) = devices.get(position.checked_sub(self.slice_start)?) {
                return Some((slice, device, pool.facts(position)?));
            }
            self.slice += 1;
            self.slice_start += devices.len();
        }
    }
}

/// Returns true if held devices matter to a request: with admin access it may get them, and a request for all devices
/// fails because of them.
fn needs_held(asked: &Alternative<'_>) -> bool {
    asked.admin_access || asked.mode == Mode::All
}

/// Returns false if the selectors of an alternative are false for every device of a pool because of its driver.
///
/// A selector in direct form that pins another driver is false, and not an error, for a device whose attributes are all
/// valid. So are the selectors before it true or false and no error if they read nothing but the driver.
pub(super) fn may_admit(asked: &Alternative<'_>, pool: &Pool, by: Compiler<'_>) -> bool {
    for compiled in asked.compiled(by).into_iter().flatten() {
        if !Searched(compiled).is_direct() {
            return true;
        }
        if compiled.pinned_driver().is_some_and(|driver| driver != pool.driver()) {
            return !by.can_read(pool);
        }
        if !compiled.depends_only_on_driver() {
            return true;
        }
    }
    true
}
