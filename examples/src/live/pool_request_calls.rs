//! Calls about requests for the status of pools.

use std::fmt::Debug;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Client, Resource};
use poolstatus::{kep, validate_status};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::manifest::PoolStatusRequest;
use dra_live::failure::{Trouble, text, trouble};
use dra_live::retry::answered;

/// Outcome of the write of a status.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the outcomes that a controller tells apart")]
pub enum StatusWritten {
    /// The status is stored.
    Stored,
    /// Another copy of the controller has written one, which stays.
    ByOther,
    /// The request is gone.
    Gone,
    /// Nothing is stored; the text says why.
    Failed(String),
}

/// Form of requests.
trait Form:
    Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned + Serialize
{
    /// Returns true for a request that has an answer.
    fn is_answered(&self) -> bool;
    /// Returns true if a server that has stored this request for a write shows another one as it is.
    fn is_stored_as(&self, stored: &Self) -> bool;
}

impl Form for ResourcePoolStatusRequest {
    fn is_answered(&self) -> bool {
        self.status.is_some()
    }

    fn is_stored_as(&self, stored: &Self) -> bool {
        stored.status.as_ref().is_some_and(|status| validate_status(self.status.as_ref(), status).is_empty())
    }
}

impl Form for kep::ResourcePoolStatusRequest {
    fn is_answered(&self) -> bool {
        self.status.observation_time.is_some()
    }

    fn is_stored_as(&self, stored: &Self) -> bool {
        self.status == stored.status
    }
}

/// Writes the status of a request, as it was read but for the status. After a conflict the stored request tells whose write
/// it was.
pub async fn write_status(client: &Client, request: &PoolStatusRequest) -> StatusWritten {
    match request {
        PoolStatusRequest::Kep(request) => write(client, request.as_ref()).await,
        PoolStatusRequest::V1alpha3(request) => write(client, request.as_ref()).await,
    }
}

async fn write<K: Form>(client: &Client, request: &K) -> StatusWritten {
    let api: Api<K> = Api::all(client.clone());
    let name = request.meta().name.as_deref().unwrap_or_default();
    let post = PostParams::default();
    let sent = answered(|| api.replace_status(name, &post, request)).await;
    let Err(error) = sent.outcome else { return StatusWritten::Stored };
    match trouble(&error) {
        Trouble::Missing => StatusWritten::Gone,
        Trouble::Conflict => match answered(|| api.get_opt(name)).await.outcome {
            Ok(stored) => after_conflict(request, stored, sent.was_lost),
            Err(error) => StatusWritten::Failed(text(&error)),
        },
        _ => StatusWritten::Failed(text(&error)),
    }
}

fn after_conflict<K: Form>(written: &K, stored: Option<K>, was_lost: bool) -> StatusWritten {
    let Some(stored) = stored.filter(|stored| stored.meta().uid == written.meta().uid) else {
        return StatusWritten::Gone;
    };
    if !stored.is_answered() {
        return StatusWritten::Failed("the request has changed meanwhile".to_owned());
    }
    // A server that would store it again as it is has it from this call.
    if was_lost && written.is_stored_as(&stored) { StatusWritten::Stored } else { StatusWritten::ByOther }
}

/// Deletes a request, unless it has changed since it was read.
///
/// # Errors
/// The text of the server, or of the way to it.
pub async fn delete(client: &Client, request: &PoolStatusRequest) -> Result<(), String> {
    match request {
        PoolStatusRequest::Kep(request) => remove(client, request.as_ref()).await,
        PoolStatusRequest::V1alpha3(request) => remove(client, request.as_ref()).await,
    }
}

async fn remove<K: Form>(client: &Client, request: &K) -> Result<(), String> {
    let api: Api<K> = Api::all(client.clone());
    let metadata = request.meta();
    let (uid, resource_version) = (metadata.uid.clone(), metadata.resource_version.clone());
    let params = DeleteParams::default().preconditions(Preconditions { uid, resource_version });
    let name = metadata.name.as_deref().unwrap_or_default();
    match answered(|| api.delete(name, &params)).await.outcome {
        Err(error) if !matches!(trouble(&error), Trouble::Missing | Trouble::Conflict) => Err(text(&error)),
        _ => Ok(()),
    }
}
