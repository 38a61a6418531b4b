//! Cluster with one scheduler: the API server's pods, the nodes, and the tracker of nominations.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

use dra_attrs::Resources;
use dra_attrs::{Component, Gate, GateError, QuantityError};
use nnn::external::{ExternalNominationState, NominationOwner, NominationWriter, WritePermission};
use nnn::scheduling::{FeasibleNodes, FilterInput, NominatedNodeStatus, VictimDevices};
use nnn::{
    Assumed, Command, CycleOutcome, FailedStage, NodeFit, NominationOptions, NominationTracker, PodError, PodSnapshot,
    PreFlight, ScheduledCondition, TrackerInput, TransitionError,
};

use super::metrics::{AttemptResult, Metrics};
use super::timeline::{Entry, Event};
use crate::manifest::Manifests;

/// Annotation of a pod whose `PreBind` plugins have work to do.
const SLOW: &str = "example.com/slow-prebind";

/// Reason that a timeline can't be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// A pod of the manifests can't be read.
    #[error("pod {name}: {source}")]
    Pod {
        /// Name of the pod.
        name: String,
        /// Field that can't be read.
        source: PodError,
    },
    /// A node of the manifests can't be read.
    #[error("node {name}: status.allocatable: {source}")]
    Node {
        /// Name of the node.
        name: String,
        /// Reason that the amount is no quantity.
        source: QuantityError,
    },
    /// An event is about something that is not there.
    #[error("at {at} s: no {kind} {name} in the manifests, or not now")]
    Unknown {
        /// Time of the event.
        at: u64,
        /// Kind of what is missing.
        kind: &'static str,
        /// Name of what is missing.
        name: String,
    },
    /// The scheduler restarts with gates that can't be read.
    #[error("at {at} s: restart: {source}")]
    Gates {
        /// Time of the restart.
        at: u64,
        /// Gate that can't be read.
        source: GateError,
    },
    /// The event can't happen in the state of the pod.
    #[error("at {at} s: {source}")]
    Illegal {
        /// Time of the event.
        at: u64,
        /// State and event.
        source: TransitionError,
    },
}

/// Rule for components other than the scheduler that nominate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Writers {
    /// Any component may write any nomination, as in Kubernetes.
    #[default]
    Any,
    /// A component may set what is unset and change what it has set itself (KEP-5278, Alternatives).
    Owners,
}

/// Number of requests that the scheduler has sent to the API server.
#[derive(Debug, Default)]
struct ApiCalls {
    patches: u64,
    bindings: u64,
}

impl ApiCalls {
    fn count(&mut self, command: &Command) {
        match command {
            Command::Bind { .. } => self.bindings = self.bindings.saturating_add(1),
            command if command.is_patch() => self.patches = self.patches.saturating_add(1),
            _ => {}
        }
    }
}

/// Pod in its binding cycle.
#[derive(Clone, Debug)]
struct Binding {
    node: String,
    started: u64,
}

/// Player of a timeline.
///
/// ```
/// use dra_attrs::Profile;
/// use examples::manifest::Manifests;
/// use examples::nominate::{Player, Writers, read_timeline};
/// use nnn::{Behavior, NominationOptions};
/// let mut manifests = Manifests::default();
/// manifests.read("pod", "{kind: Pod, metadata: {namespace: default, name: web, uid: u1}}");
/// let mut player = Player::new(&manifests, NominationOptions::new(Profile::Kep, Behavior::Safe), Writers::Any)?;
/// for entry in read_timeline("[{at: 1, do: {create: web}}]").unwrap() {
///     player.play(&entry)?;
/// }
/// assert!(player.finish().starts_with("   1 s  default/web is created\n   1 s  default/web fits no node\n"));
/// # Ok::<(), examples::nominate::PlayError>(())
/// ```
#[derive(Debug)]
pub struct Player {
    tracker: NominationTracker,
    writers: Writers,
    calls: ApiCalls,
    /// Pods and nodes of the manifests that are not in the cluster yet, by name.
    templates: BTreeMap<String, PodSnapshot>,
    slow: BTreeSet<String>,
    allocatable: BTreeMap<String, Resources>,
    nodes: Vec<String>,
    /// Pods in the API server, by UID.
    pods: BTreeMap<String, PodSnapshot>,
    /// UIDs of pods that wait for a cycle.
    active: BTreeSet<String>,
    /// Time at which each pod entered the queue, by UID.
    queued: BTreeMap<String, u64>,
    bindings: BTreeMap<String, Binding>,
    version: u64,
    now: u64,
    metrics: Metrics,
    text: String,
    findings: Vec<String>,
}

impl Player {
    /// Creates a cluster with the nodes of the manifests that are ready, and no pods.
    ///
    /// # Errors
    /// A pod or node can't be read.
    pub fn new(manifests: &Manifests, options: NominationOptions, writers: Writers) -> Result<Self, PlayError> {
        let (mut templates, mut slow, mut allocatable) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        for pod in &manifests.pods {
            let name = pod.metadata.name.clone().unwrap_or_default();
            let snapshot =
                PodSnapshot::from_pod(pod).map_err(|source| PlayError::Pod { name: name.clone(), source })?;
            if pod.metadata.annotations.iter().flatten().any(|(key, value)| key == SLOW && value == "true") {
                slow.insert(snapshot.key.uid.clone());
            }
            templates.insert(name, snapshot);
        }
        for node in &manifests.nodes {
            let name = node.metadata.name.clone().unwrap_or_default();
            let amounts = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
            let amounts =
                Resources::parse(&amounts).map_err(|source| PlayError::Node { name: name.clone(), source })?;
            allocatable.insert(name, amounts);
        }
        Ok(Self {
            tracker: NominationTracker::new(options),
            writers,
            calls: ApiCalls::default(),
            templates,
            slow,
            allocatable,
            nodes: Vec::new(),
            pods: BTreeMap::new(),
            active: BTreeSet::new(),
            queued: BTreeMap::new(),
            bindings: BTreeMap::new(),
            version: 0,
            now: 0,
            metrics: Metrics::default(),
            text: String::new(),
            findings: Vec::new(),
        })
    }

    /// Plays an entry of the timeline, then lets the scheduler work until nothing is left to do.
    ///
    /// # Errors
    /// The entry names something that is not there, or can't happen now.
    pub fn play(&mut self, entry: &Entry) -> Result<(), PlayError> {
        self.now = entry.at;
        self.event(&entry.event)?;
        while let Some(uid) = self.next_in_queue() {
            self.active.remove(&uid);
            self.cycle(&uid)?;
        }
        Ok(())
    }

    /// Returns the text, with the metrics and findings at its end.
    #[must_use]
    pub fn finish(mut self) -> String {
        for pod in self.pods.values() {
            let node = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_owned());
            let line = format!("{}: node {}, nominated {}\n", pod.key, node(&pod.node), node(&pod.nnn));
            self.text.push_str(&line);
        }
        let calls =
            format!("requests of the scheduler: {} patches, {} bindings", self.calls.patches, self.calls.bindings);
        for line in self.metrics.lines().into_iter().chain([calls]).chain(self.findings) {
            self.text.push_str(&line);
            self.text.push('\n');
        }
        self.text
    }

    fn say(&mut self, what: &str) {
        // Writing to a String can't fail.
        let _ = writeln!(self.text, "{:>4} s  {what}", self.now);
    }

    fn event(&mut self, event: &Event) -> Result<(), PlayError> {
        match event {
            Event::Create(name) => {
                let is_new = |pod: &&PodSnapshot| !self.pods.contains_key(&pod.key.uid);
                let pod = self.templates.get(name).filter(is_new).cloned();
                let pod = pod.ok_or_else(|| self.unknown("new pod", name))?;
                self.say(&format!("{} is created{}", pod.key, if pod.gated { ", with scheduling gates" } else { "" }));
                self.enqueue(&pod);
                self.write(pod)
            }
            Event::Delete(name) => {
                let uid = self.live(name)?.key.uid.clone();
                self.say(&format!("{name} is gone"));
                self.pods.remove(&uid);
                self.active.remove(&uid);
                self.bindings.remove(&uid);
                self.retry_all();
                self.handle(TrackerInput::PodDeleted { uid })
            }
            Event::AddNode(name) => {
                if !self.allocatable.contains_key(name) || self.nodes.contains(name) {
                    return Err(self.unknown("new node", name));
                }
                self.say(&format!("{name} joins"));
                self.nodes.push(name.clone());
                self.retry_all();
                self.handle(TrackerInput::NodeObserved { node: name.clone() })
            }
            Event::Nominate { pod, node, by } => {
                let pod = self.live(pod)?.clone();
                self.nominate(pod, node, by)
            }
            Event::Ungate(name) => {
                let mut pod = self.live(name)?.clone();
                if !pod.gated {
                    return Err(self.unknown("gated pod", name));
                }
                self.say(&format!("{} is ungated", pod.key));
                pod.gated = false;
                self.enqueue(&pod);
                self.write(pod)
            }
            Event::Prebound(name) => {
                let uid = self.live(name)?.key.uid.clone();
                self.bind(&uid)
            }
            Event::FailBinding { pod, stage } => self.fail_binding(pod, *stage),
            Event::Restart(gates) => self.restart(gates),
        }
    }

    /// Lets another component nominate a pod, if it may.
    fn nominate(&mut self, mut pod: PodSnapshot, node: &str, by: &str) -> Result<(), PlayError> {
        let owner = NominationOwner::from_pod(&pod);
        let writer = NominationWriter::External(by.to_owned());
        let permission = writer.may_write(&owner, Some(node), pod.resource_version, pod.resource_version);
        if self.writers == Writers::Owners && permission != WritePermission::Allowed {
            let owner = pod.nnn_manager.clone().unwrap_or_default();
            self.say(&format!("{by} may not nominate {} to {node}: {owner} has nominated it", pod.key));
            return Ok(());
        }
        self.say(&format!("{by} nominates {} to {node}", pod.key));
        (pod.nnn, pod.nnn_manager) = (Some(node.to_owned()), Some(by.to_owned()));
        let uid = pod.key.uid.clone();
        self.write(pod)?;
        if self.writers == Writers::Owners {
            let is_there = self.nodes.iter().any(|other| other == node);
            let state = ExternalNominationState::from_state(&self.tracker.state(&uid));
            if let Some(state) = state.map(|state| if is_there { state } else { state.without_node() }) {
                self.say(&format!("  the nomination is {state:?}"));
            }
        }
        Ok(())
    }

    fn unknown(&self, kind: &'static str, name: &str) -> PlayError {
        PlayError::Unknown { at: self.now, kind, name: name.to_owned() }
    }

    fn live(&self, name: &str) -> Result<&PodSnapshot, PlayError> {
        self.pods.values().find(|pod| pod.key.name == name).ok_or_else(|| self.unknown("pod", name))
    }

    /// Puts a pod without gates into the queue.
    fn enqueue(&mut self, pod: &PodSnapshot) {
        if !pod.gated && pod.node.is_none() {
            self.queued.insert(pod.key.uid.clone(), self.now);
            self.active.insert(pod.key.uid.clone());
        }
    }

    /// Puts all pods that wait back into the queue.
    fn retry_all(&mut self) {
        let waiting = self.pods.values().filter(|pod| {
            pod.node.is_none() && !pod.gated && !pod.deleting && !self.bindings.contains_key(&pod.key.uid)
        });
        self.active.extend(waiting.map(|pod| pod.key.uid.clone()));
    }

    /// Returns the waiting pod of the highest priority, the oldest among equals.
    fn next_in_queue(&self) -> Option<String> {
        let waiting = self.active.iter().filter_map(|uid| self.pods.get(uid));
        let order = |pod: &&PodSnapshot| {
            (std::cmp::Reverse(pod.priority), self.queued.get(&pod.key.uid).copied(), pod.key.uid.clone())
        };
        waiting.min_by_key(order).map(|pod| pod.key.uid.clone())
    }

    /// Stores a pod in the API server, and shows it to the scheduler.
    fn write(&mut self, mut pod: PodSnapshot) -> Result<(), PlayError> {
        self.version = self.version.saturating_add(1);
        pod.resource_version = Some(self.version);
        self.pods.insert(pod.key.uid.clone(), pod.clone());
        self.handle(TrackerInput::PodObserved(pod))
    }

    /// Reports an event to the tracker and carries out its commands.
    fn handle(&mut self, input: TrackerInput) -> Result<(), PlayError> {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let output = self.tracker.handle(input).map_err(|source| PlayError::Illegal { at: self.now, source })?;
            for command in output.commands {
                self.calls.count(&command);
                self.carry_out(&command, &mut inputs);
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, command: &Command, inputs: &mut VecDeque<TrackerInput>) {
        if command.is_patch()
            || matches!(command, Command::Reserve { .. } | Command::Release { .. } | Command::None { .. })
        {
            self.say(&format!("  {command}"));
        }
        if let Some((key, node)) = command.written_nnn() {
            self.version = self.version.saturating_add(1);
            let Some(pod) = self.pods.get_mut(&key.uid) else { return };
            pod.nnn = node.map(str::to_owned);
            pod.nnn_manager = node.map(|_| NominationOwner::SCHEDULER_MANAGER.to_owned());
            pod.resource_version = Some(self.version);
            inputs.push_back(TrackerInput::PatchAnswered { uid: key.uid.clone(), version: pod.resource_version });
            inputs.push_back(TrackerInput::PodObserved(pod.clone()));
        } else if let Command::PatchConditionAndNnn { pod, .. } = command {
            inputs.push_back(TrackerInput::PatchAnswered { uid: pod.uid.clone(), version: Some(self.version) });
        }
        match command {
            Command::RequeueLowerOrEqual { priority, except } => {
                let waiting = self.pods.values().filter(|pod| {
                    pod.node.is_none()
                        && !pod.gated
                        && pod.priority <= *priority
                        && Some(&pod.key.uid) != except.as_ref()
                        && !self.bindings.contains_key(&pod.key.uid)
                });
                self.active.extend(waiting.map(|pod| pod.key.uid.clone()));
            }
            Command::RequeueAll { except } => {
                self.retry_all();
                if let Some(uid) = except {
                    self.active.remove(uid);
                }
            }
            _ => {}
        }
    }

    /// Returns the free resources of a node, less its bound and assumed pods; without the pods that `spared` names.
    fn free(&self, node: &str, spared: &[String]) -> Resources {
        let here = |pod: &&PodSnapshot| {
            let assumed = self.bindings.get(&pod.key.uid).map(|binding| binding.node.as_str());
            pod.node.as_deref().or(assumed) == Some(node) && !spared.contains(&pod.key.uid)
        };
        let mut used = Resources::default();
        self.pods.values().filter(here).for_each(|pod| used.add(&pod.requests));
        self.allocatable.get(node).map(|all| all.minus(&used)).unwrap_or_default()
    }

    fn fits(&self, pod: &PodSnapshot, node: &str, spared: &[String]) -> bool {
        pod.fits_unreserved_resources(&self.free(node, spared), self.tracker.nominator().on_node(node))
    }

    /// Runs a scheduling cycle.
    fn cycle(&mut self, uid: &str) -> Result<(), PlayError> {
        let Some(pod) = self.pods.get(uid).cloned() else { return Ok(()) };
        let nodes: Vec<&str> = self.nodes.iter().map(String::as_str).collect();
        let start = FilterInput::new(&nodes).with_nomination(pod.nnn.as_deref());
        let fit = |node: &str| if self.fits(&pod, node, &[]) { NodeFit::Fits } else { NodeFit::Rejected(()) };
        let found = start.evaluate(|node| nodes.contains(&node), fit);
        let (chosen, first) = match &found.feasible {
            FeasibleNodes::First(node) => (Some((*node).to_owned()), ", the nominated node, tried first"),
            FeasibleNodes::Nodes(fitting) => (fitting.first().map(|node| (*node).to_owned()), ""),
            _ => (None, ""),
        };
        match chosen {
            Some(node) => self.assume(&pod, &node, first),
            None => self.reject(&pod),
        }
    }

    fn assume(&mut self, pod: &PodSnapshot, node: &str, first: &str) -> Result<(), PlayError> {
        self.say(&format!("{} fits {node}{first}", pod.key));
        let uid = &pod.key.uid;
        self.bindings.insert(uid.clone(), Binding { node: node.to_owned(), started: self.now });
        let is_slow = self.slow.contains(uid);
        let pre_flight = if is_slow { PreFlight::Success } else { PreFlight::Skip };
        let assumed = Assumed::new(&pod.key, node).with_pre_flights(vec![pre_flight]);
        self.handle(TrackerInput::CycleSucceeded(assumed))?;
        if is_slow { Ok(()) } else { self.bind(uid) }
    }

    fn bind(&mut self, uid: &str) -> Result<(), PlayError> {
        let (Some(binding), Some(mut pod)) = (self.bindings.remove(uid), self.pods.get(uid).cloned()) else {
            return Err(self.unknown("binding cycle of pod", uid));
        };
        let clears = self.tracker.options().scheduler.has(Gate::ClearingNominatedNodeNameAfterBinding);
        self.say(&format!("{} is bound to {}", pod.key, binding.node));
        pod.node = Some(binding.node);
        if clears {
            pod.nnn = None;
        }
        self.metrics.attempt(AttemptResult::Scheduled, self.now.saturating_sub(binding.started));
        let queued = self.queued.get(uid).copied().unwrap_or(self.now);
        self.metrics.scheduled(self.now.saturating_sub(queued));
        self.handle(TrackerInput::Bound { pod: pod.key.clone() })?;
        self.write(pod)
    }

    fn reject(&mut self, pod: &PodSnapshot) -> Result<(), PlayError> {
        self.metrics.attempt(AttemptResult::Unschedulable, 0);
        let outcome = self.preempt(pod);
        self.say(&format!("{} fits no node", pod.key));
        if let CycleOutcome::Nominated { node } = &outcome {
            self.say(&format!("{} preempts on {node}", pod.key));
        }
        if let Some(node) = pod.nnn.as_ref().filter(|_| !matches!(outcome, CycleOutcome::Nominated { .. })) {
            self.findings.push(format!("look into: scheduling of {} failed, which was nominated to {node}", pod.key));
        }
        let condition = ScheduledCondition::failed("Unschedulable", "the pod fits no node");
        self.handle(TrackerInput::CycleFailed { queued_pod: pod.clone(), outcome, condition })
    }

    /// Looks for the node on which the fewest pods of lower priority make room, and marks them as victims.
    fn preempt(&mut self, pod: &PodSnapshot) -> CycleOutcome {
        let on_nominated: Vec<PodSnapshot> =
            self.pods.values().filter(|other| other.node.is_some() && other.node == pod.nnn).cloned().collect();
        let nominated =
            if pod.nnn.is_some() { NominatedNodeStatus::Unschedulable } else { NominatedNodeStatus::Absent };
        if let Some(outcome) = pod.preemption_refusal(nominated, &on_nominated, VictimDevices::Free) {
            return outcome;
        }
        let candidates = self.nodes.iter().filter_map(|node| Some((self.victims(pod, node)?, node.clone())));
        let Some((victims, node)) = candidates.min_by_key(|(victims, _)| victims.len()) else {
            return if self.nodes.is_empty() { CycleOutcome::NoNodes } else { CycleOutcome::NoCandidates };
        };
        for uid in victims {
            if let Some(victim) = self.pods.get_mut(&uid) {
                (victim.deleting, victim.preempted) = (true, true);
                let key = victim.key.clone();
                self.say(&format!("  evicts {key}"));
            }
        }
        CycleOutcome::Nominated { node }
    }

    fn victims(&self, pod: &PodSnapshot, node: &str) -> Option<Vec<String>> {
        let mut lower: Vec<&PodSnapshot> = self
            .pods
            .values()
            .filter(|other| other.node.as_deref() == Some(node) && other.priority < pod.priority)
            .collect();
        lower.sort_by_key(|other| other.priority);
        let mut victims = Vec::new();
        for other in lower {
            victims.push(other.key.uid.clone());
            if self.fits(pod, node, &victims) {
                return Some(victims);
            }
        }
        None
    }

    fn fail_binding(&mut self, name: &str, stage: FailedStage) -> Result<(), PlayError> {
        let pod = self.live(name)?.clone();
        let Some(binding) = self.bindings.remove(&pod.key.uid) else {
            return Err(self.unknown("binding cycle of pod", name));
        };
        self.say(&format!("the binding of {} to {} fails ({stage:?})", pod.key, binding.node));
        self.metrics.attempt(AttemptResult::Error, self.now.saturating_sub(binding.started));
        if let Some(node) = &pod.nnn {
            self.findings.push(format!(
                "look into: binding of {} to {} failed ({stage:?}), which was nominated to {node}",
                pod.key, binding.node
            ));
        }
        let condition = ScheduledCondition::failed("SchedulerError", "binding failed");
        self.handle(TrackerInput::BindingFailed { queued_pod: pod, stage, condition })?;
        self.retry_all();
        Ok(())
    }

    /// Restarts the scheduler, which then knows what the API server knows: work in `PreBind` goes on if the pod gets the
    /// same node again.
    fn restart(&mut self, gates: &str) -> Result<(), PlayError> {
        let old = *self.tracker.options();
        let gates = Component::parse(old.scheduler.profile(), gates)
            .map_err(|source| PlayError::Gates { at: self.now, source })?;
        self.say("the scheduler restarts");
        for line in std::mem::take(&mut self.metrics).lines() {
            self.say(&format!("  {line}"));
        }
        self.bindings.clear();
        self.tracker = NominationTracker::new(old.with_scheduler(gates));
        for node in self.nodes.clone() {
            self.handle(TrackerInput::NodeObserved { node })?;
        }
        for pod in self.pods.values().cloned().collect::<Vec<_>>() {
            self.enqueue(&pod);
            self.handle(TrackerInput::PodObserved(pod))?;
        }
        Ok(())
    }
}
