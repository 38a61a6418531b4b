//! Profiles: the choice between the rules of the KEPs and those of the Kubernetes release, where the two differ.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Choice between the rules in the text of the KEPs and those of Kubernetes 1.37 as released, where the two differ.
///
/// There is no default: every entry point takes the profile as an argument, so that nobody gets the KEP's answer on a
/// real cluster by forgetting a call. The differences are data: each crate reads a constant table from profile to
/// decisions where the decision is made. `docs/divergences.md` lists every difference with its test.
///
/// ```
/// use dra_attrs::Profile;
/// assert_eq!(Profile::V1_37.to_string(), "v1.37");
/// assert_eq!("kep".parse(), Ok(Profile::Kep));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Profile {
    /// Rules in the text of the KEPs.
    #[serde(rename = "kep")]
    Kep,
    /// Rules of Kubernetes 1.37 as released.
    #[serde(rename = "v1.37")]
    V1_37,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 2] = [Self::Kep, Self::V1_37];

    /// Returns the name of the profile in JSON and on a command line: `kep` or `v1.37`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kep => "kep",
            Self::V1_37 => "v1.37",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error of a text that is not the name of a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no profile {name:?}; known: kep, v1.37")]
#[non_exhaustive]
pub struct ProfileError {
    /// The unknown name.
    pub name: String,
}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(name: &str) -> Result<Self, ProfileError> {
        let found = Self::ALL.into_iter().find(|profile| profile.name() == name);
        found.ok_or_else(|| ProfileError { name: name.to_owned() })
    }
}
