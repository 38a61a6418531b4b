//! The tracker of nominations: takes events of one scheduler, returns commands.

use std::collections::{BTreeMap, BTreeSet};

use super::input::TrackerInput;
use super::open_binding::OpenBinding;
use super::output::TrackerOutput;
use super::tracked_nominations::TrackedNominations;
use crate::config::NominationOptions;
use crate::nomination::{NominationState, Nominator, TransitionError};
use crate::pod::PodSnapshot;

/// Tracker of all nominations of one scheduler: takes events, returns commands.
///
/// The tracker holds the pods as last observed, their [`NominationState`] and a [`Nominator`]. It neither chooses nodes
/// nor carries out commands. See the [crate documentation](crate) for an example.
#[derive(Clone, Debug)]
pub struct NominationTracker {
    pub(super) options: NominationOptions,
    pub(super) nominations: TrackedNominations,
    /// Running binding cycles, by pod UID.
    pub(super) bindings: BTreeMap<String, OpenBinding>,
    pub(super) nodes: BTreeSet<String>,
    /// `spec.schedulerName` of the pods to track; `None` for all pods.
    name: Option<String>,
}

impl NominationTracker {
    /// Returns a tracker without pods.
    #[must_use]
    pub fn new(options: NominationOptions) -> Self {
        Self {
            options,
            nominations: TrackedNominations::new(options.behavior),
            bindings: BTreeMap::new(),
            nodes: BTreeSet::new(),
            name: None,
        }
    }

    /// Limits the tracker to pods whose `spec.schedulerName` is `name`.
    #[must_use]
    pub fn with_scheduler_name(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Handles one event and returns the resulting commands. The end of a binding cycle may be reported after the watch
    /// has shown that the pod is bound or deleted.
    ///
    /// # Complexity
    /// A few look-ups. A preemption is linear in the nominations to its node.
    ///
    /// # Errors
    /// The event can't happen to the pod in its state. Nothing has changed then.
    pub fn handle(&mut self, input: TrackerInput) -> Result<TrackerOutput, TransitionError> {
        match input {
            TrackerInput::PodObserved(pod) if self.name.as_ref().is_some_and(|name| *name != pod.scheduler_name) => {
                Ok(TrackerOutput::default())
            }
            TrackerInput::PodObserved(pod) => Ok(self.observe(pod)),
            TrackerInput::PodDeleted { uid } => Ok(self.delete(&uid)),
            TrackerInput::CycleFailed { queued_pod, outcome, condition } => {
                self.fail_cycle(&queued_pod, &outcome, &condition)
            }
            TrackerInput::MemberFailed { queued_pod, info, condition } => {
                self.fail_member(&queued_pod, info, &condition)
            }
            TrackerInput::CycleSucceeded(assumed) => self.start_binding_cycle(assumed),
            TrackerInput::BindingFailed { queued_pod, stage, condition } => {
                self.fail_binding(&queued_pod, stage, &condition)
            }
            TrackerInput::PermitGranted { pod } => Ok(self.grant_permit(&pod)),
            TrackerInput::Bound { pod } => self.bind(&pod),
            TrackerInput::PatchAnswered { uid, version } => {
                Ok(TrackerOutput { commands: self.nominations.answer(&uid, version), ..TrackerOutput::default() })
            }
            TrackerInput::NodeObserved { node } => {
                self.nodes.insert(node);
                Ok(TrackerOutput::default())
            }
            TrackerInput::NodeDeleted { node } => {
                self.nodes.remove(&node);
                Ok(TrackerOutput::default())
            }
        }
    }

    /// Returns a tracker as after a restart of the scheduler, with the nominations in the last observed statuses.
    #[must_use]
    pub fn rebuild(&self, options: NominationOptions) -> Self {
        let (nodes, name) = (self.nodes.clone(), self.name.clone());
        let mut tracker = Self { nodes, name, ..Self::new(options) };
        for pod in self.nominations.all_observed() {
            tracker.observe(pod.clone());
        }
        tracker
    }

    /// Returns the cache of nominations.
    #[must_use]
    pub const fn nominator(&self) -> &Nominator {
        self.nominations.memory()
    }

    /// Returns the options of the tracker.
    #[must_use]
    pub const fn options(&self) -> &NominationOptions {
        &self.options
    }

    /// Returns a pod as last observed by the watch.
    #[must_use]
    pub fn pod(&self, uid: &str) -> Option<&PodSnapshot> {
        self.nominations.observed(uid)
    }

    /// Returns all pods as last observed by the watch, sorted by UID.
    pub fn pods(&self) -> impl Iterator<Item = &PodSnapshot> {
        self.nominations.all_observed()
    }

    /// Returns the state of a pod; [`NominationState::Gone`] for a UID without a pod.
    #[must_use]
    pub fn state(&self, uid: &str) -> NominationState {
        self.nominations.state(uid).clone()
    }

    /// Returns the node in the pod's `status.nominatedNodeName`, as last observed; with
    /// [`Behavior::Safe`](crate::Behavior::Safe) as last written or observed.
    #[must_use]
    pub fn current_nnn(&self, uid: &str) -> Option<&str> {
        self.nominations.current_node(uid)
    }
}
