//! Door of `live` in a program that was built without the feature: it says what to add.

use examples::cluster_args::BuiltWithoutLive;
use examples::manifest::ReadinessManifests;
use readiness::Policy;

use super::Args;

/// Reason that there is no cluster.
pub(crate) type LiveError = BuiltWithoutLive;

/// Refuses to work on a cluster.
pub(crate) fn run(_: &Args, _: Policy, _: ReadinessManifests) -> Result<(), LiveError> {
    Err(BuiltWithoutLive::new())
}
