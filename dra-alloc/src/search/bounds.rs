//! Bounds: proofs that the open requests can't be served by what is left.
//!
//! Every bound overestimates what a solution could use, and underestimates what it needs.

use dra_attrs::{Gate, Scalar};
use dra_device::MAX_DEVICES_PER_CLAIM;

use super::capacity_check::CapacityCheck;
use super::column_values::ColumnValues;
use super::demand::{Demand, FreeDomain, OpenRequest};
use super::device_set::DeviceSet;
use super::domains::Domains;
use super::ix::{ByAlternative, ByCounterName, ByDevice, ClaimIx, ColumnIx, ConstraintIx, DeviceIx, PoolIx};
use super::partial_assignment::PartialAssignment;
use super::pruning_rules::{PruningRule, PruningRules};
use super::request::ConstraintKind;
use super::table::Table;

/// Data of the bounds, computed once for all alternatives.
pub(crate) struct Bounds {
    /// For each alternative: the least amount of each counter name that any of its devices consumes.
    minimum_uses: ByAlternative<Option<MinimumUse>>,
    /// For each device that can be shared: the least amount of each capacity that any alternative takes.
    least_shares: ByDevice<Vec<i128>>,
}

/// Least amount that any device of a set consumes of the counters of each name. All devices are of one pool.
struct MinimumUse {
    pool: PoolIx,
    least: ByCounterName<i128>,
}

/// The question of one bound: what is fixed, and what is open.
#[derive(Clone, Copy)]
pub(crate) struct Query<'q, 't, 's> {
    pub(crate) table: &'q Table<'s>,
    pub(crate) domains: &'q Domains<'s>,
    pub(crate) assignment: &'q PartialAssignment<'t, 's>,
    pub(crate) rules: PruningRules,
}

/// Place of a constraint: its claim, and its position there.
type At = (ClaimIx, ConstraintIx);

impl Bounds {
    pub(crate) fn new(table: &Table<'_>, domains: &Domains<'_>) -> Self {
        Self {
            minimum_uses: domains.usable.iter().map(|usable| minimum_use(table, usable)).collect(),
            least_shares: least_shares(table, domains),
        }
    }

    /// Returns true if the demands can't be met.
    pub(crate) fn fail(&self, query: Query<'_, '_, '_>, free: &[FreeDomain<'_>]) -> bool {
        let has = |rule| query.rules.has(rule);
        (has(PruningRule::ForwardChecking) && !free.iter().all(FreeDomain::can_serve_one))
            || (has(PruningRule::ResultLimit) && exceeds_limit(query, free))
            || (has(PruningRule::Pigeonhole) && self.violates_hall_bound(query, free))
            || (has(PruningRule::CounterBound) && self.counters_run_out(query, free))
            || (has(PruningRule::Packing) && exceeds_packing(query, free))
            || self.breaks_constraint(query, free)
    }

    /// Returns the values that all open devices under a `matchAttribute` constraint can have; `None` if the constraint
    /// does not limit them.
    pub(crate) fn common_values<'s>(
        &self,
        query: Query<'_, '_, 's>,
        free: &[FreeDomain<'_>],
        at: At,
        column: ColumnIx,
    ) -> Option<Vec<Scalar<'s>>> {
        if !query.rules.has(PruningRule::CommonValue) {
            return None;
        }
        let bound: Vec<&FreeDomain<'_>> = bound_by(query.table, free, at);
        if bound.is_empty() || may_stay_unchecked(query, &bound, at) {
            return None;
        }
        let suffices = |value: &Scalar<'_>| self.suffices(query, value, at.1, &bound);
        Some(match query.assignment.common(at.0, at.1) {
            Some(common) => common.iter().copied().filter(suffices).collect(),
            None => query.domains.columns[column].holders.keys().copied().filter(suffices).collect(),
        })
    }

    /// Returns true if some requests together need more devices, or shares of devices, than all their domains have
    /// together (Hall bound).
    ///
    /// *Argument* of [`PruningRule::Pigeonhole`]: requests that can only take devices of a set need at most as many as the set has
    /// places. An exclusive device is one place. A shared one has what is left of a capacity, divided by the smallest share of any
    /// request.
    fn violates_hall_bound(&self, query: Query<'_, '_, '_>, free: &[FreeDomain<'_>]) -> bool {
        let counted = free.iter().filter(|domain| !has_admin(query.table, domain.demand));
        let sets: Vec<(usize, DeviceSet)> = counted.map(|domain| (domain.demand.total, domain.union())).collect();
        let all = sets.iter().fold(0_usize, |sum, (total, _)| sum.saturating_add(*total));
        sets.iter().any(|(_, set)| {
            let places = self.places(query, set, all);
            places < all && total_inside(&sets, set) > places
        })
    }

    /// Returns an upper bound of the number of requests that the devices of a set can serve, or any number from `enough` on.
    fn places(&self, query: Query<'_, '_, '_>, set: &DeviceSet, enough: usize) -> usize {
        if !set.intersects(&query.domains.shareable) {
            return set.len();
        }
        let shareable = set.and(&query.domains.shareable);
        let mut places = set.without(&shareable).len();
        for device in shareable.iter() {
            if places >= enough {
                break;
            }
            places = places.saturating_add(self.shares_left(query, device));
        }
        places
    }

    /// Returns an upper bound of the number of further shares of a device.
    fn shares_left(&self, query: Query<'_, '_, '_>, device: DeviceIx) -> usize {
        let consumed = query
            .assignment
            .share_state(device)
            .map_or(&[][..], |share| share.consumed)
            .iter()
            .map(|amount| amount.nanos())
            .chain(std::iter::repeat(0));
        let capacities = query.table.capacities(device).unwrap_or_default().iter().zip(consumed);
        let shares = capacities.zip(&self.least_shares[device]).filter(|(_, least)| **least > 0);
        let shares = shares.map(|((capacity, consumed), least)| {
            let before = query.table.consumed(device, capacity.name).nanos();
            let left = capacity.value().nanos().saturating_sub(before).saturating_sub(consumed);
            usize::try_from(left.checked_div(*least).unwrap_or(0).max(0)).unwrap_or(usize::MAX)
        });
        shares.min().unwrap_or(usize::MAX)
    }

    /// Returns true if the free devices can't satisfy a constraint of a claim.
    fn breaks_constraint(&self, query: Query<'_, '_, '_>, free: &[FreeDomain<'_>]) -> bool {
        free.chunk_by(|left, right| left.demand.claim == right.demand.claim).any(|own| {
            let Some(claim) = own.first().map(|domain| domain.demand.claim) else { return false };
            query.table.plan.claims[claim].constraints.enumerate().any(|(index, constraint)| {
                let at = (claim, index);
                let bound = bound_by(query.table, own, at);
                match constraint.kind {
                    ConstraintKind::Match => {
                        query.rules.has(PruningRule::CommonValue) && !self.can_match(query, at, &bound)
                    }
                    ConstraintKind::Distinct => {
                        query.rules.has(PruningRule::AllDifferent) && too_few_values(query, at, &bound)
                    }
                }
            })
        })
    }

    /// Returns true if some value serves all requests under a `matchAttribute` constraint.
    ///
    /// *Argument* of [`PruningRule::CommonValue`]: all devices under the constraint have one value, so that the rules before hold among
    /// the holders of each value.
    fn can_match(&self, query: Query<'_, '_, '_>, at: At, bound: &[&FreeDomain<'_>]) -> bool {
        let Some(first) = bound.first() else { return true };
        if may_stay_unchecked(query, bound, at) {
            return true;
        }
        let suffices = |value: &Scalar<'_>| self.suffices(query, value, at.1, bound);
        match query.assignment.common(at.0, at.1) {
            Some(common) => common.iter().any(suffices),
            None => first
                .demand
                .options
                .iter()
                .any(|want| query.domains.columns[column(query.table, want, at.1)].holders.keys().any(suffices)),
        }
    }

    /// Returns true if devices with `value` suffice for every request to which a `matchAttribute` constraint applies.
    fn suffices(
        &self,
        query: Query<'_, '_, '_>,
        value: &Scalar<'_>,
        constraint: ConstraintIx,
        bound: &[&FreeDomain<'_>],
    ) -> bool {
        let holders =
            |want: &OpenRequest| query.domains.columns[column(query.table, want, constraint)].holders.get(value);
        // The union is made only for domains that suffice alone.
        let has_each = bound.iter().all(|domain| {
            domain
                .demand
                .options
                .iter()
                .zip(&domain.free)
                .any(|(want, free)| holders(want).map_or(0, |holders| holders.common(free)) >= want.missing)
        });
        if !has_each || !query.rules.has(PruningRule::Pigeonhole) {
            return has_each;
        }
        let all = bound.iter().map(|domain| domain.demand.total).fold(0, usize::saturating_add);
        let is_ample = |domain: &&FreeDomain<'_>| {
            let mut options = domain.demand.options.iter().zip(&domain.free);
            options.any(|(want, free)| holders(want).is_some_and(|holders| holders.common(free) >= all))
        };
        if query.domains.shareable.is_empty() && bound.iter().all(is_ample) {
            return true;
        }
        let narrowed: Vec<FreeDomain<'_>> = bound
            .iter()
            .map(|domain| {
                let free =
                    domain.demand.options.iter().zip(&domain.free).map(|(want, free)| {
                        holders(want).map_or_else(|| free.without(free), |holders| holders.and(free))
                    });
                FreeDomain { demand: domain.demand, free: free.collect() }
            })
            .collect();
        !self.violates_hall_bound(query, &narrowed)
    }

    /// Returns true if less of a counter is left, over all counter sets, than the demands consume at least.
    ///
    /// *Argument* of [`PruningRule::CounterBound`]: each further device takes at least the smallest amount that any of them takes of the
    /// counters of one name.
    fn counters_run_out(&self, query: Query<'_, '_, '_>, free: &[FreeDomain<'_>]) -> bool {
        if !query.table.has(Gate::PartitionableDevices) {
            return false;
        }
        let exclusive = free.iter().filter(|domain| is_exclusive(query, domain.demand));
        let domains: Vec<_> = exclusive.filter_map(|domain| Some((domain, self.minimum_use(domain.demand)?))).collect();
        let sets: Vec<(usize, DeviceSet)> =
            domains.iter().map(|(domain, _)| (domain.demand.total, domain.union())).collect();
        domains.iter().zip(&sets).any(|((_, minimum_use), (_, set))| {
            let wanted = i128::try_from(total_inside(&sets, set)).unwrap_or(i128::MAX);
            let left = query.assignment.counters_left(minimum_use.pool);
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

/// Returns true if a claim would get more devices than an allocation may have, even with the smallest alternatives.
///
/// *Argument* of [`PruningRule::ResultLimit`]: the devices of the claim so far, and the fewest that its open requests can get, are
/// too many. The search of kube-scheduler ends such a branch early and skips further devices; those have no solution either, as only
/// numbers decide.
fn exceeds_limit(query: Query<'_, '_, '_>, free: &[FreeDomain<'_>]) -> bool {
    let claims = free.chunk_by(|left, right| left.demand.claim == right.demand.claim);
    claims.into_iter().any(|own| least_of_claim(query, own) > MAX_DEVICES_PER_CLAIM)
}

/// Leaves no device to alternatives with which their claim would get more devices than an allocation may have.
pub(crate) fn keep_to_limit(query: Query<'_, '_, '_>, free: &mut [FreeDomain<'_>]) {
    if !query.rules.has(PruningRule::ResultLimit) {
        return;
    }
    for own in free.chunk_by_mut(|left, right| left.demand.claim == right.demand.claim) {
        let least = least_of_claim(query, own);
        for domain in own.iter_mut().filter(|domain| !domain.demand.is_part) {
            let fewest = domain.demand.options.iter().map(|want| want.missing).min().unwrap_or(0);
            for (want, free) in domain.demand.options.iter().zip(&mut domain.free) {
                if least.saturating_add(want.missing - fewest) > MAX_DEVICES_PER_CLAIM {
                    free.clear();
                }
            }
        }
    }
}

/// Returns the least number of devices that a claim gets if its open demands are met.
fn least_of_claim(query: Query<'_, '_, '_>, own: &[FreeDomain<'_>]) -> usize {
    let has = own.first().map_or(0, |domain| query.assignment.device_count(domain.demand.claim));
    own.iter().map(|domain| domain.demand.total).fold(has, usize::saturating_add)
}

/// Returns true if several constraints together need more devices with a common value than the values have: a value
/// with `f` free devices serves at most `f / k` constraints that need `k` devices or more each.
///
/// *Argument* of [`PruningRule::Packing`]: the largest needs are counted first, so that `k` is the smallest of the needs counted so
/// far. A device with a list would be counted for each of its values, so that lists are left out.
fn exceeds_packing(query: Query<'_, '_, '_>, free: &[FreeDomain<'_>]) -> bool {
    let mut bundles: Vec<Bundle> = Vec::new();
    for own in free.chunk_by(|left, right| left.demand.claim == right.demand.claim) {
        let Some(claim) = own.first().map(|domain| domain.demand.claim) else { continue };
        let mut used = vec![false; own.len()];
        for (index, constraint) in query.table.plan.claims[claim].constraints.enumerate() {
            if constraint.kind == ConstraintKind::Match {
                bundles.extend(bundle(query, own, (claim, index), &mut used));
            }
        }
    }
    bundles.sort_by_key(|bundle| (bundle.column, std::cmp::Reverse(bundle.needed)));
    bundles.chunk_by(|left, right| left.column == right.column).any(|same| overflows(query, same))
}

/// Devices that must have a value of a column in common.
struct Bundle {
    column: ColumnIx,
    needed: usize,
    domain: DeviceSet,
}

/// Returns what a `matchAttribute` constraint without devices needs, of demands that no other constraint has counted.
fn bundle(query: Query<'_, '_, '_>, own: &[FreeDomain<'_>], at: At, used: &mut [bool]) -> Option<Bundle> {
    if !query.assignment.is_unused(at.0, at.1) {
        return None;
    }
    let mut found: Option<Bundle> = None;
    for (domain, used) in own.iter().zip(used) {
        let demand = domain.demand;
        let options = &demand.options;
        let Some(column) = options.first().filter(|_| demand.total > 0).map(|want| column(query.table, want, at.1))
        else {
            continue;
        };
        let is_counted = !*used && is_bound(query.table, demand, at.1) && is_exclusive(query, demand);
        if !is_counted || options.iter().any(|want| self::column(query.table, want, at.1) != column) {
            continue;
        }
        let bundle = found.get_or_insert_with(|| Bundle {
            column,
            needed: 0,
            domain: DeviceSet::new(query.domains.devices.end),
        });
        if bundle.column == column {
            *used = true;
            bundle.needed = bundle.needed.saturating_add(demand.total);
            bundle.domain.union(&domain.union());
        }
    }
    found
}

/// Returns true if the bundles of one column, the largest first, need more than its values have.
fn overflows(query: Query<'_, '_, '_>, bundles: &[Bundle]) -> bool {
    let Some(column) = bundles.first().filter(|_| bundles.len() > 1).map(|bundle| bundle.column) else { return false };
    let ColumnValues { holders, listed, unseen, .. } = &query.domains.columns[column];
    let mut domain = DeviceSet::new(query.domains.devices.end);
    for (bundle, count) in bundles.iter().zip(1_usize..) {
        domain.union(&bundle.domain);
        let is_last = bundles.get(count).is_none_or(|next| next.needed < bundle.needed);
        // A device with several values may be counted for each; one that is not checked has none.
        if bundle.needed < 2 || domain.intersects(listed) || domain.intersects(unseen) {
            return false;
        }
        let serves = |holders: &DeviceSet| holders.common(&domain).checked_div(bundle.needed).unwrap_or(0);
        if is_last && holders.values().map(serves).fold(0, usize::saturating_add) < count {
            return true;
        }
    }
    false
}

/// Returns true if too few values, or too few devices with unused values, are left for a `distinctAttribute` constraint.
///
/// *Argument* of [`PruningRule::AllDifferent`]: the devices still needed take at least the smallest numbers of values among those
/// left, which must fit into the free values. Each must find a value of its own: a matching in a bipartite graph.
fn too_few_values(query: Query<'_, '_, '_>, at: At, bound: &[&FreeDomain<'_>]) -> bool {
    let taken = query.assignment.distinct(at.0, at.1);
    let is_first = query.assignment.is_unused(at.0, at.1);
    let (mut needs, mut needed, mut unchecked) = (Vec::new(), 0_usize, 0_usize);
    for domain in bound {
        let mut is_possible = false;
        let (mut single, mut sizes, mut values) = (0_usize, Vec::new(), Vec::new());
        for (want, free) in domain.demand.options.iter().zip(&domain.free) {
            let column = &query.domains.columns[column(query.table, want, at.1)];
            let mut devices = free.clone();
            taken.iter().filter_map(|value| column.holders.get(value)).for_each(|holders| devices.subtract(holders));
            if !is_first {
                devices.subtract(&column.unseen);
            } else if devices.intersects(&column.unseen) {
                // The first device of the constraint may be one without a value.
                unchecked = 1;
            }
            is_possible |= devices.len() >= want.missing;
            values.extend(
                column.holders.iter().filter(|(_, holders)| holders.intersects(&devices)).map(|(value, _)| *value),
            );
            single = single.saturating_add(devices.common(&column.single));
            if single < domain.demand.total {
                sizes.extend(devices.and(&column.listed).iter().map(|device| column.sizes[device]));
            }
        }
        if !is_possible {
            return true;
        }
        values.sort_unstable();
        values.dedup();
        // Devices with one value are the smallest.
        let of_lists = domain.demand.total.saturating_sub(single);
        needed = needed.saturating_add(single.min(domain.demand.total)).saturating_add(smallest(sizes, of_lists));
        needs.push((domain.demand.total, values));
    }
    let total = needs.iter().map(|(total, _)| *total).fold(0, usize::saturating_add);
    if needs.iter().all(|(_, values)| values.len() >= total.max(needed)) {
        return false;
    }
    let mut values: Vec<Scalar<'_>> = needs.iter().flat_map(|(_, values)| values).copied().collect();
    values.sort_unstable();
    values.dedup();
    // Without a value, the first device leaves at most one place less to fill; the sum of sizes is no bound then.
    (unchecked == 0 && values.len() < needed) || unmatched(&needs, &values, unchecked) > unchecked
}

/// Returns the number of places that can't have a value of their own, or any larger number than `most`.
fn unmatched(needs: &[(usize, Vec<Scalar<'_>>)], values: &[Scalar<'_>], most: usize) -> usize {
    let mut holder: Vec<Option<usize>> = vec![None; values.len()];
    let mut missing = 0;
    for (need, (total, _)) in needs.iter().enumerate() {
        for _ in 0..*total {
            let mut seen = vec![false; values.len()];
            if !assign(needs, values, need, &mut holder, &mut seen) {
                missing += 1;
                if missing > most {
                    return missing;
                }
            }
        }
    }
    missing
}

/// Gives a value to one more place of a need, taking values from other needs that can have another one. Depth and time
/// are bounded by the values.
fn assign(
    needs: &[(usize, Vec<Scalar<'_>>)],
    values: &[Scalar<'_>],
    need: usize,
    holder: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    // Breadth first: `from` has the value through which each need was reached.
    let mut from: Vec<Option<(usize, usize)>> = vec![None; needs.len()];
    let mut queue = std::collections::VecDeque::from([need]);
    let mut reached = vec![false; needs.len()];
    if let Some(reached) = reached.get_mut(need) {
        *reached = true;
    }
    while let Some(at) = queue.pop_front() {
        for value in needs.get(at).into_iter().flat_map(|(_, values)| values) {
            let Ok(index) = values.binary_search(value) else { continue };
            let Some(seen) = seen.get_mut(index).filter(|seen| !**seen) else { continue };
            *seen = true;
            match holder.get(index).copied().flatten() {
                None => {
                    hand_over(&from, holder, at, index);
                    return true;
                }
                Some(other) => {
                    if let Some(reached) = reached.get_mut(other).filter(|reached| !**reached) {
                        *reached = true;
                        if let Some(from) = from.get_mut(other) {
                            *from = Some((at, index));
                        }
                        queue.push_back(other);
                    }
                }
            }
        }
    }
    false
}

/// Gives a free value to the last need of a chain, whose value goes to the need before, and so on.
fn hand_over(from: &[Option<(usize, usize)>], holder: &mut [Option<usize>], last: usize, free: usize) {
    let (mut at, mut value) = (last, free);
    loop {
        if let Some(holder) = holder.get_mut(value) {
            *holder = Some(at);
        }
        let Some((before, through)) = from.get(at).copied().flatten() else { return };
        (at, value) = (before, through);
    }
}

/// Returns the demands to which a constraint applies in every alternative. A request for zero devices takes no part.
fn bound_by<'f, 'd>(table: &Table<'_>, free: &'f [FreeDomain<'d>], (claim, index): At) -> Vec<&'f FreeDomain<'d>> {
    let own = free.iter().filter(|domain| domain.demand.claim == claim && domain.demand.total > 0);
    own.filter(|domain| !domain.demand.is_part && is_bound(table, domain.demand, index)).collect()
}

/// Returns true if a `matchAttribute` constraint may end with one device, which Kubernetes 1.37 does not check.
fn may_stay_unchecked(query: Query<'_, '_, '_>, bound: &[&FreeDomain<'_>], at: At) -> bool {
    let total = bound.iter().map(|domain| domain.demand.total).fold(0, usize::saturating_add);
    let is_unseen = |domain: &&FreeDomain<'_>| {
        domain
            .demand
            .options
            .iter()
            .zip(&domain.free)
            .any(|(want, free)| free.intersects(&query.domains.columns[column(query.table, want, at.1)].unseen))
    };
    total <= 1 && query.assignment.is_unused(at.0, at.1) && bound.iter().any(is_unseen)
}

/// Returns true if each device can serve only one of the requests of a demand: no device is shareable, and no request
/// has admin access.
fn is_exclusive(query: Query<'_, '_, '_>, demand: &Demand) -> bool {
    let Domains { usable, shareable, .. } = query.domains;
    !demand.is_part
        && !has_admin(query.table, demand)
        && demand.options.iter().all(|want| !usable[want.alternative].intersects(shareable))
}

fn has_admin(table: &Table<'_>, demand: &Demand) -> bool {
    demand.options.iter().any(|want| table.alternative(want.alternative).admin_access)
}

/// Returns true if the constraint applies to every alternative of the demand.
fn is_bound(table: &Table<'_>, demand: &Demand, constraint: ConstraintIx) -> bool {
    demand.options.iter().all(|want| table.alternative(want.alternative).is_bound_by(constraint))
}

fn column(table: &Table<'_>, want: &OpenRequest, constraint: ConstraintIx) -> ColumnIx {
    let constraints = &table.alternative(want.alternative).constraints;
    constraints.iter().find(|(index, _)| *index == constraint).map_or(ColumnIx::FIRST, |(_, column)| *column)
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

/// Returns the least amount of each counter name that any of the devices consumes, if all are of one pool.
fn minimum_use(table: &Table<'_>, devices: &DeviceSet) -> Option<MinimumUse> {
    let pools = || devices.iter().map(|device| table.candidate(device).pool);
    let pool = pools().next().filter(|first| pools().all(|pool| pool == *first))?;
    if !table.has(Gate::PartitionableDevices) {
        return None;
    }
    let counters = table.counters(pool).ok()?;
    let mut least: Option<ByCounterName<i128>> = None;
    for device in devices.iter() {
        let amounts = counters.by_name(table.consumption(device).ok()?);
        least = Some(match least {
            None => amounts,
            Some(least) => least.iter().zip(&amounts).map(|(left, right)| *left.min(right)).collect(),
        });
    }
    Some(MinimumUse { pool, least: least? })
}

/// Returns for each device that can be shared the least amounts that alternatives take.
fn least_shares(table: &Table<'_>, domains: &Domains<'_>) -> ByDevice<Vec<i128>> {
    let mut least: ByDevice<Vec<i128>> = domains.devices.into_iter().map(|_| Vec::new()).collect();
    for device in domains.shareable.iter() {
        let questions = domains.questions.enumerate().filter(|(alternative, question)| alternative == *question);
        let takes = questions.filter_map(|(alternative, _)| match table.fit(alternative, device) {
            Ok(CapacityCheck::Takes(amounts)) => Some(amounts),
            _ => None,
        });
        for amounts in takes {
            let amounts = amounts.iter().map(|amount| amount.quantity.nanos());
            if least[device].is_empty() {
                least[device] = amounts.collect();
            } else {
                least[device].iter_mut().zip(amounts).for_each(|(least, amount)| *least = (*least).min(amount));
            }
        }
    }
    least
}
