//! Profiles: the choice between the rules of the KEPs and those of a Kubernetes release, where they differ.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::release::{self, NodeAllocatableForm, PoolStatusForm, Rules};

/// Choice between the rules in the text of the KEPs and those of one Kubernetes release, where they differ.
///
/// There is no default: every entry point takes the profile as an argument, so that nobody gets the KEP's answer on a
/// real cluster by forgetting a call. The differences are data, a row for each profile, and no other code asks for the
/// profile itself. `docs/divergences.md` lists every difference between 1.37 and the KEPs with its test,
/// `docs/versions.md` the differences between releases.
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
    /// Rules of Kubernetes 1.34 as released.
    #[serde(rename = "v1.34")]
    V1_34,
    /// Rules of Kubernetes 1.35 as released.
    #[serde(rename = "v1.35")]
    V1_35,
    /// Rules of Kubernetes 1.36 as released.
    #[serde(rename = "v1.36")]
    V1_36,
    /// Rules of Kubernetes 1.37 as released.
    #[serde(rename = "v1.37")]
    V1_37,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 5] = [Self::Kep, Self::V1_34, Self::V1_35, Self::V1_36, Self::V1_37];

    /// Releases of Kubernetes, the oldest first.
    pub const RELEASES: [Self; 4] = [Self::V1_34, Self::V1_35, Self::V1_36, Self::V1_37];

    /// Returns the name of the profile in JSON and on a command line: `kep`, or the release, such as `v1.37`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kep => "kep",
            Self::V1_34 => "v1.34",
            Self::V1_35 => "v1.35",
            Self::V1_36 => "v1.36",
            Self::V1_37 => "v1.37",
        }
    }

    /// Returns the release of an API server of version 1.`minor`, or the nearest one that is known.
    /// [`Profile::of_server`] reads the number from the server's answer.
    ///
    /// ```
    /// use dra_attrs::Profile;
    /// assert_eq!([33, 36, 38].map(Profile::of_minor), [Profile::V1_34, Profile::V1_36, Profile::V1_37]);
    /// ```
    #[must_use]
    pub const fn of_minor(minor: u32) -> Self {
        match minor {
            0..=34 => Self::V1_34,
            35 => Self::V1_35,
            36 => Self::V1_36,
            37.. => Self::V1_37,
        }
    }

    /// Returns the versions in which the API server has a kind of `resource.k8s.io`, the newest first; none for a kind that
    /// the release lacks. Only `v1` is served unless a server is started with others (`--runtime-config`).
    ///
    /// ```
    /// use dra_attrs::Profile;
    /// assert_eq!(Profile::V1_36.versions_of("DeviceTaintRule"), ["v1beta2", "v1alpha3"]);
    /// assert!(Profile::V1_35.versions_of("ResourcePoolStatusRequest").is_empty());
    /// ```
    #[must_use]
    pub fn versions_of(self, kind: &str) -> &'static [&'static str] {
        self.rules().served.of_kind(kind)
    }

    /// Returns the form of the status of pools (KEP-5677).
    #[must_use]
    pub const fn pool_status_form(self) -> PoolStatusForm {
        self.rules().pool_status
    }

    /// Returns the form in which a device accounts for resources of its node (KEP-5517).
    #[must_use]
    pub const fn node_allocatable_form(self) -> NodeAllocatableForm {
        self.rules().node_allocatable
    }

    /// Returns the rules of the profile, in which the KEPs and the releases differ. They are for the packages of the family.
    #[doc(hidden)]
    #[must_use]
    pub const fn rules(self) -> &'static Rules {
        match self {
            Self::Kep => &release::KEP,
            Self::V1_34 => &release::V1_34,
            Self::V1_35 => &release::V1_35,
            Self::V1_36 => &release::V1_36,
            Self::V1_37 => &release::V1_37,
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
#[error("no profile {name:?}; known: kep, v1.34, v1.35, v1.36, v1.37")]
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
