//! Look-up of a claim by its name.

use dra_device::claims::ClaimKey;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::{Api, Client};

use super::failure::text;
use super::retry::answered;

/// Returns the claim that has a name now.
///
/// # Errors
/// The text of the server, or of the way to it: nothing is known about the claim.
pub async fn find(client: &Client, claim: &ClaimKey) -> Result<Option<ResourceClaim>, String> {
    let api: Api<ResourceClaim> = Api::namespaced(client.clone(), &claim.namespace);
    answered(|| api.get_opt(&claim.name)).await.outcome.map_err(|error| text(&error))
}
