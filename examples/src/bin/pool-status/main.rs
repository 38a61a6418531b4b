//! Shows how many devices of each resource pool are left, from manifests.
//!
//! Prints tables to stdout, or with `-o json` or `-o yaml` the request objects with their status. Manifests that can't be
//! read, and pools with missing slices, are reported on stderr. With `--live` it works on a cluster: it prints its tables, keeps
//! them, or is the controller that answers requests.

mod args;
#[cfg(feature = "live")]
mod live;
#[cfg(not(feature = "live"))]
#[path = "no_live.rs"]
mod live;
mod office;

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use dra_alloc::InventoryError;
use dra_attrs::GateError;
use dra_attrs::PoolStatusForm;
use examples::eviction_preview::refused_rules;
use examples::held_twice::{HeldTwice, lines};
use examples::manifest::Manifests;
use examples::output::{Format, OutputError, Trouble, as_json, as_yaml, program, put, say};
use examples::pool_question::{PoolAnswer, Question, RefusedDriver, incomplete_pools};
use examples::pool_table::tables;
use k8s_openapi::jiff::Timestamp;
use poolstatus::StatusRequest;
use serde_json::{Value, json};

use args::Args;
use office::{Answer, Office};

/// File name and text of the built-in cluster.
const BUILT_IN: (&str, &str) = ("cluster.yaml", include_str!("../../../data/pools/cluster.yaml"));

/// Kinds of objects that the program uses.
const USED: [&str; 5] =
    ["ClusterRole", "DeviceTaintRule", "ResourceClaim", "ResourcePoolStatusRequest", "ResourceSlice"];

#[derive(Debug, thiserror::Error)]
pub(crate) enum PoolStatusError {
    #[error("--as-role {name}: no such ClusterRole in the manifests")]
    NoRole { name: String },
    #[error(transparent)]
    Index(#[from] InventoryError),
    #[error("--feature-gates: {0}")]
    Gates(#[from] GateError),
    #[error(transparent)]
    Driver(#[from] RefusedDriver),
    #[error(transparent)]
    Live(#[from] live::LiveError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Trouble for PoolStatusError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Gates(_) | Self::Driver(_))
    }
}

fn main() -> ExitCode {
    program(run)
}

fn run(args: &Args) -> Result<ExitCode, PoolStatusError> {
    if args.role {
        put(&as_yaml(&[json!(StatusRequest::reader_role())])?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let question = args.question()?;
    if args.server.live {
        question.check_drivers()?;
        return Ok(live::run(args, &question).map(|()| ExitCode::SUCCESS)?);
    }
    let manifests = Manifests::of_arguments(&args.files, BUILT_IN, args.rules.profile);
    report_manifests(&manifests);
    for driver in
        question.drivers.iter().filter(|driver| manifests.slices.iter().all(|slice| slice.spec.driver != **driver))
    {
        say(&format_args!("pool-status: no ResourceSlice of driver {driver} among the manifests"));
    }
    let now = args.now.unwrap_or_else(now);
    if !manifests.requests.is_empty() {
        let accepted = put_answers(&manifests, &question, args, now)?;
        let read = manifests.problems.is_empty();
        return Ok(if accepted && read { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    question.check_drivers()?;
    let answer = question.ask(&manifests, now);
    note(&answer, &question, args);
    put(&text(&answer, &question, args)?)?;
    if args.output.is_none_or(|format| format == Format::Table) {
        put(&manifests.mark())?;
    }
    Ok(if manifests.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the time of this machine's clock, in whole seconds.
fn now() -> Timestamp {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(passed.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// Prints the problems and notes of the manifests to stderr.
fn report_manifests(manifests: &Manifests) {
    manifests.problems.iter().for_each(say);
    manifests.notes.iter().for_each(say);
    refused_rules(&manifests.taint_rules).iter().for_each(say);
    manifests.ignored_lines("pool-status", &USED).iter().for_each(say);
    if manifests.slices.is_empty() {
        say(&"pool-status: no ResourceSlice among the manifests: there are no pools");
    }
}

/// Answers the requests of the manifests and prints them with their status. Returns false if one is refused.
fn put_answers(
    manifests: &Manifests,
    question: &Question,
    args: &Args,
    now: Timestamp,
) -> Result<bool, PoolStatusError> {
    let mut office = Office::new(manifests, question, args, now)?;
    let answers: Vec<Answer> = manifests.requests.iter().map(|request| office.answer(request)).collect();
    let objects: Vec<Value> = answers.iter().filter_map(|answer| answer.object.clone()).collect();
    let text = match args.output {
        Some(Format::Json) => as_json(&one_or_list(objects))?,
        Some(Format::Table) => answers.iter().filter_map(|answer| answer.table(args)).collect(),
        Some(Format::Yaml) | None => as_yaml(&objects)?,
    };
    put(&text)?;
    answers.iter().flat_map(|answer| answer.lines.iter().chain(&answer.notes)).for_each(say);
    say_held_twice(&question.held_twice(&manifests.claims));
    office.objective().iter().for_each(say);
    Ok(answers.iter().all(|answer| !answer.is_refused))
}

/// Says which pools have no counts yet, and which devices several claims hold if the output has no place for it: a request
/// names no claims.
fn note(answer: &PoolAnswer, question: &Question, args: &Args) {
    if matches!(args.output, Some(Format::Json | Format::Yaml)) {
        say_held_twice(&answer.held_twice);
    }
    let reports = match question.profile.pool_status_form() {
        PoolStatusForm::V1alpha3 => answer.reports.as_slice(),
        // Pools have counts whatever slices they lack.
        PoolStatusForm::Kep => &[],
    };
    for report in reports {
        let pools = incomplete_pools(report);
        if !pools.is_empty() {
            let pools = pools.join(", ");
            say(&format_args!("pool-status: {}: no status while pools are incomplete: {pools}", report.driver));
        }
    }
}

fn say_held_twice(held: &[HeldTwice]) {
    for line in lines(held) {
        say(&format_args!("pool-status: {line}"));
    }
}

/// Returns the answer in the format of the flags.
fn text(answer: &PoolAnswer, question: &Question, args: &Args) -> Result<String, OutputError> {
    let objects = || answer.reports.iter().map(|report| question.object(report)).collect::<Vec<Value>>();
    Ok(match args.output {
        Some(Format::Json) => as_json(&one_or_list(objects()))?,
        Some(Format::Yaml) => as_yaml(&objects())?,
        Some(Format::Table) | None => tables(&answer.reports, &answer.held_twice, args.by, question.profile),
    })
}

/// Returns a single object as it is, and several objects as a `List`.
fn one_or_list(mut objects: Vec<Value>) -> Value {
    match (objects.pop(), objects.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            json!({"apiVersion": "v1", "kind": "List", "items": objects.into_iter().chain(last).collect::<Vec<_>>()})
        }
    }
}
