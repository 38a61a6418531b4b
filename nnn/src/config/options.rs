//! Configuration of a tracker: profile, feature gates and behavior.

use dra_attrs::Component;

use super::behavior::Behavior;
use super::clearing::ClearingPolicy;

/// Configuration of a [`NominationTracker`](crate::NominationTracker).
///
/// ```
/// use dra_attrs::{Component, GateSet, Profile};
/// use nnn::{Behavior, NominationOptions};
/// use dra_attrs::Gate;
/// let options = NominationOptions::new(Profile::V1_37, Behavior::Safe);
/// assert!(options.scheduler.has(Gate::NominatedNodeNameForExpectation));
/// let off = NominationOptions::new(Component::new(Profile::V1_37, GateSet::NONE), Behavior::Safe);
/// assert!(!off.scheduler.has(Gate::NominatedNodeNameForExpectation));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NominationOptions {
    /// Release that decisions about failed cycles follow, or the KEP, with the feature gates of kube-scheduler and
    /// kube-apiserver.
    pub scheduler: Component,
    /// Behavior where kube-scheduler has a race.
    pub behavior: Behavior,
    /// Rule for the nominations of pods that fit no node.
    pub clearing: ClearingPolicy,
}

impl NominationOptions {
    /// Returns options for a scheduler, with [`ClearingPolicy::Always`]. A profile alone has the gates that are on by default.
    ///
    /// kube-scheduler 1.37 itself is `NominationOptions::new(Profile::V1_37, Behavior::KubeScheduler)`.
    #[must_use]
    pub fn new(scheduler: impl Into<Component>, behavior: Behavior) -> Self {
        Self { scheduler: scheduler.into(), behavior, clearing: ClearingPolicy::default() }
    }

    /// Sets the release with its gates, as after a restart of the scheduler with other flags.
    #[must_use]
    pub fn with_scheduler(self, scheduler: impl Into<Component>) -> Self {
        Self { scheduler: scheduler.into(), ..self }
    }

    /// Sets the rule for the nominations of pods that fit no node.
    #[must_use]
    pub fn with_clearing(self, clearing: ClearingPolicy) -> Self {
        Self { clearing, ..self }
    }
}
