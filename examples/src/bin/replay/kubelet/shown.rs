//! Output of a step of `alloc.kubelet`: calls of drivers, the checkpoint, devices of a container, an error.

use std::collections::BTreeMap;
use std::fmt::Display;

use dra_alloc::kubelet::{ClaimRef, Skipped};
use serde::Serialize;

/// Output of a step.
#[derive(Default, Serialize)]
pub(super) struct Shown {
    pub(super) calls: BTreeMap<String, Vec<String>>,
    pub(super) skipped: Vec<SkippedCall>,
    pub(super) checkpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) devices: Option<Vec<String>>,
    pub(super) error: Option<String>,
}

/// Skipped call: claim UID, driver, operation.
#[derive(Serialize)]
pub(super) struct SkippedCall(String, String, dra_alloc::kubelet::Operation);

pub(super) fn uids(claims: &[ClaimRef]) -> Vec<String> {
    claims.iter().map(|claim| claim.uid.clone()).collect()
}

pub(super) fn planned(calls: &BTreeMap<String, Vec<ClaimRef>>, skipped: &[Skipped]) -> Shown {
    let skip = |skip: &Skipped| SkippedCall(skip.claim_uid.clone(), skip.driver.clone(), skip.operation);
    Shown {
        calls: calls.iter().map(|(driver, claims)| (driver.clone(), uids(claims))).collect(),
        skipped: skipped.iter().map(skip).collect(),
        ..Shown::default()
    }
}

pub(super) fn done<E: Display>(result: Result<(), E>) -> Shown {
    Shown { error: result.err().map(|error| error.to_string()), ..Shown::default() }
}

pub(super) fn failed(error: impl Display) -> Shown {
    Shown { error: Some(error.to_string()), ..Shown::default() }
}
