//! Reasons for a minimal set of requests and constraints that can't be satisfied together.

use std::collections::BTreeSet;

use dra_attrs::Index;
use dra_device::MAX_DEVICES_PER_CLAIM;
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::bottleneck::bottlenecks;
use super::devices::{RequestView, claim_name, offer};
use super::unsat_core::{Part, UnsatCore};
use super::what_if::WhatIf;
use super::{Cause, ConstraintName, Detail, Reason, RequestName};
use crate::cluster::inventory::pool::PoolState;
use crate::search::ix::{AlternativeIx, ByAlternative, ClaimIx};
use crate::search::request::{Claim, ConstraintKind, Request};
use crate::search::stopped::{Limit, Stopped};
use crate::search::{Elision, Table};

/// Usable devices of a node for each request of an unsatisfiable core.
struct CoreView<'t, 's> {
    table: &'t Table<'s>,
    /// Usable and rejected devices of each request or subrequest.
    views: ByAlternative<RequestView>,
}

/// Returns the reasons why an unsatisfiable core can't be satisfied on a node.
pub(super) fn reasons(
    what_if: &mut WhatIf<'_>,
    table: &Table<'_>,
    core: &UnsatCore<'_>,
    detail: Detail,
) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if !table.candidates.all().is_empty() {
        let view_of_core = match CoreView::new(table) {
            Ok(view) => view,
            Err(limit) => {
                let stopped = Box::new(Stopped::not_begun(limit));
                return vec![Reason::leaf(Cause::Stopped { stopped })];
            }
        };
        reasons.extend(view_of_core.lacking(what_if, core, detail));
        if reasons.is_empty() {
            reasons.push(view_of_core.together(what_if, core));
        }
    }
    reasons.extend(table.candidates.order().into_iter().filter_map(|(index, _)| {
        let pool = table.candidates.pool(index);
        let (name, announced) = (|| pool.full_name(), pool.slices_announced());
        let cause = match pool.state() {
            PoolState::Complete => None,
            PoolState::Incomplete => {
                Some(Cause::IncompletePool { pool: name(), slices: pool.slices_there(), announced })
            }
            PoolState::Invalid => pool.problem().map(|problem| Cause::Pool { pool: name(), problem }),
        };
        cause.map(Reason::leaf)
    }));
    if reasons.is_empty() {
        reasons.push(Reason::leaf(Cause::NoDevices));
    }
    reasons
}

impl<'t, 's> CoreView<'t, 's> {
    /// Examines every device for each request or subrequest. The error is the limit that has ended this.
    fn new(table: &'t Table<'s>) -> Result<Self, Limit> {
        let alternatives = table.plan.alternatives.range().into_iter();
        let views = alternatives.map(|alternative| RequestView::new(table, alternative)).collect();
        table.meter.ended().map_or(Ok(Self { table, views }), Err)
    }

    fn requests(&self) -> impl Iterator<Item = (ClaimIx, &'s Request<'s>)> {
        let claims = self.table.plan.claims.enumerate();
        claims.flat_map(|(index, claim)| claim.requests.iter().map(move |request| (index, request)))
    }

    /// Returns the alternatives of a request (itself or its subrequests), each with its usable and rejected devices.
    fn views(&self, request: &Request<'_>) -> impl Iterator<Item = (AlternativeIx, &RequestView)> {
        request.alternatives.into_iter().filter_map(|alternative| Some((alternative, self.views.at(alternative)?)))
    }

    /// Returns the alternatives of a request for which enough devices are usable.
    fn possible(&self, request: &Request<'_>) -> impl Iterator<Item = (AlternativeIx, &RequestView)> {
        self.views(request).filter(|(alternative, view)| view.is_enough(self.table.alternative(*alternative)))
    }

    /// Returns the reasons for requests without enough devices even if nothing else were requested.
    fn lacking(&self, what_if: &mut WhatIf<'_>, core: &UnsatCore<'_>, detail: Detail) -> Vec<Reason> {
        let mut reasons = Vec::new();
        // The only request of a core is the core, which is known to be impossible.
        let is_known = core.is_one_request() && self.table.context.elisions.has(Elision::KnownCore);
        for (claim, request) in self.requests().filter(|(_, request)| self.possible(request).next().is_none()) {
            let at = self.name(claim, request);
            // A device that consumes a negative amount of a counter may make others usable: ask before reporting the
            // request.
            if is_known {
                what_if.pass();
            } else if what_if.is_possible(self.table.context, &alone(&core.claims, &at)) == Some(true) {
                continue;
            }
            let views = self.views(request);
            let alternatives = views.map(|(alternative, view)| view.reason(self.table, alternative, detail));
            if request.is_list {
                reasons.push(Reason { cause: Cause::NoAlternative { at }, because: alternatives.collect() });
            } else {
                reasons.extend(alternatives);
            }
        }
        reasons
    }

    /// Returns the reason for requests and constraints each of which can be satisfied alone.
    fn together(&self, what_if: &mut WhatIf<'_>, core: &UnsatCore<'_>) -> Reason {
        let limit = MAX_DEVICES_PER_CLAIM;
        let (mut requests, mut because) = (Vec::new(), Vec::new());
        for (index, claim) in self.table.plan.claims.enumerate() {
            let sizes = self.sizes(claim);
            if sizes.fewest > limit {
                return Reason::leaf(Cause::TooManyDevices { claim: claim_name(self.table, index), limit });
            }
            requests.extend(claim.requests.iter().map(|request| self.name(index, request)));
            because.extend(claim.requests.iter().flat_map(|request| self.shares(claim, request)));
            if sizes.most > limit {
                because.push(Reason::leaf(Cause::AtMost { claim: claim_name(self.table, index), limit }));
            }
        }
        let usable = self.views.iter().flat_map(|view| view.usable.iter().copied()).collect();
        let cause = Cause::Together {
            requests,
            constraints: constraints(self.table, &core.parts),
            bottlenecks: bottlenecks(what_if, &core.claims, self.table, &usable),
        };
        Reason { cause, because }
    }

    /// Returns one reason for each alternative of a request: the values that it offers to constraints, or else the
    /// number of devices for which it competes.
    fn shares(&self, claim: &Claim<'_>, request: &Request<'_>) -> Vec<Reason> {
        let mut shares = Vec::new();
        for (alternative, view) in self.views(request) {
            let asked = self.table.alternative(alternative);
            for &(constraint, column) in &asked.constraints {
                if self.table.meter.work(view.usable.len()).is_err() {
                    return shares;
                }
                let attribute = claim.constraints.at(constraint).map_or("", |constraint| constraint.attribute);
                shares.push(offer(self.table, alternative, column, attribute, &view.usable));
            }
            if asked.constraints.is_empty() {
                shares.push(view.wants(self.table, alternative));
            }
        }
        shares
    }

    fn name(&self, claim: ClaimIx, request: &Request<'_>) -> RequestName {
        RequestName { claim: claim_name(self.table, claim), request: request.name.to_owned(), subrequest: None }
    }

    fn sizes(&self, claim: &Claim<'_>) -> Sizes {
        let mut sizes = Sizes { fewest: 0, most: 0 };
        for request in &claim.requests {
            let taken =
                || self.possible(request).map(|(alternative, view)| view.taken_by(self.table.alternative(alternative)));
            sizes.fewest = sizes.fewest.saturating_add(taken().min().unwrap_or(0));
            sizes.most = sizes.most.saturating_add(taken().max().unwrap_or(0));
        }
        sizes
    }
}

/// Smallest and largest number of devices that a claim's requests need in total, over all choices of subrequests.
struct Sizes {
    fewest: usize,
    most: usize,
}

/// Returns the claims of an unsatisfiable core with only one of its requests.
fn alone(claims: &[ResourceClaim], at: &RequestName) -> Vec<ResourceClaim> {
    let mut claims = claims.to_vec();
    for (index, claim) in claims.iter_mut().enumerate() {
        let is_its = Index::from(index) == at.claim.index;
        if let Some(requests) = claim.spec.as_mut().and_then(|spec| spec.devices.as_mut()?.requests.as_mut()) {
            requests.retain(|request| is_its && request.name == at.request);
        }
    }
    claims
}

/// Returns the constraints of an unsatisfiable core, by their positions in the original claims.
fn constraints(table: &Table<'_>, parts: &BTreeSet<Part>) -> Vec<ConstraintName> {
    let places = parts.iter().filter_map(|part| match part {
        Part::Constraint(claim, index) => Some((*claim, *index)),
        Part::Request(..) => None,
    });
    let kept = table.plan.claims.iter().flat_map(|claim| &claim.constraints);
    let named = kept.zip(places).map(|(constraint, (claim, index))| ConstraintName {
        claim: claim_name(table, claim),
        index,
        field: match constraint.kind {
            ConstraintKind::Match => "matchAttribute",
            ConstraintKind::Distinct => "distinctAttribute",
        },
        attribute: constraint.attribute.to_owned(),
    });
    named.collect()
}
