//! Nodes that are answered without a search, since fewer devices could be given than are asked for.
//!
//! A node without any such device needs no further argument: the search looks at devices only. Where there are some, but
//! too few, the search may come to an error before it is out of devices. So the count decides only if no look at a device
//! can end in an error:
//!
//! - the requests are valid, ask for a number of devices, and for nothing of their capacities; their selectors read the
//!   driver alone; no constraint compares a computed attribute ([`is_harmless`]);
//! - the devices have valid attributes and simple capacities, are not shared, consume no counters, and are for all nodes
//!   that see their slice ([`Pool::is_plain`]).
//!
//! The count reads no gate, but that of partitions, which decides what slices are read: with any other gate on, the answer
//! is the same.

use super::all_devices::{LIMIT, fewest};
use super::candidates::{Candidates, may_admit};
use super::context::Context;
use super::elisions::Elision;
use super::ix::AlternativeIx;
use super::request::{Claim, Mode, Plan, Request};
use crate::cluster::inventory::pool::Pool;

/// Number of pools up to which devices are counted. A search on a node with more may end before it has seen them all.
const FEW_POOLS: usize = 16;

/// Returns true if the search would find neither a solution nor an error, since there are too few devices.
pub(super) fn has_too_few(context: &Context<'_>, plan: &Plan<'_>, candidates: &Candidates<'_>) -> bool {
    if context.elisions.has(Elision::NoDevice) && candidates.is_empty() {
        return needs_device(plan);
    }
    context.elisions.has(Elision::TooFew)
        && candidates.pool_count() <= FEW_POOLS
        && is_short(context, plan, candidates)
        && is_harmless(context, plan)
        && candidates
            .counted(|_| true)
            .all(|(pool, devices)| devices == 0 || pool.is_plain() && context.selectors.can_read(pool))
}

/// Returns true if the claims of a plan are valid and can't be allocated without any device: the first request that the
/// search comes to asks for one, and no request asks for all devices, whose number is not known without looking.
fn needs_device(plan: &Plan<'_>) -> bool {
    let first = plan.claims.iter().flat_map(|claim| &claim.requests).next();
    is_valid(plan)
        && first.is_some_and(|request| request.alternatives.into_iter().all(|alternative| count(plan, alternative) > 0))
}

/// Returns true if no claim of a plan has an error, and all requests ask for a number of devices.
fn is_valid(plan: &Plan<'_>) -> bool {
    let is_valid = |claim: &Claim<'_>| {
        claim.request_error.is_none()
            && claim.constraint_error.is_none()
            && fewest(claim, |alternative| count(plan, alternative)) <= LIMIT
    };
    plan.alternatives.iter().all(|asked| asked.mode != Mode::All) && plan.claims.iter().all(is_valid)
}

/// Returns true if the search of the claims can't come to an error on plain devices.
fn is_harmless(context: &Context<'_>, plan: &Plan<'_>) -> bool {
    let look = || {
        is_valid(plan)
            && plan.columns.iter().all(|column| column.derived.is_none())
            && plan.alternatives.iter().all(|asked| asked.capacity.is_empty() && !asked.admin_access)
            && plan.alternatives.iter().all(|asked| asked.reads_driver_alone(context.selectors))
    };
    *plan.harmless.get_or_init(look)
}

/// Returns true if a request, or all together, ask for more devices than there are.
fn is_short(context: &Context<'_>, plan: &Plan<'_>, candidates: &Candidates<'_>) -> bool {
    let is_unmet = |request: &Request<'_>| {
        request.alternatives.into_iter().all(|alternative| {
            let admits = |pool: &Pool| may_admit(&plan.alternatives[alternative], pool, context.selectors);
            let there: usize = candidates.counted(admits).map(|(_, devices)| devices).sum();
            count(plan, alternative) > u64::try_from(there).unwrap_or(u64::MAX)
        })
    };
    let there = u64::try_from(candidates.all().len()).unwrap_or(u64::MAX);
    let wanted = plan.claims.iter().map(|claim| fewest(claim, |alternative| count(plan, alternative)));
    let has_several = plan.alternatives.len() > 1;
    wanted.fold(0, u64::saturating_add) > there
        || has_several && plan.claims.iter().flat_map(|claim| &claim.requests).any(is_unmet)
}

/// Returns the number of devices that an alternative asks for; 0 for all devices.
fn count(plan: &Plan<'_>, alternative: AlternativeIx) -> u64 {
    match plan.alternatives.at(alternative).map(|asked| asked.mode) {
        Some(Mode::Exactly(count)) => count,
        Some(Mode::All) | None => 0,
    }
}
