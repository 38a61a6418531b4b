//! Reasons that the kubelet ends.

use std::io;

use dra_attrs::{GateError, VersionError};
use examples::output::{OutputError, Trouble};
use examples::plan::PlanError;

use super::agent::AgentError;
use super::grpc::ServeError;
use super::story::StoryError;
use super::{diagnose, live};

/// Reason that the kubelet ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KubeletError {
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Story(#[from] StoryError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Live(#[from] live::LiveError),
    #[error(transparent)]
    Version(#[from] VersionError),
    #[error(transparent)]
    Diagnose(#[from] diagnose::NoClaim),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("--feature-gates: {0}")]
    Gates(#[from] GateError),
    #[error("--plugin {0}: given twice")]
    Plugin(String),
    #[error("{0}")]
    Manifest(String),
    #[error("{0}; correct the manifest, or say --ignore-unknown-fields")]
    UnknownField(String),
    #[error("no pod {0} in the manifests")]
    NoPod(String),
    #[error(
        "no pod in {0}: with nothing active, every claim would be unprepared; if that is meant, say --none-active \
         instead"
    )]
    NoActivePod(String),
    #[error("{0}: metadata.uid: must be set; take the object from the cluster, as kubectl get -o yaml prints it")]
    NoUid(String),
    #[error("{0} of the pods had to stay")]
    Stayed(usize),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(io::Error),
}

impl Trouble for KubeletError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Gates(_) | Self::Plugin(_))
    }
}
