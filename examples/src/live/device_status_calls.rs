//! Calls that report devices in the status of their claims.

use dra_alloc::driver::{DeviceReport, merge_device_status};
use dra_alloc::kubelet::ClaimRef;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::api::PostParams;
use kube::{Api, Client};

use super::failure::{Trouble, text, trouble};
use super::now;
use super::retry::answered;

/// Number of times that a status is merged and written before conflicts are an error.
const ATTEMPTS: usize = 5;

/// Writes what a driver reports about its devices of a claim. After a conflict the claim is read and merged again, so that
/// reports of other drivers stay.
///
/// # Errors
/// A text for people: the claim is gone or allocated anew, or the server refuses the status.
pub async fn report(client: &Client, driver: &str, claim: &ClaimRef, reports: &[DeviceReport]) -> Result<(), String> {
    let api: Api<ResourceClaim> = Api::namespaced(client.clone(), &claim.key.namespace);
    let (name, post) = (&claim.key.name, PostParams::default());
    for _ in 0..ATTEMPTS {
        let found = answered(|| api.get(name)).await.outcome.map_err(|error| text(&error))?;
        if found.metadata.uid.as_deref() != Some(&claim.uid) {
            return Err("another claim has the name now".to_owned());
        }
        let merged = merge_device_status(&found, driver, reports, now()).map_err(|error| error.to_string())?;
        let Some(devices) = merged else { return Ok(()) };
        let mut changed = found;
        changed.status.get_or_insert_default().devices = Some(devices);
        match answered(|| api.replace_status(name, &post, &changed)).await.outcome {
            Err(error) if trouble(&error) == Trouble::Conflict => {}
            outcome => return outcome.map(drop).map_err(|error| text(&error)),
        }
    }
    Err(format!("the claim has changed {ATTEMPTS} times meanwhile"))
}
