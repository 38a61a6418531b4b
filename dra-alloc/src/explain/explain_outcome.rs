//! Explanation of the outcome on one node.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::explanation::{Cause, Detail, Explanation, Reason};
use super::reasons::reasons;
use super::suggest::{gates, suggestions};
use super::unsat_core::unsat_core;
use super::what_if::WhatIf;
use crate::search::budget::Budget;
use crate::search::context::Context;
use crate::search::outcome::{NodeFailure, Outcome};
use crate::search::with_table;

/// Explains why claims can't be allocated on a node; `None` if they are allocated. `claims` are all claims of the call,
/// so that the explanation has the caller's positions; those with an allocation request nothing. The stop function of the caller's
/// budget is also called in every what-if question.
pub(crate) fn explain(
    context: &Context<'_>,
    detail: Detail,
    claims: &[ResourceClaim],
    node: &Node,
    outcome: &Outcome,
    budget: Budget<'_>,
) -> Option<Explanation> {
    let alone = |cause| Some(Explanation { reasons: vec![Reason::leaf(cause)], suggestions: Vec::new() });
    let what_if = || WhatIf::new(*context, node, budget);
    match outcome {
        Outcome::Allocated(_) => None,
        Outcome::Stopped(stopped) => alone(Cause::Stopped { stopped: Box::new(stopped.clone()) }),
        Outcome::FailedOnNode(NodeFailure::InvalidPools { .. }) | Outcome::Unsatisfied => {
            let mut what_if = what_if();
            let core = unsat_core(&mut what_if, claims);
            let reasons =
                with_table(context, &core.claims, node, budget, |table| reasons(&mut what_if, table, &core, detail));
            let reasons = reasons.ok()?;
            let suggestions = suggestions(&mut what_if, claims, &reasons);
            Some(Explanation { reasons, suggestions })
        }
        Outcome::FailedOnNode(failure) => {
            let reasons = vec![Reason::leaf(Cause::Node { failure: Box::new(failure.clone()) })];
            let suggestions = match failure {
                NodeFailure::SkipNodeOperationsOff { .. } => gates(&mut what_if(), claims),
                _ => Vec::new(),
            };
            Some(Explanation { reasons, suggestions })
        }
    }
}
