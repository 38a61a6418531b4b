//! Lists of a cluster, read once: for programs that answer and end.

use std::fmt;

use k8s_openapi::api::resource::v1::DeviceTaintRule;
use kube::api::ListParams;
use kube::core::ApiResource;
use kube::{Api, Client, Error, Resource};
use serde::de::DeserializeOwned;

use super::failure::LiveError;
use super::pages::list_selected;
use super::readable::{Readable, Unreadable};
use super::taint_rules;
use crate::say::say;

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

/// Lists the taint rules, in the version that the server has; none, which is said, if it has no version of them.
///
/// # Errors
/// The rules can't be listed.
pub async fn list_taint_rules(client: &Client) -> Result<Vec<DeviceTaintRule>, LiveError> {
    let served = taint_rules::served(client).await;
    let served = served.map_err(|error| LiveError::from_call("list", taint_rules::PLURAL, &error))?;
    if let Some(resource) = served {
        list_as(&Api::all_with(client.clone(), &resource), taint_rules::PLURAL).await
    } else {
        say(&taint_rules::NONE);
        Ok(Vec::new())
    }
}
