//! Lists of a cluster, read once: for programs that answer and end.

use std::fmt;

use kube::api::ListParams;
use kube::core::ApiResource;
use kube::{Api, Client, Error, Resource};
use serde::de::DeserializeOwned;

use super::connect::Cluster;
use super::failure::LiveError;
use super::readable::{Readable, Unreadable};
use super::retry::answered;
use super::taint_rules;
use crate::manifest::Manifests;
use crate::output::say;

/// Objects in one answer.
const PAGE: u32 = 500;

/// HTTP status of a page whose list is too old to go on with.
const GONE: u16 = 410;

/// Number of times that a list which became too old is begun anew.
const ATTEMPTS: usize = 3;

/// Lists all objects of a kind, page by page. An object that can't be read is named, and left out.
///
/// # Errors
/// The kind can't be listed.
pub async fn list<K>(client: &Client, resource: &'static str) -> Result<Vec<K>, LiveError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
{
    list_as(&Api::all_with(client.clone(), &ApiResource::erase::<K>(&())), resource).await
}

/// Lists all objects of a kind that makes an answer better, and that not each user may list: none then, which is said.
///
/// # Errors
/// The kind can't be listed for another reason.
pub async fn list_if_allowed<K>(client: &Client, resource: &'static str) -> Result<Vec<K>, LiveError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
{
    match list(client, resource).await {
        Err(error @ LiveError::Forbidden { .. }) => {
            say(&format_args!("{error}; taken for none"));
            Ok(Vec::new())
        }
        listed => listed,
    }
}

async fn list_as<K>(api: &Api<Readable<K>>, resource: &'static str) -> Result<Vec<K>, LiveError>
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug,
{
    let mut attempts = 0_usize;
    loop {
        attempts = attempts.saturating_add(1);
        match list_selected(api, &ListParams::default()).await {
            Ok(objects) => {
                let mut unreadable = Unreadable::new(resource);
                return Ok(objects.into_iter().filter_map(|object| unreadable.read(object).ok()).collect());
            }
            Err(Error::Api(status)) if status.code == GONE && attempts < ATTEMPTS => {}
            Err(error) => return Err(LiveError::from_call("list", resource, &error)),
        }
    }
}

/// Lists the objects that a selection has, page by page, however few the server puts into one.
///
/// # Errors
/// A call fails, or the list has become too old to go on with.
pub async fn list_selected<K>(api: &Api<K>, selection: &ListParams) -> Result<Vec<K>, Error>
where
    K: Clone + DeserializeOwned + fmt::Debug,
{
    let (mut objects, mut page) = (Vec::new(), selection.clone().limit(PAGE));
    loop {
        let list = answered(|| api.list(&page)).await.outcome?;
        objects.extend(list.items);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(objects),
        }
    }
}

/// Lists slices, claims and taint rules.
///
/// # Errors
/// A kind can't be listed. A server without taint rules has none.
pub async fn list_devices(cluster: &Cluster) -> Result<Manifests, LiveError> {
    let mut objects = Manifests::default();
    objects.slices = list(&cluster.client, "resourceslices").await?;
    objects.claims = list(&cluster.client, "resourceclaims").await?;
    let served = taint_rules::served(&cluster.client).await;
    let served = served.map_err(|error| LiveError::from_call("list", taint_rules::PLURAL, &error))?;
    if let Some(resource) = served {
        let rules = Api::all_with(cluster.client.clone(), &resource);
        objects.taint_rules = list_as(&rules, taint_rules::PLURAL).await?;
    } else {
        say(&taint_rules::NONE);
    }
    Ok(objects)
}

/// Lists slices, claims and taint rules, and the pods that use claims.
///
/// # Errors
/// A kind can't be listed.
pub async fn list_devices_and_pods(cluster: &Cluster) -> Result<Manifests, LiveError> {
    let mut objects = list_devices(cluster).await?;
    objects.pods = list(&cluster.client, "pods").await?;
    Ok(objects)
}
