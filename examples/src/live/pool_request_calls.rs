//! Calls about requests for the status of pools.

use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Client};

use poolstatus::validate_status;

use super::failure::{Trouble, text, trouble};
use super::retry::answered;

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

/// Writes the status of a request, as it was read but for the status. After a conflict the stored request tells whose write
/// it was.
pub async fn write_status(client: &Client, request: &ResourcePoolStatusRequest) -> StatusWritten {
    let api: Api<ResourcePoolStatusRequest> = Api::all(client.clone());
    let name = request.metadata.name.as_deref().unwrap_or_default();
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

fn after_conflict(
    written: &ResourcePoolStatusRequest,
    stored: Option<ResourcePoolStatusRequest>,
    was_lost: bool,
) -> StatusWritten {
    let Some(stored) = stored.filter(|stored| stored.metadata.uid == written.metadata.uid) else {
        return StatusWritten::Gone;
    };
    match stored.status {
        None => StatusWritten::Failed("the request has changed meanwhile".to_owned()),
        // A server that would store it again as it is has it from this call.
        Some(status) if was_lost && validate_status(written.status.as_ref(), &status).is_empty() => {
            StatusWritten::Stored
        }
        Some(_) => StatusWritten::ByOther,
    }
}

/// Deletes a request, unless it has changed since it was read.
///
/// # Errors
/// The text of the server, or of the way to it.
pub async fn delete(client: &Client, request: &ResourcePoolStatusRequest) -> Result<(), String> {
    let api: Api<ResourcePoolStatusRequest> = Api::all(client.clone());
    let (uid, resource_version) = (request.metadata.uid.clone(), request.metadata.resource_version.clone());
    let params = DeleteParams::default().preconditions(Preconditions { uid, resource_version });
    let name = request.metadata.name.as_deref().unwrap_or_default();
    match answered(|| api.delete(name, &params)).await.outcome {
        Err(error) if !matches!(trouble(&error), Trouble::Missing | Trouble::Conflict) => Err(text(&error)),
        _ => Ok(()),
    }
}
