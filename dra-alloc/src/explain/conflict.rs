//! A smallest set of requests and constraints that cannot hold together.
//!
//! Found by leaving out one after the other: what can be left out without making the rest possible is no part of the
//! conflict. Each question is a search of its own with a small budget; one that is not answered counts as possible, so
//! that a conflict may come out too large, never too small.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::reasons::reasons;
use super::suggest::{gates, suggestions};
use super::{Cause, Explanation, Reason};
use crate::allocator::Allocator;
use crate::budget::Budget;
use crate::outcome::{NodeFailure, Outcome, Verdict};
use crate::search::{outcome_on, with_table};

/// Steps of one question, and the most questions of one explanation.
const STEPS: u64 = 20_000;
const QUESTIONS: usize = 100;

/// A request or a constraint: position of the claim, and in the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Constraint(usize, usize),
    Request(usize, usize),
}

/// Parts of claims that cannot hold together.
pub(super) struct Conflict {
    /// The claims with nothing but these parts.
    pub(super) claims: Vec<ResourceClaim>,
    /// By their places in the claims as they were.
    pub(super) parts: BTreeSet<Part>,
}

/// Asks what becomes of changed claims.
pub(super) struct Questions<'a> {
    pub(super) allocator: &'a Allocator<'a>,
    pub(super) node: &'a Node,
    /// That of one question.
    budget: Budget<'a>,
    left: usize,
}

impl Questions<'_> {
    /// Whether another question may be asked; preparing one can cost more than asking it.
    pub(super) const fn may_ask(&self) -> bool {
        self.left > 0
    }

    /// Whether claims can be allocated; unknown when the budget does not suffice or something else fails.
    pub(super) fn is_possible(&mut self, allocator: &Allocator<'_>, claims: &[ResourceClaim]) -> Option<bool> {
        self.left = self.left.checked_sub(1)?;
        match outcome_on(allocator, claims, self.node, self.budget) {
            Ok(Outcome::Allocated(_)) => Some(true),
            Ok(Outcome::Unsatisfied | Outcome::FailedOnNode(NodeFailure::InvalidPools { .. })) => Some(false),
            _ => None,
        }
    }
}

/// Why claims have this verdict on a node; nothing for an allocation. The caller's budget can stop the questions.
pub(crate) fn explain(
    allocator: &Allocator<'_>,
    claims: &[ResourceClaim],
    node: &Node,
    verdict: &Verdict,
    budget: Budget<'_>,
) -> Option<Explanation> {
    let alone = |cause| Some(Explanation { reasons: vec![Reason::leaf(cause)], suggestions: Vec::new() });
    let questions = || Questions { allocator, node, budget: budget.with_steps(STEPS), left: QUESTIONS };
    match &verdict.outcome {
        Outcome::Allocated(_) => None,
        Outcome::Stopped => alone(Cause::Stopped { steps: verdict.steps }),
        Outcome::FailedOnNode(NodeFailure::InvalidPools { .. }) | Outcome::Unsatisfied => {
            let mut questions = questions();
            let conflict = conflict(&mut questions, claims);
            let reasons =
                with_table(allocator, &conflict.claims, node, |table| reasons(&mut questions, table, &conflict));
            let reasons = reasons.ok()?;
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

fn conflict(questions: &mut Questions<'_>, claims: &[ResourceClaim]) -> Conflict {
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
    Conflict { claims: only(claims, &parts), parts }
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
