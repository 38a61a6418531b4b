//! Unsatisfiable core: a minimal set of requests and constraints that can't be satisfied together.
//!
//! Parts are removed one after the other: a part does not belong to the set if the rest is still unsatisfiable without
//! it. Each what-if question is a search of its own with a small budget. An unanswered question counts as possible, so
//! that the set may be too large, but never too small.

use std::borrow::Cow;
use std::collections::BTreeSet;

use dra_attrs::Index;
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::what_if::WhatIf;
use crate::search::ix::{ClaimIx, ConstraintIx, RequestIx};

/// Request or constraint, identified by the positions of its claim and of itself in the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Constraint(ClaimIx, ConstraintIx),
    Request(ClaimIx, RequestIx),
}

/// Minimal set of requests and constraints that can't be satisfied together.
pub(super) struct UnsatCore<'a> {
    /// Claims with only the requests and constraints of the core.
    pub(super) claims: Cow<'a, [ResourceClaim]>,
    /// True if these are all requests and constraints of the claims.
    pub(super) is_whole: bool,
    /// Requests and constraints of the core, by their positions in the original claims.
    pub(super) parts: BTreeSet<Part>,
}

impl UnsatCore<'_> {
    /// Returns true if the core has no more than one request, which is then the core itself.
    pub(super) fn is_one_request(&self) -> bool {
        self.parts.iter().filter(|part| matches!(part, Part::Request(..))).count() == 1
    }
}

/// Finds a minimal unsatisfiable set by deletion: removes each part that is not needed to make the claims
/// unsatisfiable.
pub(super) fn unsat_core<'a>(what_if: &mut WhatIf<'a>) -> UnsatCore<'a> {
    let claims = what_if.refused.claims;
    let mut parts = parts_of(claims);
    let all = parts.len();
    // Constraints are removed first, so that a request that fails alone is found alone; later requests before earlier
    // ones.
    let mut order: Vec<Part> = parts.iter().copied().collect();
    order.sort_by_key(|part| (matches!(part, Part::Request(..)), std::cmp::Reverse(*part)));
    let context = what_if.context;
    // One part that can't be satisfied is the core.
    if order.len() == 1 {
        order.clear();
    }
    for part in order {
        parts.remove(&part);
        if what_if.is_possible(&context, &only(claims, &parts)) != Some(false) {
            parts.insert(part);
        }
    }
    let is_whole = parts.len() == all;
    let claims = if is_whole { Cow::Borrowed(claims) } else { Cow::Owned(only(claims, &parts)) };
    UnsatCore { claims, is_whole, parts }
}

fn parts_of(claims: &[ResourceClaim]) -> BTreeSet<Part> {
    let of_claim = |(claim, object): (usize, &ResourceClaim)| {
        let claim = ClaimIx::from(claim);
        let devices = object.spec.as_ref().and_then(|spec| spec.devices.as_ref());
        let requests = devices.and_then(|devices| devices.requests.as_ref()).map_or(0, Vec::len);
        let constraints = devices.and_then(|devices| devices.constraints.as_ref()).map_or(0, Vec::len);
        let requests = (0..requests).map(move |request| Part::Request(claim, request.into()));
        requests.chain((0..constraints).map(move |constraint| Part::Constraint(claim, constraint.into())))
    };
    claims.iter().enumerate().flat_map(of_claim).collect()
}

/// Returns the claims with only the given requests and constraints.
fn only(claims: &[ResourceClaim], parts: &BTreeSet<Part>) -> Vec<ResourceClaim> {
    let mut claims = claims.to_vec();
    for (index, claim) in claims.iter_mut().enumerate() {
        let index = ClaimIx::from(index);
        let Some(devices) = claim.spec.as_mut().and_then(|spec| spec.devices.as_mut()) else { continue };
        keep(&mut devices.requests, |request| parts.contains(&Part::Request(index, request)));
        keep(&mut devices.constraints, |constraint| parts.contains(&Part::Constraint(index, constraint)));
    }
    claims
}

/// Keeps the elements of a list at the positions for which `is_kept` is true.
fn keep<T>(list: &mut Option<Vec<T>>, is_kept: impl Fn(Index<T>) -> bool) {
    let mut index = 0;
    if let Some(list) = list {
        list.retain(|_| {
            index += 1;
            is_kept(Index::from(index - 1))
        });
    }
}
