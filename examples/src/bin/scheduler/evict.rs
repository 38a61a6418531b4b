//! The question `evict`: what taint rules would do to the pods of a cluster that is given as manifests.

use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use dra_alloc::pods::PodOptions;
use examples::eviction_preview::{NoRule, preview, read_rules, reserve_for_named_pods};
use examples::instant::instant;
use examples::manifest::Manifests;
use examples::output::{Format, OutputError, Trouble, put, say};
use k8s_openapi::jiff::Timestamp;

/// Kinds of objects that the question reads.
const USED: [&str; 5] = ["DeviceTaintRule", "Pod", "PodGroup", "ResourceClaim", "ResourceSlice"];

/// Rules, and the cluster in which they would be written.
#[derive(Args, Clone, Debug)]
pub(crate) struct EvictArgs {
    /// File with one or more `DeviceTaintRule`s
    #[arg(value_name = "RULE-FILE")]
    rules: String,
    /// Manifests of the cluster: its slices, claims, pods and other rules [default: the built-in cluster]
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Time that a rule without timeAdded gets when it is written, such as 2026-11-21T12:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = instant)]
    now: Option<Timestamp>,
}

/// Reason that there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EvictError {
    /// The file has no rule.
    #[error(transparent)]
    NoRule(#[from] NoRule),
    /// The answer was not printed.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Trouble for EvictError {}

/// Prints what each rule of a file would do, beside all rules of the cluster.
///
/// # Errors
/// See [`EvictError`].
pub(crate) fn run(
    args: &EvictArgs,
    built_in: (&str, &str),
    options: PodOptions,
    output: Format,
) -> Result<ExitCode, EvictError> {
    let rules = read_rules(&args.rules, options.scheduler().profile())?;
    let mut cluster = Manifests::of_arguments(&args.files, built_in, options.scheduler().profile());
    cluster.fill_pod_uids();
    reserve_for_named_pods(&mut cluster);
    cluster.problems.iter().chain(&cluster.notes).for_each(say);
    cluster.ignored_lines("scheduler evict", &USED).iter().for_each(say);
    let now = args.now.unwrap_or_else(|| Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH));
    let answer = preview(&rules.taint_rules, &cluster, options, now, output)?;
    put(&answer.text)?;
    if output == Format::Table {
        put(&cluster.mark())?;
    }
    let is_whole = rules.problems.is_empty() && cluster.problems.is_empty() && answer.refused == 0;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
