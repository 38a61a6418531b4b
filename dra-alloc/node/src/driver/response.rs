//! Answers of `NodePrepareResources` and `NodeUnprepareResources`.

use std::collections::{BTreeMap, BTreeSet};

use crate::kubelet::Responses;

/// Reason why a claim of a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// The driver has produced no result for the claim, which is a mistake of the driver.
    #[error("the driver has no result for the claim")]
    NoResult,
    /// The claim failed, with the message for the kubelet.
    #[error("{0}")]
    Failed(String),
}

/// Returns the answers of a call: one for each claim that was asked for, by UID, in the order asked, each once.
///
/// A claim that is missing from an answer makes the kubelet fail the pod, so that a claim without an outcome gets an
/// error of its own. Errors are per claim: the call as a whole fails only if the driver can read nothing at all, since the
/// kubelet then ignores the body.
///
/// ```
/// use dra_node::driver::{ClaimError, claim_responses};
/// use dra_node::kubelet::Responses;
/// let outcomes = Responses::from([("a".to_owned(), Ok(vec!["gpu-0"]))]);
/// let answers = claim_responses(["a", "b", "a"], outcomes);
/// assert_eq!(answers[0], ("a".to_owned(), Ok(vec!["gpu-0"])));
/// assert_eq!(answers[1..], [("b".to_owned(), Err(ClaimError::NoResult))]);
/// ```
pub fn claim_responses<'a, T>(
    asked: impl IntoIterator<Item = &'a str>,
    outcomes: Responses<T>,
) -> Vec<(String, Result<T, ClaimError>)> {
    let mut outcomes: BTreeMap<String, _> = outcomes.into_iter().collect();
    let mut seen = BTreeSet::new();
    let answer = |uid: &str| match outcomes.remove(uid) {
        Some(outcome) => (uid.to_owned(), outcome.map_err(ClaimError::Failed)),
        None => (uid.to_owned(), Err(ClaimError::NoResult)),
    };
    asked.into_iter().filter(|uid| seen.insert(*uid)).map(answer).collect()
}
