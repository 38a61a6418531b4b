//! Subject of an explanation: the claims of a call that were not allocated on a node.

use k8s_openapi::api::resource::v1::ResourceClaim;

use super::explained_states::ExplainedStates;
use crate::search::outcome::Outcome;
use crate::search::request::Plan;

/// Claims of a call, and what became of them on a node.
pub(crate) struct Refused<'a> {
    /// All claims of the call, so that the explanation has the caller's positions; those with an allocation request
    /// nothing.
    pub(crate) claims: &'a [ResourceClaim],
    /// The claims as the search on each node reads them; `None` if it does not read all of them.
    pub(crate) plan: Option<&'a Plan<'a>>,
    pub(crate) outcome: &'a Outcome,
    /// True if nothing was searched, since counting the devices was an answer.
    pub(crate) is_counted: bool,
    /// Explanations of the same claims on other nodes.
    pub(crate) explained_states: &'a ExplainedStates,
}
