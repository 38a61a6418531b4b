//! Lists the nodes of a cluster as an autoscaler sees them: in use, reserved for pods that are not bound yet, or removable,
//! with the reasons; or answers what would become of devices if nodes came or went. With `--live` it works on a cluster.
//!
//! ```text
//! kubectl get nodes,pods,resourceclaims,resourceslices -A -o json | autoscaler -
//! kubectl get nodes,pods,resourceclaims,resourceslices,deviceclasses -A -o json | autoscaler - --scale-down
//! ```

#[cfg(feature = "live")]
mod live;
#[cfg(not(feature = "live"))]
#[path = "no_live.rs"]
mod live;
mod scaling;

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use examples::cluster_args::ClusterArgs;
use examples::instant::instant;
use examples::manifest::Manifests;
use examples::output::{OutputError, Trouble, as_json, program, put, say};
use k8s_openapi::jiff::Timestamp;
use nnn::view::{
    AutoscalerNode, AutoscalerNodePresence, ClusterObjects, ClusterView, ClusterViewError, ClusterViewOptions,
    RemovalMode, ReservedBy,
};
use scaling::{Answer, ScalingArgs, ScalingError};
use serde_json::{Value, json};

const CLUSTER: &str = include_str!("../../../data/autoscaler/cluster.yaml");

/// Lists the nodes of a cluster that are in use, reserved or removable, with the reasons; answers what a new node would take, and
/// what can go
///
/// Manifests that can't be read are reported on stderr, with exit status 1.
#[derive(Debug, Parser)]
#[command(name = "autoscaler", version)]
struct Args {
    /// Manifests with nodes and pods: YAML or JSON files, directories of them, - for stdin; a built-in cluster if there
    /// are none
    #[arg(value_name = "FILE", conflicts_with = "live")]
    files: Vec<String>,
    /// Strictness: a nomination keeps a node (strict), or counts as utilisation only (lenient)
    #[arg(long, value_enum, default_value_t = Caution::Strict)]
    mode: Caution,
    /// Utilisation in percent from which on a node is not removed
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=100))]
    threshold: u32,
    /// Name of a node that is being created
    #[arg(long = "upcoming", value_name = "NAME")]
    upcoming: Vec<String>,
    /// Current time, by which terminating pods become overdue; of manifests none does if it is absent
    #[arg(long, value_name = "TIME", value_parser = instant)]
    now: Option<Timestamp>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Question about devices, instead of the list.
    #[command(flatten)]
    scaling: ScalingArgs,
    #[command(flatten)]
    server: ClusterArgs,
    /// Print the list or the answer again whenever it changes
    #[arg(long, requires = "live")]
    watch: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Caution {
    /// A node with a nominated pod is kept
    Strict,
    /// As cluster-autoscaler: a nominated pod counts as utilisation, like a bound one
    Lenient,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table of nodes, followed by the pods that need a node
    Table,
    /// An object with nodes and pods
    Json,
}

#[derive(Debug, thiserror::Error)]
enum AutoscalerError {
    #[error(transparent)]
    View(#[from] ClusterViewError),
    #[error(transparent)]
    Scaling(#[from] ScalingError),
    #[error(transparent)]
    Live(#[from] live::LiveError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Trouble for AutoscalerError {}

fn main() -> ExitCode {
    program(run)
}

fn run(args: &Args) -> Result<ExitCode, AutoscalerError> {
    if args.server.live {
        live::run(args)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut manifests = Manifests::of_arguments(&args.files, ("cluster.yaml", CLUSTER));
    manifests.fill_pod_uids();
    manifests.problems.iter().chain(&manifests.notes).for_each(say);
    put(&text_of(&manifests, args)?)?;
    Ok(if manifests.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text_of(manifests: &Manifests, args: &Args) -> Result<String, AutoscalerError> {
    if let Some(question) = args.scaling.question()? {
        let answer = question.answer_manifests(manifests, args.now.unwrap_or(Timestamp::UNIX_EPOCH))?;
        return Ok(args.answered(&answer)?);
    }
    manifests.ignored_lines("autoscaler", &["Node", "Pod", "ResourceClaim", "ResourceSlice"]).iter().for_each(say);
    if manifests.nodes.is_empty() {
        say(&"autoscaler: no Node among the manifests: there is nothing to list");
    }
    let objects =
        ClusterObjects::new(&manifests.nodes, &manifests.pods).with_devices(&manifests.slices, &manifests.claims);
    args.listed(match args.now {
        Some(now) => objects.with_now(now),
        None => objects,
    })
}

impl Args {
    /// Returns the list of nodes as text.
    fn listed(&self, objects: ClusterObjects<'_>) -> Result<String, AutoscalerError> {
        let mut options = ClusterViewOptions::default();
        options.threshold_permille = self.threshold.saturating_mul(10);
        options.upcoming = self.upcoming.iter().cloned().collect::<BTreeSet<_>>();
        let view = ClusterView::new(objects, &options)?;
        let mode = match self.mode {
            Caution::Strict => RemovalMode::Strict,
            Caution::Lenient => RemovalMode::Lenient,
        };
        Ok(match self.output {
            Output::Table => table(&view, mode) + "\n",
            Output::Json => as_json(&object(&view, mode))?,
        })
    }

    /// Returns the answer to a question as text.
    fn answered(&self, answer: &Answer) -> Result<String, OutputError> {
        match self.output {
            Output::Table => Ok(answer.to_string()),
            Output::Json => as_json(answer),
        }
    }
}

/// Returns the verdict on a node in one or two words.
fn verdict(node: &AutoscalerNode, mode: RemovalMode) -> &'static str {
    let is_promised = node.pods_reserved_by(ReservedBy::Nominated).next().is_some();
    match node.presence {
        AutoscalerNodePresence::Upcoming => "being created",
        AutoscalerNodePresence::Present if node.removability(mode).is_removable() => "removable",
        AutoscalerNodePresence::Present if is_promised => "reserved",
        AutoscalerNodePresence::Present => "in use",
        _ => "not there",
    }
}

fn names(node: &AutoscalerNode, reserved_by: ReservedBy) -> Vec<String> {
    node.pods_reserved_by(reserved_by).map(|pod| pod.pod.to_string()).collect()
}

fn table(view: &ClusterView, mode: RemovalMode) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header(["NODE", "IS", "USED", "CPU", "BOUND", "EXPECTED", "WHY"]);
    for node in view.nodes() {
        let removable = node.removability(mode);
        let why = removable.reasons.iter().map(ToString::to_string);
        let noticed = node.warnings.iter().map(ToString::to_string);
        let mut lines: Vec<String> = why.chain(noticed).collect();
        lines.dedup();
        let (cpu, percent) = match node.presence {
            AutoscalerNodePresence::Present => (
                format!("{} of {}", node.committed().quantity("cpu"), node.allocatable.quantity("cpu")),
                format!("{}%", node.utilisation_permille() / 10),
            ),
            _ => (node.committed().quantity("cpu").to_string(), "-".to_owned()),
        };
        table.add_row([
            node.name.clone(),
            verdict(node, mode).to_owned(),
            percent,
            cpu,
            names(node, ReservedBy::Bound).join("\n"),
            names(node, ReservedBy::Nominated).join("\n"),
            lines.join("\n"),
        ]);
    }
    let needed: Vec<String> = view.pods_needing_nodes().map(|pod| format!("needs a node: {pod}")).collect();
    std::iter::once(table.to_string()).chain(needed).collect::<Vec<_>>().join("\n")
}

fn object(view: &ClusterView, mode: RemovalMode) -> Value {
    let nodes = view.nodes().map(|node| {
        let removable = node.removability(mode);
        json!({
            "name": node.name,
            "is": verdict(node, mode),
            "removable": removable.is_removable(),
            "reasons": removable.reasons,
            "utilisationPermille": node.utilisation_permille(),
            "allocatable": node.allocatable,
            "committed": node.committed(),
            "expected": node.expected(),
            "bound": names(node, ReservedBy::Bound),
            "nominated": names(node, ReservedBy::Nominated),
            "devices": node.devices,
            "findings": node.warnings,
        })
    });
    let pods = view.pod_classes().map(|(pod, class)| json!({"pod": pod.to_string(), "uid": pod.uid, "class": class}));
    let needed = view.pods_needing_nodes().map(ToString::to_string);
    json!({
        "nodes": nodes.collect::<Vec<_>>(),
        "pods": pods.collect::<Vec<_>>(),
        "needNodes": needed.collect::<Vec<_>>(),
    })
}
