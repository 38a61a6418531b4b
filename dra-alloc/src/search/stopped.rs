//! The state of a search that was stopped.

use std::fmt;

use serde::Serialize;

/// Limit that stopped a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Limit {
    /// The budget of work for one node.
    Node,
    /// The budget of work for the whole call.
    Call,
    /// The stop function of the caller.
    Caller,
}

/// State of a search that was stopped before it had an answer: packing devices is hard in general.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Stopped {
    /// Limit that stopped the search.
    pub limit: Limit,
    /// Namespace and name of the claim that was being searched; empty if the search had not begun.
    pub claim: String,
    /// Name of the request that was being searched, as `request` or `request/subrequest`; empty if the search had not
    /// begun.
    pub request: String,
    /// Number of devices that no solution gives to the first request: all that comes before is proved to fail.
    pub refuted: usize,
    /// Number of different states of the node's devices of which it is proved that they can't serve the open requests.
    pub failed_states: usize,
}

impl Stopped {
    /// Returns the state of a search that was stopped before it began.
    pub(crate) const fn not_begun(limit: Limit) -> Self {
        Self { limit, claim: String::new(), request: String::new(), refuted: 0, failed_states: 0 }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = match self.limit {
            Limit::Node => "the work for the node is used up",
            Limit::Call => "the work for the call is used up",
            Limit::Caller => "the caller stopped the search",
        };
        write!(f, "{limit}")?;
        if !self.claim.is_empty() {
            let Self { claim, request, refuted, failed_states, .. } = self;
            write!(f, " at claim {claim}, request {request}")?;
            if refuted + failed_states > 0 {
                write!(f, "; proved so far: the first {refuted} devices are not the first of a solution, ")?;
                write!(f, "{failed_states} states of the rest have none")?;
            }
        }
        Ok(())
    }
}
