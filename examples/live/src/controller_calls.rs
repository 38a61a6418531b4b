//! Calls that `dra_alloc::claim_controller` asks for.

use dra_alloc::claim_controller::{ControllerCall, ControllerResponse, ControllerSync, SyncStep};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Error};

use super::failure::{Trouble, text, trouble};
use super::retry::answered;

/// Carries out one look of the controller at an object, to its end. Returns the created or changed claims, which the
/// controller is shown at once, and the error that ended it.
pub async fn finish(client: &Client, sync: &mut ControllerSync) -> (Vec<ResourceClaim>, Option<String>) {
    let mut changed = Vec::new();
    loop {
        match sync.next_step() {
            SyncStep::Call(call) => {
                let answer = carry_out(client, &call).await;
                if let ControllerResponse::Claim(claim) = &answer {
                    changed.push(ResourceClaim::clone(claim));
                }
                sync.answer(answer);
            }
            SyncStep::Failed(error) => return (changed, Some(error.to_string())),
            _ => return (changed, None),
        }
    }
}

/// Carries out a call and returns the answer of the server. A create is sent once: its claim would be made twice if only the
/// answer was lost, and the watch shows it.
pub async fn carry_out(client: &Client, call: &ControllerCall) -> ControllerResponse {
    let claims = |namespace: &str| -> Api<ResourceClaim> { Api::namespaced(client.clone(), namespace) };
    let namespace_of = |claim: &ResourceClaim| claim.metadata.namespace.clone().unwrap_or_default();
    let post = PostParams::default();
    match call {
        ControllerCall::CreateClaim { claim } => answer(claims(&namespace_of(claim)).create(&post, claim).await),
        ControllerCall::Update { claim } => {
            let (api, name) = (claims(&namespace_of(claim)), name_of(claim));
            answer(answered(|| api.replace(name, &post, claim)).await.outcome)
        }
        ControllerCall::UpdateStatus { claim } => {
            let (api, name) = (claims(&namespace_of(claim)), name_of(claim));
            answer(answered(|| api.replace_status(name, &post, claim)).await.outcome)
        }
        ControllerCall::DeleteClaim { claim, uid } => {
            let preconditions = Preconditions { uid: Some(uid.clone()), resource_version: None };
            let (api, params) = (claims(&claim.namespace), DeleteParams::default().preconditions(preconditions));
            match answered(|| api.delete(&claim.name, &params)).await.outcome.map_err(|error| (trouble(&error), error))
            {
                // It is gone, or another claim has its name.
                Ok(_) | Err((Trouble::Missing | Trouble::Conflict, _)) => ControllerResponse::Done,
                Err((_, error)) => ControllerResponse::Failed(text(&error)),
            }
        }
        ControllerCall::RecordClaims { owner, body } => {
            let pods: Api<Pod> = Api::namespaced(client.clone(), &owner.namespace);
            let (params, patch) = (PatchParams::apply(ControllerCall::FIELD_MANAGER).force(), Patch::Apply(body));
            match answered(|| pods.patch_status(&owner.name, &params, &patch)).await.outcome {
                Ok(_) => ControllerResponse::Done,
                Err(error) => ControllerResponse::Failed(text(&error)),
            }
        }
        ControllerCall::GetConsumer { namespace, consumer } if consumer.resource == "pods" => {
            let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
            match answered(|| pods.get_opt(&consumer.name)).await.outcome {
                Ok(found) => ControllerResponse::Consumer(found.and_then(|pod| pod.metadata.uid)),
                Err(error) => ControllerResponse::Failed(text(&error)),
            }
        }
        other => ControllerResponse::Failed(format!("no such call: {other:?}")),
    }
}

fn name_of(claim: &ResourceClaim) -> &str {
    claim.metadata.name.as_deref().unwrap_or_default()
}

fn answer(outcome: Result<ResourceClaim, Error>) -> ControllerResponse {
    match outcome {
        Ok(claim) => ControllerResponse::Claim(Box::new(claim)),
        Err(error) => ControllerResponse::Failed(text(&error)),
    }
}
