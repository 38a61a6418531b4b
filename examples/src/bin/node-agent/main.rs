//! Simulates nodes with readiness gates through a timeline, or watches a file. Without arguments it shows the walkthrough of
//! KEP-5233.
//!
//! ```text
//! node-agent                                        # the walkthrough, with timeouts, a reboot, an upgrade
//! node-agent nodes.yaml --timeline timeline.yaml    # your own
//! node-agent --watch-file nodes.yaml                # evaluates the file now, and again when it changes or a timer ends
//! node-agent --schema                               # the JSON Schema of a gate
//! ```

mod nodes;
mod player;
mod print;
mod timeline;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::{Parser, ValueEnum};
use examples::instant::instant;
use examples::manifest::manifest_files;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use readiness::validate::{ValidationOptions, validate_gates};
use readiness::{ClockReading, EvaluatorRole, GatedNode, NodeReadinessGate, NodeState, Policy, step};

use nodes::{NodesError, read_nodes};
use player::Stage;
use print::{node_verdict, scene, write_line};
use timeline::read_timeline;

const NODES: &str = include_str!("../../../data/readiness/nodes.yaml");
const TIMELINE: &str = include_str!("../../../data/readiness/timeline.yaml");

/// Interval between two reads of a watched file.
const POLL: Duration = Duration::from_millis(200);

/// Smallest change of the clock that counts as a jump.
const JUMP: SignedDuration = SignedDuration::from_secs(2);

/// Simulates nodes with readiness gates through a timeline, or watches a file of nodes
#[derive(Debug, Parser)]
#[command(name = "node-agent")]
struct Args {
    /// Manifests of nodes: YAML or JSON files, directories, - for stdin; the walkthrough if there are none
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
    begin: Timestamp,
    /// Prints the JSON Schema of a gate
    #[arg(long)]
    schema: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum RoleArg {
    #[default]
    Combined,
    Kubelet,
    Nlc,
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
enum AgentError {
    #[error("{file}: {error}")]
    Nodes { file: String, error: NodesError },
    #[error("{file}: {message}")]
    File { file: String, message: String },
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("stdout: {0}")]
    Write(#[from] io::Error),
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(AgentError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "node-agent: {error}");
            ExitCode::FAILURE
        }
    }
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
    let nodes = if args.files.is_empty() { nodes("nodes.yaml", NODES)? } else { read_all(&args.files)? };
    for node in &nodes {
        report_problems(node)?;
    }
    let text = match &args.timeline {
        Some(file) => read(file)?,
        None => TIMELINE.to_owned(),
    };
    let name = args.timeline.as_ref().map_or_else(|| "timeline.yaml".to_owned(), |file| file.display().to_string());
    // Nodes of one's own without a timeline are looked at once.
    let text = if args.timeline.is_none() && !args.files.is_empty() { "- {at: 0, clock: 0}".to_owned() } else { text };
    let timeline = read_timeline(&text).map_err(|message| AgentError::File { file: name, message })?;
    for each in Stage::new(nodes, policy, args.role.into(), args.begin).play(&timeline) {
        print(scene(&each).trim_end())?;
    }
    Ok(())
}

/// Prints the errors and warnings of the API server about the gates of a node.
fn report_problems(node: &GatedNode) -> Result<(), AgentError> {
    let report = validate_gates(&node.gates, &ValidationOptions::default());
    let errors = report.errors.iter().map(|error| format!("error: {error}"));
    let warnings = report.warnings.iter().map(|warning| format!("warning: {warning}"));
    for line in errors.chain(warnings) {
        print(&format!("{}: {line}", name_of(node)))?;
    }
    Ok(())
}

fn watch(file: &Path, policy: &Policy, role: EvaluatorRole) -> Result<(), AgentError> {
    let mut states: BTreeMap<String, NodeState> = BTreeMap::new();
    let mut last: Option<String> = None;
    let mut requeue_at: Option<Timestamp> = None;
    let begin = Instant::now();
    let mut clock = read_clock(begin);
    loop {
        let text = match read(file) {
            // It may be just being replaced.
            Err(_) if last.is_some() => {
                sleep(POLL);
                continue;
            }
            text => text?,
        };
        let reading = read_clock(begin);
        let shift = reading.shift_since(clock);
        if shift.abs() >= JUMP {
            clock = reading;
            for state in states.values_mut() {
                state.shift_clock(shift);
            }
            requeue_at = requeue_at.and_then(|instant| instant.checked_add(shift).ok());
        }
        let now = reading.wall;
        let is_changed = last.as_ref() != Some(&text);
        if is_changed || requeue_at.is_some_and(|instant| instant <= now) {
            requeue_at = None;
            match nodes(&file.display().to_string(), &text) {
                Ok(nodes) => {
                    print(&format!("{now}"))?;
                    for node in &nodes {
                        let state = states.remove(&name_of(node)).unwrap_or_default();
                        let step = step(policy, role, &node.view(), now, state);
                        for write in &step.writes {
                            print(&format!("  {}: {}", name_of(node), write_line(write)))?;
                        }
                        print(&format!("  {}: {}", name_of(node), node_verdict(&step.verdict)))?;
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

/// Reads both clocks. `begin` is any instant, the same for all readings.
fn read_clock(begin: Instant) -> ClockReading {
    ClockReading { wall: now(), monotonic: SignedDuration::try_from(begin.elapsed()).unwrap_or(SignedDuration::MAX) }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs())
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        .unwrap_or(Timestamp::MAX)
}

fn name_of(node: &GatedNode) -> String {
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

fn read_all(files: &[PathBuf]) -> Result<Vec<GatedNode>, AgentError> {
    let mut all = Vec::new();
    for argument in files {
        for file in manifest_files(argument).map_err(|error| unread(argument, &error))? {
            all.extend(nodes(&file.display().to_string(), &read(&file)?)?);
        }
    }
    Ok(all)
}

fn nodes(file: &str, text: &str) -> Result<Vec<GatedNode>, AgentError> {
    read_nodes(text).map_err(|error| AgentError::Nodes { file: file.to_owned(), error })
}

fn read(file: &Path) -> Result<String, AgentError> {
    let text = if file == Path::new("-") { io::read_to_string(io::stdin()) } else { fs::read_to_string(file) };
    text.map_err(|error| unread(file, &error))
}

fn unread(file: &Path, error: &io::Error) -> AgentError {
    AgentError::File { file: file.display().to_string(), message: error.to_string() }
}

fn print(text: &str) -> Result<(), AgentError> {
    let mut stdout = anstream::stdout().lock();
    writeln!(stdout, "{text}")?;
    Ok(stdout.flush()?)
}
