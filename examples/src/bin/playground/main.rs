//! A cluster of one node for a trial: a stand-in for the API server, a kubelet, a scheduler, and a driver, with pods that get their
//! devices. Everything is told as it happens.

mod node;
mod pods;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use dra_live::stop::told_to_stop;
use examples::manifest::Manifests;
use examples::output::{OutputError, Trouble, program, put, say};
use kube::{Client, Config};
use node::{Node, NodeError};
use pods::PodsError;

/// Runs a cluster of one node with a driver, and pods that get its devices
#[derive(Debug, Parser)]
#[command(name = "playground", version)]
struct Args {
    /// Class, claims and pods to create [default: a pod that wants one of two boards]
    #[arg(long, value_name = "FILE")]
    manifest: Vec<String>,
    /// Command of a driver of your own, in which SERVER stands for the address of the API server
    #[arg(long, value_name = "COMMAND", requires = "driver_folder")]
    driver_command: Option<String>,
    /// Folder in which that driver runs, with its sockets below `plugins_registry`
    #[arg(long, value_name = "DIR", requires = "driver_command")]
    driver_folder: Option<PathBuf>,
    /// Release of the API server, the kubelet and the scheduler
    #[arg(long, value_name = "RELEASE", default_value = "v1.37")]
    release: String,
    /// Leave everything running when the pods run, until Ctrl-C
    #[arg(long)]
    stay: bool,
    /// Seconds until the pods must run, and until they must be gone at the end
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
}

/// Reason that the trial did not come to its end.
#[derive(Debug, thiserror::Error)]
enum PlaygroundError {
    #[error(transparent)]
    Server(#[from] stand_in::StartError),
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Pods(#[from] PodsError),
    #[error("{0}")]
    Manifest(String),
    #[error("{0}")]
    Client(String),
    #[error(transparent)]
    Live(#[from] dra_live::failure::LiveError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Trouble for PlaygroundError {}

/// Pod that wants one of the boards.
const SERVE: &str = include_str!("../../../data/live/serve.yaml");

fn main() -> ExitCode {
    program(|args: &Args| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(dra_live::failure::LiveError::Runtime)?;
        runtime.block_on(run(args)).map(|()| ExitCode::SUCCESS)
    })
}

async fn run(args: &Args) -> Result<(), PlaygroundError> {
    let manifests = read(&args.manifest)?;
    let admission = ["--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition"];
    let flags = ["--controllers", "--release", &args.release];
    let server = stand_in::Server::start_with(&[&flags[..], &admission].concat())?;
    put(&format!("server    | {} (kubectl --server={} reaches it)\n", server.url(), server.url()))?;
    let url = server.url().parse().map_err(|error| PlaygroundError::Client(format!("{}: {error}", server.url())))?;
    let client = Client::try_from(Config::new(url)).map_err(|error| PlaygroundError::Client(error.to_string()))?;
    let own = args.driver_command.as_deref().zip(args.driver_folder.as_deref());
    let _node = Node::start(server.url(), &args.release, own)?;
    let patience = Duration::from_secs(args.seconds);
    pods::create(&client, &manifests).await?;
    pods::until_running(&client, &manifests, patience).await?;
    put("playground| all pods run\n")?;
    if args.stay {
        put("playground| Ctrl-C ends it\n")?;
        told_to_stop().await?;
    }
    pods::delete(&client, &manifests, patience).await?;
    put("playground| all pods are gone, and their claims are unprepared\n")?;
    Ok(())
}

fn read(files: &[String]) -> Result<Manifests, PlaygroundError> {
    let mut manifests = Manifests::default();
    if files.is_empty() {
        manifests.read("serve.yaml", SERVE);
    }
    for file in files {
        manifests.read_argument(file);
    }
    manifests.notes.iter().for_each(say);
    match manifests.problems.first() {
        Some(problem) => Err(PlaygroundError::Manifest(problem.to_string())),
        None if manifests.pods.is_empty() => Err(PlaygroundError::Manifest("no pod in the manifests".to_owned())),
        None => Ok(manifests),
    }
}
