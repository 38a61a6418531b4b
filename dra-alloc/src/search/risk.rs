//! Risks: requests whose search may end in an error.
//!
//! A request is *risky* if a check of one of its devices may fail, or if it asks for all devices and two of them may
//! violate a constraint. The latter ends in an error only if all of certain devices are free when the search comes to it;
//! as soon as one of them is taken, the risk is *settled*: the request can but fail.

use dra_attrs::{DistinctState, MatchState};
use dra_device::MAX_DEVICES_PER_CLAIM;

use super::device_set::DeviceSet;
use super::domains::{Domains, is_refused};
use super::ix::{AlternativeIx, ByAlternative, ClaimIx, ColumnIx, ConstraintIx, DeviceIx, Place};
use super::request::{Claim, ConstraintKind, Mode};
use super::table::{DevicesOfAll, Table};

/// Risk that the search of an alternative ends in an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Risk {
    None,
    /// The alternative asks for all devices, and may end in an error if all of these are free; otherwise it just fails.
    IfFree(DeviceSet),
    Always,
}

/// For each alternative: the risk of its search.
pub(super) type Risks = ByAlternative<Risk>;

/// Returns the risk of each alternative.
pub(super) fn risks(table: &Table<'_>, all: &DevicesOfAll, domains: &Domains<'_>) -> Risks {
    table.plan.alternatives.range().into_iter().map(|alternative| risk(table, all, domains, alternative)).collect()
}

/// Returns the risks that are left once all that can be settled are; `None` if no risk can be.
pub(super) fn without_settled(table: &Table<'_>, risks: &Risks) -> Option<Risks> {
    let can_settle = |alternative| needed(table, alternative, &risks[alternative]).is_some();
    let left =
        |(alternative, risk): (AlternativeIx, &Risk)| if can_settle(alternative) { Risk::None } else { risk.clone() };
    risks.range().into_iter().any(can_settle).then(|| risks.enumerate().map(left).collect())
}

/// Returns the devices of which one that is taken settles the risk; `None` if nothing does.
fn needed<'r>(table: &Table<'_>, alternative: AlternativeIx, risk: &'r Risk) -> Option<&'r DeviceSet> {
    match risk {
        // Admin access takes what others have.
        Risk::IfFree(needed) if !table.alternative(alternative).admin_access => Some(needed),
        _ => None,
    }
}

/// Returns true if no request from a place on can end in an error while the devices are taken.
///
/// *Argument* of [`PruningRule::SettledRisks`](super::pruning_rules::PruningRule): a risk is settled once a device that it needs is
/// taken, since the request can only fail then. So the bounds may look beyond it.
pub(super) fn are_settled(table: &Table<'_>, risks: &Risks, (claim, request): Place, taken: &DeviceSet) -> bool {
    let is_settled = |alternative: AlternativeIx| {
        let risk = &risks[alternative];
        *risk == Risk::None || needed(table, alternative, risk).is_some_and(|needed| needed.intersects(taken))
    };
    let claims = table.plan.claims.enumerate().skip(claim.into());
    claims
        .flat_map(|(index, object)| object.requests.iter().skip(if index == claim { request.into() } else { 0 }))
        .all(|request| request.alternatives.into_iter().all(is_settled))
}

/// Returns the risk that the search of an alternative ends in an error.
fn risk(table: &Table<'_>, all: &DevicesOfAll, domains: &Domains<'_>, alternative: AlternativeIx) -> Risk {
    let asked = table.alternative(alternative);
    if asked.mode != Mode::All {
        return if domains.unsure[alternative].is_empty() { Risk::None } else { Risk::Always };
    }
    if table.wanted(all, alternative) > MAX_DEVICES_PER_CLAIM {
        return Risk::None;
    }
    // The devices are placed in their order, up to the first one that is refused before its values are looked at.
    let devices = all.at(alternative).map_or(&[][..], Vec::as_slice);
    let placed = devices.iter().take_while(|device| !is_refused(table, alternative, **device).unwrap_or(false)).count();
    let placed = devices.get(..placed).unwrap_or(devices);
    let clash = asked.constraints.iter().filter_map(|(constraint, column)| {
        if is_first(table, asked.claim, *constraint, alternative) {
            first_clash(table, alternative, (*constraint, *column), placed)
        } else {
            (!placed.is_empty()).then_some(0)
        }
    });
    let is_unsure = |device: &DeviceIx| {
        domains.unsure[alternative].contains(*device) || is_refused(table, alternative, *device).is_err()
    };
    let unsure = placed.iter().position(is_unsure);
    let Some(last) = clash.chain(unsure).min() else { return Risk::None };
    let mut needed = DeviceSet::new(domains.devices.end);
    devices.iter().take(last + 1).for_each(|device| needed.insert(*device));
    // A device that can be shared is always free.
    needed.subtract(&domains.shareable);
    Risk::IfFree(needed)
}

/// Returns true if a constraint applies to no alternative of an earlier request.
fn is_first(table: &Table<'_>, claim: ClaimIx, constraint: ConstraintIx, alternative: AlternativeIx) -> bool {
    let requests = table.plan.claims[claim].requests.iter();
    let mut earlier = requests.flat_map(|request| request.alternatives).take_while(|other| *other < alternative);
    let own = table.alternative(alternative).request;
    !earlier.any(|other| table.alternative(other).request != own && table.alternative(other).is_bound_by(constraint))
}

/// Returns the position of the first device that violates the constraint together with those before it.
fn first_clash(
    table: &Table<'_>,
    alternative: AlternativeIx,
    (constraint, column): (ConstraintIx, ColumnIx),
    devices: &[DeviceIx],
) -> Option<usize> {
    let claim = table.alternative(alternative).claim;
    let (mut matching, mut distinct) = (MatchState::new(), DistinctState::new());
    let is_match = table.plan.claims[claim].constraints[constraint].kind == ConstraintKind::Match;
    devices.iter().position(|device| {
        let values = table.values(column, *device);
        values
            .is_ok_and(|values| if is_match { matching.push(values).is_err() } else { distinct.push(values).is_err() })
    })
}

/// Returns true if a claim may exceed the limit of results after a risky request: the limit ends a branch early, and
/// with it the errors in the rest of the branch.
pub(super) fn may_exceed(table: &Table<'_>, all: &DevicesOfAll, claim: &Claim<'_>, risks: &Risks) -> bool {
    let (mut sum, mut is_risky) = (0_usize, false);
    claim.requests.iter().any(|request| {
        let wanted = request.alternatives.into_iter().map(|alternative| table.wanted(all, alternative));
        sum = sum.saturating_add(wanted.max().unwrap_or(0));
        let exceeds = is_risky && sum > MAX_DEVICES_PER_CLAIM;
        is_risky |= request.alternatives.into_iter().any(|alternative| risks[alternative] != Risk::None);
        exceeds
    })
}
