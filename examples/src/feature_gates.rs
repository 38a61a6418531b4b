//! The flag `--feature-gates` of the programs.

use dra_attrs::{FeatureGate, GateError, GateSet, Profile};

use crate::output::say;

/// Reads a list of gates as Kubernetes components take it, and names those that have no effect on the program to stderr.
///
/// # Errors
/// A part of the list is no assignment, or names a gate that Kubernetes does not have.
pub fn feature_gates<G: FeatureGate>(list: &str, profile: Profile) -> Result<GateSet<G>, GateError> {
    let idle = GateSet::<G>::without_effect(list, profile)?;
    if !idle.is_empty() {
        say(&format_args!("feature gates without effect here: {}", idle.join(", ")));
    }
    GateSet::parse(list, profile)
}
