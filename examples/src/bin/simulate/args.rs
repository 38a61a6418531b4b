//! Command line of `simulate`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum, value_parser};
use examples::release_args::ReleaseArgs;
use examples::simulation::{Order, Placing, Preempting, Span};
use examples::workload::WorkloadArgs;

/// Largest number of days that are compared.
const MOST_DAYS: u64 = 1_000;

/// Plays a day of a cluster: pods with claims come, get devices, wait, give up and go
///
/// Only devices count: requests for CPU and memory, taints and affinities of nodes do not. Recorded pods come as long after the
/// first one as their creation times say, or as the annotation example.com/arrives does ("5m"); example.com/stays is the time
/// from placing to end, example.com/patience the time after which a pod gives up waiting. The same input gives the same output,
/// byte for byte. Messages go to stderr.
#[derive(Clone, Debug, Parser)]
#[command(name = "simulate", version)]
pub(crate) struct Args {
    /// Description of the day, as YAML or JSON; - for stdin [default: a built-in day]
    #[arg(value_name = "DAY")]
    pub(crate) day: Option<String>,
    /// Manifests with nodes, slices, classes, and pods with their claims, or the workloads and templates that they are made
    /// of: files, directories
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<String>,
    #[command(flatten)]
    pub(crate) workloads: WorkloadArgs,
    /// Number from which arrivals and stays are drawn, instead of that of the description
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Play as many days, with this number and those that follow, and compare the pods that are placed
    #[arg(long, value_name = "DAYS", value_parser = value_parser!(u64).range(1..=MOST_DAYS), conflicts_with = "events")]
    pub(crate) seeds: Option<u64>,
    /// Rates of pods, in percent of those of the description
    #[arg(long, value_name = "PERCENT")]
    pub(crate) rate: Option<u32>,
    /// File with the rule by which devices are chosen, levels of terms as JSON, instead of that of the description
    #[arg(long, value_name = "FILE")]
    pub(crate) objective: Option<PathBuf>,
    /// Order in which nodes are tried, instead of that of the description
    #[arg(long, value_enum)]
    pub(crate) placing: Option<Placing>,
    /// Order in which waiting pods are tried, instead of that of the description
    #[arg(long, value_enum)]
    pub(crate) order: Option<Order>,
    /// Rule by which pods give up their devices for pods of higher priority, instead of that of the description
    #[arg(long, value_enum)]
    pub(crate) preempt: Option<Preempting>,
    /// Time between two plans that empty nodes by moving pods, such as "30m", instead of that of the description
    #[arg(long, value_name = "TIME")]
    pub(crate) consolidate: Option<Span>,
    /// File for a picture of the day, as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<String>,
    /// File for the events of the day as described, as lines of JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<String>,
    /// Feature gates that differ from the defaults of the release, such as DRAListTypeAttributes=true
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    pub(crate) feature_gates: String,
    /// Rules to follow.
    #[command(flatten)]
    pub(crate) rules: ReleaseArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Tables and charts
    Table,
    /// A list of scenarios, the first one as described, with times in milliseconds
    Json,
}
