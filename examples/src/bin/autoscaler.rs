//! Looks at a cluster as an autoscaler should: which nodes are in use, which are promised to pods that are not bound yet,
//! which could be removed, and why not.
//!
//! ```text
//! kubectl get nodes,pods,resourceclaims,resourceslices -A -o json | autoscaler -
//! ```

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use examples::instant::instant;
use examples::manifest::Manifests;
use examples::output::{OutputError, as_json, finish, put, say};
use k8s_openapi::jiff::Timestamp;
use nnn::view::{ClusterView, Holder, Inputs, Mode, NodeView, Presence, Settings, ViewError};
use serde_json::{Value, json};

const CLUSTER: &str = include_str!("../../data/autoscaler/cluster.yaml");

/// Tells which nodes of a cluster are in use, reserved or removable, and why
///
/// What can't be read goes to stderr, with exit status 1.
#[derive(Debug, Parser)]
#[command(name = "autoscaler")]
struct Args {
    /// Manifests with nodes and pods: YAML or JSON files, directories of them, - for stdin; a built-in cluster if there
    /// are none
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Whether a promise keeps a node, or counts as use alone
    #[arg(long, value_enum, default_value_t = Caution::Strict)]
    mode: Caution,
    /// The utilisation in percent from which on a node stays
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100))]
    threshold: u32,
    /// A node that is being created
    #[arg(long = "upcoming", value_name = "NAME")]
    upcoming: Vec<String>,
    /// The present time, which tells pods that have been terminating for too long; without it no pod has
    #[arg(long, value_name = "TIME", value_parser = instant)]
    now: Option<Timestamp>,
    /// What to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Caution {
    /// A node that a pod is expected on stays
    Strict,
    /// As cluster-autoscaler: a pod that is expected counts like one that is there
    Lenient,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table, and below it the pods that need a node
    Table,
    /// An object with nodes and pods
    Json,
}

#[derive(Debug, thiserror::Error)]
enum AutoscalerError {
    #[error(transparent)]
    View(#[from] ViewError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

fn main() -> ExitCode {
    finish("autoscaler", run(&Args::parse()))
}

fn run(args: &Args) -> Result<ExitCode, AutoscalerError> {
    let manifests = Manifests::of_arguments(&args.files, ("cluster.yaml", CLUSTER));
    manifests.problems.iter().chain(&manifests.notes).for_each(say);
    for (kind, count) in &manifests.ignored {
        say(&format_args!("autoscaler: ignored: {kind} ({count})"));
    }
    let mut settings = Settings::default();
    settings.threshold_permille = args.threshold.saturating_mul(10);
    settings.upcoming = args.upcoming.iter().cloned().collect::<BTreeSet<_>>();
    let inputs = Inputs::new(&manifests.nodes, &manifests.pods).devices(&manifests.slices, &manifests.claims);
    let view = ClusterView::new(args.now.map_or(inputs, |now| inputs.at(now)), &settings)?;
    let mode = match args.mode {
        Caution::Strict => Mode::Strict,
        Caution::Lenient => Mode::Lenient,
    };
    let text = match args.output {
        Output::Table => table(&view, mode) + "\n",
        Output::Json => as_json(&object(&view, mode))?,
    };
    put(&text)?;
    Ok(if manifests.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a node is, in a word or two.
fn verdict(node: &NodeView, mode: Mode) -> &'static str {
    let is_promised = node.held_by(Holder::Nominated).next().is_some();
    match node.presence {
        Presence::Upcoming => "being created",
        Presence::Present if node.removable(mode).is_removable() => "removable",
        Presence::Present if is_promised => "reserved",
        Presence::Present => "in use",
        _ => "not there",
    }
}

fn names(node: &NodeView, holder: Holder) -> Vec<String> {
    node.held_by(holder).map(|pod| pod.pod.to_string()).collect()
}

fn table(view: &ClusterView, mode: Mode) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header(["NODE", "IS", "USED", "CPU", "BOUND", "EXPECTED", "WHY"]);
    for node in view.nodes() {
        let removable = node.removable(mode);
        let why = removable.reasons.iter().map(ToString::to_string);
        let noticed = node.findings.iter().map(ToString::to_string);
        let mut lines: Vec<String> = why.chain(noticed).collect();
        lines.dedup();
        let (cpu, percent) = match node.presence {
            Presence::Present => (
                format!("{} of {}", node.committed().of("cpu"), node.allocatable.of("cpu")),
                format!("{}%", node.utilisation_permille() / 10),
            ),
            _ => (node.committed().of("cpu").to_string(), "-".to_owned()),
        };
        table.add_row([
            node.name.clone(),
            verdict(node, mode).to_owned(),
            percent,
            cpu,
            names(node, Holder::Bound).join("\n"),
            names(node, Holder::Nominated).join("\n"),
            lines.join("\n"),
        ]);
    }
    let needed: Vec<String> = view.need_nodes().map(|pod| format!("needs a node: {pod}")).collect();
    std::iter::once(table.to_string()).chain(needed).collect::<Vec<_>>().join("\n")
}

fn object(view: &ClusterView, mode: Mode) -> Value {
    let nodes = view.nodes().map(|node| {
        let removable = node.removable(mode);
        json!({
            "name": node.name,
            "is": verdict(node, mode),
            "removable": removable.is_removable(),
            "reasons": removable.reasons,
            "utilisationPermille": node.utilisation_permille(),
            "allocatable": node.allocatable,
            "committed": node.committed(),
            "expected": node.expected(),
            "bound": names(node, Holder::Bound),
            "nominated": names(node, Holder::Nominated),
            "devices": node.devices,
            "findings": node.findings,
        })
    });
    let pods = view.classes().map(|(pod, class)| json!({"pod": pod.to_string(), "uid": pod.uid, "class": class}));
    let needed = view.need_nodes().map(ToString::to_string);
    json!({
        "nodes": nodes.collect::<Vec<_>>(),
        "pods": pods.collect::<Vec<_>>(),
        "needNodes": needed.collect::<Vec<_>>(),
    })
}
