//! Lists the nodes of a cluster as an autoscaler sees them: in use, reserved for pods that are not bound yet, or removable,
//! with the reasons; or answers what would become of devices if nodes came or went. With `--live` it works on a cluster.
//!
//! ```text
//! kubectl get nodes,pods,resourceclaims,resourceslices -A -o json | autoscaler -
//! kubectl get nodes,pods,resourceclaims,resourceslices,deviceclasses -A -o json | autoscaler - --scale-down
//! ```

mod answer;
mod cluster_parts;
mod list;
#[cfg(feature = "live")]
mod live;
#[cfg(not(feature = "live"))]
#[path = "no_live.rs"]
mod live;
mod moves;
mod refused;
mod removal;
mod scaling;

use std::collections::BTreeSet;
use std::process::ExitCode;

use answer::Answer;
use clap::{Parser, ValueEnum};
use dra_alloc::pods::PodOptions;
use dra_attrs::Component;
use examples::cluster_args::{ClusterArgs, VitalsArgs};
use examples::instant::instant;
use examples::manifest::Manifests;
use examples::output::{OutputError, Trouble, as_json, program, put, say};
use examples::workload::{self, WorkloadArgs};
use k8s_openapi::jiff::Timestamp;
use list::List;
use nnn::view::{ClusterObjects, ClusterView, ClusterViewError, ClusterViewOptions};
use scaling::{Question, ScalingArgs, ScalingError};

const CLUSTER: &str = include_str!("../../../data/autoscaler/cluster.yaml");

/// Kinds of objects that questions about devices use.
const USED_BY_QUESTIONS: [&str; 7] =
    ["DeviceClass", "DeviceTaintRule", "Node", "PodDisruptionBudget", "PodGroup", "ResourceClaim", "ResourceSlice"];

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
    workloads: WorkloadArgs,
    #[command(flatten)]
    server: ClusterArgs,
    /// Stay, and print what changes of the list, or the answer whenever it becomes another one
    #[arg(long, requires = "live")]
    watch: bool,
    #[command(flatten)]
    vitals: VitalsArgs,
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
    let read = args.workloads.of_release(args.scaling.rules.profile);
    let mut manifests = read.with_arguments(&args.files, ("cluster.yaml", CLUSTER));
    let options = PodOptions::new(Component::new(args.scaling.rules.profile, args.scaling.gates()?));
    let question = args.scaling.question()?;
    let new_nodes = question.as_ref().map(Question::new_nodes).unwrap_or_default();
    let made = workload::make_with_nodes(&mut manifests, &new_nodes, options);
    made.lines("autoscaler").iter().for_each(say);
    manifests.problems.iter().chain(&manifests.notes).for_each(say);
    put(&text_of(&manifests, question.as_ref(), args)?)?;
    if args.output == Output::Table {
        put(&manifests.mark())?;
    }
    Ok(if manifests.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text_of(manifests: &Manifests, question: Option<&Question<'_>>, args: &Args) -> Result<String, AutoscalerError> {
    let used: &[&str] =
        if question.is_some() { &USED_BY_QUESTIONS } else { &["Node", "ResourceClaim", "ResourceSlice"] };
    manifests.ignored_lines("autoscaler", &[used, &workload::KINDS[..]].concat()).iter().for_each(say);
    if let Some(question) = question {
        let answer = question.answer_manifests(manifests, args.now.unwrap_or(Timestamp::UNIX_EPOCH))?;
        return Ok(args.answered(&answer)?);
    }
    if manifests.nodes.is_empty() {
        say(&"autoscaler: no Node among the manifests: there is nothing to list");
    }
    let objects =
        ClusterObjects::new(&manifests.nodes, &manifests.pods).with_devices(&manifests.slices, &manifests.claims);
    let objects = match args.now {
        Some(now) => objects.with_now(now),
        None => objects,
    };
    Ok(args.listed(&List::from(&ClusterView::new(objects, &args.view_options())?))?)
}

impl Args {
    fn view_options(&self) -> ClusterViewOptions {
        let mut options = ClusterViewOptions::default();
        options.threshold_permille = self.threshold.saturating_mul(10);
        options.upcoming = self.upcoming.iter().cloned().collect::<BTreeSet<_>>();
        options
    }

    /// Returns the list of nodes as text.
    fn listed(&self, list: &List<'_>) -> Result<String, OutputError> {
        match self.output {
            Output::Table => Ok(list.table(self.mode).join("\n") + "\n"),
            Output::Json => as_json(&list.object(self.mode)),
        }
    }

    /// Returns the answer to a question as text.
    fn answered(&self, answer: &Answer) -> Result<String, OutputError> {
        match self.output {
            Output::Table => Ok(answer.to_string()),
            Output::Json => as_json(answer),
        }
    }
}
