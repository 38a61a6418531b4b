//! Plans: the driver calls to make for a pod, and the calls to skip.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

use dra_attrs::internal::Sealed;
use dra_device::claims::ClaimKey;
use serde::Serialize;

use super::claim_info::PreparedDevice;
use super::error::CallError;
use super::operation::Operation;

/// Reference to a claim in a driver call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct ClaimRef {
    /// UID of the claim.
    pub uid: String,
    /// Namespace and name of the claim.
    pub key: ClaimKey,
}

impl ClaimRef {
    /// Creates the reference to a claim, as a driver reads it from a call.
    #[must_use]
    pub fn new(namespace: &str, name: &str, uid: &str) -> Self {
        Self { uid: uid.to_owned(), key: ClaimKey::new(namespace, name) }
    }
}

/// A claim that is left out of a driver call, because the driver's devices skip the operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct Skipped {
    /// UID of the claim.
    pub claim_uid: String,
    /// Name of the driver.
    pub driver: String,
    /// The skipped operation.
    pub operation: Operation,
}

/// Response of a driver to one call: the result or error message for each claim, by UID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Responses<T>(BTreeMap<String, Result<T, String>>);

impl<T> FromIterator<(String, Result<T, String>)> for Responses<T> {
    fn from_iter<I: IntoIterator<Item = (String, Result<T, String>)>>(answers: I) -> Self {
        Self(answers.into_iter().collect())
    }
}

impl<T, const N: usize> From<[(String, Result<T, String>); N]> for Responses<T> {
    fn from(answers: [(String, Result<T, String>); N]) -> Self {
        answers.into_iter().collect()
    }
}

impl<T> IntoIterator for Responses<T> {
    type Item = (String, Result<T, String>);
    type IntoIter = std::collections::btree_map::IntoIter<String, Result<T, String>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Type parameter of a [`Plan`] that prepares claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a mark without values")]
pub enum Prepare {}

/// Type parameter of a [`Plan`] that unprepares claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a mark without values")]
pub enum Unprepare {}

/// Operation of a plan, as a type parameter.
pub trait NodeOperation: Sealed {
    /// Operation as a value.
    const OPERATION: Operation;
    /// Result for one claim in a driver's response.
    type Response;
}

impl Sealed for Prepare {}

impl NodeOperation for Prepare {
    const OPERATION: Operation = Operation::Prepare;
    type Response = Vec<PreparedDevice>;
}

impl Sealed for Unprepare {}

impl NodeOperation for Unprepare {
    const OPERATION: Operation = Operation::Unprepare;
    type Response = ();
}

/// Driver calls for the claims of one pod. [`super::ClaimCache`] creates the plan, applies the response of each driver,
/// and finishes the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a plan does nothing until its calls are made"]
pub struct Plan<O> {
    pub(super) pod_uid: String,
    /// Claims whose state in the cache changes when the plan is finished.
    pub(super) claims: Vec<ClaimRef>,
    pub(super) calls: BTreeMap<String, Vec<ClaimRef>>,
    pub(super) skipped: Vec<Skipped>,
    /// Number of allocated devices of each call's claims, by driver and claim UID. Empty for unprepare.
    allocated: BTreeMap<String, BTreeMap<String, usize>>,
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
            allocated: BTreeMap::new(),
            answered: BTreeSet::new(),
            operation: PhantomData,
        }
    }

    /// Returns the drivers to call, each with the claims of its one call. The order of the calls does not matter.
    #[must_use]
    pub const fn calls(&self) -> &BTreeMap<String, Vec<ClaimRef>> {
        &self.calls
    }

    /// Returns the claims left out of driver calls, to be counted by [`super::metrics::SkipCounts`].
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Returns the UID of the pod.
    #[must_use]
    pub fn pod_uid(&self) -> &str {
        &self.pod_uid
    }

    /// Returns the drivers that have not responded successfully yet.
    pub fn unanswered(&self) -> impl Iterator<Item = &str> {
        self.calls.keys().map(String::as_str).filter(|driver| !self.answered.contains(*driver))
    }

    pub(super) fn call(&mut self, driver: &str, claim: &ClaimRef) {
        self.calls.entry(driver.to_owned()).or_default().push(claim.clone());
    }

    /// Notes the number of devices of a driver that are allocated to a claim.
    pub(super) fn note_allocated(&mut self, driver: &str, claim: &ClaimRef, devices: usize) {
        self.allocated.entry(driver.to_owned()).or_default().insert(claim.uid.clone(), devices);
    }

    /// Returns the number of devices of a driver that are allocated to each claim, by UID.
    pub(super) fn allocated(&self, driver: &str) -> BTreeMap<String, usize> {
        self.allocated.get(driver).cloned().unwrap_or_default()
    }

    pub(super) fn skip(&mut self, driver: &str, claim: &ClaimRef) {
        let (claim_uid, driver) = (claim.uid.clone(), driver.to_owned());
        self.skipped.push(Skipped { claim_uid, driver, operation: O::OPERATION });
    }

    /// Checks the response of a driver and calls `apply` with the result for each claim. Stops at the first error:
    /// earlier results stay applied, and the driver counts as unanswered, even if it had answered before.
    pub(super) fn answer(
        &mut self,
        driver: &str,
        outcome: Result<Responses<O::Response>, String>,
        mut apply: impl FnMut(&ClaimRef, O::Response) -> Result<(), CallError>,
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

    /// Forgets that a driver has responded, and returns the claims of its call.
    pub(super) fn forget_answer(&mut self, driver: &str) -> &[ClaimRef] {
        self.answered.remove(driver);
        self.calls.get(driver).map_or(&[], Vec::as_slice)
    }

    pub(super) fn check_answered(&self) -> Result<(), CallError> {
        let driver = self.unanswered().next();
        driver
            .map_or(Ok(()), |driver| Err(CallError::NotAnswered { operation: O::OPERATION, driver: driver.to_owned() }))
    }
}
