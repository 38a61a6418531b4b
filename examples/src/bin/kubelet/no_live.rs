//! Door of `live` in a program that was built without the feature: it says what to add.

use std::collections::BTreeMap;
use std::future::{Ready, ready};
use std::path::PathBuf;

use dra_alloc::Component;
use examples::cluster_args::BuiltWithoutLive;

use super::args::Args;

/// Reason that there is no cluster.
pub(crate) type LiveError = BuiltWithoutLive;

/// Refuses to work on a cluster.
pub(crate) fn run(_: &Args, _: Component, _: BTreeMap<String, PathBuf>) -> Ready<Result<(), LiveError>> {
    ready(Err(BuiltWithoutLive::new()))
}
