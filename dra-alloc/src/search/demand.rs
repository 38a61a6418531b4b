//! Demands: what the requests that are still open need, as far as bounds may look ahead.
//!
//! A bound looks at the requests before the next risky one only: if those can't be served, the search does not come to the
//! error. Of a risky request for all devices, it looks at the devices that must be free for an error. The risky request
//! itself, and what follows, must be searched, unless all [risks](super::risk) ahead are settled.

use dra_device::MAX_DEVICES_PER_CLAIM;

use super::device_set::DeviceSet;
use super::domains::Domains;
use super::ix::{AlternativeIx, ByClaim, ByRequest, ClaimIx, DeviceIx, Place, RequestIx, next};
use super::request::{Mode, Request};
use super::risk::{Risk, Risks};
use super::table::{DevicesOfAll, Table};

/// An alternative with the number of devices that it still needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenRequest {
    pub(crate) alternative: AlternativeIx,
    pub(crate) missing: usize,
    /// First device position that the alternative may be given.
    pub(crate) from: DeviceIx,
}

/// Demand for devices of one request, or of several interchangeable requests of a claim.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    pub(crate) claim: ClaimIx,
    /// Alternatives of one of the requests that can be met at all, each with the number of devices that it needs.
    pub(crate) options: Vec<OpenRequest>,
    /// Smallest number of devices that satisfies the requests together.
    pub(crate) total: usize,
    /// True for a risky request, of which only the part before a possible error is demanded. Constraints do not bound
    /// it.
    pub(crate) is_part: bool,
}

/// A demand with the free devices of each of its alternatives.
pub(crate) struct FreeDomain<'d> {
    pub(crate) demand: &'d Demand,
    pub(crate) free: Vec<DeviceSet>,
}

/// For each claim and request: the demands of the request and of the later ones of all claims, up to the next risky one.
/// Those of later claims are kept once, so that memory is linear in the claims.
pub(crate) struct Demands(ByClaim<ByRequest<Ahead>>);

/// Demands ahead of one place.
#[derive(Clone, Default)]
struct Ahead {
    /// Demands of the same claim.
    own: Vec<Demand>,
    /// True if the demands ahead of the next claim are ahead of the place, too.
    goes_on: bool,
    /// Number of the options of all demands ahead.
    options: usize,
}

impl Demands {
    /// Returns the demands from a place on.
    pub(crate) fn from(&self, place: Place) -> impl Iterator<Item = &Demand> {
        let next = |(claim, ahead): &(ClaimIx, &Ahead)| self.first_of(next(*claim)).filter(|_| ahead.goes_on);
        let first = self.ahead(place).map(|ahead| (place.0, ahead));
        std::iter::successors(first, next).flat_map(|(_, ahead)| &ahead.own)
    }

    /// Returns the number of the options of all demands from a place on.
    pub(crate) fn options(&self, place: Place) -> usize {
        self.ahead(place).map_or(0, |ahead| ahead.options)
    }

    fn ahead(&self, (claim, request): Place) -> Option<&Ahead> {
        self.0.at(claim)?.at(request)
    }

    fn first_of(&self, claim: ClaimIx) -> Option<(ClaimIx, &Ahead)> {
        Some((claim, self.ahead((claim, RequestIx::FIRST))?))
    }
}

impl FreeDomain<'_> {
    /// Returns true if some alternative has enough free devices for one request of the demand.
    ///
    /// *Argument* of [`PruningRule::ForwardChecking`](super::pruning_rules::PruningRule): a request with fewer free devices than it
    /// needs fails whatever is chosen, since free devices only get fewer. A device that no check admits, or without the attribute of a
    /// constraint, is in no domain from the start.
    pub(crate) fn can_serve_one(&self) -> bool {
        self.demand.options.iter().zip(&self.free).any(|(want, free)| free.len() >= want.missing)
    }

    /// Returns the free devices of all alternatives together.
    pub(crate) fn union(&self) -> DeviceSet {
        let mut sets = self.free.iter();
        let mut union = sets.next().cloned().unwrap_or_else(|| DeviceSet::new(DeviceIx::FIRST));
        sets.for_each(|set| union.union(set));
        union
    }
}

/// Returns the demands at each request. Interchangeable requests are one demand.
pub(crate) fn demands(table: &Table<'_>, all: &DevicesOfAll, domains: &Domains<'_>, risks: &Risks) -> Demands {
    let mut later = 0;
    let mut demands = Vec::new();
    for (claim, object) in table.plan.claims.enumerate().rev() {
        let mut ahead = Ahead { own: Vec::new(), goes_on: true, options: later };
        let mut of_claim = vec![ahead.clone()];
        for request in object.requests.iter().rev() {
            let of = |alternative: AlternativeIx| &risks[alternative];
            if request.alternatives.into_iter().any(|alternative| *of(alternative) != Risk::None) {
                ahead = Ahead::default();
            }
            if request.alternatives.into_iter().all(|alternative| *of(alternative) != Risk::Always) {
                add(&mut ahead, table, domains, demand(table, all, domains, risks, (claim, request)));
            }
            of_claim.push(ahead.clone());
        }
        later = ahead.options;
        of_claim.reverse();
        demands.push(of_claim.into_iter().collect());
    }
    demands.reverse();
    Demands(demands.into_iter().collect())
}

fn demand(
    table: &Table<'_>,
    all: &DevicesOfAll,
    domains: &Domains<'_>,
    risks: &Risks,
    (claim, request): (ClaimIx, &Request<'_>),
) -> Demand {
    let want = |alternative: AlternativeIx| {
        let missing = match &risks[alternative] {
            Risk::IfFree(needed) => needed.len(),
            Risk::None | Risk::Always => table.wanted(all, alternative),
        };
        OpenRequest { alternative, missing, from: DeviceIx::FIRST }
    };
    let possible = |want: &OpenRequest| {
        if risks[want.alternative] != Risk::None {
            return true;
        }
        let is_all_of_nothing = want.missing == 0 && table.alternative(want.alternative).mode == Mode::All;
        !is_all_of_nothing
            && want.missing <= MAX_DEVICES_PER_CLAIM
            && want.missing <= domains.usable[want.alternative].len()
    };
    let options: Vec<OpenRequest> = request.alternatives.into_iter().map(want).filter(possible).collect();
    let total = options.iter().map(|want| want.missing).min().unwrap_or(0);
    let is_part = request.alternatives.into_iter().any(|alternative| risks[alternative] != Risk::None);
    Demand { claim, options, total, is_part }
}

/// Adds a demand, to that of an interchangeable request of the claim if there is one.
fn add(ahead: &mut Ahead, table: &Table<'_>, domains: &Domains<'_>, demand: Demand) {
    let is_same = |other: &&mut Demand| {
        !other.is_part && !demand.is_part && is_alike(table, domains, &other.options, &demand.options)
    };
    if let Some(other) = ahead.own.iter_mut().find(is_same) {
        other.total = other.total.saturating_add(demand.total);
    } else {
        ahead.options = ahead.options.saturating_add(demand.options.len().max(1));
        ahead.own.insert(0, demand);
    }
}

/// Returns true if two requests need the same number of devices from the same domain under the same constraints.
fn is_alike(table: &Table<'_>, domains: &Domains<'_>, left: &[OpenRequest], right: &[OpenRequest]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| {
            let (one, other) = (table.alternative(left.alternative), table.alternative(right.alternative));
            left.missing == right.missing
                && one.constraints == other.constraints
                && one.admin_access == other.admin_access
                && domains.usable.at(left.alternative) == domains.usable.at(right.alternative)
        })
}

/// Returns, by claim and request, the largest number of devices that the request and all later ones can be given.
pub(crate) fn most_wanted(table: &Table<'_>, all: &DevicesOfAll) -> ByClaim<ByRequest<usize>> {
    let mut sum = 0_usize;
    let mut most: Vec<ByRequest<usize>> = Vec::new();
    for claim in table.plan.claims.enumerate().rev().map(|(_, claim)| claim) {
        let mut own = vec![sum];
        for request in claim.requests.iter().rev() {
            let wanted = request.alternatives.into_iter().map(|alternative| table.wanted(all, alternative));
            sum = sum.saturating_add(wanted.max().unwrap_or(0));
            own.push(sum);
        }
        own.reverse();
        most.push(own.into_iter().collect());
    }
    most.reverse();
    most.into_iter().collect()
}
