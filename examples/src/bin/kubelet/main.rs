//! Example kubelet for resource claims. With a command it works on manifests, a state file, and drivers that listen on
//! unix sockets. Of workloads and templates in the manifests it makes the pods and claims, and allocates the claims as a plan
//! does. Without a command it runs a demonstration with a driver of its own. Calls and drivers need the cargo
//! feature `grpc`; without it the program says so when it comes to a call.
//!
//! With `--live` it is the agent of a virtual node of a cluster.
//!
//! Two terminals:
//!
//! ```text
//! kubelet --fake-driver gpu.sock --driver gpu.example.com
//! kubelet --plugin gpu.example.com=gpu.sock prepare train examples/data/kubelet/pods.yaml
//! ```

mod agent;
mod diagnose;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(not(feature = "grpc"))]
#[path = "no_grpc.rs"]
mod grpc;
mod line;
#[cfg(feature = "live")]
mod live;
#[cfg(not(feature = "live"))]
#[path = "no_live.rs"]
mod live;
mod made;
mod story;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use agent::{Agent, AgentError, CALL_TIMEOUT, Done};
use clap::{Parser, Subcommand};
use dra_alloc::kubelet::ClaimCache;
use dra_attrs::{Component, GateError, Version, VersionError};
use dra_live::state_file::StateFile;
use examples::cluster_args::{ClusterArgs, VitalsArgs};
use examples::feature_gates::{KUBELET_GATES, feature_gates};
use examples::manifest::{Manifests, name_of};
use examples::output::{LineForm, OutputError, Trouble, one_line, program, put, put_line, say};
use examples::plan::PlanError;
use examples::release_args::ReleaseArgs;
use examples::workload::WorkloadArgs;
use grpc::{ServeError, block_on, listen, registered, serve};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use line::Line;
use made::{USED, active, ignored, made};
use story::{StoryError, tell};

/// Version of the kubelet, against which features that end with a version are compared.
const VERSION: &str = "1.37.0";

/// Prepares and unprepares the resource claims of pods like a kubelet; without a command, runs a demonstration
#[derive(Debug, Parser)]
#[command(name = "kubelet", version)]
struct Args {
    /// Serve a driver on this socket that prepares every claim, and print the calls
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["plugin", "registry", "state"])]
    fake_driver: Option<PathBuf>,
    /// Name of the served driver
    #[arg(long, value_name = "NAME", default_value = "gpu.example.com", requires = "fake_driver")]
    driver: String,
    /// Registered driver, as NAME=SOCKET; may be repeated (only with a command)
    #[arg(long, value_name = "PLUGIN", value_parser = plugin)]
    plugin: Vec<(String, PathBuf)>,
    /// Directory of registration sockets: each is asked, and its driver registered (only with a command)
    #[arg(long, value_name = "DIR")]
    registry: Option<PathBuf>,
    /// Seconds that a driver has for a call
    #[arg(long, value_name = "SECONDS", default_value_t = CALL_TIMEOUT.as_secs(), value_parser = clap::value_parser!(u64).range(1..=3600))]
    call_seconds: u64,
    /// Checkpoint file (only with a command)
    #[arg(long, value_name = "FILE", default_value = "dra_manager_state")]
    state: PathBuf,
    /// Feature gates that differ from the defaults of the release, by their names in the profile
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    feature_gates: String,
    /// Print the counters of skipped calls and of operations at the end (only with prepare and unprepare)
    #[arg(long)]
    metrics: bool,
    /// Do not check that the node declares what a pod requires, like a kubelet with that feature gate off
    #[arg(long)]
    no_admission: bool,
    /// Rules to follow.
    #[command(flatten)]
    rules: ReleaseArgs,
    /// Go on if a manifest has fields that are unknown, as the API server does; a claim below a misspelt field is not
    /// prepared
    #[arg(long)]
    ignore_unknown_fields: bool,
    #[command(flatten)]
    server: ClusterArgs,
    /// Name of the node that the kubelet is an agent of
    #[arg(long, value_name = "NAME", default_value = "node-1", requires = "live")]
    node_name: String,
    /// Form of the lines that tell what has happened
    #[arg(short, long, value_enum, default_value_t, requires = "live")]
    output: LineForm,
    #[command(flatten)]
    vitals: VitalsArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prepare the claims of a pod before it starts
    Prepare(PodArgs),
    /// Find the likely causes of a problem with skipped node operations
    Diagnose(diagnose::DiagnoseArgs),
    /// Unprepare the claims of a pod after it has ended
    Unprepare(PodArgs),
    /// Unprepare the claims of all pods that are not in the manifests
    Reconcile {
        /// Manifests with all active pods, each with its UID, in whole lists: files, directories, - for stdin
        #[arg(required_unless_present = "none_active")]
        files: Vec<String>,
        /// No pod is active: unprepare every claim
        #[arg(long, conflicts_with = "files")]
        none_active: bool,
        #[command(flatten)]
        workloads: WorkloadArgs,
    },
    /// Print the claims of the checkpoint
    Show,
}

#[derive(Debug, clap::Args)]
struct PodArgs {
    /// Name of the pod, with its namespace if it is not "default"
    pod: String,
    /// Manifests with the pod and its claims, or with its workload, templates, classes, nodes and slices: files, directories, -
    /// for stdin
    #[arg(required = true)]
    files: Vec<String>,
    #[command(flatten)]
    workloads: WorkloadArgs,
}

#[derive(Debug, thiserror::Error)]
enum KubeletError {
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Story(#[from] StoryError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Live(#[from] live::LiveError),
    #[error(transparent)]
    Version(#[from] VersionError),
    #[error(transparent)]
    Diagnose(#[from] diagnose::NoClaim),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("--feature-gates: {0}")]
    Gates(#[from] GateError),
    #[error("--plugin {0}: given twice")]
    Plugin(String),
    #[error("{0}")]
    Manifest(String),
    #[error("{0}; correct the manifest, or say --ignore-unknown-fields")]
    UnknownField(String),
    #[error("no pod {0} in the manifests")]
    NoPod(String),
    #[error(
        "no pod in {0}: with nothing active, every claim would be unprepared; if that is meant, say --none-active \
         instead"
    )]
    NoActivePod(String),
    #[error("{0}: metadata.uid: must be set; take the object from the cluster, as kubectl get -o yaml prints it")]
    NoUid(String),
    #[error("{0} of the pods had to stay")]
    Stayed(usize),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(io::Error),
}

impl Trouble for KubeletError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Gates(_) | Self::Plugin(_))
    }
}

fn main() -> ExitCode {
    program(|args: &Args| {
        let outcome = block_on(run(args)).map_err(KubeletError::Runtime).flatten();
        outcome.map(|()| ExitCode::SUCCESS)
    })
}

async fn run(args: &Args) -> Result<(), KubeletError> {
    if let Some(socket) = &args.fake_driver {
        let listener = listen(socket)?;
        print(&format!("{} serves {}", args.driver, socket.display()))?;
        let on_call = Box::new(|method: &'static str, claims: &[String]| {
            // A closed output is no reason to reject claims.
            let _ = print(&format!("{method}({})", claims.join(", ")));
        });
        return Ok(serve(listener, &args.driver, on_call).await?);
    }
    let settings =
        Component::new(args.rules.profile, feature_gates(&args.feature_gates, args.rules.profile, &KUBELET_GATES)?);
    if args.server.live {
        return Ok(live::run(args, settings, args.plugins()?).await?);
    }
    let Some(command) = &args.command else {
        return Ok(print(tell(args.rules.profile).await?.trim_end())?);
    };
    let file = StateFile::new(args.state.clone());
    let mut plugins = args.plugins()?;
    if let Some(registry) = &args.registry {
        let (registered, refused) = registered(registry).await;
        plugins.extend(registered);
        for reason in refused {
            say(&format_args!("kubelet: {reason}"));
        }
    }
    let start = |file| Agent::start(file, settings, plugins, args.call_timeout());
    let read = |files: &[String], workloads: &WorkloadArgs| {
        read(files, workloads.of_release(args.rules.profile), args.ignore_unknown_fields)
    };
    match command {
        Command::Prepare(pod) => {
            let version = VERSION.parse()?;
            let agent = start(file)?;
            let manifests = made(read(&pod.files, &pod.workloads)?, settings, &pod.pod)?;
            let pod = find(&manifests, &pod.pod)?;
            let outcome = prepare(&agent, pod, &manifests, (!args.no_admission).then_some(&version)).await;
            metrics(&agent, args.metrics)?;
            outcome
        }
        Command::Diagnose(question) => {
            let manifests = read(&question.files, &WorkloadArgs::default())?;
            ignored(&manifests, &USED);
            Ok(print(&diagnose::diagnose(question, &manifests, args.rules.profile)?)?)
        }
        Command::Unprepare(PodArgs { pod, files, workloads }) => {
            let (agent, manifests) = (start(file)?, made(read(files, workloads)?, settings, pod)?);
            let outcome = agent
                .unprepare(find(&manifests, pod)?)
                .await
                .map_err(KubeletError::from)
                .and_then(|done| Ok(show(&done)?));
            metrics(&agent, args.metrics)?;
            outcome
        }
        Command::Reconcile { files, none_active, workloads } => {
            let active = if *none_active {
                BTreeSet::new()
            } else {
                let manifests = read(files, workloads)?;
                // UIDs that are made up tell nothing of a cluster's pods: without those, nothing is unprepared.
                active_pods(files, &manifests)?;
                active_pods(files, &active(manifests, settings))?
            };
            reconcile(&start(file)?, &active).await
        }
        Command::Show => match Agent::remembered(&file)? {
            Some(cache) => Ok(print(&remembered(&cache)?)?),
            None => Err(AgentError::NoCheckpoint(args.state.clone()).into()),
        },
    }
}

impl Args {
    const fn call_timeout(&self) -> Duration {
        Duration::from_secs(self.call_seconds)
    }

    /// Returns the sockets of the registered drivers.
    fn plugins(&self) -> Result<BTreeMap<String, PathBuf>, KubeletError> {
        let mut plugins = BTreeMap::new();
        for (driver, socket) in &self.plugin {
            if plugins.insert(driver.clone(), socket.clone()).is_some() {
                return Err(KubeletError::Plugin(driver.clone()));
            }
        }
        Ok(plugins)
    }
}

/// Prints the metrics, if they are asked for.
fn metrics(agent: &Agent, wanted: bool) -> Result<(), OutputError> {
    let lines = || [agent.metrics(), agent.operations()].concat();
    if wanted { print(&lines().join("\n")) } else { Ok(()) }
}

/// Prepares the claims of a pod. With a version, checks first that the node declares what the pod requires.
async fn prepare(
    agent: &Agent,
    pod: &Pod,
    manifests: &Manifests,
    admission: Option<&Version>,
) -> Result<(), KubeletError> {
    if let Some(version) = admission {
        agent.admit(pod, &manifests.claims, version)?;
    }
    show(&agent.prepare(pod, &manifests.claims).await?)?;
    for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
        let ids = agent.container_devices(pod, container)?.join(" ");
        print(format!("container {}: CDI devices: {}", container.name, one_line(&ids)).trim_end())?;
    }
    Ok(())
}

/// Returns the claims of a checkpoint, by name.
fn remembered(cache: &ClaimCache) -> Result<String, KubeletError> {
    let claims = cache.claims().iter().map(|(key, info)| (key.to_string(), info));
    Ok(serde_json::to_string_pretty(&claims.collect::<BTreeMap<_, _>>())?)
}

/// Returns the UIDs of the pods in manifests. Whatever is not among them loses its devices, so that no pod may be left out.
fn active_pods(files: &[String], manifests: &Manifests) -> Result<BTreeSet<String>, KubeletError> {
    if manifests.pods.is_empty() {
        return Err(KubeletError::NoActivePod(files.join(", ")));
    }
    manifests.pods.iter().map(|pod| uid("Pod", &pod.metadata)).collect()
}

/// Returns the UID of an object. Objects without one would be taken for one another.
fn uid(kind: &str, metadata: &ObjectMeta) -> Result<String, KubeletError> {
    let uid = metadata.uid.clone().filter(|uid| !uid.is_empty());
    uid.ok_or_else(|| KubeletError::NoUid(format!("{kind} {}", name_of(metadata))))
}

async fn reconcile(agent: &Agent, active: &BTreeSet<String>) -> Result<(), KubeletError> {
    let mut stayed = 0_usize;
    for (pod, done) in agent.reconcile(active).await? {
        match done {
            Ok(done) => {
                print(&format!("pod {pod}:"))?;
                show(&done)?;
            }
            Err(error) => {
                stayed = stayed.saturating_add(1);
                print(&format!("pod {pod}: {error}"))?;
            }
        }
    }
    if stayed == 0 { Ok(()) } else { Err(KubeletError::Stayed(stayed)) }
}

/// Reads manifests, all of which must be readable: a pod or claim that is passed over would lose its devices.
fn read(files: &[String], mut manifests: Manifests, ignore_unknown_fields: bool) -> Result<Manifests, KubeletError> {
    for file in files {
        manifests.read_argument(file);
    }
    if let Some(problem) = manifests.problems.first() {
        return Err(KubeletError::Manifest(problem.to_string()));
    }
    if let Some(unknown) = manifests.notes.iter().find(|note| note.is_unknown_field && !ignore_unknown_fields) {
        return Err(KubeletError::UnknownField(unknown.to_string()));
    }
    manifests.notes.iter().for_each(say);
    for claim in &manifests.claims {
        uid("ResourceClaim", &claim.metadata)?;
    }
    Ok(manifests)
}

/// Returns the pod of a name.
fn find<'a>(manifests: &'a Manifests, name: &str) -> Result<&'a Pod, KubeletError> {
    let full = if name.contains('/') { name.to_owned() } else { format!("default/{name}") };
    let pod = manifests.pods.iter().find(|pod| [name, &full].contains(&name_of(&pod.metadata).as_str()));
    let pod = pod.ok_or_else(|| KubeletError::NoPod(name.to_owned()))?;
    uid("Pod", &pod.metadata).map(|_| pod)
}

fn show(done: &Done) -> Result<(), OutputError> {
    Line::of_calls(done).try_for_each(|line| put_line(LineForm::Text, &line))
}

fn print(text: &str) -> Result<(), OutputError> {
    put(&format!("{text}\n"))
}

fn plugin(text: &str) -> Result<(String, PathBuf), String> {
    let parts = text.split_once('=').filter(|(driver, socket)| !driver.is_empty() && !socket.is_empty());
    parts.map(|(driver, socket)| (driver.to_owned(), socket.into())).ok_or_else(|| "not NAME=SOCKET".to_owned())
}
