//! Partial assignment of the search: devices chosen so far, remaining counters and capacities, and state of each
//! constraint.
//!
//! A device is placed or rejected as a whole. [`PartialAssignment::undo`] undoes placements in reverse order (backtracking);
//! a rejection changes nothing.

use std::collections::BTreeMap;

use dra_attrs::internal::release::{DistinctMemory, RefusedCounters};
use dra_attrs::{DistinctState, Gate, MatchError, MatchState, Quantity, Scalar, ValueSet};
use k8s_openapi::api::resource::v1::{DeviceTaint, ResourceClaim};
use smallvec::SmallVec;

use super::allocate_error::AllocateError;
use super::capacity_check::{CapacityCheck, CapacityMiss};
use super::counters::{Groups, Ledgers, Reserved, Shortage};
use super::device_set::DeviceSet;
use super::distinct_memory::LastOfRequests;
use super::ix::{
    AlternativeIx, ByConstraint, ByCounterName, ClaimIx, ConstraintIx, CounterIx, DeviceIx, Indexed, PoolIx, SetIx,
};
use super::refused_before::Lasting;
use super::request::{Claim, ConstraintKind};
use super::table::Table;
use crate::cluster::state::DeviceUsage;

/// Choice of a device for an alternative of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) alternative: AlternativeIx,
    pub(crate) device: DeviceIx,
}

/// Reason why the search does not give a device to an alternative.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rejection<'s> {
    /// The slice has `skipNodeOperations`, and the node does not declare the feature for it or the gate
    /// `Gate::OptionalNodeOperations` is off.
    SkipsOperations,
    /// The device consumes shared counters, but the gate `DRAPartitionableDevices` is off.
    CountersOff,
    /// The device, or an allocated device on the same counter set, has compatibility groups, but the gate
    /// `DRADeviceCompatibilityGroups` is off.
    GroupsOff,
    Shortage(Shortage),
    /// The alternative does not tolerate the taint.
    Tainted(&'s DeviceTaint),
    Constraint {
        index: ConstraintIx,
        violation: MatchError,
    },
    NoCapacity,
}

impl Rejection<'_> {
    /// Returns how long the device stays refused to requests that ask the same.
    pub(crate) const fn lasting(self) -> Lasting {
        match self {
            Self::SkipsOperations | Self::CountersOff | Self::Tainted(_) => Lasting::Stays,
            Self::Constraint { .. } => Lasting::Conflict,
            Self::GroupsOff | Self::Shortage(_) | Self::NoCapacity => Lasting::Unknown,
        }
    }
}

/// First capacity of a device that is too small for an alternative.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Insufficient<'s> {
    /// The capacity is too small even if nothing else uses the device.
    Never(CapacityMiss<'s>),
    /// The capacity has too little left after the consumption of other shares of the device.
    Now { name: &'s str, left: Quantity, wanted: Quantity },
}

/// A device given to an alternative, with the data to undo that.
#[derive(Debug)]
pub(crate) struct Placed<'s> {
    pub(crate) chosen: Chosen,
    reserved: Option<Reserved<'s>>,
}

/// Number of shares of one device in the current assignment, and the capacity that they consume.
#[derive(Clone, Debug, Default)]
struct Shares {
    count: usize,
    /// Amounts that the shares consume of the capacities, in the order of their names.
    consumed: Vec<Quantity>,
}

/// Shares of one device in the current assignment: if it has any, and the capacity that they consume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShareState<'a> {
    pub(crate) is_shared: bool,
    pub(crate) consumed: &'a [Quantity],
}

#[derive(Debug)]
enum ConstraintState<'s> {
    Match(MatchState<'s>),
    Distinct(DistinctState<'s>),
    Last(LastOfRequests<'s>),
}

impl<'s> ConstraintState<'s> {
    fn new(kind: ConstraintKind, distinct: DistinctMemory) -> Self {
        match (kind, distinct) {
            (ConstraintKind::Match, _) => Self::Match(MatchState::new()),
            (ConstraintKind::Distinct, DistinctMemory::Every) => Self::Distinct(DistinctState::new()),
            (ConstraintKind::Distinct, DistinctMemory::LastOfRequest) => Self::Last(LastOfRequests::default()),
        }
    }

    /// Adds a device of a request.
    fn push(&mut self, request: &'s str, device: &ValueSet<'s>) -> Result<(), MatchError> {
        match self {
            Self::Match(state) => state.push(device),
            Self::Distinct(state) => state.push(device),
            Self::Last(state) => state.push(request, device),
        }
    }

    /// Takes back the last device, which is one of a request.
    fn pop(&mut self, request: &str) {
        match self {
            Self::Match(state) => state.pop(),
            Self::Distinct(state) => state.pop(),
            Self::Last(state) => state.pop(request),
        }
    }
}

/// Partial assignment of devices to alternatives, extended and undone by the search.
pub(crate) struct PartialAssignment<'t, 's> {
    table: &'t Table<'s>,
    pub(crate) chosen: SmallVec<[Chosen; 4]>,
    /// Number of devices that were chosen in earlier rounds.
    earlier: usize,
    claims: ClaimStates<'s>,
    /// Chosen devices of this assignment that are not shareable.
    taken: DeviceSet,
    /// Shares of devices in this assignment, by device.
    shares: BTreeMap<DeviceIx, Shares>,
    /// Remaining counters by pool, for pools with a chosen device that consumes counters.
    ledgers: Ledgers<'s>,
}

/// States of all claims.
type ClaimStates<'s> = Indexed<ResourceClaim, SmallVec<[ClaimState<'s>; 2]>>;

/// States of the claims before a round that goes on after another one, and the number of devices of rounds before that.
pub(crate) struct Round<'s>(ClaimStates<'s>, usize);

/// State of one claim in the partial assignment.
struct ClaimState<'s> {
    devices: usize,
    constraints: ByConstraint<ConstraintState<'s>>,
}

impl ClaimState<'_> {
    fn new(claim: &Claim<'_>, distinct: DistinctMemory) -> Self {
        let constraints = claim.constraints.iter().map(|constraint| ConstraintState::new(constraint.kind, distinct));
        Self { devices: 0, constraints: constraints.collect() }
    }
}

// Rarely needed functions are not inlined: this keeps the common path short (3 % of a small call).
impl<'t, 's> PartialAssignment<'t, 's> {
    pub(crate) fn new(table: &'t Table<'s>) -> Self {
        Self {
            table,
            chosen: SmallVec::new(),
            earlier: 0,
            claims: claim_states(table),
            taken: DeviceSet::new(table.candidates.end()),
            shares: BTreeMap::new(),
            ledgers: Ledgers::default(),
        }
    }

    /// Begins further allocations for the same claims, beside the devices that were chosen. End it with what is returned.
    pub(crate) fn begin_round(&mut self) -> Round<'s> {
        let claims = std::mem::replace(&mut self.claims, claim_states(self.table));
        Round(claims, std::mem::replace(&mut self.earlier, self.chosen.len()))
    }

    /// Goes back to the claims before a round, whose devices were all taken back.
    pub(crate) fn end_round(&mut self, before: Round<'s>) {
        debug_assert_eq!(self.chosen.len(), self.earlier, "the devices of the round were taken back");
        (self.claims, self.earlier) = (before.0, before.1);
    }

    /// Returns the number of devices chosen for a claim.
    pub(crate) fn device_count(&self, claim: ClaimIx) -> usize {
        self.claims[claim].devices
    }

    /// Returns the chosen devices of this assignment that are not shareable.
    pub(crate) const fn taken(&self) -> &DeviceSet {
        &self.taken
    }

    /// Returns the values common to all devices under a `matchAttribute` constraint; `None` before the first device.
    pub(crate) fn common(&self, claim: ClaimIx, constraint: ConstraintIx) -> Option<&[Scalar<'s>]> {
        match &self.claims[claim].constraints[constraint] {
            ConstraintState::Match(state) if !state.is_empty() => Some(state.common()),
            _ => None,
        }
    }

    /// Returns the values of the devices under a `distinctAttribute` constraint.
    pub(crate) fn distinct(&self, claim: ClaimIx, constraint: ConstraintIx) -> Vec<Scalar<'s>> {
        match &self.claims[claim].constraints[constraint] {
            ConstraintState::Distinct(state) => state.taken().copied().collect(),
            ConstraintState::Match(_) | ConstraintState::Last(_) => Vec::new(),
        }
    }

    /// Returns true if no device is under a constraint yet.
    pub(crate) fn is_unused(&self, claim: ClaimIx, constraint: ConstraintIx) -> bool {
        match &self.claims[claim].constraints[constraint] {
            ConstraintState::Match(state) => state.is_empty(),
            ConstraintState::Distinct(state) => state.is_empty(),
            ConstraintState::Last(state) => state.is_empty(),
        }
    }

    /// Returns true if a device was chosen for an alternative.
    pub(crate) fn is_given(&self, alternative: AlternativeIx, device: DeviceIx) -> bool {
        self.chosen.contains(&Chosen { alternative, device })
    }

    /// Returns true if a device was chosen for a claim.
    pub(crate) fn is_own(&self, claim: ClaimIx, device: DeviceIx) -> bool {
        let is_own = |chosen: &Chosen| self.table.alternative(chosen.alternative).claim == claim;
        self.chosen.iter().any(|chosen| chosen.device == device && is_own(chosen))
    }

    /// Returns what the shares of a device in this assignment consume; `None` if the device can't be shared.
    pub(crate) fn share_state(&self, device: DeviceIx) -> Option<ShareState<'_>> {
        let shares = self.shares.get(&device).filter(|shares| shares.count > 0);
        let consumed = shares.map_or(&[][..], |shares| &shares.consumed);
        self.table.is_shareable(device).then_some(ShareState { is_shared: shares.is_some(), consumed })
    }

    /// Returns the remaining amount of a counter.
    pub(crate) fn counter_left(&self, pool: PoolIx, counter: CounterIx) -> i128 {
        let left = match self.ledgers.of(pool) {
            Some(ledger) => ledger.left(counter),
            None => self.table.counters(pool).ok().and_then(|counters| counters.left(counter)),
        };
        left.unwrap_or_default()
    }

    /// Returns the compatibility groups of the devices on a counter set.
    pub(crate) fn groups_on(&self, pool: PoolIx, set: SetIx) -> Groups<'s> {
        match self.ledgers.of(pool) {
            Some(ledger) => ledger.groups(set),
            None => self.table.counters(pool).map_or(Groups::Unused, |counters| counters.groups(set)),
        }
    }

    /// Returns the remaining amount of a pool's counters of each name, over all counter sets.
    pub(crate) fn counters_left(&self, pool: PoolIx) -> ByCounterName<i128> {
        self.table.counters(pool).map(|counters| counters.left_by_name(self.ledgers.of(pool))).unwrap_or_default()
    }

    /// Returns true if an alternative can't have the device because it is in use: by any claim or, for admin access, by
    /// the same claim.
    pub(crate) fn is_taken(&self, alternative: AlternativeIx, device: DeviceIx) -> bool {
        let asked = self.table.alternative(alternative);
        if asked.admin_access {
            let is_own = |chosen: &Chosen| self.table.alternative(chosen.alternative).claim == asked.claim;
            let mut of_round = self.chosen.iter().skip(self.earlier);
            return self.taken.contains(device) && of_round.any(|chosen| chosen.device == device && is_own(chosen));
        }
        self.taken.contains(device) || self.table.is_held(device)
    }

    /// Returns the first capacity of a device that is too small for the alternative; `None` if all suffice.
    pub(crate) fn short_capacity(
        &self,
        alternative: AlternativeIx,
        device: DeviceIx,
    ) -> Result<Option<Insufficient<'s>>, AllocateError> {
        if !self.table.has(Gate::ConsumableCapacity) || self.table.has_room_for_one(alternative, device) {
            return Ok(None);
        }
        let amounts = match self.table.fit(alternative, device)? {
            CapacityCheck::Takes(amounts) => amounts,
            CapacityCheck::Never(misfit) => return Ok(Some(Insufficient::Never(*misfit))),
        };
        let consumed = self.shares.get(&device).map_or(&[][..], |shares| &shares.consumed).iter().copied();
        let capacities = self.table.capacities(device)?.iter().zip(amounts);
        let shared = consumed.chain(std::iter::repeat(Quantity::ZERO));
        let mut short = capacities.zip(shared).filter_map(|((capacity, amount), shared)| {
            let before = self.table.consumed(device, capacity.name);
            let left = capacity.value().checked_sub(before).and_then(|left| left.checked_sub(shared));
            let (left, wanted) = (left.unwrap_or(Quantity::ZERO), amount.quantity);
            (wanted > left).then_some(Insufficient::Now { name: capacity.name, left, wanted })
        });
        Ok(short.next())
    }

    /// Gives a device to an alternative, or returns the reason why it can't.
    pub(crate) fn place(&mut self, alternative: AlternativeIx, device: DeviceIx) -> Result<Placed<'s>, Refusal<'s>> {
        let reserved = self.admit(alternative, device)?;
        if self.short_capacity(alternative, device)?.is_some() {
            let asked = self.table.alternative(alternative);
            for (constraint, _) in &asked.constraints {
                self.claims[asked.claim].constraints[*constraint].pop(asked.request);
            }
            self.refuse(device, reserved);
            return Err(Rejection::NoCapacity.into());
        }
        self.enter(alternative, device)?;
        Ok(Placed { chosen: Chosen { alternative, device }, reserved })
    }

    /// Gives a device to an alternative for which its capacities suffice ([`Self::short_capacity`]), or returns the reason why
    /// it can't.
    pub(crate) fn place_fitting(
        &mut self,
        alternative: AlternativeIx,
        device: DeviceIx,
    ) -> Result<Placed<'s>, Refusal<'s>> {
        let reserved = self.admit(alternative, device)?;
        self.enter(alternative, device)?;
        Ok(Placed { chosen: Chosen { alternative, device }, reserved })
    }

    /// Returns true if kube-scheduler crashes when a request for all devices comes to the device.
    pub(crate) fn crashes(&self, device: DeviceIx) -> bool {
        self.table.crashes(device) && !self.is_shared(device)
    }

    /// Takes back the device of the last placement.
    pub(crate) fn undo(&mut self, placed: Placed<'s>) -> Result<(), AllocateError> {
        let Chosen { alternative, device } = placed.chosen;
        let asked = self.table.alternative(alternative);
        debug_assert_eq!(self.chosen.last(), Some(&placed.chosen), "the last placement is taken back first");
        self.chosen.pop();
        self.claims[asked.claim].devices -= 1;
        if self.table.is_shareable(device) {
            self.unshare(alternative, device)?;
        } else if !self.chosen.iter().any(|chosen| chosen.device == device) {
            self.taken.remove(device);
        }
        for (constraint, _) in asked.constraints.iter().rev() {
            self.claims[asked.claim].constraints[*constraint].pop(asked.request);
        }
        self.release(device, placed.reserved);
        Ok(())
    }

    /// Reserves the counters that a device consumes. A shared device consumes them only once, with its first share.
    fn reserve(&mut self, device: DeviceIx) -> Result<Option<Reserved<'s>>, Refusal<'s>> {
        let candidate = self.table.candidate(device);
        if !candidate.consumes_counters() {
            return Ok(None);
        }
        if !self.table.has(Gate::PartitionableDevices) {
            return Err(Rejection::CountersOff.into());
        }
        if self.is_shared(device) {
            return Ok(None);
        }
        let (consumption, counters) = (self.table.consumption(device)?, self.table.counters(candidate.pool)?);
        if !self.table.has(Gate::DeviceCompatibilityGroups) && counters.needs_groups(consumption) {
            return Err(Rejection::GroupsOff.into());
        }
        // Most pools that are full stay so for the whole search: they need no ledger.
        if self.ledgers.of(candidate.pool).is_none() && counters.refuse(consumption) {
            return Err(Rejection::Shortage(Shortage::Counters).into());
        }
        let ledger = self.ledgers.begin(candidate.pool, counters);
        ledger.reserve(consumption).map(Some).map_err(|shortage| Rejection::Shortage(shortage).into())
    }

    #[inline(never)]
    fn release(&mut self, device: DeviceIx, reserved: Option<Reserved<'s>>) {
        let Some(reserved) = reserved else { return };
        let ledger = self.ledgers.of_mut(self.table.candidate(device).pool);
        debug_assert!(ledger.is_some(), "counters were reserved in a ledger");
        if let (Some(ledger), Ok(consumption)) = (ledger, self.table.consumption(device)) {
            ledger.release(consumption, reserved);
        }
    }

    /// Returns true if a shareable device already has a share, from this assignment or from another claim.
    #[inline(never)]
    fn is_shared(&self, device: DeviceIx) -> bool {
        let in_use = || self.table.in_use(device).is_some_and(DeviceUsage::is_shared);
        self.table.is_shareable(device) && (self.shares.get(&device).is_some_and(|shares| shares.count > 0) || in_use())
    }

    /// Checks counters, taints and constraints of a device, reserves the counters, and adds its values to the state of the
    /// constraints.
    fn admit(&mut self, alternative: AlternativeIx, device: DeviceIx) -> Result<Option<Reserved<'s>>, Refusal<'s>> {
        if !self.table.may_skip(device) {
            return Err(Rejection::SkipsOperations.into());
        }
        let reserved = self.reserve(device)?;
        let refusal = match self.table.taint(alternative, device) {
            Some(taint) => Rejection::Tainted(taint).into(),
            None => match self.constrain(alternative, device) {
                Ok(()) => return Ok(reserved),
                Err(refusal) => refusal,
            },
        };
        self.refuse(device, reserved);
        Err(refusal)
    }

    /// Gives back the counters of a device that was refused, as the release does.
    fn refuse(&mut self, device: DeviceIx, reserved: Option<Reserved<'s>>) {
        match self.table.variant.refused_counters {
            RefusedCounters::Released => self.release(device, reserved),
            RefusedCounters::Reserved => {}
        }
    }

    #[inline(never)]
    fn constrain(&mut self, alternative: AlternativeIx, device: DeviceIx) -> Result<(), Refusal<'s>> {
        let asked = self.table.alternative(alternative);
        let states = &mut self.claims[asked.claim].constraints;
        for (pushed, &(constraint, column)) in asked.constraints.iter().enumerate() {
            let values = self.table.values(column, device)?;
            if let Err(violation) = states[constraint].push(asked.request, values) {
                for (earlier, _) in asked.constraints.iter().take(pushed) {
                    states[*earlier].pop(asked.request);
                }
                return Err(Rejection::Constraint { index: constraint, violation }.into());
            }
        }
        Ok(())
    }

    /// Marks a device as used exclusively, or adds a share of a shareable device.
    fn enter(&mut self, alternative: AlternativeIx, device: DeviceIx) -> Result<(), AllocateError> {
        let claim = self.table.alternative(alternative).claim;
        self.chosen.push(Chosen { alternative, device });
        self.claims[claim].devices += 1;
        if !self.table.is_shareable(device) {
            self.taken.insert(device);
            return Ok(());
        }
        let shares = self.shares.entry(device).or_default();
        shares.count += 1;
        if let CapacityCheck::Takes(amounts) = self.table.fit(alternative, device)? {
            shares.consumed.resize(amounts.len(), Quantity::ZERO);
            for (consumed, amount) in shares.consumed.iter_mut().zip(amounts) {
                // `admit` has just checked that the sum is below the capacity's value.
                debug_assert!(consumed.checked_add(amount.quantity).is_some(), "the sum is a quantity");
                *consumed = consumed.checked_add(amount.quantity).unwrap_or(*consumed);
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn unshare(&mut self, alternative: AlternativeIx, device: DeviceIx) -> Result<(), AllocateError> {
        debug_assert!(self.shares.contains_key(&device), "a share that goes has come");
        let Some(shares) = self.shares.get_mut(&device) else { return Ok(()) };
        shares.count -= 1;
        if let CapacityCheck::Takes(amounts) = self.table.fit(alternative, device)? {
            for (consumed, amount) in shares.consumed.iter_mut().zip(amounts) {
                *consumed = consumed.checked_sub(amount.quantity).unwrap_or(*consumed);
            }
        }
        Ok(())
    }
}

fn claim_states<'s>(table: &Table<'s>) -> ClaimStates<'s> {
    let distinct = table.rules.allocator.distinct;
    table.plan.claims.iter().map(|claim| ClaimState::new(claim, distinct)).collect()
}

/// Reason why a device was not given to an alternative, or the error of the search.
pub(crate) enum Refusal<'s> {
    /// The device can't be chosen at this point of the search, which continues with the next one.
    Rejected(Rejection<'s>),
    /// The input is invalid, so that the search fails.
    Failed(AllocateError),
}

impl<'s> From<Rejection<'s>> for Refusal<'s> {
    fn from(rejection: Rejection<'s>) -> Self {
        Self::Rejected(rejection)
    }
}

impl From<AllocateError> for Refusal<'_> {
    fn from(error: AllocateError) -> Self {
        Self::Failed(error)
    }
}
