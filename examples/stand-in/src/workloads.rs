//! Controllers of workloads: their pods, replica sets and status, as `workload_pods` decides. Rollouts have no steps, and nobody
//! makes jobs of cron jobs.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use object_patches::{Object, Patch};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use workload_pods::{Changes, Demand, replica_set_of, status};

use crate::api::Api;
use crate::controllers::{stored_kind, with};
use crate::door::{as_json, typed};
use crate::program::now;
use crate::refusal::Refusal;
use crate::request::Subresource;
use crate::store::Change;

/// Kinds that have controllers here.
const WORKLOADS: [&str; 5] = ["DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"];

/// Largest number of pods that are made or deleted before others have their turn. Each change brings the workload back.
const MOST_PODS: usize = 200;

/// Kind, namespace and name of a workload.
pub(crate) type Key = (&'static str, String, String);

/// Returns the workloads that a change is about: the object, its controller, and all daemon sets if it is a node.
pub(crate) fn concerned(api: &Api, change: &Change) -> Result<Vec<Key>, Refusal> {
    let object = &change.object;
    let key = |kind: &str, namespace: &str, name: &str| {
        let kind = WORKLOADS.iter().find(|known| **known == kind)?;
        Some((*kind, namespace.to_owned(), name.to_owned()))
    };
    if change.kind.name == "Node" {
        let sets = api.store.list(stored_kind("DaemonSet")?, None);
        return Ok(sets.filter_map(|set| key("DaemonSet", set.metadata("namespace"), set.metadata("name"))).collect());
    }
    let namespace = object.metadata("namespace");
    let own = key(change.kind.name, namespace, object.metadata("name"));
    let owner = controller(object).and_then(|owner| key(owner.text("/kind"), namespace, owner.text("/name")));
    Ok(own.into_iter().chain(owner).collect())
}

/// Returns the reference to the controller of an object.
fn controller(object: &Value) -> Option<&Value> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
}

/// Brings a workload, which may be gone, a step nearer to what it asks for.
///
/// # Errors
/// A call is refused.
pub(crate) fn sync(api: &mut Api, (kind, namespace, name): &Key) -> Result<(), Refusal> {
    let kind = stored_kind(kind)?;
    let Some(object) = api.store.get(&(kind.plural, namespace.clone(), name.clone())).cloned() else { return Ok(()) };
    if object.is_terminating() {
        return Ok(());
    }
    match kind.name {
        "Deployment" => return deployment(api, &typed(kind, &object)?),
        "Job" => return job(api, typed(kind, &object)?),
        _ => {}
    }
    let pods: Vec<Pod> = owned(api, "Pod", &object)?;
    let pods: Vec<&Pod> = pods.iter().collect();
    match kind.name {
        "ReplicaSet" => {
            let set: ReplicaSet = typed(kind, &object)?;
            write_status(api, kind.name, &object, &status::of_replica_set(&set, &pods))?;
            carry_out(api, &Demand::of_replica_set(&set, &[]).changes(&pods, &[], MOST_PODS))
        }
        "StatefulSet" => {
            let set: StatefulSet = typed(kind, &object)?;
            write_status(api, kind.name, &object, &status::of_stateful_set(&set, &pods))?;
            carry_out(api, &Demand::of_stateful_set(&set).changes(&pods, &[], MOST_PODS))
        }
        _ => {
            let (set, nodes): (DaemonSet, Vec<Node>) = (typed(kind, &object)?, all(api, "Node", None)?);
            let nodes: Vec<&Node> = nodes.iter().collect();
            write_status(api, kind.name, &object, &status::of_daemon_set(&set, &pods, &nodes))?;
            carry_out(api, &Demand::of_daemon_set(&set).changes(&pods, &nodes, MOST_PODS))
        }
    }
}

/// A job has its new status before its pods: what has ended is replaced no more.
fn job(api: &mut Api, mut job: Job) -> Result<(), Refusal> {
    let object = as_json(&job)?;
    let pods: Vec<Pod> = owned(api, "Pod", &object)?;
    let pods: Vec<&Pod> = pods.iter().collect();
    job.status = Some(status::of_job(&job, &pods, now()));
    write_status(api, "Job", &object, &job.status)?;
    carry_out(api, &Demand::of_job(&job).changes(&pods, &[], MOST_PODS))
}

/// A deployment has all its pods in the replica set of its template, and none in the others.
fn deployment(api: &mut Api, deployment: &Deployment) -> Result<(), Refusal> {
    let object = as_json(deployment)?;
    let sets: Vec<ReplicaSet> = owned(api, "ReplicaSet", &object)?;
    let wanted = replica_set_of(deployment);
    let new_status = status::of_deployment(deployment, &sets.iter().collect::<Vec<_>>(), now());
    write_status(api, "Deployment", &object, &new_status)?;
    if deployment.spec.paused == Some(true) {
        return Ok(());
    }
    let namespace = object.metadata("namespace");
    if sets.iter().all(|set| set.metadata.name != wanted.metadata.name) {
        with("ReplicaSet", namespace, Subresource::None, |context| api.create(context, as_json(&wanted)?).map(drop))?;
    }
    for set in &sets {
        let replicas = if set.metadata.name == wanted.metadata.name { wanted.spec.replicas } else { Some(0) };
        if set.spec.replicas != replicas {
            let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
            let name = set.metadata.name.as_deref().unwrap_or_default();
            with("ReplicaSet", namespace, Subresource::None, |context| api.patch(context, name, patch).map(drop))?;
        }
    }
    Ok(())
}

/// Returns all objects of a kind, in a namespace or everywhere.
fn all<T: DeserializeOwned>(api: &Api, kind: &str, namespace: Option<&str>) -> Result<Vec<T>, Refusal> {
    let kind = stored_kind(kind)?;
    api.store.list(kind, namespace).map(|object| typed(kind, object)).collect()
}

/// Returns the objects of a kind that have another object as their controller.
fn owned<T: DeserializeOwned>(api: &Api, kind: &str, owner: &Value) -> Result<Vec<T>, Refusal> {
    let (kind, uid) = (stored_kind(kind)?, owner.metadata("uid"));
    let objects = api.store.list(kind, Some(owner.metadata("namespace")));
    let of_owner = objects.filter(|object| controller(object).is_some_and(|found| found.text("/uid") == uid));
    of_owner.map(|object| typed(kind, object)).collect()
}

fn write_status(api: &mut Api, kind: &str, object: &Value, status: &impl Serialize) -> Result<(), Refusal> {
    let status = as_json(status)?;
    if object.get("status") == Some(&status) {
        return Ok(());
    }
    let mut new = object.clone();
    new.keep_metadata("managedFields", &Value::Null);
    new.set_field("status", status);
    with(kind, object.metadata("namespace"), Subresource::Status, |context| {
        api.update(context, object.metadata("name"), new).map(drop)
    })
}

fn carry_out(api: &mut Api, changes: &Changes<'_>) -> Result<(), Refusal> {
    let namespace = |metadata: &ObjectMeta| metadata.namespace.clone().unwrap_or_default();
    for pod in &changes.delete {
        let body = json!({"preconditions": {"uid": pod.metadata.uid}});
        with("Pod", &namespace(&pod.metadata), Subresource::None, |context| {
            api.delete(context, pod.metadata.name.as_deref().unwrap_or_default(), &body).map(drop)
        })?;
    }
    for pod in &changes.make {
        with("Pod", &namespace(&pod.metadata), Subresource::None, |context| {
            api.create(context, as_json(pod)?).map(drop)
        })?;
    }
    Ok(())
}
