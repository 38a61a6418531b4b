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
use k8s_openapi::api::core::v1::Node as NodeObject;
use kube::{Api, Client, Config};
use node::{Node, NodeError};
use pods::PodsError;
use serde_json::{from_value, json};

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
    #[error("the program {0}")]
    Ended(String),
    #[error("told to stop")]
    Stopped,
    #[error(transparent)]
    Object(#[from] serde_json::Error),
    #[error(transparent)]
    Live(#[from] dra_live::failure::LiveError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Trouble for PlaygroundError {}

/// Name of the node, which the kubelet takes for its own.
const NODE: &str = "node-1";

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
    // A taint would keep pods away that kubectl creates.
    let labels = json!({"kubernetes.io/hostname": NODE, "dra-sdk.example.com/virtual-node": "true"});
    pods::post(
        &Api::all(client.clone()),
        &from_value::<NodeObject>(json!({"metadata": {"name": NODE, "labels": labels}}))?,
    )
    .await?;
    let mut node = Node::start(server.url(), &args.release, own)?;
    let patience = Duration::from_secs(args.seconds);
    let running = async {
        pods::create(&client, &manifests).await?;
        pods::until_running(&client, &manifests, patience).await
    };
    node.during(running).await?;
    put("playground| all pods run\n")?;
    if args.stay {
        stay(&mut node).await?;
    }
    node.during(pods::delete(&client, &manifests, patience)).await?;
    put("playground| all pods are gone, and their claims are unprepared\n")?;
    Ok(())
}

/// Waits until the trial is told to stop. A program that ends is told, once.
async fn stay(node: &mut Node) -> Result<(), PlaygroundError> {
    put("playground| Ctrl-C ends it\n")?;
    let mut stopped = std::pin::pin!(told_to_stop());
    tokio::select! {
        stopped = &mut stopped => return Ok(stopped?),
        ended = node.until_one_ends() => put(&format!("playground| {ended}\n"))?,
    }
    Ok(stopped.await?)
}

impl Node {
    /// Does something while all programs run.
    async fn during(&mut self, work: impl Future<Output = Result<(), PodsError>>) -> Result<(), PlaygroundError> {
        tokio::select! {
            done = work => Ok(done?),
            ended = self.until_one_ends() => Err(PlaygroundError::Ended(ended)),
            stopped = told_to_stop() => {
                stopped?;
                Err(PlaygroundError::Stopped)
            }
        }
    }
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
