//! Door of `live` in a program that was built without the feature: it says what to add.

use examples::cluster_args::BuiltWithoutLive;

use super::Args;

/// Reason that there is no cluster.
pub(crate) type LiveError = BuiltWithoutLive;

/// Refuses to work on a cluster.
pub(crate) const fn run(_: &Args) -> Result<(), LiveError> {
    Err(BuiltWithoutLive::new())
}
