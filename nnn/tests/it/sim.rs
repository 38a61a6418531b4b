//! Simulation of a small cluster: a tracker, an API server, a lagging watch and pending `PATCHes`. Nothing happens
//! unless an [`Action`] does it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dra_attrs::Resources;
use dra_attrs::{Gate, Quantity, QuantityFormat};
use nnn::scheduling::{FeasibleNodes, FilterInput, NodeEvaluation, NominatedNodeStatus, VictimDevices};
use nnn::{
    Assumed, Command, CycleOutcome, FailedStage, NodeFit, NominatingInfo, NominationOptions, NominationState,
    NominationTracker, PodKey, PodSnapshot, PreFlight, ScheduledCondition, TrackerInput, TrackerNotice, TrackerOutput,
};

use super::common::{cpu, unschedulable, with};

/// One step of the simulation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    Create(PodSpec),
    Delete(u8),
    /// Updates the pod without a change of its nomination.
    Relabel(u8),
    /// Lets another component write or clear a nomination.
    Hint(u8, Option<&'static str>),
    /// Runs a scheduling cycle for the pod, if it waits.
    Cycle(u8),
    /// Ends the binding cycle of the pod with a binding.
    Bind(u8),
    FailBinding(u8),
    /// Binds the pod at the API server; [`Action::Report`] tells the tracker.
    BindUntold(u8),
    /// Reports the oldest end of a binding cycle to the tracker.
    Report,
    /// Deletes the victims of preemptions.
    EndVictims,
    /// Serves the oldest PATCH; its answer becomes pending.
    Serve,
    /// Delivers the oldest answer.
    Answer,
    /// Delivers the oldest watch event.
    Watch,
    AddNode(&'static str),
    RemoveNode(&'static str),
    Restart,
}

/// Properties of a pod to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodSpec {
    pub(crate) id: u8,
    pub(crate) priority: i32,
    pub(crate) cpu: i64,
    /// True if the binding cycle has something to wait for.
    pub(crate) slow: bool,
}

pub(crate) const CAPACITY: i64 = 4;

#[derive(Clone, Debug)]
enum Change {
    Pod(PodSnapshot),
    Deleted(String),
    Node(&'static str),
    NodeGone(&'static str),
}

/// A simulated cluster.
#[derive(Clone, Debug)]
pub(crate) struct Sim {
    pub(crate) tracker: NominationTracker,
    options: NominationOptions,
    /// Pods in the API server, by UID.
    pub(crate) api: BTreeMap<String, PodSnapshot>,
    pub(crate) nodes: BTreeSet<&'static str>,
    /// Nodes that the watch has shown.
    seen_nodes: BTreeSet<&'static str>,
    slow: BTreeSet<String>,
    version: u64,
    changes: VecDeque<Change>,
    patches: VecDeque<Command>,
    answers: VecDeque<(String, Option<u64>)>,
    /// Unreported ends of binding cycles, with UIDs.
    reports: VecDeque<(String, TrackerInput)>,
    /// Output of the last action.
    pub(crate) last: TrackerOutput,
    pub(crate) calls: u64,
    /// Pods whose nomination was written after their binding.
    pub(crate) written_late: BTreeSet<String>,
    pub(crate) last_evaluation: Option<(bool, bool)>,
}

impl Sim {
    pub(crate) fn new(options: NominationOptions, nodes: &[&'static str]) -> Self {
        let mut sim = Self {
            tracker: NominationTracker::new(options),
            options,
            api: BTreeMap::new(),
            nodes: BTreeSet::new(),
            seen_nodes: BTreeSet::new(),
            slow: BTreeSet::new(),
            version: 0,
            changes: VecDeque::new(),
            patches: VecDeque::new(),
            answers: VecDeque::new(),
            reports: VecDeque::new(),
            last: TrackerOutput::default(),
            calls: 0,
            written_late: BTreeSet::new(),
            last_evaluation: None,
        };
        for node in nodes {
            sim.act(&Action::AddNode(node));
        }
        sim.settle();
        sim
    }

    /// Returns a pod in the API server by its number.
    pub(crate) fn pod(&self, id: u8) -> Option<&PodSnapshot> {
        self.api.get(&uid(id))
    }

    pub(crate) fn nnn(&self, id: u8) -> Option<&str> {
        self.pod(id)?.nnn.as_deref()
    }

    pub(crate) fn node(&self, id: u8) -> Option<&str> {
        self.pod(id)?.node.as_deref()
    }

    pub(crate) fn nominated(&self, id: u8) -> Option<&str> {
        self.tracker.nominator().nominated_node(&uid(id))
    }

    pub(crate) fn state(&self, id: u8) -> NominationState {
        self.tracker.state(&uid(id))
    }

    /// Serves, answers and shows everything that is pending.
    pub(crate) fn settle(&mut self) {
        while !self.is_settled() {
            self.act(&Action::Serve);
            self.act(&Action::Answer);
            self.act(&Action::Watch);
            self.act(&Action::Report);
        }
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.changes.is_empty() && self.patches.is_empty() && self.answers.is_empty() && self.reports.is_empty()
    }

    /// Acts, and delivers everything after each action.
    pub(crate) fn run(&mut self, actions: &[Action]) {
        for action in actions {
            self.act(action);
            let last = self.last.clone();
            self.settle();
            self.last = last;
        }
    }

    pub(crate) fn act_all(&mut self, actions: &[Action]) {
        for action in actions {
            self.act(action);
        }
    }

    /// Acts. An action that is impossible now does nothing.
    pub(crate) fn act(&mut self, action: &Action) {
        self.last = TrackerOutput::default();
        match action {
            Action::Create(spec) => self.create(*spec),
            Action::Delete(id) => self.delete(&uid(*id)),
            Action::Relabel(id) => self.update(&uid(*id), |_| {}),
            Action::Hint(id, node) => self.update(&uid(*id), |pod| {
                pod.nnn = node.map(str::to_owned);
                pod.nnn_manager = Some("somebody".to_owned());
            }),
            Action::Cycle(id) => self.cycle(&uid(*id)),
            Action::Bind(id) => {
                if let Some(end) = self.bind(&uid(*id)) {
                    self.handle(end);
                }
            }
            Action::FailBinding(id) => {
                if let Some(end) = self.fail_binding(&uid(*id)) {
                    self.handle(end);
                }
            }
            Action::BindUntold(id) => {
                let end = self.bind(&uid(*id));
                self.reports.extend(end.map(|end| (uid(*id), end)));
            }
            Action::Report => {
                if let Some((_, end)) = self.reports.pop_front() {
                    self.handle(end);
                }
            }
            Action::EndVictims => self.end_victims(),
            Action::Serve => self.serve(),
            Action::Answer => self.answer(),
            Action::Watch => self.watch(),
            Action::AddNode(node) => {
                if self.nodes.insert(node) {
                    self.changes.push_back(Change::Node(node));
                }
            }
            Action::RemoveNode(node) => {
                if self.nodes.remove(node) {
                    self.changes.push_back(Change::NodeGone(node));
                }
            }
            Action::Restart => self.restart(self.options),
        }
    }

    pub(crate) fn restart(&mut self, options: NominationOptions) {
        self.options = options;
        self.patches.clear();
        self.answers.clear();
        self.reports.clear();
        self.changes.clear();
        let mut tracker = NominationTracker::new(options);
        self.seen_nodes.clone_from(&self.nodes);
        for node in &self.nodes {
            tracker.handle(TrackerInput::NodeObserved { node: (*node).to_owned() }).unwrap();
        }
        for pod in self.api.values() {
            tracker.handle(TrackerInput::PodObserved(pod.clone())).unwrap();
        }
        self.tracker = tracker;
    }

    fn create(&mut self, spec: PodSpec) {
        let uid = uid(spec.id);
        if self.api.contains_key(&uid) || self.is_leaving(&uid) {
            return;
        }
        let pod = PodSnapshot::pending("default", &uid).with_priority(spec.priority).with_requests(cpu(spec.cpu));
        if spec.slow {
            self.slow.insert(uid.clone());
        }
        self.api.insert(uid.clone(), pod);
        self.update(&uid, |_| {});
    }

    fn update(&mut self, uid: &str, change: impl FnOnce(&mut PodSnapshot)) {
        let Some(pod) = self.api.get_mut(uid) else { return };
        self.version += 1;
        pod.resource_version = Some(self.version);
        change(pod);
        self.changes.push_back(Change::Pod(pod.clone()));
    }

    fn delete(&mut self, uid: &str) {
        if self.api.remove(uid).is_some() {
            self.version += 1;
            self.changes.push_back(Change::Deleted(uid.to_owned()));
        }
    }

    fn end_victims(&mut self) {
        let victims: Vec<String> =
            self.api.values().filter(|pod| pod.deleting).map(|pod| pod.key.uid.clone()).collect();
        victims.iter().for_each(|uid| self.delete(uid));
    }

    fn handle(&mut self, input: TrackerInput) {
        let output = self.tracker.handle(input).unwrap();
        self.carry_out(&output);
        self.last = output;
    }

    fn carry_out(&mut self, output: &TrackerOutput) {
        for command in &output.commands {
            if command.is_patch() {
                self.calls += 1;
                self.patches.push_back(command.clone());
            }
        }
    }

    fn serve(&mut self) {
        let Some(command) = self.patches.pop_front() else { return };
        let (key, nnn, condition) = match &command {
            Command::PatchNnn { pod, node } => (pod, NominatingInfo::nominate(node), None),
            Command::ClearNnn { pod } => (pod, NominatingInfo::clear(), None),
            Command::PatchConditionAndNnn { pod, condition, nnn } => (pod, nnn.clone(), Some(condition.clone())),
            other => panic!("{other:?} is no PATCH"),
        };
        let uid = key.uid.clone();
        let writes_nnn = command.written_nnn().is_some();
        let Some(pod) = self.api.get(&uid) else {
            self.answers.push_back((uid, None));
            return;
        };
        if pod.node.is_some() && writes_nnn {
            self.written_late.insert(uid.clone());
        }
        self.update(&uid, |pod| {
            if let NominatingInfo::Override(node) = nnn {
                pod.nnn = node;
                pod.nnn_manager = Some("kube-scheduler".to_owned());
            }
            if let Some(condition) = condition {
                pod.scheduled = Some(condition);
            }
        });
        self.answers.push_back((uid, Some(self.version)));
    }

    fn answer(&mut self) {
        if let Some((uid, version)) = self.answers.pop_front() {
            self.handle(TrackerInput::PatchAnswered { uid, version });
        }
    }

    fn watch(&mut self) {
        match self.changes.pop_front() {
            Some(Change::Pod(pod)) => self.handle(TrackerInput::PodObserved(pod)),
            Some(Change::Deleted(uid)) => self.handle(TrackerInput::PodDeleted { uid }),
            Some(Change::Node(node)) => {
                self.seen_nodes.insert(node);
                self.handle(TrackerInput::NodeObserved { node: node.to_owned() });
            }
            Some(Change::NodeGone(node)) => {
                self.seen_nodes.remove(node);
                self.handle(TrackerInput::NodeDeleted { node: node.to_owned() });
            }
            None => {}
        }
    }

    fn waits(&self, uid: &str) -> bool {
        let state = self.tracker.state(uid);
        matches!(
            state,
            NominationState::Pending
                | NominationState::NominatedPreempting { .. }
                | NominationState::NominatedHint { .. }
        )
    }

    /// Returns the free resources of a node as the tracker sees it: bound and assumed pods count, except for the given
    /// ones.
    fn free(&self, node: &str, without: impl Fn(&PodSnapshot) -> bool) -> Resources {
        let mut free = Resources::new([("cpu", Quantity::from_units(CAPACITY, QuantityFormat::DecimalSi))]);
        for pod in self.tracker.pods().filter(|pod| !without(pod)) {
            let state = self.tracker.state(&pod.key.uid);
            let runs = matches!(state, NominationState::Bound { .. }) || state.is_assumed();
            if runs && state.node() == Some(node) {
                free = free.minus(&pod.requests);
            }
        }
        free
    }

    fn judge(&self, pod: &PodSnapshot, node: &str, without: impl Fn(&PodSnapshot) -> bool) -> NodeFit<()> {
        let free = self.free(node, without);
        pod.filter_with_nominated_pods(self.tracker.nominator().on_node(node), |running| {
            let left = running.iter().fold(free.clone(), |left, other| left.minus(&other.requests));
            if pod.requests.fits_into(&left) { NodeFit::Fits } else { NodeFit::Rejected(()) }
        })
    }

    fn cycle(&mut self, uid: &str) {
        if !self.waits(uid) {
            return;
        }
        let Some(pod) = self.tracker.pod(uid).cloned() else { return };
        let nodes: Vec<&str> = self.seen_nodes.iter().copied().collect();
        let start = FilterInput::new(&nodes).with_nomination(pod.nnn.as_deref());
        let found = self.evaluate(&pod, start);
        let all = self.evaluate(&pod, FilterInput::new(&nodes));
        let places = |feasible: &FeasibleNodes<'_>| match feasible {
            FeasibleNodes::First(_) => true,
            FeasibleNodes::Nodes(nodes) => !nodes.is_empty(),
            _ => false,
        };
        self.last_evaluation = Some((places(&found.feasible), places(&all.feasible)));
        let chosen = match &found.feasible {
            FeasibleNodes::First(node) => Some((*node).to_owned()),
            FeasibleNodes::Nodes(nodes) => nodes.first().map(|node| (*node).to_owned()),
            _ => None,
        };
        let input = if let Some(node) = chosen {
            TrackerInput::CycleSucceeded(self.placed(&pod, &node))
        } else {
            let outcome = self.preempt(&pod, &found.feasible);
            TrackerInput::CycleFailed { queued_pod: pod.clone(), outcome, condition: unschedulable() }
        };
        self.handle(input);
    }

    fn evaluate<'a>(&self, pod: &PodSnapshot, start: FilterInput<'a>) -> NodeEvaluation<'a> {
        start.evaluate(|node| self.seen_nodes.contains(node), |node| self.judge(pod, node, |_| false))
    }

    fn placed(&self, pod: &PodSnapshot, node: &str) -> Assumed {
        let pre_flight = if self.slow.contains(&pod.key.uid) { PreFlight::Success } else { PreFlight::Skip };
        Assumed::new(&pod.key, node).with_pre_flights(vec![pre_flight])
    }

    /// Evicts all pods of lower priority from the first node where that helps.
    fn preempt(&mut self, pod: &PodSnapshot, feasible: &FeasibleNodes<'_>) -> CycleOutcome {
        if *feasible == FeasibleNodes::NoNodes {
            return CycleOutcome::NoNodes;
        }
        let nominated = pod.nnn.as_deref().filter(|node| self.seen_nodes.contains(node));
        let on_node: Vec<PodSnapshot> = self
            .tracker
            .pods()
            .filter(|other| other.node.is_some() && other.node.as_deref() == nominated)
            .cloned()
            .collect();
        let state = if nominated.is_some() { NominatedNodeStatus::Unschedulable } else { NominatedNodeStatus::Absent };
        if let Some(outcome) = pod.preemption_refusal(state, &on_node, VictimDevices::Free) {
            return outcome;
        }
        let lower = |other: &PodSnapshot| other.node.is_some() && other.priority < pod.priority;
        let helps = |node: &&&str| {
            let has_victims = self.tracker.pods().any(|other| other.node.as_deref() == Some(**node) && lower(other));
            has_victims && self.judge(pod, node, lower) == NodeFit::Fits
        };
        let Some(node) = self.seen_nodes.iter().find(helps).copied() else { return CycleOutcome::NoCandidates };
        let victims: Vec<String> = self
            .api
            .values()
            .filter(|other| other.node.as_deref() == Some(node) && lower(other) && !other.deleting)
            .map(|other| other.key.uid.clone())
            .collect();
        for victim in victims {
            self.update(&victim, |pod| (pod.deleting, pod.preempted) = (true, true));
        }
        CycleOutcome::Nominated { node: node.to_owned() }
    }

    /// Returns true if the end of a pod or of its binding cycle is not reported yet. Its UID is not reused before.
    fn is_leaving(&self, uid: &str) -> bool {
        let deleted = |change: &Change| matches!(change, Change::Deleted(deleted) if deleted == uid);
        self.is_ending(uid) || self.changes.iter().any(deleted)
    }

    fn is_ending(&self, uid: &str) -> bool {
        self.reports.iter().any(|(ending, _)| ending == uid)
    }

    /// Returns the pod and its node, if a binding cycle runs.
    fn binding(&self, uid: &str) -> Option<(PodKey, String)> {
        let state = self.tracker.state(uid);
        let node = state.node().filter(|_| state.is_assumed() && !self.is_ending(uid))?;
        Some((self.tracker.pod(uid)?.key.clone(), node.to_owned()))
    }

    /// Binds the pod at the API server in one write, which may clear the nomination.
    fn bind(&mut self, uid: &str) -> Option<TrackerInput> {
        let (pod, node) = self.binding(uid)?;
        if self.api.get(uid).is_none_or(|pod| pod.deleting || pod.node.is_some()) {
            return self.fail_binding(uid);
        }
        let clears = self.options.scheduler.gates().has(Gate::ClearingNominatedNodeNameAfterBinding);
        self.update(uid, |pod| {
            pod.node = Some(node);
            pod.scheduled = Some(with(ScheduledCondition::default(), |it| "True".clone_into(&mut it.status)));
            if clears {
                pod.nnn = None;
            }
        });
        Some(TrackerInput::Bound { pod })
    }

    fn fail_binding(&self, uid: &str) -> Option<TrackerInput> {
        self.binding(uid)?;
        let queued_pod = self.tracker.pod(uid)?.clone();
        let condition = ScheduledCondition::failed("SchedulerError", "binding failed");
        Some(TrackerInput::BindingFailed { queued_pod, stage: FailedStage::Bind, condition })
    }

    pub(crate) fn foreign_writes(&self) -> usize {
        self.last.notices.iter().filter(|notice| matches!(notice, TrackerNotice::ForeignWrite { .. })).count()
    }
}

pub(crate) fn uid(id: u8) -> String {
    format!("p{id}")
}

pub(crate) fn create(id: u8, priority: i32, cpu: i64) -> Action {
    Action::Create(PodSpec { id, priority, cpu, slow: false })
}

pub(crate) fn create_slow(id: u8, priority: i32, cpu: i64) -> Action {
    Action::Create(PodSpec { id, priority, cpu, slow: true })
}
