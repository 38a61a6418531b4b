//! Explanation of the outcome on one node.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;

use super::explanation::{Cause, Detail, Explanation, Reason};
use super::reasons::reasons;
use super::refused::Refused;
use super::suggest::{gates, suggestions};
use super::unsat_core::unsat_core;
use super::what_if::{WhatIf, plan_of};
use crate::search::budget::Meter;
use crate::search::context::Context;
use crate::search::outcome::{NodeError, Outcome};
use crate::search::with_table;

/// Explains why claims can't be allocated on a node; `None` if they are allocated. All of the work is counted and limited by
/// the meter.
pub(crate) fn explain(
    context: &Context<'_>,
    detail: Detail,
    refused: &Refused<'_>,
    node: &Node,
    meter: &Meter<'_>,
) -> Option<Arc<Explanation>> {
    let of_node = |reasons, suggestions| Some(Arc::new(Explanation { reasons, suggestions }));
    let alone = |cause| of_node(vec![Reason::leaf(cause)], Vec::new());
    let what_if = || WhatIf::new(*context, refused, node, meter);
    match refused.outcome {
        Outcome::Allocated(_) => None,
        Outcome::Stopped(stopped) => alone(Cause::Stopped { stopped: Box::new(stopped.clone()) }),
        Outcome::FailedOnNode(NodeError::InvalidPools { .. }) => unsatisfied(what_if(), detail).map(Arc::new),
        Outcome::Unsatisfied => {
            let states = refused.explained_states;
            let read = refused.plan.and_then(|plan| states.read(context, plan, node, meter));
            if let Some(known) = read.as_ref().and_then(|read| states.find(read, meter)) {
                return Some(known);
            }
            let explanation = Arc::new(unsatisfied(what_if(), detail)?);
            if let Some(read) = read.filter(|_| meter.check().is_ok()) {
                states.remember(read, &explanation, meter.effort().work);
            }
            Some(explanation)
        }
        Outcome::FailedOnNode(failure) => {
            let reasons = vec![Reason::leaf(Cause::Node { failure: Box::new(failure.clone()) })];
            let suggestions = match failure {
                NodeError::SkipNodeOperationsOff { .. } => gates(&mut what_if()),
                _ => Vec::new(),
            };
            of_node(reasons, suggestions)
        }
    }
}

/// Explains why no devices of a node satisfy the claims.
fn unsatisfied(mut what_if: WhatIf<'_>, detail: Detail) -> Option<Explanation> {
    let (context, node, meter) = (what_if.context, what_if.node, what_if.meter);
    let core = unsat_core(&mut what_if);
    let of_core;
    let plan = match what_if.refused.plan {
        Some(plan) if core.is_whole => plan,
        _ => {
            of_core = plan_of(&core.claims, &context);
            &of_core
        }
    };
    let reasons = with_table(&context, plan, node, meter, |table| reasons(&mut what_if, table, &core, detail)).ok()?;
    let suggestions = suggestions(&mut what_if, &reasons);
    Some(Explanation { reasons, suggestions })
}
