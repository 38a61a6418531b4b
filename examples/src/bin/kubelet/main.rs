//! Example kubelet for resource claims. With a command it works on manifests, a state file, and drivers that listen on
//! unix sockets. Without a command it runs a demonstration with a driver of its own. Calls and drivers need the cargo
//! feature `grpc`; without it the program says so when it comes to a call.
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
mod state_file;
mod story;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use dra_alloc::kubelet::{ClaimCache, KubeletOptions};
use dra_attrs::{GateError, Profile, Version, VersionError};
use examples::feature_gates::feature_gates;
use examples::manifest::{Manifests, name_of};
use examples::output::{OutputError, finish, put, say};
use k8s_openapi::api::core::v1::Pod;

use agent::{Agent, AgentError, Done};
use grpc::{ServeError, block_on, listen, serve};
use state_file::StateFile;
use story::{StoryError, tell};

/// Kinds of objects that the program uses: slices for a diagnosis.
const USED: [&str; 3] = ["Pod", "ResourceClaim", "ResourceSlice"];

/// Version of the kubelet, against which features that end with a version are compared.
const VERSION: &str = "1.37.0";

/// Prepares and unprepares the resource claims of pods like a kubelet; without a command, runs a demonstration
#[derive(Debug, Parser)]
#[command(name = "kubelet")]
struct Args {
    /// Serve a driver on this socket that prepares every claim, and print the calls
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["plugin", "state"])]
    fake_driver: Option<PathBuf>,
    /// Name of the served driver
    #[arg(long, value_name = "NAME", default_value = "gpu.example.com", requires = "fake_driver")]
    driver: String,
    /// Registered driver, as NAME=SOCKET; may be repeated (only with a command)
    #[arg(long, value_name = "PLUGIN", value_parser = plugin)]
    plugin: Vec<(String, PathBuf)>,
    /// Checkpoint file (only with a command)
    #[arg(long, value_name = "FILE", default_value = "dra_manager_state")]
    state: PathBuf,
    /// Feature gates that differ from the defaults of Kubernetes 1.37, by their names in the profile
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    feature_gates: String,
    /// Print the counters of skipped calls and of operations at the end (only with prepare and unprepare)
    #[arg(long)]
    metrics: bool,
    /// Do not check that the node declares what a pod requires, like a kubelet with that feature gate off
    #[arg(long)]
    no_admission: bool,
    /// Rules to follow: kep (texts of the KEPs) or v1.37 (Kubernetes 1.37 as released)
    #[arg(long, value_name = "PROFILE", default_value_t = Profile::V1_37)]
    profile: Profile,
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
        /// Manifests with the active pods: files, directories, - for stdin; without any, no pod is active
        files: Vec<String>,
    },
    /// Print the claims of the checkpoint
    Show,
}

#[derive(Debug, clap::Args)]
struct PodArgs {
    /// Name of the pod, with its namespace if it is not "default"
    pod: String,
    /// Manifests with the pod and its claims: files, directories, - for stdin
    #[arg(required = true)]
    files: Vec<String>,
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
    Version(#[from] VersionError),
    #[error(transparent)]
    Diagnose(#[from] diagnose::NoClaim),
    #[error("--feature-gates: {0}")]
    Gates(#[from] GateError),
    #[error("{0}")]
    Manifest(String),
    #[error("no pod {0} in the manifests")]
    NoPod(String),
    #[error("{0} of the pods had to stay")]
    Stayed(usize),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(io::Error),
}

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = block_on(run(&args)).map_err(KubeletError::Runtime).flatten();
    finish("kubelet", outcome.map(|()| ExitCode::SUCCESS))
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
    let settings = KubeletOptions::new(args.profile).with_gates(feature_gates(&args.feature_gates, args.profile)?);
    let Some(command) = &args.command else {
        return Ok(print(tell(args.profile).await?.trim_end())?);
    };
    let file = StateFile::new(args.state.clone());
    let plugins = args.plugin.iter().cloned().collect::<BTreeMap<_, _>>();
    let start = |file| Agent::start(file, settings, plugins);
    match command {
        Command::Prepare(pod) => {
            let version = VERSION.parse()?;
            let mut agent = start(file)?;
            let outcome = prepare(&mut agent, pod, (!args.no_admission).then_some(&version)).await;
            metrics(&agent, args.metrics)?;
            outcome
        }
        Command::Diagnose(question) => {
            let manifests = read(&question.files)?;
            Ok(print(&diagnose::diagnose(question, &manifests, args.profile)?)?)
        }
        Command::Unprepare(PodArgs { pod, files }) => {
            let (mut agent, manifests) = (start(file)?, read(files)?);
            let outcome =
                agent.unprepare(find(&manifests, pod)?).await.map_err(KubeletError::from).and_then(|done| show(&done));
            metrics(&agent, args.metrics)?;
            outcome
        }
        Command::Reconcile { files } => reconcile(&mut start(file)?, &read(files)?).await,
        Command::Show => Ok(print(&remembered(&Agent::remembered(&file)?.unwrap_or_default())?)?),
    }
}

/// Prints the metrics, if they are asked for.
fn metrics(agent: &Agent, wanted: bool) -> Result<(), OutputError> {
    let lines = || [agent.metrics(), agent.operations()].concat();
    if wanted { print(&lines().join("\n")) } else { Ok(()) }
}

/// Prepares the claims of a pod. With a version, checks first that the node declares what the pod requires.
async fn prepare(
    agent: &mut Agent,
    PodArgs { pod, files }: &PodArgs,
    admission: Option<&Version>,
) -> Result<(), KubeletError> {
    let manifests = read(files)?;
    let pod = find(&manifests, pod)?;
    if let Some(version) = admission {
        agent.admit(pod, &manifests.claims, version)?;
    }
    show(&agent.prepare(pod, &manifests.claims).await?)?;
    for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
        let ids = agent.container_devices(pod, container)?.join(" ");
        print(format!("container {}: CDI devices: {ids}", container.name).trim_end())?;
    }
    Ok(())
}

/// Returns the claims of a checkpoint, by name.
fn remembered(cache: &ClaimCache) -> Result<String, KubeletError> {
    let claims = cache.claims().iter().map(|(key, info)| (key.to_string(), info));
    Ok(serde_json::to_string_pretty(&claims.collect::<BTreeMap<_, _>>())?)
}

async fn reconcile(agent: &mut Agent, manifests: &Manifests) -> Result<(), KubeletError> {
    let active: BTreeSet<String> = manifests.pods.iter().filter_map(|pod| pod.metadata.uid.clone()).collect();
    let mut stayed = 0_usize;
    for (pod, done) in agent.reconcile(&active).await {
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

fn read(files: &[String]) -> Result<Manifests, KubeletError> {
    let mut manifests = Manifests::default();
    for file in files {
        manifests.read_argument(file);
    }
    manifests.ignored_lines("kubelet", &USED).iter().for_each(say);
    match manifests.problems.first() {
        Some(problem) => Err(KubeletError::Manifest(problem.to_string())),
        None => Ok(manifests),
    }
}

fn find<'a>(manifests: &'a Manifests, name: &str) -> Result<&'a Pod, KubeletError> {
    let full = if name.contains('/') { name.to_owned() } else { format!("default/{name}") };
    let pod = manifests.pods.iter().find(|pod| [name, &full].contains(&name_of(&pod.metadata).as_str()));
    pod.ok_or_else(|| KubeletError::NoPod(name.to_owned()))
}

fn show(done: &Done) -> Result<(), KubeletError> {
    for (driver, claims) in &done.called {
        let names: Vec<String> = claims.iter().map(|claim| claim.key.to_string()).collect();
        print(&format!("called {driver} for {}", names.join(", ")))?;
    }
    for skip in &done.skipped {
        print(&format!("skipped {} of {}", skip.operation.method(), skip.driver))?;
    }
    Ok(())
}

fn print(text: &str) -> Result<(), OutputError> {
    put(&format!("{text}\n"))
}

fn plugin(text: &str) -> Result<(String, PathBuf), String> {
    let parts = text.split_once('=').filter(|(driver, socket)| !driver.is_empty() && !socket.is_empty());
    parts.map(|(driver, socket)| (driver.to_owned(), socket.into())).ok_or_else(|| "not NAME=SOCKET".to_owned())
}
