//! Which text is followed where KEP-5278 and the shipped release differ.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The contract that a decision follows: the text of the KEP, or what Kubernetes 1.37 ships.
///
/// ```
/// use nnn::profile::Profile;
/// assert_eq!(Profile::default(), Profile::Kep);
/// assert_eq!(Profile::V1_37.to_string(), "v1.37");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Profile {
    /// The text of the KEP.
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

/// What becomes of a nomination when a cycle ends in a way that the two texts judge differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nomination {
    Kept,
    Cleared,
}

/// Where the text of the KEP and Kubernetes 1.37 differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decisions {
    /// An unschedulable pod that must not preempt.
    pub(crate) policy_never: Nomination,
    /// An unschedulable pod for which extenders refused every node with victims.
    pub(crate) extenders_left_none: Nomination,
    /// An unschedulable pod whose `PostFilter` failed.
    pub(crate) post_filter_error: Nomination,
}

impl Decisions {
    const fn all(nomination: Nomination) -> Self {
        Self { policy_never: nomination, extenders_left_none: nomination, post_filter_error: nomination }
    }
}

const KEP: Decisions = Decisions::all(Nomination::Cleared);
const V1_37: Decisions = Decisions::all(Nomination::Kept);

impl Decisions {
    pub(crate) const fn of(profile: Profile) -> Self {
        match profile {
            Profile::Kep => KEP,
            Profile::V1_37 => V1_37,
        }
    }
}
