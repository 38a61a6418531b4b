//! Lists of a cluster, read once: for programs that answer and end.

use std::fmt;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use kube::api::ListParams;
use kube::{Api, Error};
use serde::de::DeserializeOwned;

use super::connect::Cluster;
use super::failure::LiveError;
use super::retry::answered;
use super::watching::NO_TAINT_RULES;
use crate::manifest::Manifests;
use crate::output::say;

/// Objects in one answer.
const PAGE: u32 = 500;

/// HTTP status of a page whose list is too old to go on with.
const GONE: u16 = 410;

/// Number of times that a list which became too old is begun anew.
const ATTEMPTS: usize = 3;

/// Lists all objects of a kind, page by page.
///
/// # Errors
/// The kind can't be listed.
pub async fn list<K>(api: &Api<K>, resource: &'static str) -> Result<Vec<K>, LiveError>
where
    K: Clone + DeserializeOwned + fmt::Debug,
{
    let mut attempts = 0_usize;
    loop {
        attempts = attempts.saturating_add(1);
        match pages(api).await {
            Ok(objects) => return Ok(objects),
            Err(Error::Api(status)) if status.code == GONE && attempts < ATTEMPTS => {}
            Err(error) => return Err(LiveError::from_call("list", resource, &error)),
        }
    }
}

async fn pages<K>(api: &Api<K>) -> Result<Vec<K>, Error>
where
    K: Clone + DeserializeOwned + fmt::Debug,
{
    let (mut objects, mut page) = (Vec::new(), ListParams::default().limit(PAGE));
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
    let client = || cluster.client.clone();
    let mut objects = Manifests::default();
    objects.slices = list(&Api::<ResourceSlice>::all(client()), "resourceslices").await?;
    objects.claims = list(&Api::<ResourceClaim>::all(client()), "resourceclaims").await?;
    objects.taint_rules = match list(&Api::<DeviceTaintRule>::all(client()), "devicetaintrules").await {
        Err(LiveError::NotServed { .. }) => {
            say(&NO_TAINT_RULES);
            Vec::new()
        }
        listed => listed?,
    };
    Ok(objects)
}

/// Lists slices, claims and taint rules, and the pods that use claims.
///
/// # Errors
/// A kind can't be listed.
pub async fn list_devices_and_pods(cluster: &Cluster) -> Result<Manifests, LiveError> {
    let mut objects = list_devices(cluster).await?;
    objects.pods = list(&Api::<Pod>::all(cluster.client.clone()), "pods").await?;
    Ok(objects)
}
