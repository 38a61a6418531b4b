//! A small kubelet for claims. Without a command it tells a story with a driver of its own; with one it works on manifests,
//! a state file, and drivers that listen on unix sockets.
//!
//! Two terminals:
//!
//! ```text
//! kubelet --fake-driver gpu.sock --driver gpu.example.com
//! kubelet --plugin gpu.example.com=gpu.sock prepare train examples/data/kubelet/pods.yaml
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use dra_alloc::kubelet::gate::Gate;
use dra_alloc::kubelet::{ClaimCache, Settings};
use dra_attrs::profile::Profile;
use examples::gates::{GateError, changed, profile};
use examples::kubelet::agent::{Agent, AgentError, Done};
use examples::kubelet::fake_driver::{ServeError, listen, serve};
use examples::kubelet::state_file::StateFile;
use examples::kubelet::story::{StoryError, tell};
use examples::manifest::{Manifests, name_of};
use examples::output::{OutputError, finish, put};
use k8s_openapi::api::core::v1::Pod;

/// Prepares and unprepares the claims of pods as a kubelet does; without a command, tells a story
#[derive(Debug, Parser)]
#[command(name = "kubelet")]
struct Args {
    /// Serves a driver on this socket that prepares everything, and prints the calls
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["plugin", "state"])]
    fake_driver: Option<PathBuf>,
    /// The name of the driver that is served
    #[arg(long, value_name = "NAME", default_value = "gpu.example.com", requires = "fake_driver")]
    driver: String,
    /// For a command: a driver that is registered, as NAME=SOCKET
    #[arg(long, value_name = "PLUGIN", value_parser = plugin)]
    plugin: Vec<(String, PathBuf)>,
    /// For a command: the checkpoint
    #[arg(long, value_name = "FILE", default_value = "dra_manager_state")]
    state: PathBuf,
    /// Gates that differ from the defaults of Kubernetes 1.37, by their names in the profile
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    feature_gates: String,
    /// The text to follow: kep or v1.37
    #[arg(long, value_name = "PROFILE", default_value = "kep", value_parser = profile)]
    profile: Profile,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Before a pod starts
    Prepare(PodArgs),
    /// After a pod has ended
    Unprepare(PodArgs),
    /// Ends the use of claims by pods that are not in the manifests
    Reconcile {
        /// Manifests with the pods that are active: files, directories, - for stdin; no pod is if there are none
        files: Vec<String>,
    },
    /// Prints the claims of the checkpoint
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
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    finish("kubelet", run(&Args::parse()).await.map(|()| ExitCode::SUCCESS))
}

async fn run(args: &Args) -> Result<(), KubeletError> {
    if let Some(socket) = &args.fake_driver {
        let listener = listen(socket)?;
        print(&format!("{} serves {}", args.driver, socket.display()))?;
        let on_call = Box::new(|method: &'static str, claims: &[String]| {
            // A reader that has gone is no reason to refuse claims.
            let _ = print(&format!("{method}({})", claims.join(", ")));
        });
        return Ok(serve(listener, &args.driver, on_call).await?);
    }
    let settings = settings(args.profile, &args.feature_gates)?;
    let Some(command) = &args.command else {
        return Ok(print(tell(args.profile).await?.trim_end())?);
    };
    let file = StateFile::new(args.state.clone());
    let plugins = args.plugin.iter().cloned().collect::<BTreeMap<_, _>>();
    let start = |file| Agent::start(file, settings, plugins);
    match command {
        Command::Prepare(args) => prepare(&mut start(file)?, args).await,
        Command::Unprepare(PodArgs { pod, files }) => {
            let (mut agent, manifests) = (start(file)?, read(files)?);
            show(&agent.unprepare(find(&manifests, pod)?).await?)
        }
        Command::Reconcile { files } => reconcile(&mut start(file)?, &read(files)?).await,
        Command::Show => Ok(print(&remembered(&Agent::remembered(&file)?.unwrap_or_default())?)?),
    }
}

fn settings(profile: Profile, gates: &str) -> Result<Settings, GateError> {
    let known = [Gate::OptionalNodeOperations, Gate::ExtendedResource, Gate::WorkloadResourceClaims];
    let defaults = Settings::new(profile);
    let gates = changed(profile, known.map(|gate| (gate.name(profile), defaults.has(gate))), gates)?;
    Ok(Settings::from_gates(profile, |gate| gates.get(gate).copied()))
}

async fn prepare(agent: &mut Agent, PodArgs { pod, files }: &PodArgs) -> Result<(), KubeletError> {
    let manifests = read(files)?;
    let pod = find(&manifests, pod)?;
    show(&agent.prepare(pod, &manifests.claims).await?)?;
    for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
        let ids = agent.container_devices(pod, container)?.join(" ");
        print(format!("container {}: CDI devices: {ids}", container.name).trim_end())?;
    }
    Ok(())
}

/// The claims of a checkpoint, by name.
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
