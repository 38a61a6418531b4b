//! The operation `scheduling.controller`: work of the controller for claims, and what it is to look at.

use std::collections::BTreeMap;

use dra_alloc::claim_controller::{
    ClaimController, ControllerCall, ControllerResponse, PodGroupVersion, QueueKey, QueueKind, SyncStep,
};
use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::{ApiResponse, ClaimWrite, PodOptions};
use examples::claim_store::ClaimStore;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::api_server::changes;
use super::input::{options, pod, result};
use crate::alloc::carriers;
use crate::operation::Operation;
use crate::refusal::{Refusal, objects, read};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ControllerInput {
    steps: Vec<String>,
    #[serde(default)]
    key: String,
    pod: Option<Value>,
    #[serde(default)]
    pods: Vec<Value>,
    #[serde(default)]
    api_pods: Vec<Value>,
    #[serde(default)]
    pod_groups: Vec<Value>,
    #[serde(default)]
    claims: Vec<Value>,
    #[serde(default)]
    templates: Vec<Value>,
    #[serde(default, rename = "deletedUIDs")]
    deleted_uids: Vec<String>,
}

/// Objects of a cluster, as they were before the first step.
struct World {
    options: PodOptions,
    version: PodGroupVersion,
    pod: Option<Pod>,
    pods: Vec<Pod>,
    /// Pods that the API server has, and the controller has not seen.
    api_pods: Vec<Pod>,
    groups: Vec<PodGroup>,
    claims: Vec<ResourceClaim>,
    templates: Vec<ResourceClaimTemplate>,
    deleted_uids: Vec<String>,
}

#[derive(Clone)]
enum Step {
    Sync(QueueKey),
    PodChanged(Pod),
    PodDeleted(Pod),
}

pub(crate) fn controller(input: Value) -> Result<Operation, Refusal> {
    let options = options(&input)?;
    let input: ControllerInput = read(input)?;
    let is_of_1_37 =
        |group: &Value| group.get("apiVersion").is_some_and(|version| version == "scheduling.k8s.io/v1beta1");
    let version =
        if input.pod_groups.iter().any(is_of_1_37) { PodGroupVersion::V1Beta1 } else { PodGroupVersion::V1Alpha2 };
    let world = World {
        options,
        version,
        pod: input.pod.map(|value| pod("pod", value)).transpose()?,
        pods: objects("pods", input.pods.into_iter())?,
        api_pods: objects("apiPods", input.api_pods.into_iter())?,
        groups: objects("podGroups", input.pod_groups.into_iter())?,
        claims: carriers("claims", input.claims.into_iter())?,
        templates: objects("templates", input.templates.into_iter())?,
        deleted_uids: input.deleted_uids,
    };
    let read_step = |(index, step): (usize, &String)| -> Result<Step, Refusal> {
        let pod = || world.pod.clone().ok_or_else(|| Refusal::field("pod", format!("needed for {step}")));
        match step.as_str() {
            "sync" => Ok(Step::Sync(input.key.parse().map_err(|error| Refusal::field("key", format!("{error}")))?)),
            "queue_changed" => Ok(Step::PodChanged(pod()?)),
            "queue_deleted" => Ok(Step::PodDeleted(pod()?)),
            other => Err(Refusal::field(&format!("steps[{index}]"), format!("no step {other:?}"))),
        }
    };
    let steps = input.steps.iter().enumerate().map(read_step).collect::<Result<Vec<_>, _>>()?;
    Ok(result(move || {
        let mut run = Run::new(&world);
        for step in &steps {
            run.step(step);
        }
        json!({"writes": run.calls, "queue": run.queue, "error": run.error})
    }))
}

/// A controller beside an API server.
struct Run<'w> {
    world: &'w World,
    controller: ClaimController,
    store: ClaimStore,
    created: u32,
    calls: Vec<Value>,
    queue: Vec<String>,
    error: Option<String>,
}

impl<'w> Run<'w> {
    fn new(world: &'w World) -> Self {
        let mut controller = ClaimController::new(world.options).with_group_version(world.version);
        for uid in &world.deleted_uids {
            controller.observe_pod_deleted(&Pod { metadata: with_uid(uid), ..Pod::default() });
        }
        for claim in &world.claims {
            controller.observe_claim(claim.clone());
        }
        world.templates.iter().for_each(|template| drop(controller.observe_template(template.clone())));
        world.groups.iter().for_each(|group| drop(controller.observe_pod_group(group.clone())));
        world.pods.iter().chain(&world.pod).for_each(|pod| drop(controller.observe_pod(pod.clone())));
        let mut store = ClaimStore::default();
        for claim in &world.claims {
            controller.observe_claim(store.put(claim.clone()));
        }
        Self { world, controller, store, created: 0, calls: Vec::new(), queue: Vec::new(), error: None }
    }

    fn step(&mut self, step: &Step) {
        let keys = match step {
            Step::Sync(key) => return self.sync(key),
            Step::PodChanged(pod) => self.controller.observe_pod(pod.clone()),
            Step::PodDeleted(pod) => self.controller.observe_pod_deleted(pod),
        };
        self.queue.extend(keys.iter().map(ToString::to_string));
    }

    fn sync(&mut self, key: &QueueKey) {
        let mut sync = self.controller.sync(key);
        loop {
            match sync.next_step() {
                SyncStep::Call(call) => sync.answer(self.call(call)),
                SyncStep::Failed(error) => break self.error = Some(error.to_string()),
                _ => break,
            }
        }
    }

    /// Carries out a call, logs it, and shows its effect to the controller.
    fn call(&mut self, call: ControllerCall) -> ControllerResponse {
        match call {
            ControllerCall::CreateClaim { mut claim } => {
                let metadata = &claim.metadata;
                let prefix = metadata.generate_name.clone().unwrap_or_default();
                self.log(
                    "create",
                    "resourceclaims",
                    None,
                    "",
                    json!({"generateName": prefix,
                    "owners": metadata.owner_references, "annotations": metadata.annotations, "labels": metadata.labels,
                    "spec": claim.spec}),
                );
                self.created += 1;
                claim.metadata.name = Some(format!("{prefix}{:05}", self.created));
                let claim = self.store.put(*claim);
                self.controller.observe_claim(claim.clone());
                ControllerResponse::Claim(Box::new(claim))
            }
            ControllerCall::RecordClaims { owner, body } => {
                let resource = if owner.kind == QueueKind::Pod { "pods" } else { "podgroups" };
                let fields = json!({"patch": body, "patchType": "application/apply-patch+yaml"});
                self.log("patch", resource, Some("status"), &owner.name, fields);
                ControllerResponse::Done
            }
            ControllerCall::UpdateStatus { claim } => self.write(&ClaimWrite::UpdateStatus { claim }, Some("status")),
            ControllerCall::Update { claim } => self.write(&ClaimWrite::Update { claim }, None),
            ControllerCall::DeleteClaim { claim, .. } => {
                self.log("delete", "resourceclaims", None, &claim.name, json!({}));
                self.store.remove(&claim);
                self.controller.observe_claim_deleted(&claim.namespace, &claim.name);
                ControllerResponse::Done
            }
            ControllerCall::GetConsumer { namespace, consumer } => {
                self.log("get", &consumer.resource, None, &consumer.name, json!({}));
                ControllerResponse::Consumer(self.found(&namespace, &consumer))
            }
            _ => ControllerResponse::Failed("the replayed API server does not know the call".to_owned()),
        }
    }

    fn write(&mut self, write: &ClaimWrite, subresource: Option<&str>) -> ControllerResponse {
        let (ClaimWrite::Update { claim } | ClaimWrite::UpdateStatus { claim }) = write else {
            return ControllerResponse::Done;
        };
        let fields: Map<String, Value> = changes(write).into_iter().collect();
        self.log(
            "update",
            "resourceclaims",
            subresource,
            claim.metadata.name.as_deref().unwrap_or_default(),
            fields.into(),
        );
        match self.store.call(write) {
            ApiResponse::Object(claim) => {
                self.controller.observe_claim(claim.clone());
                ControllerResponse::Claim(claim)
            }
            ApiResponse::Conflict(text) | ApiResponse::Unavailable(text) | ApiResponse::Failed(text) => {
                ControllerResponse::Failed(text)
            }
            _ => ControllerResponse::Done,
        }
    }

    /// Returns the UID of a consumer that only the API server has.
    fn found(&self, namespace: &str, consumer: &ResourceClaimConsumerReference) -> Option<String> {
        let key = ClaimKey::new(namespace, &consumer.name);
        let pods: BTreeMap<ClaimKey, &Pod> =
            self.world.api_pods.iter().map(|pod| (ClaimKey::from_metadata(&pod.metadata), pod)).collect();
        pods.get(&key).filter(|_| consumer.resource == "pods").and_then(|pod| pod.metadata.uid.clone())
    }

    fn log(&mut self, verb: &str, resource: &str, subresource: Option<&str>, name: &str, fields: Value) {
        let mut log = json!({"verb": verb, "resource": resource, "subresource": subresource, "name": name});
        if let (Some(log), Value::Object(fields)) = (log.as_object_mut(), fields) {
            log.extend(fields);
        }
        self.calls.push(log);
    }
}

fn with_uid(uid: &str) -> ObjectMeta {
    ObjectMeta { uid: Some(uid.to_owned()), ..ObjectMeta::default() }
}
