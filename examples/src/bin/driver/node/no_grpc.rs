//! Stands in for `serve` in a program that was built without the feature: it says what to add.

use super::command::ServeArgs;

/// Reason that nothing is served.
#[derive(Debug, thiserror::Error)]
#[error("the kubelet calls over gRPC, which this program was built without: add --features grpc to the cargo command")]
pub(crate) struct ServeError;

/// Refuses to serve.
pub(super) const fn serve(_: &ServeArgs) -> Result<(), ServeError> {
    Err(ServeError)
}
