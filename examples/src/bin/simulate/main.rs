//! Plays a day of a cluster: pods with claims come, get devices, wait, give up and go.
//!
//! Prints how many pods were placed and refused, and why, how long they waited, and the use of the devices as a chart; beside
//! it what would have been with other nodes, other rates or another order. `--svg` draws the same, `--events` tells each event.

mod args;
mod chart;
mod picture;
mod print;
mod seeds;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use args::{Args, Output};
use dra_alloc::GateSet;
use dra_alloc::pods::PodOptions;
use dra_attrs::{Component, GateError};
use examples::feature_gates::{DEVICE_GATES, feature_gates, say_uncounted};
use examples::manifest::read_text;
use examples::objective_file::{ObjectiveFileError, objective_of};
use examples::output::{OutputError, Trouble, as_json, program, put, say};
use examples::simulation::{Description, DescriptionError, Recorded, RecordedError, Simulation, Span, Statistics};
use examples::workload;
use indicatif::{ProgressBar, ProgressStyle};
use picture::{PictureError, picture, picture_of_seeds};
use print::{Scenario, report};
use seeds::report_of_seeds;

/// Kinds of objects that the program uses.
const USED: [&str; 5] = ["DeviceClass", "DeviceTaintRule", "Node", "ResourceClaim", "ResourceSlice"];

/// Day that is played if none is given.
const BUILT_IN: &str = include_str!("../../../data/simulations/small.yaml");

#[derive(Debug, thiserror::Error)]
enum SimulateError {
    #[error("--feature-gates: {0}")]
    Gates(#[from] GateError),
    #[error("{file}: {source}")]
    File { file: String, source: io::Error },
    #[error("{file}: {source}")]
    Description { file: String, source: DescriptionError },
    #[error("{name}: {source}")]
    Variant { name: String, source: DescriptionError },
    #[error(transparent)]
    Objective(#[from] ObjectiveFileError),
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    #[error(transparent)]
    Picture(#[from] PictureError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Trouble for SimulateError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Gates(_))
    }
}

fn main() -> ExitCode {
    program(run)
}

fn run(args: &Args) -> Result<ExitCode, SimulateError> {
    let gates = feature_gates(&args.feature_gates, args.rules.profile, &DEVICE_GATES)?;
    say_uncounted("simulate", gates);
    let description = description(args)?;
    let mut manifests = args.workloads.of_release(args.rules.profile);
    args.files.iter().for_each(|file| manifests.read_argument(file));
    manifests.problems.iter().chain(&manifests.notes).for_each(say);
    manifests.ignored_lines("simulate", &[&USED[..], &workload::KINDS[..]].concat()).iter().for_each(say);
    let made = workload::make(&mut manifests, PodOptions::new(Component::new(args.rules.profile, gates)));
    made.lines("simulate").iter().for_each(say);
    let recorded = Recorded::from_manifests(&manifests)?;
    if recorded.pods_without_claims > 0 {
        say(&format_args!("simulate: ignored: Pod ({}) without claims", recorded.pods_without_claims));
    }
    let days = args.seeds.unwrap_or(1);
    let play_day = |number| {
        let mut of_day = description.clone();
        of_day.seed = of_day.seed.wrapping_add(number);
        let mut scenarios = vec![play("as described", &of_day, &recorded, args, gates, args.events.as_deref())?];
        for (name, variant) in of_day.variants() {
            scenarios.push(play(name, &variant, &recorded, args, gates, None)?);
        }
        Ok(scenarios)
    };
    let days = (0..days).map(play_day).collect::<Result<Vec<Vec<Scenario>>, SimulateError>>()?;
    let first = days.first().map(Vec::as_slice).unwrap_or_default();
    match (args.output, args.seeds) {
        (Output::Table, None) => put(&(report(first) + &manifests.mark()))?,
        (Output::Table, Some(_)) => put(&(report_of_seeds(&days) + &manifests.mark()))?,
        (Output::Json, _) => put(&as_json(&days.concat())?)?,
    }
    if let Some(file) = &args.svg {
        let svg = if args.seeds.is_some() { picture_of_seeds(&days)? } else { picture(first)? };
        fs::write(file, svg).map_err(|source| SimulateError::File { file: file.clone(), source })?;
    }
    Ok(if manifests.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads the description, and changes it as the command line says.
fn description(args: &Args) -> Result<Description, SimulateError> {
    let (file, text) = match &args.day {
        None => ("small.yaml".to_owned(), BUILT_IN.to_owned()),
        Some(file) => {
            let text = read_text(Path::new(file));
            (file.clone(), text.map_err(|source| SimulateError::File { file: file.clone(), source })?)
        }
    };
    let read = Description::read(&text);
    let mut description = read.map_err(|source| SimulateError::Description { file, source })?;
    description.seed = args.seed.unwrap_or(description.seed);
    description.placing = args.placing.unwrap_or(description.placing);
    description.order = args.order.unwrap_or(description.order);
    description.preempt = args.preempt.unwrap_or(description.preempt);
    description.consolidate = args.consolidate.or(description.consolidate);
    if let Some(file) = &args.objective {
        description.objective = objective_of(file)?;
    }
    if let Some(percent) = args.rate {
        description.scale(percent);
    }
    Ok(description)
}

/// Plays a day, with a progress bar if stderr is a terminal. Each event is a line of JSON in the file `events`.
fn play(
    name: &str,
    description: &Description,
    recorded: &Recorded,
    args: &Args,
    gates: GateSet,
    events: Option<&str>,
) -> Result<Scenario, SimulateError> {
    let simulation = Simulation::new(description, recorded, args.rules.profile, gates)
        .map_err(|source| SimulateError::Variant { name: name.to_owned(), source })?;
    let failed = |source| SimulateError::File { file: events.unwrap_or_default().to_owned(), source };
    let mut log = events.map(File::create).transpose().map_err(failed)?.map(BufWriter::new);
    let mut written = Ok(());
    let bar = ProgressBar::new(simulation.duration()).with_message(name.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{msg:24!} {wide_bar} {percent:>3} % {eta:>4}") {
        bar.set_style(style);
    }
    let mut statistics = Statistics::new(&simulation);
    let end = simulation.run(|event| {
        bar.set_position(event.at);
        statistics.count(event);
        if let (Some(log), Ok(())) = (&mut log, &written) {
            written =
                serde_json::to_writer(&mut *log, event).map_err(io::Error::from).and_then(|()| log.write_all(b"\n"));
        }
    });
    bar.finish_and_clear();
    written.and_then(|()| log.map_or(Ok(()), |mut log| log.flush())).map_err(failed)?;
    let summary = statistics.finish(&end);
    let Description { seed, placing, order, preempt, .. } = *description;
    let consolidate = description.consolidate.map(Span::millis);
    let objective = (!description.objective.is_empty()).then(|| description.objective.to_string());
    Ok(Scenario { name: name.to_owned(), seed, placing, order, preempt, consolidate, objective, summary })
}
