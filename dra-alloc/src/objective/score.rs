//! Score of a solution: its value, and what is proved about it.

use std::fmt;

use super::reason::ChoiceReason;

/// Score of the devices that claims get on a node.
///
/// It is shown as a sentence: `node-1/gpu-3 rather than node-1/gpu-0: counter set card-1 is in use already (opened by counter set 0
/// instead of 1)`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Score {
    /// Value: a number for each level of the objective. Less is better, and the first level counts most.
    pub value: Vec<u64>,
    /// Proof about the value.
    pub proof: Proof,
    /// Value of the first solution, which kube-scheduler takes.
    pub first_fit: Vec<u64>,
    /// Names of the units that have to give back what their claims hold, in their order; see
    /// [`Term::Displaced`](super::Term::Displaced).
    pub displaced: Vec<String>,
    /// Number of nodes of the search for the best solution.
    pub steps: u64,
    /// Reason why these devices are better than those of the first solution; `None` if none are better.
    pub reason: Option<ChoiceReason>,
}

/// Proof about the value of a solution.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Proof {
    /// No solution has a smaller value.
    Least,
    /// The search was stopped. This is the best solution that it found.
    Best {
        /// Value below which there is no solution.
        bound: Vec<u64>,
    },
    /// There is no objective: this is the first solution.
    FirstFit,
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => reason.fmt(f),
            None => write!(f, "the first devices that fit"),
        }
    }
}
