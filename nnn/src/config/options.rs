//! Configuration of a tracker: profile, feature gates and behavior.

use dra_attrs::{Component, GateSet, Profile};

use super::behavior::Behavior;
use super::clearing::ClearingPolicy;

/// Configuration of a [`NominationTracker`](crate::NominationTracker).
///
/// ```
/// use dra_attrs::{GateSet, Profile};
/// use nnn::{Behavior, NominationOptions};
/// use dra_attrs::Gate;
/// let options = NominationOptions::new(Profile::V1_37, Behavior::Safe);
/// assert!(options.gates.has(Gate::NominatedNodeNameForExpectation));
/// let alpha_off = options.with_gates(GateSet::NONE);
/// assert!(!alpha_off.gates.has(Gate::NominatedNodeNameForExpectation));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NominationOptions {
    /// Source that decisions about failed cycles follow: the KEP, or a release.
    pub profile: Profile,
    /// Feature gates of kube-scheduler and kube-apiserver.
    pub gates: GateSet,
    /// Behavior where kube-scheduler has a race.
    pub behavior: Behavior,
    /// Rule for the nominations of pods that fit no node.
    pub clearing: ClearingPolicy,
}

impl NominationOptions {
    /// Returns options with the feature gates that are on by default in the release, and with
    /// [`ClearingPolicy::Always`].
    ///
    /// kube-scheduler 1.37 itself is `NominationOptions::new(Profile::V1_37, Behavior::KubeScheduler)`.
    #[must_use]
    pub fn new(profile: Profile, behavior: Behavior) -> Self {
        Self { profile, gates: GateSet::of(profile), behavior, clearing: ClearingPolicy::default() }
    }

    /// Sets the feature gates.
    #[must_use]
    pub fn with_gates(self, gates: GateSet) -> Self {
        Self { gates, ..self }
    }

    /// Returns the scheduler: its release with the gates.
    #[must_use]
    pub fn scheduler(self) -> Component {
        Component::new(self.profile, self.gates)
    }

    /// Sets the rule for the nominations of pods that fit no node.
    #[must_use]
    pub fn with_clearing(self, clearing: ClearingPolicy) -> Self {
        Self { clearing, ..self }
    }
}
