//! A small cluster that is driven step by step: a scheduler with its memory, an API server, a watch that lags behind,
//! and `PATCHes` that are on their way. Nothing happens unless an [`Action`] says so.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use nnn::amount::{Amount, Resources};
use nnn::binding::failure::FailedStage;
use nnn::binding::start::{PermitWait, PreFlight};
use nnn::command::Command;
use nnn::gates::Gate;
use nnn::nominating::NominatingInfo;
use nnn::options::Options;
use nnn::pod::{PodKey, PodView, ScheduledCondition};
use nnn::reservation::{Fit, left_for, two_pass};
use nnn::scheduler::{Input, Notice, Placed, Reaction, Scheduler};
use nnn::scheduling::candidate::{CycleStart, Evaluation, Feasible};
use nnn::scheduling::cycle::CycleOutcome;
use nnn::scheduling::preemption::{NominatedNode, may_preempt};
use nnn::state::State;

use super::common::{cpu, unschedulable, with};

/// Something that happens next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    Create(PodSpec),
    Delete(u8),
    /// An update that has nothing to do with nominations.
    Relabel(u8),
    /// Somebody else writes a nomination, or clears it.
    Hint(u8, Option<&'static str>),
    /// A scheduling cycle for the pod, if it waits.
    Cycle(u8),
    /// The binding cycle of the pod ends.
    Bind(u8),
    FailBinding(u8),
    /// The binding cycle of the pod ends at the API server; the scheduler is told by [`Action::Report`].
    BindUntold(u8),
    /// The scheduler is told the oldest end of a binding cycle.
    Report,
    /// The victims of preemptions are gone.
    EndVictims,
    /// The API server serves the oldest PATCH of the pod; the answer is on its way.
    Serve,
    /// The oldest answer arrives.
    Answer,
    /// The watch shows the oldest change.
    Watch,
    AddNode(&'static str),
    RemoveNode(&'static str),
    Restart,
}

/// What a pod is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodSpec {
    pub(crate) id: u8,
    pub(crate) priority: i32,
    pub(crate) cpu: i64,
    /// The binding cycle has something to wait for.
    pub(crate) slow: bool,
}

pub(crate) const CAPACITY: i64 = 4;

#[derive(Clone, Debug)]
enum Change {
    Pod(PodView),
    Deleted(String),
    Node(&'static str),
    NodeGone(&'static str),
}

/// The cluster.
#[derive(Clone, Debug)]
pub(crate) struct Sim {
    pub(crate) scheduler: Scheduler,
    options: Options,
    /// What the API server has.
    pub(crate) api: BTreeMap<String, PodView>,
    pub(crate) nodes: BTreeSet<&'static str>,
    /// The nodes that the scheduler has seen.
    seen_nodes: BTreeSet<&'static str>,
    slow: BTreeSet<String>,
    version: u64,
    changes: VecDeque<Change>,
    patches: VecDeque<Command>,
    answers: VecDeque<(String, Option<u64>)>,
    /// Ends of binding cycles that were not told, by UID.
    reports: VecDeque<(String, Input)>,
    /// The commands of the last action.
    pub(crate) last: Reaction,
    pub(crate) calls: u64,
    /// Pods whose nomination was written after their binding.
    pub(crate) written_late: BTreeSet<String>,
    pub(crate) last_evaluation: Option<(bool, bool)>,
}

impl Sim {
    pub(crate) fn new(options: Options, nodes: &[&'static str]) -> Self {
        let mut sim = Self {
            scheduler: Scheduler::new(options),
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
            last: Reaction::default(),
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

    /// Pods as the API server has them, by the number.
    pub(crate) fn pod(&self, id: u8) -> Option<&PodView> {
        self.api.get(&uid(id))
    }

    pub(crate) fn nnn(&self, id: u8) -> Option<&str> {
        self.pod(id)?.nnn.as_deref()
    }

    pub(crate) fn node(&self, id: u8) -> Option<&str> {
        self.pod(id)?.node.as_deref()
    }

    pub(crate) fn nominated(&self, id: u8) -> Option<&str> {
        self.scheduler.nominator().node_of(&uid(id))
    }

    pub(crate) fn state(&self, id: u8) -> State {
        self.scheduler.state(&uid(id))
    }

    /// Serves, answers and shows everything.
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

    /// Acts, and lets everything arrive.
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

    /// Acts. What can't happen now does nothing.
    pub(crate) fn act(&mut self, action: &Action) {
        self.last = Reaction::default();
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

    pub(crate) fn restart(&mut self, options: Options) {
        self.options = options;
        self.patches.clear();
        self.answers.clear();
        self.reports.clear();
        self.changes.clear();
        let mut scheduler = Scheduler::new(options);
        self.seen_nodes.clone_from(&self.nodes);
        for node in &self.nodes {
            scheduler.handle(Input::NodeObserved { node: (*node).to_owned() }).unwrap();
        }
        for pod in self.api.values() {
            scheduler.handle(Input::PodObserved(pod.clone())).unwrap();
        }
        self.scheduler = scheduler;
    }

    fn create(&mut self, spec: PodSpec) {
        let uid = uid(spec.id);
        if self.api.contains_key(&uid) || self.is_leaving(&uid) {
            return;
        }
        let pod = PodView::pending("default", &uid).with_priority(spec.priority).with_requests(cpu(spec.cpu));
        if spec.slow {
            self.slow.insert(uid.clone());
        }
        self.api.insert(uid.clone(), pod);
        self.update(&uid, |_| {});
    }

    fn update(&mut self, uid: &str, change: impl FnOnce(&mut PodView)) {
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

    fn handle(&mut self, input: Input) {
        let reaction = self.scheduler.handle(input).unwrap();
        self.carry_out(&reaction);
        self.last = reaction;
    }

    fn carry_out(&mut self, reaction: &Reaction) {
        for command in &reaction.commands {
            if command.is_patch() {
                self.calls += 1;
                self.patches.push_back(command.clone());
            }
        }
    }

    fn serve(&mut self) {
        let Some(command) = self.patches.pop_front() else { return };
        let (key, nnn, condition) = match &command {
            Command::PatchNnn { pod, node } => (pod, NominatingInfo::to(node), None),
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
            self.handle(Input::PatchAnswered { uid, version });
        }
    }

    fn watch(&mut self) {
        match self.changes.pop_front() {
            Some(Change::Pod(pod)) => self.handle(Input::PodObserved(pod)),
            Some(Change::Deleted(uid)) => self.handle(Input::PodDeleted { uid }),
            Some(Change::Node(node)) => {
                self.seen_nodes.insert(node);
                self.handle(Input::NodeObserved { node: node.to_owned() });
            }
            Some(Change::NodeGone(node)) => {
                self.seen_nodes.remove(node);
                self.handle(Input::NodeDeleted { node: node.to_owned() });
            }
            None => {}
        }
    }

    fn waits(&self, uid: &str) -> bool {
        let state = self.scheduler.state(uid);
        matches!(state, State::Pending | State::NominatedPreempting { .. } | State::NominatedHint { .. })
    }

    /// What a node has left, as the scheduler sees it: bound and assumed pods count, but for the given ones.
    fn free(&self, node: &str, without: impl Fn(&PodView) -> bool) -> Resources {
        let mut free = Resources::new([("cpu", Amount::from_units(CAPACITY))]);
        for pod in self.scheduler.pods().filter(|pod| !without(pod)) {
            let state = self.scheduler.state(&pod.key.uid);
            if matches!(&state, State::Bound { node: on } | State::AssumedQuiet { node: on } | State::AssumedAnnounced { node: on } if on == node)
            {
                free = free.minus(&pod.requests);
            }
        }
        free
    }

    fn judge(&self, pod: &PodView, node: &str, without: impl Fn(&PodView) -> bool) -> Fit<()> {
        let free = self.free(node, without);
        two_pass(pod, self.scheduler.nominator().on_node(node), |running| {
            let left = left_for(pod, &free, running.iter().copied());
            if pod.requests.fits_into(&left) { Fit::Fits } else { Fit::Rejected(()) }
        })
    }

    fn cycle(&mut self, uid: &str) {
        if !self.waits(uid) {
            return;
        }
        let Some(pod) = self.scheduler.pod(uid).cloned() else { return };
        let nodes: Vec<&str> = self.seen_nodes.iter().copied().collect();
        let start = CycleStart::new(&nodes).nominated_to(pod.nnn.as_deref());
        let found = self.evaluate(&pod, start);
        let all = self.evaluate(&pod, CycleStart::new(&nodes));
        let places = |feasible: &Feasible<'_>| match feasible {
            Feasible::First(_) => true,
            Feasible::Nodes(nodes) => !nodes.is_empty(),
            _ => false,
        };
        self.last_evaluation = Some((places(&found.feasible), places(&all.feasible)));
        let chosen = match &found.feasible {
            Feasible::First(node) => Some((*node).to_owned()),
            Feasible::Nodes(nodes) => nodes.first().map(|node| (*node).to_owned()),
            _ => None,
        };
        let input = if let Some(node) = chosen {
            Input::CycleSucceeded(self.placed(&pod, &node))
        } else {
            let outcome = self.preempt(&pod, &found.feasible);
            Input::CycleFailed { popped: pod.clone(), outcome, condition: unschedulable() }
        };
        self.handle(input);
    }

    fn evaluate<'a>(&self, pod: &PodView, start: CycleStart<'a>) -> Evaluation<'a> {
        start.evaluate(|node| self.seen_nodes.contains(node), |node| self.judge(pod, node, |_| false))
    }

    fn placed(&self, pod: &PodView, node: &str) -> Placed {
        let (pre_flight, permit) = if self.slow.contains(&pod.key.uid) {
            (PreFlight::Success, PermitWait::None)
        } else {
            (PreFlight::Skip, PermitWait::None)
        };
        Placed::new(&pod.key, node).pre_flights(vec![pre_flight]).permit(permit)
    }

    /// Evicts all pods of lower priority from the first node where that helps.
    fn preempt(&mut self, pod: &PodView, feasible: &Feasible<'_>) -> CycleOutcome {
        if *feasible == Feasible::NoNodes {
            return CycleOutcome::NoNodes;
        }
        let nominated = pod.nnn.as_deref().filter(|node| self.seen_nodes.contains(node));
        let on_node: Vec<PodView> = self
            .scheduler
            .pods()
            .filter(|other| other.node.is_some() && other.node.as_deref() == nominated)
            .cloned()
            .collect();
        let state = if nominated.is_some() { NominatedNode::Unschedulable } else { NominatedNode::Absent };
        if let Err(outcome) = may_preempt(pod, state, &on_node) {
            return outcome;
        }
        let lower = |other: &PodView| other.node.is_some() && other.priority < pod.priority;
        let helps = |node: &&&str| {
            let has_victims = self.scheduler.pods().any(|other| other.node.as_deref() == Some(**node) && lower(other));
            has_victims && self.judge(pod, node, lower) == Fit::Fits
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

    /// The scheduler has still to hear of the end of a pod or of its binding cycle. No UID is given again so early.
    fn is_leaving(&self, uid: &str) -> bool {
        let deleted = |change: &Change| matches!(change, Change::Deleted(deleted) if deleted == uid);
        self.is_ending(uid) || self.changes.iter().any(deleted)
    }

    fn is_ending(&self, uid: &str) -> bool {
        self.reports.iter().any(|(ending, _)| ending == uid)
    }

    /// The pod and its node, if a binding cycle runs.
    fn binding(&self, uid: &str) -> Option<(PodKey, String)> {
        let state = self.scheduler.state(uid);
        let node = state.node().filter(|_| state.is_assumed() && !self.is_ending(uid))?;
        Some((self.scheduler.pod(uid)?.key.clone(), node.to_owned()))
    }

    /// The API server binds: in one write, the node and perhaps no nomination.
    fn bind(&mut self, uid: &str) -> Option<Input> {
        let (pod, node) = self.binding(uid)?;
        if self.api.get(uid).is_none_or(|pod| pod.deleting || pod.node.is_some()) {
            return self.fail_binding(uid);
        }
        let clears = self.options.gates.has(Gate::Clearing);
        self.update(uid, |pod| {
            pod.node = Some(node);
            pod.scheduled = Some(with(ScheduledCondition::default(), |it| "True".clone_into(&mut it.status)));
            if clears {
                pod.nnn = None;
            }
        });
        Some(Input::Bound { pod })
    }

    fn fail_binding(&self, uid: &str) -> Option<Input> {
        self.binding(uid)?;
        let popped = self.scheduler.pod(uid)?.clone();
        let condition = ScheduledCondition::failed("SchedulerError", "binding failed");
        Some(Input::BindingFailed { popped, stage: FailedStage::Bind, condition })
    }

    pub(crate) fn foreign_writes(&self) -> usize {
        self.last.notices.iter().filter(|notice| matches!(notice, Notice::ForeignWrite { .. })).count()
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
