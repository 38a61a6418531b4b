//! Simulated cluster of nodes: its clock, and the run of a timeline through it.

use std::collections::BTreeSet;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use readiness::{EvaluatorRole, GatedNode, GatedPod, NodeState, Policy};

use super::events::apply_events;
use super::name_of;
use super::network::NetworkWatch;
use super::player::{Player, report_network, settle};
use super::rules::{OnNode, RuleBook};
use super::scene::Scene;
use super::timeline::{Entry, TimelineError};

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
