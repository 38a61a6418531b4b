//! Configuration of a tracker: profile, feature gates and behavior.

use dra_attrs::{GateSet, Profile};

use super::behavior::Behavior;
use super::gates::NominationGate;

/// Configuration of a [`NominationTracker`](crate::NominationTracker).
///
/// ```
/// use dra_attrs::{GateSet, Profile};
/// use nnn::{Behavior, NominationGate, Options};
/// let options = Options::new(Profile::V1_37, Behavior::SAFE);
/// assert!(options.gates.has(NominationGate::Expectation));
/// let alpha_off = options.with_gates(GateSet::NONE);
/// assert!(!alpha_off.gates.has(NominationGate::Expectation));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Source that decisions about failed cycles follow: the KEP or Kubernetes 1.37.
    pub profile: Profile,
    /// Feature gates of kube-scheduler and kube-apiserver.
    pub gates: GateSet<NominationGate>,
    /// Choices in which a scheduler may avoid races of kube-scheduler.
    pub behavior: Behavior,
}

impl Options {
    /// Returns options with the feature gates that are on by default in Kubernetes 1.37.
    ///
    /// kube-scheduler 1.37 itself is `Options::new(Profile::V1_37, Behavior::KUBE_SCHEDULER)`.
    #[must_use]
    pub fn new(profile: Profile, behavior: Behavior) -> Self {
        Self { profile, gates: GateSet::default(), behavior }
    }

    /// Sets the feature gates.
    #[must_use]
    pub fn with_gates(self, gates: GateSet<NominationGate>) -> Self {
        Self { gates, ..self }
    }
}
