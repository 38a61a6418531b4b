//! Shows how many devices of each resource pool are left, from manifests.
//!
//! Tables go to stdout, with `-o json` or `-o yaml` the request objects with their status. What can't be read, and what
//! holds a shipped status back, goes to stderr.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use dra_attrs::profile::Profile;
use examples::gates::GateError;
use examples::manifest::Manifests;
use examples::output::{OutputError, as_json, as_yaml, finish, put, say};
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
    Output(#[from] OutputError),
}

fn main() -> ExitCode {
    finish("pool-status", run(&Args::parse()))
}

fn run(args: &Args) -> Result<ExitCode, PoolStatusError> {
    let question = args.question()?;
    let manifests = Manifests::of_arguments(&args.files, BUILT_IN);
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
    let text = match args.output {
        Output::Json => as_json(&one_or_list(objects()))?,
        Output::Yaml => as_yaml(&objects())?,
        _ => tables(reports, args.by, question.profile),
    };
    Ok(put(&text)?)
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
