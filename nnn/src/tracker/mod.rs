//! The tracker: state of all pods of one scheduler as far as nominations are concerned.

mod binding_cycle;
mod scheduling_cycle;
mod watch;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use self::binding_cycle::Binding;
use crate::behavior::CurrentStatus;
use crate::binding::claims::BindingClaim;
use crate::binding::failure::FailedStage;
use crate::binding::start::{PermitWait, PreFlight};
use crate::command::Command;
use crate::field_writes::FieldWrites;
use crate::nominating_info::NominatingInfo;
use crate::nomination_state::{IllegalTransition, NominationEvent, NominationState};
use crate::nominator::Nominator;
use crate::options::Options;
use crate::pod::{PodKey, PodSnapshot, ScheduledCondition};
use crate::scheduling::cycle_result::CycleOutcome;

/// A pod that was assumed on a node: the result of a successful scheduling cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assumed {
    /// The pod.
    pub pod: PodKey,
    /// The node.
    pub node: String,
    /// Results of the plugins' `PreBindPreFlight`.
    pub pre_flights: Vec<PreFlight>,
    /// Result of the `Permit` plugins.
    pub permit: PermitWait,
    /// Claims of the pod.
    pub claims: Vec<BindingClaim>,
}

impl Assumed {
    /// Builds the result for a pod whose binding cycle only has to bind.
    #[must_use]
    pub fn new(pod: &PodKey, node: &str) -> Self {
        let (pod, node) = (pod.clone(), node.to_owned());
        Self { pod, node, pre_flights: Vec::new(), permit: PermitWait::None, claims: Vec::new() }
    }

    /// Sets the results of `PreBindPreFlight`.
    #[must_use]
    pub fn with_pre_flights(self, pre_flights: Vec<PreFlight>) -> Self {
        Self { pre_flights, ..self }
    }

    /// Sets the result of the `Permit` plugins.
    #[must_use]
    pub fn with_permit(self, permit: PermitWait) -> Self {
        Self { permit, ..self }
    }

    /// Sets the claims of the pod.
    #[must_use]
    pub fn with_claims(self, claims: Vec<BindingClaim>) -> Self {
        Self { claims, ..self }
    }
}

/// Event of the watch, of a scheduling cycle or of a binding cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrackerInput {
    /// The watch shows a pod, new or changed, bound or not. A pod that has succeeded or failed counts as deleted.
    PodObserved(PodSnapshot),
    /// The watch shows that a pod was deleted.
    PodDeleted {
        /// UID of the pod.
        uid: String,
    },
    /// A scheduling cycle ended without a node.
    CycleFailed {
        /// The pod as it came out of the queue.
        queued_pod: PodSnapshot,
        /// Result of the cycle.
        outcome: CycleOutcome,
        /// New condition `PodScheduled`.
        condition: ScheduledCondition,
    },
    /// The cycle of a pod group ended without a node for this member.
    ///
    /// A new nomination means that the group has chosen victims on the node. Lower nominations then end as with
    /// [`Self::CycleFailed`], unless [`Behavior::group_preemption`](crate::Behavior::group_preemption) keeps them.
    MemberFailed {
        /// The pod as it came out of the queue.
        queued_pod: PodSnapshot,
        /// Nomination that the group decided ([`decide_member`](crate::scheduling::decide_member)).
        info: NominatingInfo,
        /// New condition `PodScheduled`.
        condition: ScheduledCondition,
    },
    /// A scheduling cycle ended with a node.
    CycleSucceeded(Assumed),
    /// A binding cycle failed.
    BindingFailed {
        /// The pod as it came out of the queue.
        queued_pod: PodSnapshot,
        /// Stage at which the cycle failed.
        stage: FailedStage,
        /// New condition `PodScheduled`.
        condition: ScheduledCondition,
    },
    /// The API server accepted the binding.
    Bound {
        /// The pod.
        pod: PodKey,
    },
    /// The API server answered a PATCH of the pod's status. Answers are reported in the order of the writes.
    PatchAnswered {
        /// UID of the pod.
        uid: String,
        /// Resource version that the PATCH made; `None` if it failed.
        version: Option<u64>,
    },
    /// The watch shows a node.
    NodeObserved {
        /// Name of the node.
        node: String,
    },
    /// The watch shows that a node was deleted. Nominations to it stay, by name.
    NodeDeleted {
        /// Name of the node.
        node: String,
    },
}

/// Observation for logs and metrics; no action is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum TrackerNotice {
    /// Another component wrote the nomination of a pod. The value is taken as a hint.
    ForeignWrite {
        /// The pod.
        pod: PodKey,
        /// Field manager of the writer, if the object names it.
        writer: Option<String>,
        /// New nomination.
        node: Option<String>,
    },
    /// A bound pod has a nomination to another node, which is ignored.
    StaleNomination {
        /// The pod.
        pod: PodKey,
        /// The nominated node.
        nominated: String,
        /// The node of the binding.
        node: String,
    },
    /// A pod is announced before its claims are allocated: readers see the reservation of node resources only.
    PartialReservation {
        /// The pod.
        pod: PodKey,
    },
}

/// Answer to one event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TrackerOutput {
    /// Commands to carry out, in this order.
    pub commands: Vec<Command>,
    /// Observations for logs and metrics.
    pub notices: Vec<TrackerNotice>,
}

/// State of one pod.
#[derive(Clone, Debug)]
struct Tracked {
    view: PodSnapshot,
    state: NominationState,
    /// Written values of the condition `PodScheduled`.
    conditions: FieldWrites<Option<ScheduledCondition>>,
    /// Written nominations that the watch has not shown yet.
    sent: BTreeSet<Option<String>>,
    /// Last nomination that this scheduler wrote, until the watch shows another value.
    own: Option<String>,
    binding: Option<Binding>,
}

/// State of all nominations of one scheduler: takes events, returns commands.
///
/// The tracker holds the pods as last observed, their [`NominationState`] and a [`Nominator`]. It neither chooses nodes
/// nor carries out commands. See the [crate documentation](crate) for an example.
#[derive(Clone, Debug)]
pub struct NominationTracker {
    options: Options,
    nominator: Nominator,
    pods: BTreeMap<String, Tracked>,
    /// UIDs of pods by namespace and name.
    names: BTreeMap<(String, String), String>,
    nodes: BTreeSet<String>,
    /// `spec.schedulerName` of the pods that count; `None` for all pods.
    name: Option<String>,
}

impl NominationTracker {
    /// Returns a tracker that has seen no pod.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            nominator: Nominator::new(options.behavior),
            pods: BTreeMap::new(),
            names: BTreeMap::new(),
            nodes: BTreeSet::new(),
            name: None,
        }
    }

    /// Restricts the tracker to pods whose `spec.schedulerName` is `name`.
    #[must_use]
    pub fn with_scheduler_name(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Handles one event. The end of a binding cycle may be reported after the watch has shown that the pod is bound or
    /// gone.
    ///
    /// # Complexity
    /// A few look-ups. A preemption is linear in the nominations to its node.
    ///
    /// # Errors
    /// The event can't happen to the pod in its state. Nothing has changed then.
    pub fn handle(&mut self, input: TrackerInput) -> Result<TrackerOutput, IllegalTransition> {
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
            TrackerInput::Bound { pod } => self.bind(&pod),
            TrackerInput::PatchAnswered { uid, version } => Ok(self.answer(&uid, version)),
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

    /// Returns a tracker as after a restart of the scheduler: nominations are rebuilt from the observed statuses, in
    /// the order of UIDs.
    #[must_use]
    pub fn rebuild(&self, options: Options) -> Self {
        let (nodes, name) = (self.nodes.clone(), self.name.clone());
        let mut tracker = Self { nodes, name, ..Self::new(options) };
        for tracked in self.pods.values() {
            tracker.observe(tracked.view.clone());
        }
        tracker
    }

    /// Returns the cache of nominations.
    #[must_use]
    pub const fn nominator(&self) -> &Nominator {
        &self.nominator
    }

    /// Returns the options.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Returns a pod as last observed.
    #[must_use]
    pub fn pod(&self, uid: &str) -> Option<&PodSnapshot> {
        self.pods.get(uid).map(|tracked| &tracked.view)
    }

    /// Returns all pods as last observed, by UID.
    pub fn pods(&self) -> impl Iterator<Item = &PodSnapshot> {
        self.pods.values().map(|tracked| &tracked.view)
    }

    /// Returns the state of a pod; [`NominationState::Gone`] for an unknown one.
    #[must_use]
    pub fn state(&self, uid: &str) -> NominationState {
        self.pods.get(uid).map_or(NominationState::Gone, |tracked| tracked.state.clone())
    }

    /// Returns the pod's nomination as last written or observed ([`CurrentStatus`]).
    #[must_use]
    pub fn current_nnn(&self, uid: &str) -> Option<&str> {
        let observed = self.pods.get(uid).and_then(|tracked| tracked.view.nnn.as_deref());
        match self.options.behavior.current_status {
            CurrentStatus::WrittenOrObserved => self.nominator.unseen_write(uid).unwrap_or(observed),
            CurrentStatus::Observed => observed,
        }
    }

    /// Returns the pod that has the namespace and name of `key` now.
    fn live(&self, key: &PodKey) -> Option<&Tracked> {
        let uid = self.names.get(&(key.namespace.clone(), key.name.clone()))?;
        self.pods.get(uid)
    }

    /// Returns the state after an event, without changing the pod.
    fn next_state(&self, uid: &str, event: &NominationEvent) -> Result<NominationState, IllegalTransition> {
        self.state(uid).next(event).map(|(state, _)| state)
    }

    fn set_state(&mut self, uid: &str, state: NominationState) {
        if let Some(tracked) = self.pods.get_mut(uid) {
            tracked.state = state;
        }
    }

    /// Returns the commands that report the change of a pod's nomination in memory.
    fn memory_commands(&self, pod: &PodKey, before: Option<&str>) -> Vec<Command> {
        let after = self.nominator.nominated_node(&pod.uid);
        if before == after {
            return Vec::new();
        }
        let release = before.map(|node| Command::Release { pod: pod.clone(), node: node.to_owned() });
        let reserve = after.map(|node| Command::Reserve { pod: pod.clone(), node: node.to_owned() });
        release.into_iter().chain(reserve).collect()
    }

    /// Returns the pod's condition as last written or observed ([`CurrentStatus`]).
    fn current_condition<'a>(&self, tracked: &'a Tracked) -> Option<&'a ScheduledCondition> {
        let observed = &tracked.view.scheduled;
        match self.options.behavior.current_status {
            CurrentStatus::WrittenOrObserved => tracked.conditions.last().unwrap_or(observed).as_ref(),
            CurrentStatus::Observed => observed.as_ref(),
        }
    }

    /// Records the values that a command writes. A write to a pod that is gone or bound needs no record.
    fn note_write(&mut self, command: &Command) {
        let Some(pod) = command.patched() else { return };
        let Some(tracked) = self.pods.get_mut(&pod.uid) else { return };
        if matches!(tracked.state, NominationState::Bound { .. }) {
            return;
        }
        tracked.conditions.issued(command.written_condition().cloned().map(Some));
        match command.written_nnn() {
            Some((_, node)) => {
                self.nominator.write_issued(&pod.uid, node);
                tracked.own = node.map(str::to_owned);
                tracked.sent.insert(tracked.own.clone());
            }
            None => self.nominator.other_write_issued(&pod.uid),
        }
    }
}
