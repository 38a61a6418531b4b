//! What there is to say of requests and constraints that cannot hold together.

use std::collections::BTreeSet;

use k8s_openapi::api::resource::v1::ResourceClaim;

use super::bottleneck::bottlenecks;
use super::conflict::{Conflict, Part, Questions};
use super::devices::{View, offer};
use super::{Cause, ConstraintName, Reason, RequestName};
use crate::allocator::MAX_DEVICES_PER_CLAIM;
use crate::inventory::pool::PoolState;
use crate::request::{Claim, ConstraintKind, Plan, Request, claim_name};
use crate::search::Table;

/// The devices of a node as the requests of a conflict see them.
struct Scene<'t, 's> {
    table: &'t Table<'s>,
    /// By alternative.
    views: Vec<View>,
}

/// The reasons of claims that are a conflict.
pub(super) fn reasons(questions: &mut Questions<'_>, table: &Table<'_>, conflict: &Conflict) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if table.candidates.all() > 0 {
        let scene = Scene::new(table);
        reasons.extend(scene.lacking(questions, conflict));
        if reasons.is_empty() {
            reasons.push(scene.together(questions, conflict));
        }
    }
    reasons.extend(table.candidates.order().into_iter().filter_map(|(index, _)| {
        let pool = table.candidates.pools().get(index).filter(|pool| pool.state() != PoolState::Complete)?;
        let problem = pool.problem().map(|problem| problem.to_string());
        Some(Reason::leaf(Cause::Pool { pool: format!("{}/{}", pool.driver(), pool.name()), problem }))
    }));
    if reasons.is_empty() {
        reasons.push(Reason::leaf(Cause::NoDevices));
    }
    reasons
}

impl<'t, 's> Scene<'t, 's> {
    fn new(table: &'t Table<'s>) -> Self {
        let alternatives = 0..table.plan.alternatives.len();
        Self { table, views: alternatives.map(|alternative| View::new(table, alternative)).collect() }
    }

    fn requests(&self) -> impl Iterator<Item = (&'s Claim<'s>, &'s Request<'s>)> {
        self.table.plan.claims.iter().flat_map(|claim| claim.requests.iter().map(move |request| (claim, request)))
    }

    /// The alternatives of a request with what they see.
    fn views(&self, request: &Request<'_>) -> impl Iterator<Item = (usize, &View)> {
        request.alternatives.clone().filter_map(|alternative| Some((alternative, self.views.get(alternative)?)))
    }

    /// The alternatives of a request that find enough devices.
    fn possible(&self, request: &Request<'_>) -> impl Iterator<Item = (usize, &View)> {
        self.views(request).filter(|(alternative, view)| view.is_enough(self.table.alternative(*alternative)))
    }

    /// The requests that do not find enough devices, whatever the others get.
    fn lacking(&self, questions: &mut Questions<'_>, conflict: &Conflict) -> Vec<Reason> {
        let mut reasons = Vec::new();
        for (claim, request) in self.requests().filter(|(_, request)| self.possible(request).next().is_none()) {
            let at = name(claim, request);
            // A device may make others usable: one that consumes less than nothing of a counter.
            if questions.is_possible(self.table.allocator, &alone(&conflict.claims, &at)) == Some(true) {
                continue;
            }
            let views = self.views(request);
            let detail = self.table.allocator.detail;
            let alternatives = views.map(|(alternative, view)| view.reason(self.table, alternative, detail));
            if request.is_list {
                reasons.push(Reason { cause: Cause::NoAlternative { at }, because: alternatives.collect() });
            } else {
                reasons.extend(alternatives);
            }
        }
        reasons
    }

    /// Requests and constraints that are possible one by one.
    fn together(&self, questions: &mut Questions<'_>, conflict: &Conflict) -> Reason {
        let limit = MAX_DEVICES_PER_CLAIM;
        let (mut requests, mut because) = (Vec::new(), Vec::new());
        for claim in &self.table.plan.claims {
            let sizes = self.sizes(claim);
            if sizes.fewest > limit {
                return Reason::leaf(Cause::TooManyDevices { claim: claim.name(), limit });
            }
            requests.extend(claim.requests.iter().map(|request| name(claim, request)));
            because.extend(claim.requests.iter().flat_map(|request| self.shares(claim, request)));
            if sizes.most > limit {
                because.push(Reason::leaf(Cause::AtMost { claim: claim.name(), limit }));
            }
        }
        let usable = self.views.iter().flat_map(|view| view.usable.iter().copied()).collect();
        let cause = Cause::Together {
            requests,
            constraints: constraints(self.table.plan, &conflict.parts),
            bottlenecks: bottlenecks(questions, &conflict.claims, self.table, &usable),
        };
        Reason { cause, because }
    }

    /// What the alternatives of a request contribute to a conflict: offers to constraints, or else what they want.
    fn shares(&self, claim: &Claim<'_>, request: &Request<'_>) -> Vec<Reason> {
        let mut shares = Vec::new();
        for (alternative, view) in self.views(request) {
            let asked = self.table.alternative(alternative);
            for &(constraint, column) in &asked.constraints {
                let attribute = claim.constraints.get(constraint).map_or("", |constraint| constraint.attribute);
                shares.push(offer(self.table, alternative, column, attribute, &view.usable));
            }
            if asked.constraints.is_empty() {
                shares.push(view.wants(self.table, alternative));
            }
        }
        shares
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

/// How many devices the possible alternatives of a claim's requests have together.
struct Sizes {
    fewest: usize,
    most: usize,
}

fn name(claim: &Claim<'_>, request: &Request<'_>) -> RequestName {
    RequestName { claim: claim.name(), request: request.name.to_owned() }
}

/// The claims of a conflict with only one of the requests.
fn alone(claims: &[ResourceClaim], at: &RequestName) -> Vec<ResourceClaim> {
    let mut claims = claims.to_vec();
    for claim in &mut claims {
        let is_its = claim_name(claim) == at.claim;
        if let Some(requests) = claim.spec.as_mut().and_then(|spec| spec.devices.as_mut()?.requests.as_mut()) {
            requests.retain(|request| is_its && request.name == at.request);
        }
    }
    claims
}

/// The constraints of a conflict, by their places in the claims as they were before anything was left out.
fn constraints(plan: &Plan<'_>, parts: &BTreeSet<Part>) -> Vec<ConstraintName> {
    let places = parts.iter().filter_map(|part| match part {
        Part::Constraint(_, index) => Some(*index),
        Part::Request(..) => None,
    });
    let kept = plan.claims.iter().flat_map(|claim| claim.constraints.iter().map(move |constraint| (claim, constraint)));
    let named = kept.zip(places).map(|((claim, constraint), index)| ConstraintName {
        claim: claim.name(),
        index,
        field: match constraint.kind {
            ConstraintKind::Match => "matchAttribute",
            ConstraintKind::Distinct => "distinctAttribute",
        },
        attribute: constraint.attribute.to_owned(),
    });
    named.collect()
}
