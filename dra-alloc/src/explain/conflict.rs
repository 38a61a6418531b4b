//! A smallest set of requests and constraints that cannot hold together.
//!
//! Found by leaving out one after the other: what can be left out without making the rest possible is no part of the
//! conflict. Each question is a search of its own with a small budget; one that is not answered counts as possible, so
//! that a conflict may come out too large, never too small.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::devices::{View, offer};
use super::suggest::{gates, suggestions};
use super::{Cause, ConstraintName, Detail, Explanation, Reason, RequestName};
use crate::allocator::{Allocator, MAX_DEVICES_PER_CLAIM};
use crate::budget::Budget;
use crate::inventory::pool::PoolState;
use crate::outcome::{NodeFailure, Outcome};
use crate::request::{Claim, ConstraintKind, Mode, Plan, Request};
use crate::search::{Table, outcome_on, with_table};

/// Steps of one question, and the most questions of one explanation.
const STEPS: u64 = 20_000;
const QUESTIONS: usize = 100;

/// A request or a constraint: position of the claim, and in the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Constraint(usize, usize),
    Request(usize, usize),
}

/// Asks what becomes of changed claims.
pub(super) struct Questions<'a> {
    pub(super) allocator: &'a Allocator<'a>,
    pub(super) node: &'a Node,
    left: usize,
}

impl Questions<'_> {
    /// Whether claims can be allocated; unknown when the budget does not suffice or something else fails.
    pub(super) fn is_possible(&mut self, allocator: &Allocator<'_>, claims: &[ResourceClaim]) -> Option<bool> {
        self.left = self.left.checked_sub(1)?;
        match outcome_on(allocator, claims, self.node, Budget::steps(STEPS)) {
            Ok(Outcome::Allocated(_)) => Some(true),
            Ok(Outcome::Unsatisfied | Outcome::FailedOnNode(NodeFailure::InvalidPools { .. })) => Some(false),
            _ => None,
        }
    }
}

/// Why claims have this outcome on a node; nothing for an allocation.
pub(crate) fn explain(
    allocator: &Allocator<'_>,
    claims: &[ResourceClaim],
    node: &Node,
    outcome: &Outcome,
    steps: u64,
) -> Option<Explanation> {
    let alone = |cause| Some(Explanation { reasons: vec![Reason::leaf(cause)], suggestions: Vec::new() });
    let questions = || Questions { allocator, node, left: QUESTIONS };
    match outcome {
        Outcome::Allocated(_) => None,
        Outcome::Stopped => alone(Cause::Stopped { steps }),
        Outcome::FailedOnNode(NodeFailure::InvalidPools { .. }) | Outcome::Unsatisfied => {
            let mut questions = questions();
            let parts = conflict(&mut questions, claims);
            let kept = only(claims, &parts);
            let reasons = with_table(allocator, &kept, node, |table| reasons(table, &parts, allocator.detail)).ok()?;
            let suggestions = suggestions(&mut questions, claims, &reasons);
            Some(Explanation { reasons, suggestions })
        }
        Outcome::FailedOnNode(failure) => {
            let reasons = vec![Reason::leaf(Cause::Node { reason: failure.to_string() })];
            let suggestions = match failure {
                NodeFailure::SkipNodeOperationsOff { .. } => gates(&mut questions(), claims),
                _ => Vec::new(),
            };
            Some(Explanation { reasons, suggestions })
        }
    }
}

fn conflict(questions: &mut Questions<'_>, claims: &[ResourceClaim]) -> BTreeSet<Part> {
    let mut parts = parts_of(claims);
    // Constraints first, so that a request that fails alone is found alone; later requests before earlier ones.
    let mut order: Vec<Part> = parts.iter().copied().collect();
    order.sort_by_key(|part| (matches!(part, Part::Request(..)), std::cmp::Reverse(*part)));
    let allocator = questions.allocator;
    for part in order {
        parts.remove(&part);
        if questions.is_possible(allocator, &only(claims, &parts)) != Some(false) {
            parts.insert(part);
        }
    }
    parts
}

fn parts_of(claims: &[ResourceClaim]) -> BTreeSet<Part> {
    let of_claim = |(claim, object): (usize, &ResourceClaim)| {
        let devices = object.spec.as_ref().and_then(|spec| spec.devices.as_ref());
        let requests = devices.and_then(|devices| devices.requests.as_ref()).map_or(0, Vec::len);
        let constraints = devices.and_then(|devices| devices.constraints.as_ref()).map_or(0, Vec::len);
        let requests = (0..requests).map(move |request| Part::Request(claim, request));
        requests.chain((0..constraints).map(move |constraint| Part::Constraint(claim, constraint)))
    };
    claims.iter().enumerate().flat_map(of_claim).collect()
}

/// The claims with nothing but these parts.
fn only(claims: &[ResourceClaim], parts: &BTreeSet<Part>) -> Vec<ResourceClaim> {
    let mut claims = claims.to_vec();
    for (index, claim) in claims.iter_mut().enumerate() {
        let Some(devices) = claim.spec.as_mut().and_then(|spec| spec.devices.as_mut()) else { continue };
        keep(&mut devices.requests, |request| parts.contains(&Part::Request(index, request)));
        keep(&mut devices.constraints, |constraint| parts.contains(&Part::Constraint(index, constraint)));
    }
    claims
}

fn keep<T>(list: &mut Option<Vec<T>>, is_kept: impl Fn(usize) -> bool) {
    let mut index = 0;
    if let Some(list) = list {
        list.retain(|_| {
            index += 1;
            is_kept(index - 1)
        });
    }
}

/// The reasons of claims that are a conflict.
fn reasons(table: &Table<'_>, parts: &BTreeSet<Part>, detail: Detail) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if table.candidates.all() > 0 {
        reasons.extend(lacking(table, detail));
        if reasons.is_empty() {
            reasons.push(together(table, parts));
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

fn requests<'t, 's>(table: &'t Table<'s>) -> impl Iterator<Item = (&'s Claim<'s>, &'s Request<'s>)> + 't {
    table.plan.claims.iter().flat_map(|claim| claim.requests.iter().map(move |request| (claim, request)))
}

/// The requests that do not find enough devices, whatever the others get.
fn lacking(table: &Table<'_>, detail: Detail) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for (claim, request) in requests(table) {
        let mut alternatives = Vec::new();
        for alternative in request.alternatives.clone() {
            let view = View::new(table, alternative);
            if !view.is_enough(table.alternative(alternative)) {
                alternatives.push(view.reason(table, alternative, detail));
            }
        }
        if alternatives.len() < request.alternatives.len() {
            continue;
        }
        if request.is_list {
            let at = RequestName { claim: claim.name(), request: request.name.to_owned() };
            reasons.push(Reason { cause: Cause::NoAlternative { at }, because: alternatives });
        } else {
            reasons.extend(alternatives);
        }
    }
    reasons
}

/// Requests and constraints that are possible one by one.
fn together(table: &Table<'_>, parts: &BTreeSet<Part>) -> Reason {
    if let Some(claim) = table.plan.claims.iter().find(|claim| is_too_large(table, claim)) {
        return Reason::leaf(Cause::TooManyDevices { claim: claim.name(), limit: MAX_DEVICES_PER_CLAIM });
    }
    let mut because = Vec::new();
    for (claim, request) in requests(table) {
        for alternative in request.alternatives.clone() {
            let (asked, view) = (table.alternative(alternative), View::new(table, alternative));
            for &(constraint, column) in &asked.constraints {
                let attribute = claim.constraints.get(constraint).map_or("", |constraint| constraint.attribute);
                because.push(offer(table, alternative, column, attribute, &view.usable));
            }
            if asked.constraints.is_empty() {
                because.push(view.wants(table, alternative));
            }
        }
    }
    let requests =
        requests(table).map(|(claim, request)| RequestName { claim: claim.name(), request: request.name.to_owned() });
    let cause = Cause::Together { requests: requests.collect(), constraints: constraints(table.plan, parts) };
    Reason { cause, because }
}

fn is_too_large(table: &Table<'_>, claim: &Claim<'_>) -> bool {
    let least = claim.requests.iter().map(|request| {
        let counts = request.alternatives.clone().map(|alternative| match table.alternative(alternative).mode {
            Mode::Exactly(count) => count,
            Mode::All => 1,
        });
        counts.max().unwrap_or(0)
    });
    least.fold(0, u64::saturating_add) > u64::try_from(MAX_DEVICES_PER_CLAIM).unwrap_or(u64::MAX)
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
