//! Stands in for `live` in a program that was built without the feature: it says what to add.

use examples::cluster_args::BuiltWithoutLive;

use super::command::ServeArgs;

/// Reason that there is no cluster.
pub(crate) type LiveError = BuiltWithoutLive;

/// Refuses to work on a cluster.
pub(super) const fn run(_: &ServeArgs) -> Result<(), LiveError> {
    Err(BuiltWithoutLive::new())
}
