//! Calls about pods: nomination, condition, binding.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Error};
use nnn::PodKey;
use nnn::memory::BindingAnswer;
use serde_json::{Value, json};

use super::failure::{Trouble, trouble};
use super::now;
use super::retry::answered;

fn pods(client: &Client, pod: &PodKey) -> Api<Pod> {
    Api::namespaced(client.clone(), &pod.namespace)
}

/// Writes `status.nominatedNodeName`, and returns the pod after it; nothing is written if another pod has the name now.
///
/// # Errors
/// The server has refused the patch, or does not answer.
pub async fn nominate(client: &Client, pod: &PodKey, node: &str) -> Result<Pod, Error> {
    let patch = json!({"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}});
    patch_status(client, pod, patch).await
}

/// Writes the condition `PodScheduled` of a pod that no node can run, takes back its nomination, and returns the pod after it.
///
/// # Errors
/// The server has refused the patch, or does not answer.
pub async fn write_unschedulable(client: &Client, pod: &PodKey, message: &str) -> Result<Pod, Error> {
    let condition = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
        "lastTransitionTime": now().to_string(),
    });
    let status = json!({"conditions": [condition], "nominatedNodeName": null});
    patch_status(client, pod, json!({"metadata": {"uid": pod.uid}, "status": status})).await
}

/// Takes back the nomination of a pod, and returns the pod after it.
///
/// # Errors
/// The server has refused the patch, or does not answer.
pub async fn clear_nomination(client: &Client, pod: &PodKey) -> Result<Pod, Error> {
    patch_status(client, pod, json!({"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": null}})).await
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

/// Returns the pod that has a name now.
///
/// # Errors
/// The server does not answer.
pub async fn find(client: &Client, pod: &PodKey) -> Result<Option<Pod>, Error> {
    answered(|| async { pods(client, pod).get_opt(&pod.name).await }).await.outcome
}

/// Returns what a failed binding means for who assumes the pod on its node.
#[must_use]
pub fn binding_answer(error: &Error) -> BindingAnswer {
    match trouble(error) {
        Trouble::Unanswered | Trouble::Later => BindingAnswer::Lost,
        _ => BindingAnswer::Refused,
    }
}

/// Binds a pod to a node. A pod that is on this node already is bound: the answer to an earlier call was lost.
///
/// # Errors
/// The pod is gone, being deleted or on another node, or the server does not answer.
pub async fn bind(client: &Client, pod: &PodKey, node: &str) -> Result<(), Error> {
    let api = pods(client, pod);
    let metadata = json!({"name": pod.name, "namespace": pod.namespace, "uid": pod.uid});
    let target = json!({"apiVersion": "v1", "kind": "Node", "name": node});
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target});
    let post = PostParams::default();
    let sent = answered(|| api.create_subresource::<Value, Value>("binding", &pod.name, &post, &binding)).await;
    match sent.outcome {
        Err(error) if trouble(&error) == Trouble::Conflict => match answered(|| api.get(&pod.name)).await.outcome {
            Ok(found) if is_on(&found, pod, node) => Ok(()),
            _ => Err(error),
        },
        outcome => outcome.map(drop),
    }
}

fn is_on(found: &Pod, pod: &PodKey, node: &str) -> bool {
    let bound = found.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    found.metadata.uid.as_deref() == Some(&pod.uid) && bound == Some(node)
}
