//! Plays a timeline: what happens, what the reconciler writes, what comes of it.

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use readiness::condition::READY;
use readiness::node::GatedNode;
use readiness::policy::Policy;
use readiness::reconcile::output::Output;
use readiness::reconcile::{Decision, Role, State, apply, step};

use super::timeline::{Entry, Report};

/// Rounds of writing and looking again before the next instant; two are enough for every policy.
const ROUNDS: usize = 4;

/// What there is to see at an instant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Scene {
    /// Seconds from the beginning.
    pub at: i64,
    /// The node.
    pub node: String,
    /// What happened.
    pub happened: Vec<String>,
    /// What was written.
    pub outputs: Vec<Output>,
    /// Whether the node is open for pods then.
    pub schedulable: bool,
    /// Each gate, and what it says.
    pub gates: Vec<(String, Decision)>,
    /// Taints of the node then.
    pub taints: Vec<String>,
    /// When the reconciler looks again, in seconds from the beginning.
    pub wake_up: Option<i64>,
}

struct Player {
    node: GatedNode,
    state: State,
    kubelet: u32,
    boots: u32,
    wake_up: Option<Timestamp>,
}

/// A cluster of nodes in time.
pub struct Stage {
    policy: Policy,
    role: Role,
    begin: Timestamp,
    /// How far the evaluator's clock is ahead.
    skew: SignedDuration,
    players: Vec<Player>,
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
    /// Nodes before anything happens.
    #[must_use]
    pub fn new(nodes: Vec<GatedNode>, policy: Policy, role: Role, begin: Timestamp) -> Self {
        let player = |node| Player { node, state: State::default(), kubelet: 1, boots: 1, wake_up: None };
        let players = nodes.into_iter().map(player).collect();
        Self { policy, role, begin, skew: SignedDuration::ZERO, players }
    }

    /// Plays a timeline to its end, and on until no timer runs any more.
    pub fn play(&mut self, timeline: &[Entry]) -> Vec<Scene> {
        let mut scenes = Vec::new();
        let mut entries = timeline.iter().peekable();
        let mut last = i64::MIN;
        loop {
            let next_entry = entries.peek().map(|entry| entry.at);
            let next_timer = self.players.iter().filter_map(|player| self.seconds(player.wake_up?)).min();
            let Some(at) = next_entry.into_iter().chain(next_timer).min() else { return scenes };
            // A clock that is set forward makes timers end that were to end later, now.
            let at = at.max(last);
            last = at;
            let mut now = Vec::new();
            while let Some(entry) = entries.next_if(|entry| entry.at == at) {
                now.push(entry);
            }
            self.turn(at, &now, &mut scenes);
        }
    }

    /// One instant: what happens to each node, and what is done about it.
    fn turn(&mut self, at: i64, entries: &[&Entry], scenes: &mut Vec<Scene>) {
        let Ok(instant) = self.begin.checked_add(SignedDuration::from_secs(at)) else { return };
        for entry in entries {
            self.skew = self.skew.saturating_add(SignedDuration::from_secs(entry.clock.unwrap_or_default()));
        }
        let now = instant.checked_add(self.skew).unwrap_or(instant);
        for index in 0..self.players.len() {
            let Some(player) = self.players.get_mut(index) else { return };
            let name = player.node.node.metadata.name.clone().unwrap_or_default();
            let concerns = |entry: &&&Entry| entry.node.as_ref().is_none_or(|node| *node == name);
            let happened: Vec<String> =
                entries.iter().filter(concerns).flat_map(|entry| happen(player, entry, instant)).collect();
            let is_due = player.wake_up.is_some_and(|wake_up| wake_up <= now);
            if happened.is_empty() && !is_due {
                continue;
            }
            let (policy, role) = (self.policy.clone(), self.role);
            let mut scene = look(player, &policy, role, now);
            let wake_up = player.wake_up;
            (scene.at, scene.node, scene.happened) = (at, name, happened);
            scene.wake_up = wake_up.and_then(|wake_up| self.seconds(wake_up));
            scenes.push(scene);
        }
    }

    /// The first whole second of the timeline at which the evaluator's clock shows an instant, or later.
    fn seconds(&self, instant: Timestamp) -> Option<i64> {
        let time = instant.duration_since(self.begin.checked_add(self.skew).ok()?);
        Some(time.as_secs().saturating_add(i64::from(time.subsec_nanos() > 0)))
    }
}

/// Looks and writes until nothing is left to write.
fn look(player: &mut Player, policy: &Policy, role: Role, now: Timestamp) -> Scene {
    let mut scene = Scene {
        at: 0,
        node: String::new(),
        happened: Vec::new(),
        outputs: Vec::new(),
        schedulable: false,
        gates: Vec::new(),
        taints: Vec::new(),
        wake_up: None,
    };
    for _ in 0..ROUNDS {
        let instance = player.kubelet.to_string();
        let view = player.node.view().with_kubelet_instance(&instance);
        let step = step(policy, role, &view, now, std::mem::take(&mut player.state));
        let gates = step.verdict.gates.iter().map(|gate| (gate.condition_type.to_owned(), gate.decision));
        (scene.schedulable, scene.gates) = (step.verdict.schedulable, gates.collect());
        (player.state, player.wake_up) = (step.state, step.wake_up);
        let outputs = step.outputs;
        if outputs.is_empty() {
            break;
        }
        // Nobody else writes here, so nothing can be refused.
        let _ = apply(&mut player.node.node, &outputs, now);
        scene.outputs.extend(outputs);
    }
    let taints = player.node.view();
    scene.taints = taints.taints().iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect();
    scene
}

/// Changes the node, and says what was changed.
fn happen(player: &mut Player, entry: &Entry, instant: Timestamp) -> Vec<String> {
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
        happened.push(format!("gates are now: {}", names.join(", ")));
    }
    if let Some(clock) = entry.clock {
        happened.push(format!("the clock is set by {clock} s"));
    }
    let ready = entry.ready.clone().map(|said| Report {
        type_: READY.to_owned(),
        status: said.status,
        reason: said.reason,
        message: said.message,
    });
    for report in ready.iter().chain(&entry.report) {
        write(player, report, instant);
        happened.push(format!("{} is {} ({})", report.type_, report.status, report.reason));
    }
    if let Some(name) = &entry.delete {
        let conditions = player.node.node.status.get_or_insert_default().conditions.get_or_insert_default();
        conditions.retain(|condition| condition.type_ != *name);
        happened.push(format!("{name} is deleted"));
    }
    happened
}

fn write(player: &mut Player, report: &Report, instant: Timestamp) {
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
