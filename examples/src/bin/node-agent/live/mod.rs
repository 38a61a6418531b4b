//! The program on a cluster: each node that has changed, or whose timer has ended, is evaluated by `readiness::step`, and the
//! writes that the role makes are sent.
//!
//! States are on disk before a write is sent: after a crash, the next run goes on with the same timers, and
//! removes what it has added.

mod counts;
mod gates;
mod line;
mod memory;
mod timers;

use examples::live::cluster::connect;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dra_live::connect::Cluster;
use dra_live::events::Events;
use dra_live::failure::{LiveError as ClusterError, text};
use dra_live::lease::work_alone;
use dra_live::node_calls::carry_out;
use dra_live::vitals::Vitals;
use dra_live::watching::{Change, Watches};
use examples::manifest::ReadinessManifests;
use examples::output::{LineForm, OutputError, put_line, say};
use futures_util::StreamExt;
use futures_util::stream;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::runtime::watcher::{Config, Event};
use readiness::{EvaluatorRole, GatedNodeView, NodeState, NodeWrite, Policy, step};

use super::clock::Clock;
use super::{Args, RoleArg};
use counts::Counts;
use gates::Gates;
use line::Line;
use memory::{Memory, MemoryError, Remembered};
use timers::Timers;

/// Longest time between two looks at the clock.
const LOOK: Duration = Duration::from_millis(500);

/// Time in which changes are gathered before nodes are evaluated.
const GATHERING: Duration = Duration::from_millis(20);

/// Time after which a node is evaluated again whose writes have failed.
const AGAIN: SignedDuration = SignedDuration::from_secs(2);

/// Largest number of nodes that are written to at a time.
const MOST_AT_ONCE: usize = 16;

/// Reason that the program ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LiveError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Evaluator of the nodes of a cluster.
struct Evaluator<'a> {
    cluster: &'a Cluster,
    policy: Policy,
    role: EvaluatorRole,
    form: LineForm,
    gates: Gates,
    clock: Clock,
    memory: Memory,
    events: Events,
    counts: Counts,
    /// Nodes as the watch shows them, by name.
    nodes: BTreeMap<String, Node>,
    /// Nodes of a list that is being read.
    listing: Vec<Node>,
    is_listed: bool,
    states: BTreeMap<String, NodeState>,
    /// Nodes whose state on disk is an older one.
    unkept: BTreeSet<String>,
    /// Nodes that have changed since they were evaluated.
    changed: BTreeSet<String>,
    timers: Timers,
    /// Last line about each node.
    told: BTreeMap<String, String>,
}

/// Writes to make on a node, as the step has seen it.
struct Work {
    node: Node,
    writes: Vec<NodeWrite>,
}

/// Works on a cluster until it is told to stop. Taints and labels stay, for the run that follows.
///
/// # Errors
/// The cluster can't be reached, another copy works now, or what is remembered can't be stored.
pub(crate) fn run(args: &Args, policy: Policy, manifests: ReadinessManifests) -> Result<(), LiveError> {
    let Remembered { memory, nodes: states, clock: anchor } = Memory::open(args.state.clone())?;
    let mut clock = Clock::default();
    match anchor {
        Some(anchor) => clock.set_anchor(anchor),
        // Another boot has another clock.
        None => memory.keep_all(&states, clock.anchor())?,
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ClusterError::Runtime)?;
    runtime.block_on(async {
        let cluster = connect(env!("CARGO_BIN_NAME"), &args.server).await?;
        let vitals = Vitals::default();
        vitals.serve(args.vitals.metrics_address).await?;
        let mut evaluator = Evaluator {
            cluster: &cluster,
            policy,
            role: args.role.into(),
            form: args.output,
            gates: Gates::new(manifests),
            clock,
            memory,
            events: Events::new("dra-sdk-node-agent"),
            counts: Counts::new(&vitals.metrics),
            nodes: BTreeMap::new(),
            listing: Vec::new(),
            is_listed: false,
            states,
            unkept: BTreeSet::new(),
            changed: BTreeSet::new(),
            timers: Timers::default(),
            told: BTreeMap::new(),
        };
        let evaluate = async || {
            evaluator.tell(&Line::Evaluates { role: args.role.name(), server: &cluster.url })?;
            evaluator.work(args, &vitals).await
        };
        work_alone(&cluster, &args.lease.terms(), &lease_name(args), evaluate).await
    })
}

/// Returns the name of the lease: one of each role works, and one kubelet of each node.
fn lease_name(args: &Args) -> String {
    match args.role {
        RoleArg::Kubelet => format!("dra-sdk-node-agent-kubelet-{}", args.node),
        role => format!("dra-sdk-node-agent-{}", role.name()),
    }
}

impl Evaluator<'_> {
    async fn work(&mut self, args: &Args, vitals: &Vitals) -> Result<(), LiveError> {
        // After a time without the lease everything is seen anew.
        self.is_listed = false;
        let mut watches = Watches::default();
        let nodes = match args.role {
            RoleArg::Kubelet => Config::default().fields(&format!("metadata.name={}", args.node)),
            _ => Config::default(),
        };
        watches.add("nodes", &self.cluster.client, nodes, Change::Node);
        loop {
            vitals.round();
            if let Ok(Some(change)) = tokio::time::timeout(LOOK, watches.next()).await {
                self.apply(change)?;
                // Changes that come together are one evaluation.
                tokio::time::sleep(GATHERING).await;
            }
            while let Some(change) = watches.next_waiting() {
                self.apply(change)?;
            }
            if self.is_listed {
                self.evaluate_due().await?;
            }
        }
    }

    fn apply(&mut self, change: Change) -> Result<(), LiveError> {
        match change {
            Change::Node(Event::Init) => self.listing.clear(),
            Change::Node(Event::InitApply(node)) => self.listing.push(node),
            Change::Node(Event::InitDone) => {
                let listed = std::mem::take(&mut self.listing).into_iter();
                self.nodes = listed.map(|node| (name_of(&node), node)).collect();
                // What is remembered of a node that is gone is of no use to its successor.
                self.changed = self.nodes.keys().chain(self.states.keys()).cloned().collect();
                self.is_listed = true;
            }
            Change::Node(Event::Apply(node)) => {
                self.changed.insert(name_of(&node));
                self.nodes.insert(name_of(&node), node);
            }
            Change::Node(Event::Delete(node)) => {
                self.changed.insert(name_of(&node));
                self.nodes.remove(&name_of(&node));
            }
            Change::Failed(error) => return Err(error.into()),
            _ => {}
        }
        Ok(())
    }

    /// Evaluates the nodes that have changed, or whose time has come, stores what is to be remembered, and sends the writes.
    async fn evaluate_due(&mut self) -> Result<(), LiveError> {
        if let Some(shift) = self.clock.jump() {
            say(&format_args!("node-agent: the clock was set by {} s: timers go on as before", shift.as_secs()));
            self.states.values_mut().for_each(|state| state.shift_clock(shift));
            self.changed.extend(self.nodes.keys().cloned());
            self.memory.keep_all(&self.states, self.clock.anchor())?;
            self.counts.stored(self.states.len());
        }
        let now = self.clock.now();
        let mut names = std::mem::take(&mut self.changed);
        names.extend(self.timers.take_ended(now));
        if names.is_empty() {
            return Ok(());
        }
        let mut works = Vec::new();
        for name in names {
            works.extend(self.evaluate(&name, now)?);
        }
        if !self.unkept.is_empty() {
            self.memory.keep(&self.unkept, &self.states, self.clock.anchor())?;
            self.counts.stored(self.unkept.len());
            self.unkept.clear();
        }
        let (client, events) = (&self.cluster.client, &self.events);
        let sent = stream::iter(works).map(async |Work { node, writes }| {
            let outcome = carry_out(client, events, &node, &writes).await;
            (name_of(&node), outcome)
        });
        let outcomes: Vec<_> = sent.buffer_unordered(MOST_AT_ONCE).collect().await;
        for (name, outcome) in outcomes {
            let is_made = outcome.unwrap_or_else(|error| {
                say(&format_args!("node-agent: {name}: not written, and tried again: {}", text(&error)));
                false
            });
            if !is_made {
                self.timers.set(&name, now.checked_add(AGAIN).unwrap_or(now));
            }
        }
        Ok(())
    }

    /// Evaluates a node. Returns what is to be written.
    fn evaluate(&mut self, name: &str, now: Timestamp) -> Result<Option<Work>, LiveError> {
        self.timers.clear(name);
        let Some(node) = self.nodes.get(name) else {
            self.unkept.extend(self.states.remove_entry(name).map(|(name, _)| name));
            self.told.remove(name);
            return Ok(None);
        };
        let state = self.states.remove(name).unwrap_or_default();
        let before = state.clone();
        let gates = self.gates.of(node);
        let is_known = gates.is_ok();
        let gates = gates.unwrap_or_else(|reason| {
            say(&format_args!("node-agent: {name}: {reason}; it is not opened"));
            Vec::new()
        });
        let view = GatedNodeView::new(node, &gates);
        // Gates that can't be read are not gone.
        let view = if is_known { view } else { view.with_unsynced_cache() };
        let step = step(&self.policy, self.role, &view, now, state);
        if step.state != before {
            self.unkept.insert(name.to_owned());
        }
        self.counts.evaluated(&before.counters, &step.state.counters);
        for write in &step.writes {
            put_line(self.form, &Line::Writes { node: name, write })?;
        }
        let verdict = Line::verdict(name, &step.verdict);
        if self.told.get(name) != Some(&verdict.to_string()) {
            put_line(self.form, &verdict)?;
            self.told.insert(name.to_owned(), verdict.to_string());
        }
        self.states.insert(name.to_owned(), step.state);
        if let Some(at) = step.requeue_at {
            self.timers.set(name, at);
        }
        Ok((!step.writes.is_empty()).then(|| Work { node: node.clone(), writes: step.writes }))
    }

    fn tell(&self, line: &Line<'_>) -> Result<(), OutputError> {
        put_line(self.form, line)
    }
}

fn name_of(node: &Node) -> String {
    node.metadata.name.clone().unwrap_or_default()
}
