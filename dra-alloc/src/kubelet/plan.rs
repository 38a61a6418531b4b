//! Plans: the calls to make for a pod, and what is skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

use serde::Serialize;

use super::claim_info::{ClaimKey, PreparedDevice};
use super::error::CallError;

/// An operation of a driver's node plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_enums, reason = "the plugin has these two")]
pub enum Operation {
    /// Before a pod starts.
    Prepare,
    /// After it has ended.
    Unprepare,
}

impl Operation {
    /// The name of the call.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Self::Prepare => crate::skip::PREPARE,
            Self::Unprepare => crate::skip::UNPREPARE,
        }
    }
}

/// A claim as drivers are told of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct ClaimRef {
    /// UID of the claim.
    pub uid: String,
    /// Namespace and name.
    pub key: ClaimKey,
}

/// A call that is not made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct Skipped {
    /// UID of the claim.
    pub claim_uid: String,
    /// The driver.
    pub driver: String,
    /// The operation.
    pub operation: Operation,
}

/// What a driver answers to one call: for each claim by its UID what it says, or the text of its error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers<T>(BTreeMap<String, Result<T, String>>);

impl<T> FromIterator<(String, Result<T, String>)> for Answers<T> {
    fn from_iter<I: IntoIterator<Item = (String, Result<T, String>)>>(answers: I) -> Self {
        Self(answers.into_iter().collect())
    }
}

impl<T, const N: usize> From<[(String, Result<T, String>); N]> for Answers<T> {
    fn from(answers: [(String, Result<T, String>); N]) -> Self {
        answers.into_iter().collect()
    }
}

impl<T> IntoIterator for Answers<T> {
    type Item = (String, Result<T, String>);
    type IntoIter = std::collections::btree_map::IntoIter<String, Result<T, String>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Marks the plan of a prepare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a mark without values")]
pub enum Prepare {}

/// Marks the plan of an unprepare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a mark without values")]
pub enum Unprepare {}

/// Which driver answers what about a claim.
pub trait NodeOperation {
    /// The operation.
    const OPERATION: Operation;
    /// What a driver says about one claim.
    type Answer;
}

impl NodeOperation for Prepare {
    const OPERATION: Operation = Operation::Prepare;
    type Answer = Vec<PreparedDevice>;
}

impl NodeOperation for Unprepare {
    const OPERATION: Operation = Operation::Unprepare;
    type Answer = ();
}

/// The calls that one operation on a pod needs. Made by [`super::ClaimCache`], answered driver by driver, and finished.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a plan does nothing until its calls are made"]
pub struct Plan<O> {
    pub(super) pod_uid: String,
    /// The claims that the end of the operation concerns.
    pub(super) claims: Vec<ClaimRef>,
    pub(super) calls: BTreeMap<String, Vec<ClaimRef>>,
    pub(super) skipped: Vec<Skipped>,
    answered: BTreeSet<String>,
    operation: PhantomData<O>,
}

impl<O: NodeOperation> Plan<O> {
    pub(super) fn new(pod_uid: &str) -> Self {
        Self {
            pod_uid: pod_uid.to_owned(),
            claims: Vec::new(),
            calls: BTreeMap::new(),
            skipped: Vec::new(),
            answered: BTreeSet::new(),
            operation: PhantomData,
        }
    }

    /// The drivers to call, and the claims to name in the one call of each. Order does not matter.
    #[must_use]
    pub const fn calls(&self) -> &BTreeMap<String, Vec<ClaimRef>> {
        &self.calls
    }

    /// The calls that are not made, to be counted by [`super::metrics::SkipCounts`].
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// UID of the pod.
    #[must_use]
    pub fn pod_uid(&self) -> &str {
        &self.pod_uid
    }

    /// The drivers that have not answered.
    pub fn unanswered(&self) -> impl Iterator<Item = &str> {
        self.calls.keys().map(String::as_str).filter(|driver| !self.answered.contains(*driver))
    }

    pub(super) fn call(&mut self, driver: &str, claim: &ClaimRef) {
        self.calls.entry(driver.to_owned()).or_default().push(claim.clone());
    }

    pub(super) fn skip(&mut self, driver: &str, claim: &ClaimRef) {
        let (claim_uid, driver) = (claim.uid.clone(), driver.to_owned());
        self.skipped.push(Skipped { claim_uid, driver, operation: O::OPERATION });
    }

    /// Checks the outcome of a driver's call; `apply` sees each good answer. An error ends it: answers before the bad one
    /// have been applied, and the driver counts as not having answered, also if it had before.
    pub(super) fn answer(
        &mut self,
        driver: &str,
        outcome: Result<Answers<O::Answer>, String>,
        mut apply: impl FnMut(&ClaimRef, O::Answer) -> Result<(), CallError>,
    ) -> Result<(), CallError> {
        let operation = O::OPERATION;
        self.answered.remove(driver);
        let Some(claims) = self.calls.get(driver) else {
            return Err(CallError::NotCalled { operation, driver: driver.to_owned() });
        };
        let answers = outcome.map_err(|message| CallError::Failed { operation, message })?;
        let count = answers.0.len();
        for (uid, answer) in answers {
            let Some(claim) = claims.iter().find(|claim| claim.uid == uid) else {
                return Err(CallError::UnknownClaim { operation, uid });
            };
            let failed = |message| CallError::Claim { operation, claim: claim.key.name.clone(), message };
            apply(claim, answer.map_err(failed)?)?;
        }
        match claims.len().saturating_sub(count) {
            0 => {
                self.answered.insert(driver.to_owned());
                Ok(())
            }
            claims => Err(CallError::Missing { operation, claims }),
        }
    }

    pub(super) fn check_answered(&self) -> Result<(), CallError> {
        let driver = self.unanswered().next();
        driver
            .map_or(Ok(()), |driver| Err(CallError::NotAnswered { operation: O::OPERATION, driver: driver.to_owned() }))
    }
}
