//! Calls about claims that `dra_alloc::pods` asks for.

use dra_alloc::pods::{ApiResponse, ClaimWrite};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Error};

use super::failure::{Trouble, text, trouble};
use super::retry::{answered, once};

/// Carries out a call and returns the answer of the server. A write is sent once: if its answer is lost, who asked reads the
/// claim and decides.
pub async fn carry_out(client: &Client, write: &ClaimWrite) -> ApiResponse {
    let post = PostParams::default();
    let api = |namespace: &Option<String>| -> Api<ResourceClaim> {
        Api::namespaced(client.clone(), namespace.as_deref().unwrap_or_default())
    };
    match write {
        ClaimWrite::Update { claim } => {
            answer(once(api(&claim.metadata.namespace).replace(name_of(claim), &post, claim)).await)
        }
        ClaimWrite::UpdateStatus { claim } => {
            answer(once(api(&claim.metadata.namespace).replace_status(name_of(claim), &post, claim)).await)
        }
        ClaimWrite::PatchReservation { namespace, name, .. } => {
            let api: Api<ResourceClaim> = Api::namespaced(client.clone(), namespace);
            let patch = Patch::Strategic(write.patch());
            answer(once(api.patch_status(name, &PatchParams::default(), &patch)).await)
        }
        // A call whose answer is lost is not repeated: a claim too many is found by the next attempt, and deleted.
        ClaimWrite::Create { claim } => answer(once(api(&claim.metadata.namespace).create(&post, claim)).await),
        ClaimWrite::Delete { namespace, name, uid } => {
            let api: Api<ResourceClaim> = Api::namespaced(client.clone(), namespace);
            let same = Preconditions { uid: Some(uid.clone()), resource_version: None };
            let params = DeleteParams { preconditions: Some(same), ..DeleteParams::default() };
            match once(api.delete(name, &params)).await {
                Err(error) if trouble(&error) == Trouble::Missing => ApiResponse::Done,
                deleted => done(deleted),
            }
        }
        ClaimWrite::PatchPodStatus { namespace, name, .. } => {
            let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
            let patch = Patch::Strategic(write.patch());
            done(once(api.patch_status(name, &PatchParams::default(), &patch)).await)
        }
        ClaimWrite::Get { namespace, name } => {
            let api: Api<ResourceClaim> = Api::namespaced(client.clone(), namespace);
            match answered(|| api.get(name)).await.outcome {
                Err(error) if trouble(&error) == Trouble::Missing => ApiResponse::Done,
                read => answer(read),
            }
        }
        other => ApiResponse::Failed(format!("no such call: {other:?}")),
    }
}

fn name_of(claim: &ResourceClaim) -> &str {
    claim.metadata.name.as_deref().unwrap_or_default()
}

fn answer(outcome: Result<ResourceClaim, Error>) -> ApiResponse {
    match outcome {
        Ok(claim) => ApiResponse::Object(Box::new(claim)),
        Err(error) => failed(&error),
    }
}

/// Answers a call whose object is no claim, or is gone.
fn done<T>(outcome: Result<T, Error>) -> ApiResponse {
    outcome.map_or_else(|error| failed(&error), |_| ApiResponse::Done)
}

fn failed(error: &Error) -> ApiResponse {
    match trouble(error) {
        Trouble::Conflict => ApiResponse::Conflict(text(error)),
        Trouble::Unanswered => ApiResponse::Lost(text(error)),
        Trouble::Later => ApiResponse::Unavailable(text(error)),
        _ => ApiResponse::Failed(text(error)),
    }
}
