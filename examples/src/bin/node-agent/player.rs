//! Simulation of a timeline: events, writes of the reconciler, resulting nodes.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use readiness::network::NetworkCondition;
use readiness::reporter::{ProbeResult, Reporter};
use readiness::{EvaluatorRole, GateDecision, GatedNode, GatedNodeView, GatedPod, NodeState, NodeWrite, Policy, step};

use super::name_of;
use super::network::NetworkWatch;
use super::rules::{OnNode, RuleBook};
use super::timeline::{ConditionReport, Entry, Probe, ProbeOutcome, Strategy, TimelineError};

/// Maximum number of steps at one instant. Two are enough for every policy.
const MAX_STEPS: usize = 4;

/// Events, writes and verdict of one node at one instant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scene {
    /// Seconds since the start of the timeline.
    pub(crate) at: i64,
    /// Name of the node.
    pub(crate) node: String,
    /// Events in words.
    pub(crate) happened: Vec<String>,
    /// Writes of the reconciler.
    pub(crate) writes: Vec<NodeWrite>,
    /// True if the node is open for pods after the writes.
    pub(crate) schedulable: bool,
    /// Decision of each gate, by condition type.
    pub(crate) gates: Vec<(String, GateDecision)>,
    /// Condition of the network, if it has changed.
    pub(crate) network: Option<String>,
    /// Taints of the node after the writes.
    pub(crate) taints: Vec<String>,
    /// Next step of the reconciler, in seconds since the start of the timeline.
    pub(crate) requeue_at: Option<i64>,
}

struct Player {
    node: GatedNode,
    state: NodeState,
    kubelet: u32,
    boots: u32,
    requeue_at: Option<Timestamp>,
    network: Option<NetworkWatch>,
    of_rules: OnNode,
}

/// Simulated cluster of nodes.
pub(crate) struct Stage {
    policy: Policy,
    role: EvaluatorRole,
    begin: Timestamp,
    /// Time by which the evaluator's clock is ahead.
    skew: SignedDuration,
    /// Time of the evaluator's clock at the last instant.
    now: Timestamp,
    players: Vec<Player>,
    rules: RuleBook,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Stage")
            .field("policy", &self.policy)
            .field("begin", &self.begin)
            .finish_non_exhaustive()
    }
}

impl Stage {
    /// Creates a cluster at the start of the timeline.
    pub(crate) fn new(nodes: Vec<GatedNode>, policy: Policy, role: EvaluatorRole, begin: Timestamp) -> Self {
        let player = |node| Player {
            node,
            state: NodeState::default(),
            kubelet: 1,
            boots: 1,
            requeue_at: None,
            network: None,
            of_rules: OnNode::default(),
        };
        let players = nodes.into_iter().map(player).collect();
        let rules = RuleBook::default();
        Self { policy, role, begin, skew: SignedDuration::ZERO, now: begin, players, rules }
    }

    /// Follows rules, whose gates the nodes have already: when conditions, labels or rules change. Returns a line for each
    /// thing that node-readiness-controller does before anything happens.
    pub(crate) fn follow(&mut self, rules: RuleBook) -> Vec<String> {
        let mut lines = Vec::new();
        for player in &mut self.players {
            let (known, words) = rules.begin(&mut player.node, self.begin);
            let name = name_of(&player.node);
            lines.extend(words.into_iter().map(|word| format!("{name}: {word}")));
            player.of_rules = known;
        }
        self.rules = rules;
        lines
    }

    /// Combines the network gates of each node, which must be True for so many seconds.
    pub(crate) fn with_network(mut self, seconds: Option<i64>) -> Self {
        self.players.iter_mut().for_each(|player| player.network = seconds.map(NetworkWatch::new));
        self
    }

    /// Moves the clock to a second of the timeline, unless it is there already.
    pub(crate) fn wait_until(&mut self, second: Option<i64>) {
        let instant = second.and_then(|second| self.begin.checked_add(SignedDuration::from_secs(second)).ok());
        self.now = instant.map_or(self.now, |instant| instant.max(self.now));
    }

    /// Returns a line for each node and pod: whether kubelet would start the pod, as far as the network is concerned.
    pub(crate) fn admissions(&self, pods: &[GatedPod]) -> Vec<String> {
        let watched = self.players.iter().filter_map(|player| Some((&player.node, player.network.as_ref()?)));
        let lines = watched.flat_map(|(node, network)| {
            pods.iter().map(move |pod| {
                let pod_name = pod.pod.metadata.name.as_deref().unwrap_or_default();
                let admission = network.admission(&node.view(), pod, self.now);
                format!("kubelet of {}: pod {pod_name}: {admission}", name_of(node))
            })
        });
        lines.collect()
    }

    /// Returns the nodes as they are now, with the states of the reconciler.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&GatedNode, &NodeState)> {
        self.players.iter().map(|player| (&player.node, &player.state))
    }

    /// Checks that every entry of a timeline is about a node of the cluster, at a time that exists.
    ///
    /// # Errors
    /// The first entry that is not.
    pub(crate) fn check(&self, timeline: &[Entry]) -> Result<(), TimelineError> {
        let names: BTreeSet<_> = self.players.iter().map(|player| player.node.node.metadata.name.as_ref()).collect();
        let mut skew = self.skew;
        for entry in timeline {
            let at = entry.at;
            if let Some(node) = entry.node.as_ref().filter(|node| !names.contains(&Some(*node))) {
                return Err(TimelineError::NoNode { at, node: node.clone() });
            }
            skew = skew.saturating_add(SignedDuration::from_secs(entry.clock.unwrap_or_default()));
            let instant = self.begin.checked_add(SignedDuration::from_secs(at));
            instant.and_then(|instant| instant.checked_add(skew)).map_err(|_| TimelineError::OutOfRange { at })?;
        }
        Ok(())
    }

    /// Simulates a timeline to its end, and further until no timer runs any more or the second `until` is over.
    pub(crate) fn play(&mut self, timeline: &[Entry], until: Option<i64>) -> Vec<Scene> {
        let mut scenes = Vec::new();
        let mut entries = timeline.iter().peekable();
        let mut last = i64::MIN;
        loop {
            let next_entry = entries.peek().map(|entry| entry.at);
            let next_timer = self.players.iter().filter_map(|player| self.seconds(player.requeue_at?)).min();
            let Some(at) = next_entry.into_iter().chain(next_timer).min() else { return scenes };
            // A clock that is set forward makes timers end that were to end later, now.
            let at = at.max(last);
            if until.is_some_and(|until| at > until) {
                return scenes;
            }
            last = at;
            let mut now = Vec::new();
            while let Some(entry) = entries.next_if(|entry| entry.at == at) {
                now.push(entry);
            }
            self.turn(at, &now, &mut scenes);
        }
    }

    /// Simulates one instant: the events of each node, and the steps of the reconciler.
    fn turn(&mut self, at: i64, entries: &[&Entry], scenes: &mut Vec<Scene>) {
        let Ok(instant) = self.begin.checked_add(SignedDuration::from_secs(at)) else { return };
        for entry in entries {
            let shift = SignedDuration::from_secs(entry.clock.unwrap_or_default());
            self.skew = self.skew.saturating_add(shift);
            if entry.known {
                for player in &mut self.players {
                    player.state.shift_clock(shift);
                    player.network.iter_mut().for_each(|network| network.shift_clock(shift));
                }
            }
        }
        let now = instant.checked_add(self.skew).unwrap_or(instant);
        self.now = now;
        for name in entries.iter().filter_map(|entry| entry.without_rule.as_ref()) {
            self.rules.remove(name);
        }
        for index in 0..self.players.len() {
            let Some(player) = self.players.get_mut(index) else { return };
            let name = player.node.node.metadata.name.clone().unwrap_or_default();
            let concerns = |entry: &&&Entry| entry.node.as_ref().is_none_or(|node| *node == name);
            let is_due = player.requeue_at.is_some_and(|requeue_at| requeue_at <= now);
            if !is_due && !entries.iter().any(|entry| concerns(&entry)) {
                continue;
            }
            let mut happened: Vec<String> =
                entries.iter().filter(concerns).flat_map(|entry| apply_events(player, entry, instant)).collect();
            happened.extend(self.rules.apply(&mut player.node, &mut player.of_rules, instant));
            let (policy, role) = (self.policy.clone(), self.role);
            let mut scene = settle(player, &policy, role, now);
            scene.network = report_network(player, now);
            let requeue_at = player.requeue_at;
            (scene.at, scene.node, scene.happened) = (at, name, happened);
            scene.requeue_at = requeue_at.and_then(|requeue_at| self.seconds(requeue_at));
            scenes.push(scene);
        }
    }

    /// Returns the first whole second of the timeline at which the evaluator's clock has reached an instant.
    fn seconds(&self, instant: Timestamp) -> Option<i64> {
        let time = instant.duration_since(self.begin.checked_add(self.skew).ok()?);
        Some(time.as_secs().saturating_add(i64::from(time.subsec_nanos() > 0)))
    }
}

/// Steps and applies the writes until a step has none.
fn settle(player: &mut Player, policy: &Policy, role: EvaluatorRole, now: Timestamp) -> Scene {
    let mut scene = Scene {
        at: 0,
        node: String::new(),
        happened: Vec::new(),
        writes: Vec::new(),
        schedulable: false,
        gates: Vec::new(),
        network: None,
        taints: Vec::new(),
        requeue_at: None,
    };
    for _ in 0..MAX_STEPS {
        let instance = player.kubelet.to_string();
        let view = player.node.view().with_kubelet_instance(&instance);
        let step = step(policy, role, &view, now, std::mem::take(&mut player.state));
        let gates = step.verdict.gates.iter().map(|(name, decision)| ((*name).to_owned(), *decision));
        (scene.schedulable, scene.gates) = (step.verdict.schedulable, gates.collect());
        (player.state, player.requeue_at) = (step.state, step.requeue_at);
        let writes = step.writes;
        if writes.is_empty() {
            break;
        }
        // Nobody else writes here, so nothing can be refused.
        for write in &writes {
            write.apply(&mut player.node.node, now);
        }
        scene.writes.extend(writes);
    }
    let taints = player.node.view();
    scene.taints = taints.taints().iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect();
    scene
}

/// Lets kubelet write the condition of the node's network, and returns it in words if it has changed.
fn report_network(player: &mut Player, now: Timestamp) -> Option<String> {
    let network = player.network.as_mut()?;
    let changed = network.observe(&player.node.view(), now);
    player.requeue_at = player.requeue_at.into_iter().chain(network.next(now)).min();
    let condition = changed?;
    let report = ConditionReport {
        type_: NetworkCondition::TYPE.to_owned(),
        status: condition.status.to_owned(),
        reason: condition.reason.to_owned(),
        message: condition.message,
    };
    write(player, &report, now);
    Some(format!("{} is {} ({}): {}", report.type_, report.status, report.reason, report.message))
}

/// Applies the events of an entry to the node, and returns them in words.
fn apply_events(player: &mut Player, entry: &Entry, instant: Timestamp) -> Vec<String> {
    let mut happened = Vec::new();
    if entry.reboot {
        player.boots = player.boots.saturating_add(1);
        let status = player.node.node.status.get_or_insert_default();
        status.node_info.get_or_insert_default().boot_id = format!("boot-{}", player.boots);
        happened.push(format!("the node boots (boot-{})", player.boots));
    }
    if entry.restart {
        player.kubelet = player.kubelet.saturating_add(1);
        happened.push("kubelet restarts".to_owned());
    }
    if let Some(gates) = &entry.gates {
        player.node.gates.clone_from(gates);
        let names: Vec<&str> = gates.iter().map(|gate| gate.condition_type.as_str()).collect();
        happened
            .push(format!("gates are now: {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") }));
    }
    for (key, value) in &entry.labels {
        let labels = player.node.node.metadata.labels.get_or_insert_default();
        happened.push(match value {
            Some(value) => format!("the label {key} is {value}"),
            None => format!("the label {key} goes"),
        });
        match value {
            Some(value) => drop(labels.insert(key.clone(), value.clone())),
            None => drop(labels.remove(key)),
        }
    }
    if let Some(rule) = &entry.without_rule {
        happened.push(format!("the rule {rule} is deleted"));
    }
    if let Some(clock) = entry.clock.filter(|clock| *clock != 0) {
        happened.push(format!("the clock is set by {clock} s"));
    }
    let ready = entry.ready.clone().map(|said| ConditionReport {
        type_: GatedNodeView::READY.to_owned(),
        status: said.status,
        reason: said.reason,
        message: said.message,
    });
    for report in ready.iter().chain(&entry.report) {
        write(player, report, instant);
        happened.push(format!("{} is {} ({})", report.type_, report.status, report.reason));
    }
    if let Some(probe) = &entry.probe {
        happened.push(report_probe(player, probe, instant));
    }
    if let Some(name) = &entry.delete {
        let conditions = player.node.node.status.get_or_insert_default().conditions.get_or_insert_default();
        conditions.retain(|condition| condition.type_ != *name);
        happened.push(format!("{name} is deleted"));
    }
    happened
}

/// Lets an agent's reporter write the result of a probe, and returns what it does in words.
fn report_probe(player: &mut Player, probe: &Probe, instant: Timestamp) -> String {
    let mut reporter = Reporter::new(&probe.type_);
    reporter.ends_on_success = matches!(probe.strategy, Strategy::ReportOnSuccessAndTerminate);
    let result = match probe.result {
        ProbeOutcome::Starting => ProbeResult::Starting,
        ProbeOutcome::Success => ProbeResult::Success { reason: "Verified".to_owned(), message: String::new() },
        ProbeOutcome::Failure => ProbeResult::Failure { reason: "ProbeFailed".to_owned(), message: String::new() },
        ProbeOutcome::Unreachable => ProbeResult::Unreachable,
    };
    let stored = player.node.view().condition(&probe.type_).cloned();
    let (condition, next) = reporter.report(stored.as_ref(), &result, instant);
    let end = if next.is_none() { ", and ends" } else { "" };
    let Some(condition) = condition else { return format!("the reporter of {} writes nothing{end}", probe.type_) };
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let report = ConditionReport {
        type_: condition.type_.clone(),
        status: condition.status.clone(),
        reason: text(&condition.reason),
        message: text(&condition.message),
    };
    write(player, &report, instant);
    format!("the reporter of {} writes {} ({}){end}", report.type_, report.status, report.reason)
}

fn write(player: &mut Player, report: &ConditionReport, instant: Timestamp) {
    let conditions = player.node.node.status.get_or_insert_default().conditions.get_or_insert_default();
    let place = conditions.iter().position(|condition| condition.type_ == report.type_);
    let old = place.map(|index| conditions.remove(index));
    let kept = old.filter(|old| old.status == report.status).and_then(|old| old.last_transition_time);
    let condition = NodeCondition {
        type_: report.type_.clone(),
        status: report.status.clone(),
        reason: Some(report.reason.clone()),
        message: Some(report.message.clone()),
        last_heartbeat_time: Some(Time(instant)),
        last_transition_time: kept.or(Some(Time(instant))),
    };
    conditions.insert(place.unwrap_or(conditions.len()), condition);
}
