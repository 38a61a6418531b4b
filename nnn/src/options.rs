//! How a scheduler decides: the profile, the gates, and where to be safer than kube-scheduler.

use serde::Deserialize;

use crate::binding::failure::OnBindingFailure;
use crate::external::Clearing;
use crate::gates::Gates;
use crate::nominator::NominatorOptions;
use crate::profile::Profile;
use crate::scheduling::failure::LatePatch;
use crate::scheduling::group::LowerNominations;
use crate::scheduling::preemption::Eviction;
use crate::scheduling::wake::WakeBy;

/// What is taken for a pod's present status when a write is considered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Known {
    /// What was written or observed last: a write whose echo is still on its way counts.
    #[default]
    WrittenOrObserved,
    /// What was observed last, as upstream.
    Observed,
}

/// How a scheduler decides. The default follows the KEP's text, has the gates of 1.37, and takes the safe way everywhere.
///
/// ```
/// use nnn::options::Options;
/// use nnn::profile::Profile;
/// use nnn::scheduling::wake::WakeBy;
/// assert_eq!(Options::default().wake_by, WakeBy::Memory);
/// assert_eq!(Options::upstream().profile, Profile::V1_37);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The text to follow.
    pub profile: Profile,
    /// The gates.
    pub gates: Gates,
    /// The cache of nominations.
    pub nominator: NominatorOptions,
    /// What a write is compared with.
    pub known: Known,
    /// Writes to pods that are gone or bound.
    pub late_patch: LatePatch,
    /// Whose end of a nomination wakes others.
    pub wake_by: WakeBy,
    /// How victims are evicted.
    pub eviction: Eviction,
    /// Lower nominations when a pod group preempts.
    pub group_preemption: LowerNominations,
    /// The nomination after a failed binding cycle.
    pub on_binding_failure: OnBindingFailure,
    /// The nomination of an unschedulable pod.
    pub clearing: Clearing,
}

impl Options {
    /// What kube-scheduler 1.37 does, its races included. Evictions are beside the cycle, as is its default; whether all
    /// victims of a preemption terminate already is not known here ([`Eviction::AsyncAllTerminating`]).
    #[must_use]
    pub fn upstream() -> Self {
        Self {
            profile: Profile::V1_37,
            nominator: NominatorOptions::UPSTREAM,
            known: Known::Observed,
            late_patch: LatePatch::Sent,
            wake_by: WakeBy::Status,
            eviction: Eviction::Async,
            group_preemption: LowerNominations::Left,
            ..Self::default()
        }
    }

    /// The same with other gates.
    #[must_use]
    pub fn with_gates(self, gates: Gates) -> Self {
        Self { gates, ..self }
    }

    /// The same by another text.
    #[must_use]
    pub fn with_profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }
}
