//! Simulates nodes with readiness gates through a timeline, or watches a file. Without arguments it shows the walkthrough of
//! KEP-5233.
//!
//! ```text
//! node-agent                                        # the walkthrough, with timeouts, a reboot, an upgrade
//! node-agent nodes.yaml --timeline timeline.yaml    # your own
//! node-agent --watch-file nodes.yaml                # evaluates the file now, and again when it changes or a timer ends
//! node-agent --schema                               # the JSON Schema of a gate
//! node-agent --live                                 # evaluates the nodes of a cluster, and writes to them
//! ```

mod around;
mod clock;
mod controller;
mod events;
#[cfg(feature = "live")]
mod live;
#[cfg(not(feature = "live"))]
#[path = "no_live.rs"]
mod live;
mod network;
mod player;
mod print;
mod rules;
mod scene;
mod stage;
mod timeline;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use examples::cluster_args::{ClusterArgs, LeaseArgs, VitalsArgs};
use examples::instant::instant;
use examples::manifest::{Manifests, Problem, ReadinessManifests, read_text};
use examples::output::{LineForm, OutputError, Trouble, escaped, program, put, put_styled, say};
use k8s_openapi::jiff::Timestamp;
use readiness::rule::ExpandError;
use readiness::validate::{ValidationOptions, validate_gates, validate_requirements};
use readiness::{EvaluatorRole, GatedNode, GatedPod, NodeReadinessGate, NodeState, Policy, ReadinessCounters, step};

use around::{after, autoscaler_lines, expand_rules, register, snippets, what_if};
use clock::Clock;
use print::{node_verdict, scene, write_line};
use rules::RuleBook;
use stage::Stage;
use timeline::{Entry, TimelineError, read_timeline};

const NODES: &str = include_str!("../../../data/readiness/nodes.yaml");
const TIMELINE: &str = include_str!("../../../data/readiness/timeline.yaml");

/// Interval between two reads of a watched file.
const POLL: Duration = Duration::from_millis(200);

/// Simulates nodes with readiness gates through a timeline, watches a file of nodes, or works on a cluster
///
/// On a cluster, the gates of a node are those of its annotation dra-sdk.example.com/readiness-gates, a JSON list; without
/// it, those of the node in the manifests; without that, those of the kubelet configurations in the manifests. The role
/// kubelet works for one node, --node; the others for all nodes.
#[derive(Debug, Parser)]
#[command(name = "node-agent", version, mut_group("LeaseArgs", |lease| lease.requires("live")))]
pub(crate) struct Args {
    /// Manifests of nodes, kubelet configurations, pods, rules and status snippets: YAML or JSON files, directories, - for
    /// stdin; the walkthrough if there are none
    files: Vec<PathBuf>,
    /// Timeline of events: a YAML or JSON file
    #[arg(long, value_name = "FILE", requires = "files")]
    timeline: Option<PathBuf>,
    /// Evaluates the nodes of this file now, and again whenever the file changes or a timer ends
    #[arg(long, value_name = "FILE", conflicts_with_all = ["files", "timeline", "schema"])]
    watch_file: Option<PathBuf>,
    /// Policy: kep, hardened, or a YAML or JSON file with its fields
    #[arg(long, default_value = "kep")]
    policy: String,
    /// Component that evaluates: kubelet, the node lifecycle controller (nlc), or one in place of both
    #[arg(long, value_enum, default_value_t)]
    role: RoleArg,
    /// Start of the timeline
    #[arg(long, value_name = "TIME", default_value = "2026-01-01T00:00:00Z", value_parser = instant)]
    pub(crate) begin: Timestamp,
    /// Name of the node that a kubelet configuration registers, if the manifests have none; node of the role kubelet
    #[arg(long, value_name = "NAME", default_value = "node-1")]
    node: String,
    /// Timeout of gates that are made of rules, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub(crate) rule_timeout: i32,
    /// Prints what the gates of these nodes would change, instead of a timeline
    #[arg(long, value_name = "FILE", requires = "files")]
    what_if: Option<PathBuf>,
    /// Last second of the timeline; pods are asked about then [default: when no timer runs any more]
    #[arg(long, value_name = "SECONDS")]
    until: Option<i64>,
    /// Combines the network gates of each node into node.kubernetes.io/NetworkReady, which is True when they have been for
    /// so many seconds, and prints at the end which pods kubelet would start
    #[arg(long, value_name = "SECONDS")]
    network: Option<i64>,
    /// Prints at the end what an autoscaler sees
    #[arg(long)]
    autoscaler: bool,
    /// Prints the metrics at the end
    #[arg(long)]
    metrics: bool,
    /// Prints the JSON Schema of a gate
    #[arg(long)]
    schema: bool,
    #[command(flatten)]
    server: ClusterArgs,
    /// File of what is remembered of the nodes of a cluster
    #[arg(long, value_name = "FILE", default_value = "node_agent_state", requires = "live")]
    state: PathBuf,
    /// Form of the lines about a cluster
    #[arg(short, long, value_enum, default_value_t, requires = "live")]
    output: LineForm,
    #[command(flatten)]
    lease: LeaseArgs,
    #[command(flatten)]
    vitals: VitalsArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum RoleArg {
    #[default]
    Combined,
    Kubelet,
    Nlc,
}

#[cfg(feature = "live")]
impl RoleArg {
    const fn name(self) -> &'static str {
        match self {
            Self::Combined => "combined",
            Self::Kubelet => "kubelet",
            Self::Nlc => "nlc",
        }
    }
}

impl From<RoleArg> for EvaluatorRole {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Combined => Self::Combined,
            RoleArg::Kubelet => Self::Kubelet,
            RoleArg::Nlc => Self::Nlc,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    #[error("{0}")]
    Manifest(Box<Problem>),
    #[error("no Node in the manifests, and no KubeletConfiguration that would register one")]
    NoNode,
    #[error(transparent)]
    Timeline(#[from] TimelineError),
    #[error("{file}: {message}")]
    File { file: String, message: String },
    #[error(transparent)]
    Rule(#[from] ExpandError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Live(#[from] Box<live::LiveError>),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Trouble for AgentError {}

fn main() -> ExitCode {
    program(|args: &Args| run(args).map(|()| ExitCode::SUCCESS))
}

fn run(args: &Args) -> Result<(), AgentError> {
    if args.schema {
        let schema = serde_json::to_string_pretty(&schemars::schema_for!(NodeReadinessGate))?;
        return print(&schema);
    }
    let policy = policy(&args.policy)?;
    if let Some(file) = &args.watch_file {
        return watch(file, &policy, args.role.into());
    }
    if args.server.live {
        let manifests = read_all(&args.files)?;
        return Ok(live::run(args, policy, manifests).map_err(Box::new)?);
    }
    let mut objects =
        if args.files.is_empty() { accepted(manifests("nodes.yaml", NODES))? } else { read_all(&args.files)? };
    register(&mut objects, &args.node)?;
    expand_rules(&mut objects, args)?;
    let rules = RuleBook::new(&objects.rules, args.rule_timeout);
    rules.lines(&objects.nodes, args.begin).iter().try_for_each(|line| print(line))?;
    if objects.nodes.is_empty() {
        return Err(AgentError::NoNode);
    }
    for node in &objects.nodes {
        report_problems(node)?;
    }
    objects.pods.iter().try_for_each(report_requirements)?;
    if let Some(file) = &args.what_if {
        let proposed = read_all(std::slice::from_ref(file))?.nodes;
        return what_if(&objects.nodes, &proposed, &policy, args.begin).iter().try_for_each(|line| print(line));
    }
    let mut stage = Stage::new(std::mem::take(&mut objects.nodes), policy.clone(), args.role.into(), args.begin)
        .with_network(args.network);
    stage.follow(rules).iter().try_for_each(|line| print(line))?;
    let entries = entries(args, &objects)?;
    stage.check(&entries)?;
    for each in stage.play(&entries, args.until) {
        print_styled(scene(&each).trim_end())?;
    }
    stage.wait_until(args.until);
    for line in after(&stage, &objects, &policy) {
        print(&line)?;
    }
    if args.autoscaler {
        stage.nodes().flat_map(|(node, _)| autoscaler_lines(node)).try_for_each(|line| print(&line))?;
    }
    if args.metrics {
        let mut counters = ReadinessCounters::default();
        stage.nodes().for_each(|(_, state)| counters.add(&state.counters));
        counters.metrics().iter().try_for_each(|(name, value)| print(&format!("{name} {value}")))?;
    }
    Ok(())
}

/// Returns the timeline: that of the file, the walkthrough, or the status snippets of the manifests, ten seconds apart.
fn entries(args: &Args, objects: &ReadinessManifests) -> Result<Vec<Entry>, AgentError> {
    let (name, text) = match &args.timeline {
        Some(file) => (file.display().to_string(), read(file)?),
        None if args.files.is_empty() => ("timeline.yaml".to_owned(), TIMELINE.to_owned()),
        None if !objects.statuses.is_empty() => return snippets(&objects.statuses),
        // Nodes of one's own without a timeline are looked at once.
        None => (String::new(), "- {at: 0, clock: 0}".to_owned()),
    };
    read_timeline(&text).map_err(|message| AgentError::File { file: name, message })
}

/// Prints the errors and warnings of the API server about the gates of a node, and gates that look like those of Kubernetes.
fn report_problems(node: &GatedNode) -> Result<(), AgentError> {
    let report = validate_gates(&node.gates, &ValidationOptions::default());
    let errors = report.errors.iter().map(|error| format!("error: {error}"));
    let warnings = report.warnings.iter().map(|warning| format!("warning: {warning}"));
    let foreign = node.gates.iter().filter(|gate| gate.is_standard() && !gate.is_known());
    let foreign = foreign.map(|gate| &gate.condition_type);
    let foreign = foreign.map(|name| format!("warning: {name} is in a domain of Kubernetes, which does not define it"));
    for line in errors.chain(warnings).chain(foreign) {
        print(&format!("{}: {line}", name_of(node)))?;
    }
    Ok(())
}

/// Prints the errors of the API server about the requirements of a pod.
fn report_requirements(pod: &GatedPod) -> Result<(), AgentError> {
    let report = validate_requirements(&pod.requirements, &ValidationOptions::default());
    let name = pod.pod.metadata.name.as_deref().unwrap_or_default();
    report.errors.iter().try_for_each(|error| print(&format!("pod {name}: error: {error}")))
}

fn watch(file: &Path, policy: &Policy, role: EvaluatorRole) -> Result<(), AgentError> {
    let mut states: BTreeMap<String, NodeState> = BTreeMap::new();
    let mut last: Option<String> = None;
    let mut requeue_at: Option<Timestamp> = None;
    let mut clock = Clock::default();
    loop {
        let text = match read(file) {
            // It may be just being replaced.
            Err(_) if last.is_some() => {
                sleep(POLL);
                continue;
            }
            text => text?,
        };
        if let Some(shift) = clock.jump() {
            for state in states.values_mut() {
                state.shift_clock(shift);
            }
            requeue_at = requeue_at.and_then(|instant| instant.checked_add(shift).ok());
        }
        let now = clock.now();
        let is_changed = last.as_ref() != Some(&text);
        if is_changed || requeue_at.is_some_and(|instant| instant <= now) {
            requeue_at = None;
            match accepted(manifests(&file.display().to_string(), &text)) {
                Ok(ReadinessManifests { nodes, .. }) => {
                    print(&format!("{now}"))?;
                    for node in &nodes {
                        let state = states.remove(&name_of(node)).unwrap_or_default();
                        let step = step(policy, role, &node.view(), now, state);
                        for write in &step.writes {
                            print_styled(&format!("  {}: {}", escaped(&name_of(node)), write_line(write)))?;
                        }
                        print_styled(&format!("  {}: {}", escaped(&name_of(node)), node_verdict(&step.verdict)))?;
                        requeue_at = requeue_at.into_iter().chain(step.requeue_at).min();
                        states.insert(name_of(node), step.state);
                    }
                }
                // An editor may be half-way through.
                Err(error) => print(&error.to_string())?,
            }
            last = Some(text);
        }
        sleep(POLL);
    }
}

pub(crate) fn name_of(node: &GatedNode) -> String {
    node.node.metadata.name.clone().unwrap_or_default()
}

fn policy(text: &str) -> Result<Policy, AgentError> {
    match text {
        "kep" => Ok(Policy::kep()),
        "hardened" => Ok(Policy::hardened()),
        file => serde_saphyr::from_str(&read(Path::new(file))?)
            .map_err(|error| AgentError::File { file: file.to_owned(), message: error.to_string() }),
    }
}

/// Reads manifests, all of which must be readable.
fn read_all(files: &[PathBuf]) -> Result<ReadinessManifests, AgentError> {
    let mut manifests = Manifests::of_readiness();
    for file in files {
        manifests.read_argument(&file.display().to_string());
    }
    accepted(manifests)
}

fn manifests(file: &str, text: &str) -> Manifests {
    let mut manifests = Manifests::of_readiness();
    manifests.read(file, text);
    manifests
}

/// Prints what was not understood, and returns the objects if all could be read.
fn accepted(mut manifests: Manifests) -> Result<ReadinessManifests, AgentError> {
    manifests.notes.iter().for_each(say);
    manifests.ignored_lines("node-agent", &[]).iter().for_each(say);
    let mut problems = std::mem::take(&mut manifests.problems).into_iter();
    let Some(first) = problems.next() else { return Ok(std::mem::take(&mut manifests.readiness)) };
    problems.for_each(|problem| say(&problem));
    Err(AgentError::Manifest(Box::new(first)))
}

fn read(file: &Path) -> Result<String, AgentError> {
    read_text(file).map_err(|error| AgentError::File { file: file.display().to_string(), message: error.to_string() })
}

pub(crate) fn print(text: &str) -> Result<(), AgentError> {
    Ok(put(&format!("{text}\n"))?)
}

fn print_styled(text: &str) -> Result<(), AgentError> {
    Ok(put_styled(&format!("{text}\n"))?)
}
