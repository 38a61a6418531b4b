//! Calls that report devices in the status of their claims.

use std::time::Duration;

use dra_node::driver::DeviceReport;
use dra_node::kubelet::ClaimRef;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

use super::failure::{Trouble, text, trouble};
use super::now;
use super::retry::{Pauses, answered};

/// Number of times that a status is merged and written before conflicts are an error.
const ATTEMPTS: usize = 5;

/// Longest pause between two attempts to write a report. Nobody waits for it, and what is missing may be a right.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Reason why a report is not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The claim is gone or allocated anew: the report would be about another allocation.
    #[error("{0}")]
    Stale(String),
    /// The server did not write it now. The text is the server's.
    #[error("{0}")]
    Refused(String),
}

/// Writes what a driver reports about its devices of a claim, again and again with growing pauses for as long as the
/// server refuses it. `note` is told each reason once.
pub async fn report(
    client: &Client,
    driver: &str,
    claim: &ClaimRef,
    reports: &[DeviceReport],
    note: impl Fn(&ReportError),
) {
    let (mut pauses, mut told) = (Pauses::up_to(LONGEST_PAUSE), None);
    while let Err(error) = write(client, driver, claim, reports).await {
        let is_final = matches!(error, ReportError::Stale(_));
        if told.as_ref() != Some(&error) {
            note(&error);
            told = Some(error);
        }
        if is_final {
            return;
        }
        tokio::time::sleep(pauses.next().unwrap_or(LONGEST_PAUSE)).await;
    }
}

/// Writes a report as a patch of the list alone: fields of other releases stay. After a conflict the claim is read and merged
/// again, so that reports of other drivers stay.
async fn write(client: &Client, driver: &str, claim: &ClaimRef, reports: &[DeviceReport]) -> Result<(), ReportError> {
    let api: Api<ResourceClaim> = Api::namespaced(client.clone(), &claim.key.namespace);
    let (name, params) = (&claim.key.name, PatchParams::default());
    let failed = |error: kube::Error| match trouble(&error) {
        Trouble::Missing => ReportError::Stale(text(&error)),
        _ => ReportError::Refused(text(&error)),
    };
    for _ in 0..ATTEMPTS {
        let found = answered(|| api.get(name)).await.outcome.map_err(failed)?;
        if found.metadata.uid.as_deref() != Some(&claim.uid) {
            return Err(ReportError::Stale("another claim has the name now".to_owned()));
        }
        let merged = DeviceReport::merge(&found, driver, reports, now());
        let Some(devices) = merged.map_err(|error| ReportError::Stale(error.to_string()))? else { return Ok(()) };
        let patch = Patch::Merge(json!({
            "metadata": {"uid": claim.uid, "resourceVersion": found.metadata.resource_version},
            "status": {"devices": devices},
        }));
        let written = answered(|| api.patch_status(name, &params, &patch)).await.outcome;
        match written {
            Err(error) if trouble(&error) == Trouble::Conflict => {}
            outcome => return outcome.map(drop).map_err(failed),
        }
    }
    Err(ReportError::Refused(format!("the claim has changed {ATTEMPTS} times meanwhile")))
}
