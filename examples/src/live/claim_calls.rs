//! Calls about claims that `dra_alloc::pods` asks for.

use dra_alloc::kubelet::ClaimKey;
use dra_alloc::pods::{ApiAnswer, ClaimWrite};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Error};

use super::failure::{Trouble, text, trouble};
use super::retry::{Answered, answered};

/// Carries out a call and returns the answer of the server. If an earlier answer to it was lost, a conflict with the own
/// write is no conflict.
pub async fn carry_out(client: &Client, write: &ClaimWrite) -> ApiAnswer {
    let post = PostParams::default();
    let api = |namespace: &Option<String>| -> Api<ResourceClaim> {
        Api::namespaced(client.clone(), namespace.as_deref().unwrap_or_default())
    };
    match write {
        ClaimWrite::Update { claim } => {
            let (api, name) = (api(&claim.metadata.namespace), name_of(claim));
            let sent = answered(|| api.replace(name, &post, claim)).await;
            settled(&api, name, sent, |stored| stored.metadata.finalizers == claim.metadata.finalizers).await
        }
        ClaimWrite::UpdateStatus { claim } => {
            let (api, name) = (api(&claim.metadata.namespace), name_of(claim));
            let sent = answered(|| api.replace_status(name, &post, claim)).await;
            settled(&api, name, sent, |stored| has_status_of(stored, claim)).await
        }
        ClaimWrite::PatchReservation { namespace, name, .. } => {
            let api: Api<ResourceClaim> = Api::namespaced(client.clone(), namespace);
            let patch = Patch::Strategic(write.patch());
            let params = PatchParams::default();
            let sent = answered(|| api.patch_status(name, &params, &patch)).await;
            answer(sent.outcome)
        }
        // A call whose answer is lost is not repeated: a claim too many is found by the next attempt, and deleted.
        ClaimWrite::Create { claim } => answer(api(&claim.metadata.namespace).create(&post, claim).await),
        ClaimWrite::Delete { namespace, name, uid } => {
            let api: Api<ResourceClaim> = Api::namespaced(client.clone(), namespace);
            let same = Preconditions { uid: Some(uid.clone()), resource_version: None };
            let params = DeleteParams { preconditions: Some(same), ..DeleteParams::default() };
            done(answered(|| api.delete(name, &params)).await.outcome)
        }
        ClaimWrite::PatchPodStatus { namespace, name, .. } => {
            let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
            let patch = Patch::Strategic(write.patch());
            let params = PatchParams::default();
            done(answered(|| api.patch_status(name, &params, &patch)).await.outcome)
        }
        ClaimWrite::Get { namespace, name } => {
            let api: Api<ResourceClaim> = Api::namespaced(client.clone(), namespace);
            answer(answered(|| api.get(name)).await.outcome)
        }
        other => ApiAnswer::Failed(format!("no such call: {other:?}")),
    }
}

/// Returns the claim that has a name now.
///
/// # Errors
/// The text of the server, or of the way to it: nothing is known about the claim.
pub async fn find(client: &Client, claim: &ClaimKey) -> Result<Option<ResourceClaim>, String> {
    let api: Api<ResourceClaim> = Api::namespaced(client.clone(), &claim.namespace);
    answered(|| api.get_opt(&claim.name)).await.outcome.map_err(|error| text(&error))
}

/// Takes a conflict after a lost answer for what it is: the own write, if the stored claim has what was written.
async fn settled(
    api: &Api<ResourceClaim>,
    name: &str,
    sent: Answered<ResourceClaim>,
    is_written: impl Fn(&ResourceClaim) -> bool,
) -> ApiAnswer {
    let is_conflict = sent.outcome.as_ref().is_err_and(|error| trouble(error) == Trouble::Conflict);
    if !(sent.was_lost && is_conflict) {
        return answer(sent.outcome);
    }
    match answered(|| api.get(name)).await.outcome {
        Ok(stored) if is_written(&stored) => ApiAnswer::Object(Box::new(stored)),
        _ => answer(sent.outcome),
    }
}

/// Returns true if the devices and consumers of a stored claim are those that were written. The server sets times.
fn has_status_of(stored: &ResourceClaim, written: &ResourceClaim) -> bool {
    let parts = |claim: &ResourceClaim| {
        let status = claim.status.clone().unwrap_or_default();
        let devices = status.allocation.and_then(|allocation| allocation.devices);
        (claim.metadata.uid.clone(), devices, status.reserved_for.unwrap_or_default())
    };
    parts(stored) == parts(written)
}

fn name_of(claim: &ResourceClaim) -> &str {
    claim.metadata.name.as_deref().unwrap_or_default()
}

fn answer(outcome: Result<ResourceClaim, Error>) -> ApiAnswer {
    match outcome {
        Ok(claim) => ApiAnswer::Object(Box::new(claim)),
        Err(error) => failed(&error),
    }
}

/// Answers a call whose object is no claim, or is gone.
fn done<T>(outcome: Result<T, Error>) -> ApiAnswer {
    outcome.map_or_else(|error| failed(&error), |_| ApiAnswer::Done)
}

fn failed(error: &Error) -> ApiAnswer {
    match trouble(error) {
        Trouble::Conflict => ApiAnswer::Conflict(text(error)),
        _ => ApiAnswer::Failed(text(error)),
    }
}
