//! Calls about slices that `dra_node::driver` plans.

use dra_node::driver::{SliceWrite, WriteFailure, WriteResponse};
use k8s_openapi::api::resource::v1::ResourceSlice;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Client, Error};

use super::failure::text;

/// Answer to a write, which [`SliceAnswer::as_answer`] gives to `Memory::answered`.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the answers of WriteResponse")]
pub enum SliceAnswer {
    /// The slice as it is stored.
    Stored(Box<ResourceSlice>),
    /// The slice is deleted, or marked as deleted.
    Deleted,
    /// The write failed, or its answer was lost. The text is the server's.
    Failed(WriteFailure, String),
}

impl SliceAnswer {
    /// Returns the answer as the library takes it.
    #[must_use]
    pub fn as_answer(&self) -> WriteResponse<'_> {
        match self {
            Self::Stored(slice) => WriteResponse::Stored(slice),
            Self::Deleted => WriteResponse::Deleted,
            Self::Failed(failure, _) => WriteResponse::Failed(*failure),
        }
    }
}

/// Sends a write once, with its preconditions. A write whose answer is lost is not repeated: the next plan is made from
/// what the watch shows.
pub async fn send(client: &Client, write: &SliceWrite) -> SliceAnswer {
    call(client, write, false).await
}

/// Sends a write as a dry run: the answer is that of the write, and nothing is stored.
pub async fn rehearse(client: &Client, write: &SliceWrite) -> SliceAnswer {
    call(client, write, true).await
}

async fn call(client: &Client, write: &SliceWrite, dry_run: bool) -> SliceAnswer {
    let api: Api<ResourceSlice> = Api::all(client.clone());
    let name = |slice: &ResourceSlice| slice.metadata.name.clone().unwrap_or_default();
    let post = PostParams { dry_run, ..PostParams::default() };
    let stored = match write {
        SliceWrite::Delete { name, uid, resource_version } => {
            let preconditions =
                Preconditions { uid: Some(uid.clone()), resource_version: Some(resource_version.clone()) };
            let params = DeleteParams { dry_run, ..DeleteParams::default() }.preconditions(preconditions);
            let deleted = api.delete(name, &params).await;
            return deleted.map_or_else(|error| failed(&error, write), |_| SliceAnswer::Deleted);
        }
        SliceWrite::Update { slice, .. } => api.replace(&name(slice), &post, slice).await,
        SliceWrite::Create { slice, .. } => api.create(&post, slice).await,
        other => return SliceAnswer::Failed(WriteFailure::Invalid, format!("no such write: {other:?}")),
    };
    stored.map_or_else(|error| failed(&error, write), |slice| SliceAnswer::Stored(Box::new(slice)))
}

fn failed(error: &Error, write: &SliceWrite) -> SliceAnswer {
    let failure = match error {
        Error::Api(status) => {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            WriteFailure::from_reason(&status.reason, causes.map(|cause| cause.field.as_str()), write)
        }
        _ => WriteFailure::Unknown,
    };
    SliceAnswer::Failed(failure, text(error))
}
