//! The memory of a scheduler as far as nominations are concerned: events go in, commands come out.
//!
//! [`Scheduler`] puts the tables of this crate together. It holds the pods as last observed, their [`State`] and the
//! [`Nominator`]. It neither chooses nodes nor carries out commands: a scheduler or a simulator does both, and tells.
//!
//! ```
//! use nnn::binding::start::{PermitWait, PreFlight};
//! use nnn::command::Command;
//! use nnn::options::Options;
//! use nnn::pod::PodView;
//! use nnn::scheduler::{Input, Placed, Scheduler};
//!
//! let mut scheduler = Scheduler::new(Options::default());
//! let pod = PodView::pending("default", "with-a-slow-volume");
//! scheduler.handle(Input::PodObserved(pod.clone()))?;
//! // The pod fits on node-1, and VolumeBinding has work to do there.
//! let placed = Placed::new(&pod.key, "node-1").pre_flights(vec![PreFlight::Success]);
//! let reaction = scheduler.handle(Input::CycleSucceeded(placed))?;
//! assert!(matches!(reaction.commands[..], [Command::PatchNnn { .. }, Command::Bind { .. }]));
//! # Ok::<(), nnn::state::IllegalTransition>(())
//! ```

mod binding;
mod cycle;
mod watch;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use self::binding::Binding;
use crate::binding::claims::ClaimState;
use crate::binding::failure::FailedStage;
use crate::binding::start::{PermitWait, PreFlight};
use crate::command::Command;
use crate::nominating::NominatingInfo;
use crate::nominator::Nominator;
use crate::options::{Known, Options};
use crate::pod::{PodKey, PodView, ScheduledCondition};
use crate::scheduling::cycle::CycleOutcome;
use crate::state::{Event, IllegalTransition, State};
use crate::writes::Writes;

/// A pod that got a node in a scheduling cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placed {
    /// The pod.
    pub pod: PodKey,
    /// The node.
    pub node: String,
    /// What the pre-flights of `PreBind` plugins say.
    pub pre_flights: Vec<PreFlight>,
    /// Whether the pod waits on permit.
    pub permit: PermitWait,
    /// Its claims.
    pub claims: Vec<ClaimState>,
}

impl Placed {
    /// A pod whose binding cycle has nothing to do but bind.
    #[must_use]
    pub fn new(pod: &PodKey, node: &str) -> Self {
        let (pod, node) = (pod.clone(), node.to_owned());
        Self { pod, node, pre_flights: Vec::new(), permit: PermitWait::None, claims: Vec::new() }
    }

    /// The same with pre-flights.
    #[must_use]
    pub fn pre_flights(self, pre_flights: Vec<PreFlight>) -> Self {
        Self { pre_flights, ..self }
    }

    /// The same with what `Permit` said.
    #[must_use]
    pub fn permit(self, permit: PermitWait) -> Self {
        Self { permit, ..self }
    }

    /// The same with claims.
    #[must_use]
    pub fn claims(self, claims: Vec<ClaimState>) -> Self {
        Self { claims, ..self }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input {
    /// The watch shows a pod, new or changed, bound or not. One that has succeeded or failed is as good as deleted.
    PodObserved(PodView),
    /// The watch shows that a pod is gone.
    PodDeleted {
        /// Its UID.
        uid: String,
    },
    /// A scheduling cycle ended without a node.
    CycleFailed {
        /// The pod as it came out of the queue.
        popped: PodView,
        /// How it ended.
        outcome: CycleOutcome,
        /// The condition for the pod's status.
        condition: ScheduledCondition,
    },
    /// The cycle of a pod group ended without a node for this member. If it is nominated anew, the group has chosen victims
    /// there, and lower nominations end as with [`Self::CycleFailed`], unless the options leave them.
    MemberFailed {
        /// The pod as it came out of the queue.
        popped: PodView,
        /// What the group says ([`crate::scheduling::group::decide_member`]).
        info: NominatingInfo,
        /// The condition for the pod's status.
        condition: ScheduledCondition,
    },
    /// A scheduling cycle ended with a node.
    CycleSucceeded(Placed),
    /// A binding cycle failed.
    BindingFailed {
        /// The pod as it came out of the queue.
        popped: PodView,
        /// How far it came.
        stage: FailedStage,
        /// The condition for the pod's status.
        condition: ScheduledCondition,
    },
    /// The API server accepted the binding.
    Bound {
        /// The pod.
        pod: PodKey,
    },
    /// The API server answered a PATCH of the pod, whatever it wrote. Answers come in the order of the writes.
    PatchAnswered {
        /// The pod's UID.
        uid: String,
        /// The version of the pod that it made; `None` if it failed.
        version: Option<u64>,
    },
    /// The watch shows a node.
    NodeObserved {
        /// Its name.
        node: String,
    },
    /// The watch shows that a node is gone. Nominations stay: they hold by name.
    NodeDeleted {
        /// Its name.
        node: String,
    },
}

/// Something that a caller may want to tell, and need not act on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum Notice {
    /// Somebody else wrote the nomination of a pod. It is taken as a hint.
    ForeignWrite {
        /// The pod.
        pod: PodKey,
        /// The manager, if the object tells.
        writer: Option<String>,
        /// The value.
        node: Option<String>,
    },
    /// A bound pod has the name of another node as its nomination. It means nothing.
    StaleNomination {
        /// The pod.
        pod: PodKey,
        /// The nomination.
        nominated: String,
        /// The pod's node.
        node: String,
    },
    /// A pod is announced before its claims are allocated: readers see node resources only.
    PartialReservation {
        /// The pod.
        pod: PodKey,
    },
}

/// What an event leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Reaction {
    /// What to do, in this order.
    pub commands: Vec<Command>,
    /// What was noticed.
    pub notices: Vec<Notice>,
}

/// A pod as the scheduler knows it.
#[derive(Clone, Debug)]
struct Tracked {
    view: PodView,
    state: State,
    /// Conditions that were written.
    conditions: Writes<Option<ScheduledCondition>>,
    /// Nominations that were written and not seen yet.
    sent: BTreeSet<Option<String>>,
    /// The nomination that this scheduler wrote last, until the watch shows another one.
    own: Option<String>,
    binding: Option<Binding>,
}

/// The memory of a scheduler. See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    options: Options,
    nominator: Nominator,
    pods: BTreeMap<String, Tracked>,
    /// UIDs by namespace and name.
    names: BTreeMap<(String, String), String>,
    nodes: BTreeSet<String>,
    /// The name that pods must ask for; any, if there is none.
    name: Option<String>,
}

impl Scheduler {
    /// A scheduler that has seen nothing yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, nominator: Nominator::new(options.nominator), ..Self::default() }
    }

    /// The same for pods only that ask for this scheduler by name.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Takes an event in. Each costs no more than a few look-ups, but for the clearing of nominations by a preemption, which
    /// is linear in those of the node.
    ///
    /// The end of a binding cycle may come after the watch has shown that the pod is bound or gone.
    ///
    /// # Errors
    /// The event can't happen to the pod in its state. Nothing has changed then.
    pub fn handle(&mut self, input: Input) -> Result<Reaction, IllegalTransition> {
        match input {
            Input::PodObserved(pod) if self.name.as_ref().is_some_and(|name| *name != pod.scheduler_name) => {
                Ok(Reaction::default())
            }
            Input::PodObserved(pod) => Ok(self.observe(pod)),
            Input::PodDeleted { uid } => Ok(self.delete(&uid)),
            Input::CycleFailed { popped, outcome, condition } => self.fail_cycle(&popped, &outcome, &condition),
            Input::MemberFailed { popped, info, condition } => self.fail_member(&popped, info, &condition),
            Input::CycleSucceeded(placed) => self.place(placed),
            Input::BindingFailed { popped, stage, condition } => self.fail_binding(&popped, stage, &condition),
            Input::Bound { pod } => self.bind(&pod),
            Input::PatchAnswered { uid, version } => Ok(self.answer(&uid, version)),
            Input::NodeObserved { node } => {
                self.nodes.insert(node);
                Ok(Reaction::default())
            }
            Input::NodeDeleted { node } => {
                self.nodes.remove(&node);
                Ok(Reaction::default())
            }
        }
    }

    /// A new scheduler with the same watch: memory is rebuilt from the statuses, in the order of UIDs.
    #[must_use]
    pub fn restarted(&self, options: Options) -> Self {
        let (nodes, name) = (self.nodes.clone(), self.name.clone());
        let mut scheduler = Self { nodes, name, ..Self::new(options) };
        for tracked in self.pods.values() {
            scheduler.observe(tracked.view.clone());
        }
        scheduler
    }

    /// The nominations.
    #[must_use]
    pub const fn nominator(&self) -> &Nominator {
        &self.nominator
    }

    /// The options.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// A pod as last observed.
    #[must_use]
    pub fn pod(&self, uid: &str) -> Option<&PodView> {
        self.pods.get(uid).map(|tracked| &tracked.view)
    }

    /// The pods as last observed, by UID.
    pub fn pods(&self) -> impl Iterator<Item = &PodView> {
        self.pods.values().map(|tracked| &tracked.view)
    }

    /// The state of a pod; one that is not known is gone.
    #[must_use]
    pub fn state(&self, uid: &str) -> State {
        self.pods.get(uid).map_or(State::Gone, |tracked| tracked.state.clone())
    }

    /// The pod's nomination as last written or observed ([`Known`]).
    #[must_use]
    pub fn known_nnn(&self, uid: &str) -> Option<&str> {
        let observed = self.pods.get(uid).and_then(|tracked| tracked.view.nnn.as_deref());
        match self.options.known {
            Known::WrittenOrObserved => self.nominator.unseen_write(uid).unwrap_or(observed),
            Known::Observed => observed,
        }
    }

    /// The pod that has the namespace and name of `key` now.
    fn live(&self, key: &PodKey) -> Option<&Tracked> {
        let uid = self.names.get(&(key.namespace.clone(), key.name.clone()))?;
        self.pods.get(uid)
    }

    /// The state after an event; the pod is not changed.
    fn next_state(&self, uid: &str, event: &Event) -> Result<State, IllegalTransition> {
        self.state(uid).next(event).map(|(state, _)| state)
    }

    fn set_state(&mut self, uid: &str, state: State) {
        if let Some(tracked) = self.pods.get_mut(uid) {
            tracked.state = state;
        }
    }

    /// The commands that tell how the pod's nomination in memory has changed.
    fn memory_commands(&self, pod: &PodKey, before: Option<&str>) -> Vec<Command> {
        let after = self.nominator.node_of(&pod.uid);
        if before == after {
            return Vec::new();
        }
        let release = before.map(|node| Command::Release { pod: pod.clone(), node: node.to_owned() });
        let reserve = after.map(|node| Command::Reserve { pod: pod.clone(), node: node.to_owned() });
        release.into_iter().chain(reserve).collect()
    }

    /// The pod's condition as last written or observed ([`Known`]).
    fn known_condition<'a>(&self, tracked: &'a Tracked) -> Option<&'a ScheduledCondition> {
        let observed = &tracked.view.scheduled;
        match self.options.known {
            Known::WrittenOrObserved => tracked.conditions.last().unwrap_or(observed).as_ref(),
            Known::Observed => observed.as_ref(),
        }
    }

    /// Remembers what a command writes. A late write to a pod that is gone or bound needs no protection.
    fn note_write(&mut self, command: &Command) {
        let Some(pod) = command.patched() else { return };
        let Some(tracked) = self.pods.get_mut(&pod.uid) else { return };
        if matches!(tracked.state, State::Bound { .. }) {
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
