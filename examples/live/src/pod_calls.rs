//! Calls about pods: nomination, condition, binding.

use dra_alloc::pods::{ApiResponse, BindingCall, BindingRequest};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Error};
use nnn::{Command, PodKey};
use serde_json::{Value, json};

use super::claim_calls;
use super::failure::{Trouble, text, trouble};
use super::now;
use super::retry::{answered, once};

fn pods(client: &Client, pod: &PodKey) -> Api<Pod> {
    Api::namespaced(client.clone(), &pod.namespace)
}

/// Writes the nomination of a pod, or its condition `PodScheduled`, and returns the pod after it; nothing is written if another
/// pod has the name now. `since` is the time since which the condition has its status; `None` is now.
///
/// # Errors
/// The server has refused the patch, or does not answer.
pub async fn write_status(
    client: &Client,
    pod: &PodKey,
    command: &Command,
    since: Option<Timestamp>,
) -> Result<Pod, Error> {
    patch_status(client, pod, command.patch(since.unwrap_or_else(now)).unwrap_or_default()).await
}

/// Preempts a pod: writes the condition `DisruptionTarget` and deletes the pod. One that is gone is preempted.
///
/// # Errors
/// The server has refused a call, or does not answer.
pub async fn preempt(client: &Client, pod: &PodKey, scheduler: &str) -> Result<(), Error> {
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
        "message": format!("{scheduler}: preempting to accommodate a higher priority pod"),
        "lastTransitionTime": now().to_string(),
    });
    let patch = json!({"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}});
    let uid = Some(pod.uid.clone()).filter(|uid| !uid.is_empty());
    let params = DeleteParams {
        preconditions: Some(Preconditions { uid, ..Preconditions::default() }),
        ..DeleteParams::default()
    };
    let api = pods(client, pod);
    let outcome = match patch_status(client, pod, patch).await {
        Ok(_) => answered(|| api.delete(&pod.name, &params)).await.outcome.map(drop),
        Err(error) => Err(error),
    };
    match outcome {
        Err(error) if trouble(&error) != Trouble::Missing => Err(error),
        _ => Ok(()),
    }
}

async fn patch_status(client: &Client, pod: &PodKey, patch: Value) -> Result<Pod, Error> {
    let (api, patch, params) = (pods(client, pod), Patch::Strategic(patch), PatchParams::default());
    answered(|| api.patch_status(&pod.name, &params, &patch)).await.outcome
}

/// Carries out a call of a pod's binding and returns the answer of the server. What must not be done twice is sent once: if its
/// answer is lost, who asked reads the object and decides.
pub async fn carry_out(client: &Client, call: &BindingCall) -> ApiResponse {
    let pod = &call.pod;
    match &call.request {
        BindingRequest::Status(command) => answer(write_status(client, pod, command, None).await.map(Some)),
        BindingRequest::Claim(write) => claim_calls::carry_out(client, write).await,
        BindingRequest::Bind { node } => {
            let metadata = json!({"name": pod.name, "namespace": pod.namespace, "uid": pod.uid});
            let target = json!({"apiVersion": "v1", "kind": "Node", "name": node});
            let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target});
            let (api, post) = (pods(client, pod), PostParams::default());
            let sent = once(api.create_subresource::<Value, Value>("binding", &pod.name, &post, &binding)).await;
            answer(sent.map(|_| None))
        }
        BindingRequest::ReadPod => {
            answer(answered(|| async { pods(client, pod).get_opt(&pod.name).await }).await.outcome)
        }
        other => ApiResponse::Failed(format!("no such call: {other:?}")),
    }
}

fn answer(outcome: Result<Option<Pod>, Error>) -> ApiResponse {
    match outcome {
        Ok(Some(pod)) => ApiResponse::Pod(Box::new(pod)),
        Ok(None) => ApiResponse::Done,
        Err(error) => match trouble(&error) {
            Trouble::Conflict => ApiResponse::Conflict(text(&error)),
            Trouble::Unanswered => ApiResponse::Lost(text(&error)),
            Trouble::Later => ApiResponse::Unavailable(text(&error)),
            _ => ApiResponse::Failed(text(&error)),
        },
    }
}
