//! Plays a scheduler with nominations (KEP-5278) over the nodes and pods of manifests and a timeline of events.
//!
//! Prints what happens at each instant, and at the end the metrics of the scheduler and what to look into.

use std::process::ExitCode;
use std::{fs, io};

use clap::Parser;
use dra_attrs::{Component, GateError, GateSet};
use examples::manifest::Manifests;
use examples::nominate::{PlayError, Player, Writers, read_timeline};
use examples::output::{OutputError, Trouble, program, put, say};
use examples::release_args::ReleaseArgs;
use nnn::{Behavior, NominationOptions};

/// Plays a scheduler with nominations over nodes and pods, and a timeline of events
///
/// Pods fit by their requests. A pod with the annotation example.com/slow-prebind: "true" has a plugin with work to
/// do before binding, and is bound when the timeline says prebound; others are bound at once.
#[derive(Clone, Debug, Parser)]
#[command(name = "nominate", version)]
struct Args {
    /// Manifests with nodes and pods: YAML or JSON files, directories, - for stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    /// Timeline of events, as YAML or JSON
    #[arg(long, value_name = "FILE")]
    timeline: String,
    /// Feature gates that differ from the defaults of the release, such as NominatedNodeNameForExpectation=false
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    feature_gates: String,
    /// Let a component change a nomination only if it made it (KEP-5278, Alternatives)
    #[arg(long)]
    owners: bool,
    /// Rules to follow.
    #[command(flatten)]
    rules: ReleaseArgs,
}

#[derive(Debug, thiserror::Error)]
enum NominateError {
    #[error("--feature-gates: {0}")]
    Gates(#[from] GateError),
    #[error("{file}: {error}")]
    File { file: String, error: io::Error },
    #[error("{file}: {reason}")]
    Timeline { file: String, reason: String },
    #[error(transparent)]
    Play(#[from] PlayError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Trouble for NominateError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Gates(_))
    }
}

fn main() -> ExitCode {
    program(run)
}

fn run(args: &Args) -> Result<ExitCode, NominateError> {
    let mut manifests = Manifests::of_release(args.rules.profile);
    args.files.iter().for_each(|file| manifests.read_argument(file));
    manifests.fill_pod_uids();
    manifests.problems.iter().chain(&manifests.notes).for_each(say);
    manifests.ignored_lines("nominate", &["Node", "Pod"]).iter().for_each(say);
    let file = || args.timeline.clone();
    let text = fs::read_to_string(&args.timeline).map_err(|error| NominateError::File { file: file(), error })?;
    let timeline = read_timeline(&text).map_err(|reason| NominateError::Timeline { file: file(), reason })?;
    let gates = GateSet::parse(&args.feature_gates, args.rules.profile)?;
    let options = NominationOptions::new(Component::new(args.rules.profile, gates), Behavior::Safe);
    let mut player = Player::new(&manifests, options, if args.owners { Writers::Owners } else { Writers::Any })?;
    let outcome = timeline.iter().try_for_each(|entry| player.play(entry));
    put(&player.finish())?;
    outcome?;
    Ok(if manifests.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
