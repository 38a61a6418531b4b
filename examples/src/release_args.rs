//! The flag `--release` of the programs, which is `--profile` as well: whose rules to follow.

use clap::Args;
use dra_attrs::{Profile, ProfileError};

/// Flag that chooses the rules.
#[derive(Args, Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReleaseArgs {
    /// Rules to follow: a release of Kubernetes (1.34, 1.35, 1.36, 1.37), or kep (texts of the KEPs)
    #[arg(long, visible_alias = "release", value_name = "RELEASE", default_value_t = Profile::V1_37, value_parser = rules)]
    pub profile: Profile,
}

/// Reads the name of a release, with or without its `v`, or `kep`.
///
/// # Errors
/// There is no such profile.
///
/// ```
/// use dra_attrs::Profile;
/// use examples::release_args::rules;
/// assert_eq!((rules("1.35"), rules("v1.35"), rules("kep")), (Ok(Profile::V1_35), Ok(Profile::V1_35), Ok(Profile::Kep)));
/// assert!(rules("1.33").is_err());
/// ```
pub fn rules(name: &str) -> Result<Profile, ProfileError> {
    format!("v{name}").parse().or_else(|_| name.parse())
}
