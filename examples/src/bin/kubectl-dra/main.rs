//! Devices of a cluster on the command line: `kubectl dra`, which kubectl finds by the name of this program.
//!
//! It reads with the rights of its user and writes nothing. Each question has the code of the program that it belongs to:
//! `scheduler why`, `pool-status`, `scheduler evict`, the API server's validation.

mod attributes;
mod check;
mod numa;
mod plan;

use examples::live::cluster::{connect, say_other_release};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use dra_alloc::explain::Detail;
use dra_alloc::pods::PodOptions;
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Allocator, GateSet};
use dra_attrs::{Component, GateError};
use dra_live::cluster_view::{ClusterView, watch_cluster};
use dra_live::connect::Cluster;
use dra_live::failure::LiveError;
use dra_live::listing::{list, list_if_allowed};
use dra_live::now;
use examples::cluster_args::ClusterPlace;
use examples::eviction_preview::{NoRule, preview, read_rules};
use examples::live::devices::{list_devices, list_devices_and_pods};
use examples::live::why::{GateSource, NotPending, Question as Why, shown};
use examples::manifest::Manifests;
use examples::objective_file::ObjectiveFileError;
use examples::output::{Format, OutputError, Trouble, as_json, as_yaml, escaped, program, put, put_styled, say};
use examples::plan::PlanError;
use examples::pool_question::Question;
use examples::pool_table::{By, tables};
use examples::preempt::Who;
use examples::release_args::ReleaseArgs;

/// Name of the program, as it is called.
const NAME: &str = "kubectl dra";

/// Answers questions about the devices of a cluster: as kubectl plugin, kubectl dra
#[derive(Clone, Debug, Parser)]
#[command(name = "kubectl-dra", bin_name = NAME, version, mut_args(|arg| arg.global(true)))]
struct Args {
    #[command(flatten)]
    place: ClusterPlace,
    /// Namespace of names without one [default: that of the context]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Rules to follow.
    #[command(flatten)]
    rules: ReleaseArgs,
    /// Feature gates of the cluster that differ from the defaults of the release
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    feature_gates: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Explain why a pod is pending, or the pods that use a claim
    Why {
        /// Pod or claim, with its namespace if it is another one [default: all pods that are pending]
        #[arg(value_name = "CLAIM or POD")]
        name: Option<String>,
        /// Manifests of pods or workloads to ask about, with nodes and slices, instead of a cluster: files, directories, - for
        /// stdin; may be repeated
        #[arg(short, long = "filename", value_name = "FILE")]
        files: Vec<String>,
        /// Say who would have to go by each rule, or who is in the way
        #[arg(long)]
        who: bool,
        /// Output format
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Print how many devices of each pool are left
    Free {
        /// Driver to show; may be repeated [default: all drivers that publish slices]
        #[arg(long = "driver", value_name = "NAME")]
        drivers: Vec<String>,
        /// Print a row for each pool or for each node
        #[arg(long, value_enum, default_value_t = By::Pool)]
        by: By,
    },
    /// Print the devices by node and NUMA node
    Numa,
    /// List the attributes and capacities of devices, with their values and the number of devices that have each
    Attributes {
        /// Class of the devices [default: all devices]
        #[arg(value_name = "CLASS")]
        class: Option<String>,
        /// Manifests with slices and classes, instead of a cluster: files, directories, - for stdin; may be repeated
        #[arg(short, long = "filename", value_name = "FILE")]
        files: Vec<String>,
    },
    /// Say what an API server would say about manifests: one of --release with --feature-gates, or that of a cluster if
    /// --context, --kubeconfig or --server names one, which is asked for its version and the gates in its metrics
    Check {
        /// YAML or JSON files, directories, - for stdin
        #[arg(value_name = "FILE", required = true)]
        files: Vec<String>,
        /// Validation that the client asks for: kubectl apply refuses unknown fields and objects without a version
        #[arg(long, value_enum, default_value_t = Validation::Strict)]
        validate: Validation,
        /// Say as well what is accepted and hardly meant, with the way out. Selectors, constraints and taint rules are tried on
        /// the slices of the manifests
        #[arg(long)]
        lint: bool,
        /// Print the objects in version v1, without fields that the release does not know; the answers go to stderr
        #[arg(long)]
        as_v1: bool,
        /// Format of the objects
        #[arg(short, long, value_enum, default_value_t = Output::Yaml, requires = "as_v1")]
        output: Output,
    },
    /// Say what a cluster would do with manifests: which release accepts them, which node and devices each pod gets, what has
    /// no place, why, and what would help. On the nodes and slices of the manifests, or of a cluster if --context, --kubeconfig
    /// or --server names one. Exit status 0: all pods have a place
    Plan(plan::PlanArgs),
    /// Say before a device taint rule is written which pods it would evict, and when
    Evict {
        /// File with one or more `DeviceTaintRule`s
        #[arg(value_name = "RULE-FILE")]
        rules: String,
        /// Output format
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
}

/// Validation that a client asks the API server for, as kubectl names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Validation {
    /// Refuse unknown fields, as kubectl does unless it is told otherwise
    Strict,
    /// Drop them, as clients do that do not ask
    Ignore,
}

/// Format of objects.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    /// A list
    Json,
    /// One document each
    Yaml,
}

#[derive(Debug, thiserror::Error)]
enum DraError {
    #[error("--feature-gates: {0}")]
    Gates(#[from] GateError),
    #[error(transparent)]
    Cluster(#[from] LiveError),
    #[error(transparent)]
    Objective(#[from] ObjectiveFileError),
    #[error(transparent)]
    NotPending(#[from] NotPending),
    #[error(transparent)]
    NoRule(#[from] NoRule),
    #[error(transparent)]
    NoClass(#[from] attributes::NoClass),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Trouble for DraError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Gates(_))
    }
}

fn main() -> ExitCode {
    program(run)
}

fn run(args: &Args) -> Result<ExitCode, DraError> {
    if let Command::Check { files, validate, lint, as_v1, output } = &args.command {
        let server = args.api_server()?;
        let answer = check::check(files, server, *validate, *lint);
        match (as_v1, output) {
            (false, _) => put(&answer.lines)?,
            (true, Output::Json) => {
                say(&answer.lines.trim_end());
                put(&as_json(&answer.as_v1)?)?;
            }
            (true, Output::Yaml) => {
                say(&answer.lines.trim_end());
                put(&as_yaml(&answer.as_v1)?)?;
            }
        }
        return Ok(if answer.is_valid { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let (text, is_whole) = match &args.command {
        Command::Attributes { class, files, .. } if !files.is_empty() => {
            let mut manifests = Manifests::of_release(args.rules.profile);
            for file in files {
                manifests.read_argument(file);
            }
            manifests.problems.iter().chain(&manifests.notes).for_each(say);
            let used = ["DeviceClass", "ResourceSlice"];
            manifests.ignored_lines("kubectl dra attributes", &used).iter().for_each(say);
            let text = attributes::table(&manifests, class.as_deref(), args.rules.profile)?;
            (escaped(&(text + &manifests.mark())).into_owned(), manifests.problems.is_empty())
        }
        Command::Why { name, files, who, output } if !files.is_empty() => {
            args.why_in_files(files, name.as_deref(), plan::who(*who), *output)?
        }
        Command::Plan(of_plan) if !args.place.is_given() => args.planned(of_plan, of_plan.read(args))?,
        _ => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.map_err(LiveError::Runtime)?.block_on(args.ask())?
        }
    };
    put_styled(&text)?;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Args {
    fn gates(&self) -> Result<GateSet, GateError> {
        GateSet::parse(&self.feature_gates, self.rules.profile)
    }

    /// Returns the API server that manifests are checked for, and says of a cluster's what was read.
    fn api_server(&self) -> Result<Component, DraError> {
        if !self.place.is_given() {
            return Ok(Component::new(self.rules.profile, self.gates()?));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(LiveError::Runtime)?;
        let (server, url) = runtime.block_on(async {
            let cluster = connect(env!("CARGO_BIN_NAME"), &self.place.clone().into()).await?;
            Ok::<_, LiveError>((cluster.api_server().await, cluster.url))
        })?;
        let gates = if server.is_assumed() {
            "its gates are not known: taken to be the defaults"
        } else {
            "its gates are read"
        };
        say(&format_args!("{NAME}: checked for the API server at {url}, {}; {gates}", server.profile()));
        Ok(server)
    }

    /// Returns the answer; false if it leaves out a part of the question.
    async fn ask(&self) -> Result<(String, bool), DraError> {
        let gates: GateSet = self.gates()?;
        let options = PodOptions::new(Component::new(self.rules.profile, gates));
        let cluster = connect(env!("CARGO_BIN_NAME"), &self.place.clone().into()).await?;
        say_other_release(NAME, &cluster, self.rules.profile);
        let text = match &self.command {
            Command::Why { name, who, output, .. } => {
                self.why(&cluster, gates, name.as_deref(), plan::who(*who), *output).await?
            }
            Command::Free { drivers, by } => {
                let question =
                    Question { drivers: drivers.clone(), ..Question::new(self.rules.profile, self.gates()?) };
                let answer = question.ask(&list_devices(&cluster).await?, now());
                tables(&answer.reports, &answer.held_twice, *by, self.rules.profile)
            }
            Command::Attributes { class, .. } => {
                let mut objects = list_devices(&cluster).await?;
                objects.classes = list(&cluster.client, "deviceclasses").await?;
                attributes::table(&objects, class.as_deref(), self.rules.profile)?
            }
            Command::Numa => numa::table(&list_devices(&cluster).await?),
            Command::Evict { rules, output } => {
                let rules = read_rules(rules, self.rules.profile)?;
                let objects = list_devices_and_pods(&cluster).await?;
                let answer = preview(&rules.taint_rules, &objects, options, now(), *output)?;
                let is_whole = answer.refused == 0 && rules.problems.is_empty();
                return Ok((escaped(&answer.text).into_owned(), is_whole));
            }
            Command::Plan(args) => {
                let mut manifests = args.read(self);
                args.add_cluster(&mut manifests, &cluster).await?;
                return self.planned(args, manifests);
            }
            Command::Check { .. } => String::new(),
        };
        Ok((escaped(&text).into_owned(), true))
    }

    async fn why(
        &self,
        cluster: &Cluster,
        gates: GateSet,
        name: Option<&str>,
        who: Who,
        output: Format,
    ) -> Result<String, DraError> {
        let (mut view, mut watches) = (ClusterView::new(gates), watch_cluster(cluster));
        view.complete_once(&mut watches).await?;
        let budgets = list_if_allowed(&cluster.client, "poddisruptionbudgets").await?;
        let selectors = SelectorCache::default();
        let allocator = Allocator::new(Component::new(self.rules.profile, gates), &view.inventory, &view.classes)
            .with_selector_cache(&selectors)
            .with_explanation(Detail::Summary);
        let namespace = self.namespace.as_deref().unwrap_or(&cluster.namespace);
        let options = PodOptions::new(Component::new(self.rules.profile, gates));
        let is_silent = self.feature_gates.is_empty();
        let gates = if is_silent { GateSource::DefaultsOf(self.rules.profile) } else { GateSource::Known };
        let profile = self.rules.profile;
        let question = Why { allocator: &allocator, options, profile, namespace, gates, budgets: &budgets, who };
        Ok(shown(&question.ask(&view, name)?, output)?)
    }
}
