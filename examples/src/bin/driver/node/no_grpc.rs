//! Door of `grpc` in a program that was built without the feature: it says what to add.

use std::path::PathBuf;

use examples::output::LineForm;

use super::NodePlugin;
use super::command::ApiFiles;

/// Directories of the sockets, and the pod that they are named after.
#[derive(Debug)]
#[expect(dead_code, reason = "nothing is served")]
pub(crate) struct Sockets {
    pub(super) plugin_dir: PathBuf,
    pub(super) registry: PathBuf,
    pub(super) pod_uid: Option<String>,
}

/// Reason that nothing is served.
#[derive(Debug, thiserror::Error)]
#[error("the kubelet calls over gRPC, which this program was built without: add --features grpc to the cargo command")]
pub(crate) struct ServeError;

/// Refuses to serve.
pub(super) fn serve(_: NodePlugin, _: &str, _: ApiFiles, _: &Sockets, _: LineForm) -> Result<(), ServeError> {
    Err(ServeError)
}
