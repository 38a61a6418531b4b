//! Which text is followed where the KEPs and the shipped release differ.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The contract that a decision follows: the text of the KEPs, or what Kubernetes 1.37 ships.
///
/// The difference is data: each crate reads a constant table from profile to decisions at the place where the decision
/// is made. `docs/divergences.md` lists every difference with its test.
///
/// ```
/// use dra_attrs::profile::Profile;
/// assert_eq!(Profile::default(), Profile::Kep);
/// assert_eq!(Profile::V1_37.to_string(), "v1.37");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Profile {
    /// The text of the KEPs.
    #[default]
    #[serde(rename = "kep")]
    Kep,
    /// Kubernetes 1.37 as released.
    #[serde(rename = "v1.37")]
    V1_37,
}

impl Profile {
    /// The name used on the wire: `kep` or `v1.37`.
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
