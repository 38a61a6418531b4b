//! Shows how many devices of each resource pool are left, from manifests.
//!
//! Tables go to stdout, with `-o json` or `-o yaml` the request objects with their status. What can't be read, and what
//! holds a shipped status back, goes to stderr.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use dra_attrs::profile::Profile;
use examples::gates::GateError;
use examples::manifest::Manifests;
use examples::pool_status::args::{Args, Output};
use examples::pool_status::print::tables;
use examples::pool_status::{Question, held_back};
use k8s_openapi::jiff::Timestamp;
use poolstatus::report::Report;
use serde_json::{Value, json};

/// The cluster that is built in.
const BUILT_IN: (&str, &str) = ("cluster.yaml", include_str!("../../data/pools/cluster.yaml"));

#[derive(Debug, thiserror::Error)]
enum PoolStatusError {
    #[error(transparent)]
    Gates(#[from] GateError),
    #[error(transparent)]
    Yaml(#[from] serde_saphyr::SerializeError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("stdout: {0}")]
    Write(io::Error),
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(code) => code,
        // The reader of the answers has gone; there is nobody to tell.
        Err(PoolStatusError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            say(&format_args!("pool-status: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<ExitCode, PoolStatusError> {
    let question = args.question()?;
    let manifests = read(args);
    report(&manifests);
    let reports = question.ask(&manifests, args.now.unwrap_or_else(now));
    print(&reports, &question, args)?;
    Ok(if manifests.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The time by the clock of this machine, to a second.
fn now() -> Timestamp {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(passed.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

fn read(args: &Args) -> Manifests {
    let mut manifests = Manifests::default();
    if args.files.is_empty() {
        manifests.read(BUILT_IN.0, BUILT_IN.1);
    }
    for file in &args.files {
        if file == "-" {
            manifests.read_from("stdin", io::stdin().lock());
        } else {
            manifests.read_path(Path::new(file));
        }
    }
    manifests
}

/// Says what was not read, or not as it may have been meant.
fn report(manifests: &Manifests) {
    manifests.problems.iter().for_each(say);
    manifests.notes.iter().for_each(say);
    for (kind, count) in &manifests.ignored {
        say(&format_args!("pool-status: ignored: {kind} ({count})"));
    }
    if manifests.slices.is_empty() {
        say(&"pool-status: no ResourceSlice among the manifests: there are no pools");
    }
}

fn print(reports: &[Report], question: &Question, args: &Args) -> Result<(), PoolStatusError> {
    if question.profile == Profile::V1_37 {
        for report in reports {
            let pools = held_back(report);
            if !pools.is_empty() {
                let pools = pools.join(", ");
                say(&format_args!("pool-status: {}: no status while pools are incomplete: {pools}", report.driver));
            }
        }
    }
    let objects = || reports.iter().map(|report| question.object(report)).collect::<Vec<Value>>();
    match args.output {
        Output::Json => put(&format!("{}\n", serde_json::to_string_pretty(&one_or_list(objects()))?)),
        Output::Yaml => put(&yaml(&objects())?),
        _ => put(&tables(reports, args.by, question.profile)),
    }
}

/// One object as it is, several as a list.
fn one_or_list(mut objects: Vec<Value>) -> Value {
    match (objects.pop(), objects.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            json!({"apiVersion": "v1", "kind": "List", "items": objects.into_iter().chain(last).collect::<Vec<_>>()})
        }
    }
}

fn yaml(objects: &[Value]) -> Result<String, serde_saphyr::SerializeError> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(object)?);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}

fn put(text: &str) -> Result<(), PoolStatusError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(PoolStatusError::Write)
}

/// Writes a line to stderr. A failure is passed over: there is no other place to report it.
fn say(line: &impl fmt::Display) {
    let _ = writeln!(anstream::stderr(), "{line}");
}
