//! Pruning rules: they skip branches of the search that have no solution, or that repeat a failed one.
//!
//! Easy searches pay nothing: pruning starts after `START_AFTER_BACKTRACKS` backtracks. It first evaluates every
//! device for every alternative. If one of these evaluations is an error, pruning stays off; otherwise the search can
//! only end with a solution or without one. Pruning also stays off if a request for all devices has a constraint (it
//! can end in an error), or if a device consumes a negative amount (the remaining amounts must only shrink). Under
//! these conditions, cutting branches *without* a solution does not change which solution is the first.
//!
//! | rule | cuts a branch if |
//! |---|---|
//! | [`PruningRule::ForwardChecking`] | an open request has fewer free devices than it still needs |
//! | [`PruningRule::Pigeonhole`] | several requests together need more devices than they have free (Hall bound) |
//! | [`PruningRule::CommonValue`] | no value of a `matchAttribute` is left with which all open requests can be served |
//! | [`PruningRule::AllDifferent`] | a `distinctAttribute` has fewer free values than the open requests need at least |
//! | [`PruningRule::CounterBound`] | the remaining counters of one name are below the open requests' minimum use |
//! | [`PruningRule::ValueSymmetry`] | an interchangeable device was tried at this place |
//! | [`PruningRule::VariableSymmetry`] | it only exchanges the devices of two interchangeable requests |
//!
//! The first five rules are bounds: they never underestimate what a solution could use. For the two symmetry rules, a
//! solution in the cut branch would imply one in an earlier branch (exchange the two devices, or the devices of the two
//! requests), and that branch was searched without success.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::{ListTypes, Scalar};
use k8s_openapi::api::resource::v1::Device;

use super::allocate_error::AllocateError;
use super::budget::{Halt, Meter};
use super::device_set::DeviceSet;
use super::ix::{
    AlternativeIx, ByAlternative, ByClaim, ByColumn, ByCounterName, ByDevice, ByRequest, ClaimIx, ColumnIx,
    ConstraintIx, DeviceIx, IxRange, PoolIx, RequestIx, next,
};
use super::partial_assignment::PartialAssignment;
use super::pruning_rules::{PruningRule, PruningRules};
use super::request::{ConstraintKind, Mode};
use super::symmetry::{SymmetryClass, predecessor, symmetry_classes};
use super::table::{CapacityCheck, DevicesOfAll, Selection, Table};
use crate::cluster::state::DeviceUsage;
use crate::config::gates::DraGate;
use crate::device::capacity::Amount;

/// Data of the pruning rules, computed once for all alternatives and constraints.
pub(crate) struct Prune<'s> {
    pruning: PruningRules,
    /// For each alternative: its domain, the devices that it could get if nothing else were chosen.
    usable: ByAlternative<DeviceSet>,
    /// For each alternative: the least amount of each counter name that any of its devices consumes.
    minimum_uses: ByAlternative<Option<MinimumUse>>,
    /// For each column (attribute that constraints compare): the devices that have each value.
    devices_by_value: ByColumn<BTreeMap<Scalar<'s>, DeviceSet>>,
    /// For each column (attribute that constraints compare): the number of values of each device.
    sizes: ByColumn<ByDevice<usize>>,
    shareable: DeviceSet,
    /// For each device: its symmetry class. Devices of one class are interchangeable.
    symmetry_classes: ByDevice<SymmetryClass>,
    /// For each alternative: the nearest earlier alternative of the claim that is interchangeable with it.
    predecessors: ByAlternative<Option<AlternativeIx>>,
    /// For each claim and request: the demands of the request and of all later requests of all claims.
    demands: Demands,
}

/// For each claim and request: the demands of the request and of all later requests of all claims.
type Demands = ByClaim<ByRequest<Vec<Demand>>>;

/// Least amount that any device of a set consumes of the counters of each name. All devices are of one pool.
struct MinimumUse {
    pool: PoolIx,
    least: ByCounterName<i128>,
}

/// An alternative with the number of devices that it still needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenRequest {
    pub(crate) alternative: AlternativeIx,
    pub(crate) missing: usize,
    /// First device position that the alternative may be given.
    pub(crate) from: DeviceIx,
}

/// Demand for devices of one request, or of several interchangeable requests.
#[derive(Clone, Debug)]
struct Demand {
    claim: ClaimIx,
    /// Alternatives of one of the requests, each with the number of devices that it needs.
    options: Vec<OpenRequest>,
    /// Smallest number of devices that satisfies the requests together.
    total: usize,
}

/// A demand with the free devices of each of its alternatives.
struct FreeDomain<'d> {
    demand: &'d Demand,
    free: Vec<DeviceSet>,
}

impl<'s> Prune<'s> {
    /// Computes the data of the pruning rules, in steps of the budget. Returns `None` if pruning is not safe:
    /// evaluating a device fails, or the search could end in an error.
    pub(crate) fn new(
        table: &Table<'s>,
        all: &DevicesOfAll,
        pruning: PruningRules,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Self>, Halt> {
        match Self::look(table, all, pruning, meter) {
            Err(Halt::Stopped) => Err(Halt::Stopped),
            looked => Ok(looked.ok().flatten()),
        }
    }

    fn look(
        table: &Table<'s>,
        all: &DevicesOfAll,
        pruning: PruningRules,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Self>, Halt> {
        let alternatives = &table.plan.alternatives;
        if alternatives.iter().any(|asked| asked.mode == Mode::All && !asked.constraints.is_empty()) {
            return Ok(None);
        }
        if has_negative_consumption(table, meter)? {
            return Ok(None);
        }
        let devices = table.candidates.all();
        let mut shareable = DeviceSet::new(devices.end);
        devices.into_iter().filter(|device| table.is_shareable(*device)).for_each(|device| shareable.insert(device));
        let columns = table.plan.columns.range().into_iter();
        let devices_by_value =
            columns.map(|column| devices_by_value(table, column)).collect::<Result<ByColumn<_>, _>>()?;
        let sizes = devices_by_value.iter().map(|devices_by_value| sizes(devices_by_value, devices)).collect();
        let usable = alternatives.range().into_iter().map(|alternative| usable(table, alternative, meter));
        let usable = usable.collect::<Result<ByAlternative<_>, _>>()?;
        let minimum_uses = usable.iter().map(|usable| minimum_use(table, usable)).collect::<Result<_, _>>()?;
        let symmetry_classes = symmetry_classes(table, &usable)?;
        let predecessors =
            alternatives.range().into_iter().map(|alternative| predecessor(table, alternative)).collect();
        let demands = demands(table, all, &usable);
        Ok(Some(Self {
            pruning,
            usable,
            minimum_uses,
            devices_by_value,
            sizes,
            shareable,
            symmetry_classes,
            predecessors,
            demands,
        }))
    }

    /// Returns true if an interchangeable device was tried before for the same choice and failed (value symmetry).
    pub(crate) fn is_tried(&self, tried: &[DeviceIx], device: DeviceIx) -> bool {
        self.pruning.has(PruningRule::ValueSymmetry)
            && tried.iter().any(|other| self.symmetry_classes[*other] == self.symmetry_classes[device])
    }

    /// Returns the device position from which an alternative starts: that of the first device of an earlier
    /// interchangeable request (variable symmetry), else 0.
    pub(crate) fn begin(&self, assignment: &PartialAssignment<'_, '_>, alternative: AlternativeIx) -> DeviceIx {
        if !self.pruning.has(PruningRule::VariableSymmetry) {
            return DeviceIx::FIRST;
        }
        let predecessor = self.predecessors[alternative];
        let first = predecessor
            .and_then(|predecessor| assignment.chosen.iter().find(|chosen| chosen.alternative == predecessor));
        first.map_or(DeviceIx::FIRST, |chosen| chosen.device)
    }

    /// Returns true if the pruning rules prove that the claims can't be satisfied.
    pub(crate) fn is_unsatisfiable(&self, table: &Table<'s>) -> bool {
        let first = self.demands.at(ClaimIx::FIRST).and_then(|requests| requests.at(RequestIx::FIRST));
        first.is_some_and(|demands| self.fails(table, &PartialAssignment::new(table), demands.iter()))
    }

    /// Returns true if the pruning rules prove that the remaining requests can't be satisfied. The current request
    /// still needs the devices of `want`.
    pub(crate) fn is_unsatisfiable_from(
        &self,
        table: &Table<'s>,
        assignment: &PartialAssignment<'_, 's>,
        (claim, request): (ClaimIx, RequestIx),
        want: OpenRequest,
    ) -> bool {
        let current = Demand { claim, options: vec![want], total: want.missing };
        self.fails(table, assignment, std::iter::once(&current).chain(&self.demands[claim][next(request)]))
    }

    fn fails<'d>(
        &self,
        table: &Table<'s>,
        assignment: &PartialAssignment<'_, 's>,
        demands: impl Iterator<Item = &'d Demand>,
    ) -> bool {
        let has = |rule| self.pruning.has(rule);
        let taken = assignment.taken();
        let domains: Vec<FreeDomain<'_>> = demands
            .map(|demand| {
                let free = demand.options.iter().map(|want| self.free(table, taken, *want)).collect();
                FreeDomain { demand, free }
            })
            .collect();
        (has(PruningRule::ForwardChecking) && !domains.iter().all(FreeDomain::can_serve_one))
            || (has(PruningRule::Pigeonhole) && self.violates_hall_bound(table, &domains))
            || (has(PruningRule::CounterBound) && self.counters_run_out(table, assignment, &domains))
            || self.breaks_constraint(table, assignment, &domains)
    }

    /// Returns the devices that an alternative may still get.
    fn free(&self, table: &Table<'_>, taken: &DeviceSet, want: OpenRequest) -> DeviceSet {
        let usable = &self.usable[want.alternative];
        let free =
            if table.alternative(want.alternative).admin_access { usable.clone() } else { usable.without(taken) };
        free.starting_at(want.from)
    }

    /// Returns true if each device can serve only one of the requests of a demand: no device is shareable, and no
    /// request has admin access.
    fn is_exclusive(&self, table: &Table<'_>, demand: &Demand) -> bool {
        demand.options.iter().all(|want| {
            !table.alternative(want.alternative).admin_access
                && !self.usable[want.alternative].intersects(&self.shareable)
        })
    }

    /// Returns true if some requests together need more devices than all their domains have together (Hall bound).
    fn violates_hall_bound(&self, table: &Table<'_>, domains: &[FreeDomain<'_>]) -> bool {
        let exclusive = domains.iter().filter(|domain| self.is_exclusive(table, domain.demand));
        let sets: Vec<(usize, DeviceSet)> = exclusive.map(|domain| (domain.demand.total, domain.union())).collect();
        sets.iter().any(|(_, set)| total_inside(&sets, set) > set.len())
    }

    /// Returns true if the free devices can't satisfy a constraint of a claim.
    fn breaks_constraint(
        &self,
        table: &Table<'s>,
        assignment: &PartialAssignment<'_, 's>,
        domains: &[FreeDomain<'_>],
    ) -> bool {
        // With lists off, the first device's value is not checked, so that there is no bound.
        if table.lists() == ListTypes::Disabled {
            return false;
        }
        domains.chunk_by(|left, right| left.demand.claim == right.demand.claim).any(|own| {
            let Some(claim) = own.first().map(|domain| domain.demand.claim) else { return false };
            table.plan.claims[claim].constraints.enumerate().any(|(index, constraint)| {
                // A request for zero devices takes no part in the constraint.
                let wanted = own.iter().filter(|domain| domain.demand.total > 0);
                let bound: Vec<_> = wanted.filter(|domain| is_bound(table, domain.demand, index)).collect();
                let at = (claim, index);
                match constraint.kind {
                    ConstraintKind::Match => {
                        self.pruning.has(PruningRule::CommonValue) && !self.can_match(table, assignment, at, &bound)
                    }
                    ConstraintKind::Distinct => {
                        self.pruning.has(PruningRule::AllDifferent)
                            && self.too_few_values(table, assignment, at, &bound)
                    }
                }
            })
        })
    }

    fn can_match(
        &self,
        table: &Table<'s>,
        assignment: &PartialAssignment<'_, 's>,
        (claim, constraint): (ClaimIx, ConstraintIx),
        bound: &[&FreeDomain<'_>],
    ) -> bool {
        let Some(first) = bound.first() else { return true };
        let suffices = |value: &Scalar<'s>| self.suffices(table, value, constraint, bound);
        match assignment.common(claim, constraint) {
            Some(common) => common.iter().any(suffices),
            None => first
                .demand
                .options
                .iter()
                .any(|want| self.devices_by_value[column(table, want, constraint)].keys().any(suffices)),
        }
    }

    /// Returns true if devices with `value` suffice for every request to which a `matchAttribute` constraint applies.
    fn suffices(
        &self,
        table: &Table<'_>,
        value: &Scalar<'_>,
        constraint: ConstraintIx,
        bound: &[&FreeDomain<'_>],
    ) -> bool {
        let narrowed: Vec<FreeDomain<'_>> = bound
            .iter()
            .map(|domain| {
                let free = domain.demand.options.iter().zip(&domain.free).map(|(want, free)| {
                    let devices_by_value = self.devices_by_value[column(table, want, constraint)].get(value);
                    devices_by_value.map_or_else(|| free.without(free), |devices_by_value| devices_by_value.and(free))
                });
                FreeDomain { demand: domain.demand, free: free.collect() }
            })
            .collect();
        narrowed.iter().all(FreeDomain::can_serve_one)
            && !(self.pruning.has(PruningRule::Pigeonhole) && self.violates_hall_bound(table, &narrowed))
    }

    /// Returns true if too few values, or too few devices with unused values, are left for a `distinctAttribute`
    /// constraint.
    fn too_few_values(
        &self,
        table: &Table<'s>,
        assignment: &PartialAssignment<'_, 's>,
        (claim, constraint): (ClaimIx, ConstraintIx),
        bound: &[&FreeDomain<'_>],
    ) -> bool {
        let taken = assignment.distinct(claim, constraint);
        let mut values = BTreeSet::new();
        let mut needed = 0_usize;
        for domain in bound {
            let mut is_possible = false;
            let mut sizes = Vec::new();
            for (want, free) in domain.demand.options.iter().zip(&domain.free) {
                let column = column(table, want, constraint);
                let devices_by_value = &self.devices_by_value[column];
                let mut devices = free.clone();
                for devices_by_value in taken.iter().filter_map(|value| devices_by_value.get(value)) {
                    devices = devices.without(devices_by_value);
                }
                is_possible |= devices.len() >= want.missing;
                values.extend(
                    devices_by_value
                        .iter()
                        .filter(|(_, devices_by_value)| devices_by_value.intersects(&devices))
                        .map(|(value, _)| *value),
                );
                // A device without a value can't be chosen under the constraint.
                sizes.extend(devices.iter().map(|device| self.sizes[column][device]).filter(|size| *size > 0));
            }
            if !is_possible {
                return true;
            }
            needed = needed.saturating_add(smallest(sizes, domain.demand.total));
        }
        values.len() < needed
    }

    /// Returns true if less of a counter is left, over all counter sets, than the demands consume at least.
    fn counters_run_out(
        &self,
        table: &Table<'s>,
        assignment: &PartialAssignment<'_, 's>,
        domains: &[FreeDomain<'_>],
    ) -> bool {
        if !table.has(DraGate::PartitionableDevices) {
            return false;
        }
        let exclusive = domains.iter().filter(|domain| self.is_exclusive(table, domain.demand));
        let domains: Vec<_> = exclusive.filter_map(|domain| Some((domain, self.minimum_use(domain.demand)?))).collect();
        let sets: Vec<(usize, DeviceSet)> =
            domains.iter().map(|(domain, _)| (domain.demand.total, domain.union())).collect();
        domains.iter().zip(&sets).any(|((_, minimum_use), (_, set))| {
            let wanted = i128::try_from(total_inside(&sets, set)).unwrap_or(i128::MAX);
            let left = assignment.counters_left(minimum_use.pool);
            minimum_use.least.iter().zip(&left).any(|(least, left)| least.saturating_mul(wanted) > *left)
        })
    }

    /// Returns the least counter consumption of a device for a demand, if all its alternatives use one pool.
    fn minimum_use(&self, demand: &Demand) -> Option<MinimumUse> {
        let mut options = demand.options.iter().map(|want| self.minimum_uses[want.alternative].as_ref());
        let first = options.next()??;
        let mut least = first.least.clone();
        for other in options {
            let other = other.filter(|other| other.pool == first.pool)?;
            least.iter_mut().zip(&other.least).for_each(|(least, other)| *least = (*least).min(*other));
        }
        Some(MinimumUse { pool: first.pool, least })
    }
}

impl FreeDomain<'_> {
    /// Returns true if some alternative has enough free devices for one request of the demand.
    fn can_serve_one(&self) -> bool {
        self.demand.options.iter().zip(&self.free).any(|(want, free)| free.len() >= want.missing)
    }

    /// Returns the free devices of all alternatives together.
    fn union(&self) -> DeviceSet {
        let mut sets = self.free.iter();
        let mut union = sets.next().cloned().unwrap_or_else(|| DeviceSet::new(DeviceIx::FIRST));
        sets.for_each(|set| union.union(set));
        union
    }
}

/// Returns the sum of the `count` smallest numbers.
fn smallest(mut numbers: Vec<usize>, count: usize) -> usize {
    numbers.sort_unstable();
    numbers.into_iter().take(count).fold(0, usize::saturating_add)
}

/// Returns the number of devices needed by all requests whose domains are subsets of `set`.
fn total_inside(sets: &[(usize, DeviceSet)], set: &DeviceSet) -> usize {
    let inside = sets.iter().filter(|(_, other)| other.is_subset(set));
    inside.map(|(total, _)| *total).fold(0, usize::saturating_add)
}

/// Returns, by claim and request, the demands of the request and of all later ones. Interchangeable requests are one
/// demand.
fn demands(table: &Table<'_>, all: &DevicesOfAll, usable: &ByAlternative<DeviceSet>) -> Demands {
    let mut rest: Vec<Demand> = Vec::new();
    let mut demands = Vec::new();
    for (claim, object) in table.plan.claims.enumerate().rev() {
        let mut own = vec![rest.clone()];
        for request in object.requests.iter().rev() {
            let want = |alternative| OpenRequest {
                alternative,
                missing: table.wanted(all, alternative),
                from: DeviceIx::FIRST,
            };
            let options: Vec<OpenRequest> = request.alternatives.into_iter().map(want).collect();
            let total = options.iter().map(|want| want.missing).min().unwrap_or(0);
            let same =
                rest.iter_mut().find(|other| other.claim == claim && is_alike(table, usable, &other.options, &options));
            match same {
                Some(other) => other.total = other.total.saturating_add(total),
                None => rest.insert(0, Demand { claim, options, total }),
            }
            own.insert(0, rest.clone());
        }
        demands.insert(0, own.into_iter().collect());
    }
    demands.into_iter().collect()
}

/// Returns true if two requests need the same number of devices from the same domain under the same constraints.
fn is_alike(table: &Table<'_>, usable: &ByAlternative<DeviceSet>, left: &[OpenRequest], right: &[OpenRequest]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| {
            let (one, other) = (table.alternative(left.alternative), table.alternative(right.alternative));
            left.missing == right.missing
                && one.constraints == other.constraints
                && one.admin_access == other.admin_access
                && usable.at(left.alternative) == usable.at(right.alternative)
        })
}

/// Returns true if the constraint applies to every alternative of the demand.
fn is_bound(table: &Table<'_>, demand: &Demand, constraint: ConstraintIx) -> bool {
    demand.options.iter().all(|want| {
        let constraints = &table.alternative(want.alternative).constraints;
        constraints.iter().any(|(index, _)| *index == constraint)
    })
}

fn column(table: &Table<'_>, want: &OpenRequest, constraint: ConstraintIx) -> ColumnIx {
    let constraints = &table.alternative(want.alternative).constraints;
    constraints.iter().find(|(index, _)| *index == constraint).map_or(ColumnIx::FIRST, |(_, column)| *column)
}

fn devices_by_value<'s>(table: &Table<'s>, column: ColumnIx) -> Result<BTreeMap<Scalar<'s>, DeviceSet>, AllocateError> {
    let mut devices_by_value: BTreeMap<Scalar<'s>, DeviceSet> = BTreeMap::new();
    for device in table.candidates.all() {
        for value in table.values(column, device)?.values() {
            devices_by_value.entry(*value).or_insert_with(|| DeviceSet::new(table.candidates.end())).insert(device);
        }
    }
    Ok(devices_by_value)
}

/// Returns the number of attribute values of each device.
fn sizes(devices_by_value: &BTreeMap<Scalar<'_>, DeviceSet>, devices: IxRange<Device>) -> ByDevice<usize> {
    let mut sizes: ByDevice<usize> = devices.into_iter().map(|_| 0).collect();
    for device in devices_by_value.values().flat_map(DeviceSet::iter) {
        sizes[device] = sizes[device].saturating_add(1);
    }
    sizes
}

/// Returns the domain of an alternative: the devices that it could get if nothing else were chosen.
fn usable(table: &Table<'_>, alternative: AlternativeIx, meter: &mut Meter<'_>) -> Result<DeviceSet, Halt> {
    let mut usable = DeviceSet::new(table.candidates.end());
    let admin = table.alternative(alternative).admin_access;
    for device in table.candidates.all() {
        meter.step()?;
        let is_held = !admin && table.in_use(device).is_some_and(DeviceUsage::is_exclusive);
        let is_selected = table.selection(alternative, device)? == Selection::Admitted;
        let fits = !table.has(DraGate::ConsumableCapacity)
            || matches!(table.fit(alternative, device)?, CapacityCheck::Takes(_));
        if table.has(DraGate::PartitionableDevices) {
            table.consumption(device)?;
        }
        if !is_held && is_selected && fits && table.may_skip(device) && table.taint(alternative, device).is_none() {
            usable.insert(device);
        }
    }
    Ok(usable)
}

/// Returns the least amount of each counter name that any of the devices consumes, if all are of one pool.
fn minimum_use(table: &Table<'_>, devices: &DeviceSet) -> Result<Option<MinimumUse>, AllocateError> {
    let pools = || devices.iter().map(|device| table.candidate(device).pool);
    let Some(pool) = pools().next().filter(|first| pools().all(|pool| pool == *first)) else { return Ok(None) };
    if !table.has(DraGate::PartitionableDevices) {
        return Ok(None);
    }
    let counters = table.counters(pool)?;
    let mut least: Option<ByCounterName<i128>> = None;
    for device in devices.iter() {
        let amounts = counters.by_name(table.consumption(device)?);
        least = Some(match least {
            None => amounts,
            Some(least) => least.iter().zip(&amounts).map(|(left, right)| *left.min(right)).collect(),
        });
    }
    Ok(least.map(|least| MinimumUse { pool, least }))
}

/// Returns true if a device consumes a negative amount of a counter or a capacity.
fn has_negative_consumption(table: &Table<'_>, meter: &mut Meter<'_>) -> Result<bool, Halt> {
    let (counters, capacity) = (table.has(DraGate::PartitionableDevices), table.has(DraGate::ConsumableCapacity));
    for device in table.candidates.all() {
        meter.step()?;
        let consumed = if counters { table.consumption(device)? } else { &[] };
        if consumed.iter().flat_map(|consumed| &consumed.amounts).any(|(_, amount)| *amount < 0) {
            return Ok(true);
        }
        for alternative in table.plan.alternatives.range() {
            let is_negative = |fit: &CapacityCheck<'_>| matches!(fit, CapacityCheck::Takes(amounts) if amounts.iter().any(is_below_zero));
            if capacity && is_negative(table.fit(alternative, device)?) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn is_below_zero(amount: &Amount<'_>) -> bool {
    amount.quantity.nanos() < 0
}
