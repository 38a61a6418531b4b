//! Pods of the trial: created with their classes and claims, waited for, and deleted.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use dra_live::failure::{Trouble, text, trouble};
use examples::manifest::{Manifests, name_of};
use examples::output::{OutputError, put};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client, Error, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(200);

/// Reason that the pods do not run, or do not go.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PodsError {
    #[error("{0}: {1}")]
    Call(String, String),
    #[error("not in time: {0}")]
    Late(String),
    #[error(transparent)]
    Output(#[from] OutputError),
}

fn failed(about: &str) -> impl FnOnce(Error) -> PodsError {
    let about = about.to_owned();
    move |error| PodsError::Call(about, text(&error))
}

/// Creates the objects: classes, templates, claims, pods.
///
/// # Errors
/// The server refuses one.
pub(crate) async fn create(client: &Client, manifests: &Manifests) -> Result<(), PodsError> {
    for class in &manifests.classes {
        post(&Api::all(client.clone()), class).await?;
    }
    for template in &manifests.claim_templates {
        post(&in_namespace(client, template), template).await?;
    }
    for claim in &manifests.claims {
        post(&in_namespace(client, claim), claim).await?;
    }
    for pod in &manifests.pods {
        post(&in_namespace(client, pod), pod).await?;
    }
    Ok(())
}

fn in_namespace<K>(client: &Client, object: &K) -> Api<K>
where
    K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
{
    Api::namespaced(client.clone(), object.meta().namespace.as_deref().unwrap_or("default"))
}

/// Creates an object.
///
/// # Errors
/// The server refuses it.
pub(crate) async fn post<K>(api: &Api<K>, object: &K) -> Result<(), PodsError>
where
    K: Resource<DynamicType = ()> + Clone + fmt::Debug + Serialize + DeserializeOwned,
{
    let name = object.meta().name.clone().unwrap_or_default();
    api.create(&PostParams::default(), object).await.map(drop).map_err(failed(&format!("create {name}")))
}

/// Waits until all pods run, and tells each step of them and of their claims.
///
/// # Errors
/// They do not run in time.
pub(crate) async fn until_running(client: &Client, manifests: &Manifests, patience: Duration) -> Result<(), PodsError> {
    let (begin, mut told) = (Instant::now(), BTreeMap::new());
    loop {
        // Claims are read after the pods and told before them: a pod that runs has its devices by then.
        let (mut waiting, mut pods) = (Vec::new(), Vec::new());
        for pod in &manifests.pods {
            let name = name_of(&pod.metadata);
            let found: Pod = in_namespace(client, pod).get(pod_name(pod)).await.map_err(failed(&name))?;
            let phase = found.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
            let node = found.spec.and_then(|spec| spec.node_name).map(|node| format!(" on {node}")).unwrap_or_default();
            pods.push((format!("pod {name}"), format!("{phase}{node}")));
            if phase != "Running" {
                waiting.push(name);
            }
        }
        for claim in &manifests.claims {
            let name = name_of(&claim.metadata);
            let api: Api<ResourceClaim> = in_namespace(client, claim);
            let found = api.get(claim.metadata.name.as_deref().unwrap_or_default()).await.map_err(failed(&name))?;
            tell(&mut told, &format!("claim {name}"), &devices(&found))?;
        }
        for (pod, state) in pods {
            tell(&mut told, &pod, &state)?;
        }
        if waiting.is_empty() {
            return Ok(());
        }
        if begin.elapsed() > patience {
            return Err(PodsError::Late(format!("{} to run", waiting.join(", "))));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Deletes the pods, and waits until they are gone: the kubelet has unprepared their claims before.
///
/// # Errors
/// They are not gone in time.
pub(crate) async fn delete(client: &Client, manifests: &Manifests, patience: Duration) -> Result<(), PodsError> {
    let begin = Instant::now();
    for pod in &manifests.pods {
        let (name, api) = (name_of(&pod.metadata), in_namespace(client, pod));
        match api.delete(pod_name(pod), &DeleteParams::default()).await {
            // Somebody has deleted it meanwhile.
            Err(error) if trouble(&error) == Trouble::Missing => continue,
            deleted => drop(deleted.map_err(failed(&name))?),
        }
        loop {
            match api.get(pod_name(pod)).await {
                Err(error) if trouble(&error) == Trouble::Missing => break,
                Err(error) => return Err(failed(&name)(error)),
                Ok(_) if begin.elapsed() > patience => return Err(PodsError::Late(format!("{name} to go"))),
                Ok(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }
    Ok(())
}

fn pod_name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

/// Prints the state of an object, if it is another one than before.
fn tell(told: &mut BTreeMap<String, String>, object: &str, state: &str) -> Result<(), OutputError> {
    if told.insert(object.to_owned(), state.to_owned()).as_deref() == Some(state) {
        return Ok(());
    }
    put(&format!("playground| {object}: {state}\n"))
}

fn devices(claim: &ResourceClaim) -> String {
    let status = claim.status.as_ref();
    let allocation = status.and_then(|status| status.allocation.as_ref()).and_then(|found| found.devices.as_ref());
    let results = allocation.map(|devices| devices.results.clone().unwrap_or_default());
    match results {
        None => "not allocated".to_owned(),
        Some(results) => {
            let names: Vec<String> =
                results.iter().map(|found| format!("{}/{}/{}", found.driver, found.pool, found.device)).collect();
            format!("has {}", names.join(" "))
        }
    }
}
