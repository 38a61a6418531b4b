//! Stand-in for an API server: a few kinds in memory, to try the programs of this folder without a cluster. It is no
//! Kubernetes.
//!
//! Objects pass the door of `dra_alloc::validate`: an object about devices that is stored here is one that a real API server of
//! the release stores. Left out: authentication and authorization, admission plugins, controllers (nobody makes claims from
//! templates, or removes what belongs to something that is gone), pages of lists, deletion of whole lists, protobuf,
//! `managedFields`, classes and expressions that select devices of a `v1alpha3` taint rule (dropped with a warning), kinds that
//! a gate hides, and everything that is not in the table of kinds. Nothing is kept when it ends.

mod apply;
mod chunk;
mod discovery;
mod door;
mod gate_metrics;
mod kinds;
mod merge_lists;
mod misbehave;
mod object;
mod patch;
mod refusal;
mod request;
mod selector;
mod served;
mod server;
mod shown;
mod store;
mod strategic;
mod table;
mod unknown;
mod verbs;
mod watching;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::{fmt, io};

use clap::Parser;
use dra_attrs::{GateError, GateSet};
use examples::live::{http, now};
use examples::output::{LineForm, OutputError, Trouble, program, put_line, say};
use examples::random::Random;
use examples::release_args::ReleaseArgs;
use serde::Serialize;
use tokio::net::TcpListener;

use discovery::ServerVersion;
use door::Door;
use misbehave::{Fault, Misbehaviour};
use served::{RuntimeConfig, Served, runtime_config};
use server::Server;
use store::Store;
use verbs::Api;

/// Largest number of connections at a time.
const MAX_CONNECTIONS: usize = 128;

/// Serves a few kinds of Kubernetes objects from memory, to try programs without a cluster; this is no Kubernetes
#[derive(Debug, Parser)]
#[command(name = "apiserver", version)]
struct Args {
    /// Port of 127.0.0.1 to listen on; 0 for any that is free
    #[arg(long, value_name = "PORT", default_value_t = 8001)]
    port: u16,
    /// Rules of the server.
    #[command(flatten)]
    rules: ReleaseArgs,
    /// Feature gates that differ from the defaults of the release, by their names in it
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    feature_gates: String,
    /// Versions to serve beside v1, as kube-apiserver takes them: resource.k8s.io/v1beta1=true,.. or api/all=true
    #[arg(long, value_name = "VERSIONS", default_value = "", hide_default_value = true, value_parser = runtime_config)]
    runtime_config: RuntimeConfig,
    /// Number of changes that a watch can go back
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    history: usize,
    /// Faults that come now and then
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FAULT,...")]
    misbehave: Vec<Fault>,
    /// Share of the requests in which there may be a fault
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u8).range(0..=90))]
    misbehave_percent: u8,
    /// Seed of UIDs, generated names and faults [default: the time]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Form of the line with the address
    #[arg(short, long, value_enum, default_value_t = LineForm::Text)]
    output: LineForm,
}

/// Line that the server prints once it listens.
#[derive(Debug, Serialize)]
struct Listens {
    address: String,
}

impl fmt::Display for Listens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.address)
    }
}

#[derive(Debug, thiserror::Error)]
enum ApiServerError {
    #[error("--feature-gates: {0}")]
    Gates(#[from] GateError),
    #[error("127.0.0.1:{port}: {error}")]
    Listen { port: u16, error: io::Error },
    #[error("the server can't begin: {0}")]
    Begin(String),
    #[error(transparent)]
    Runtime(io::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Trouble for ApiServerError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Gates(_))
    }
}

fn main() -> ExitCode {
    program(|args: &Args| {
        let server = Arc::new(server(args)?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let ended = runtime.map_err(ApiServerError::Runtime)?.block_on(listen(server, args));
        ended.map(|()| ExitCode::SUCCESS)
    })
}

fn server(args: &Args) -> Result<Server, ApiServerError> {
    let time = now();
    let seed = args.seed.unwrap_or_else(|| u64::try_from(time.as_nanosecond() & 0xffff_ffff).unwrap_or_default());
    let mut random = Random::new(seed);
    let faults = Random::new(random.draw());
    let door = Door {
        profile: args.rules.profile,
        gates: GateSet::parse(&args.feature_gates, args.rules.profile)?,
        pool_status: GateSet::parse(&args.feature_gates, args.rules.profile)?,
    };
    let store = Store::new(args.history);
    let served = Served::new(door.profile, &args.runtime_config);
    let api = Api::new(store, door, random, &served, time)
        .map_err(|refusal| ApiServerError::Begin(refusal.body().to_string()))?;
    let misbehaviour = Misbehaviour::new(&args.misbehave, args.misbehave_percent, faults);
    Ok(Server::new(api, misbehaviour, ServerVersion::of(door.profile), served))
}

async fn listen(server: Arc<Server>, args: &Args) -> Result<(), ApiServerError> {
    let port = args.port;
    let failed = |error| ApiServerError::Listen { port, error };
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.map_err(failed)?;
    let address = format!("http://{}", listener.local_addr().map_err(failed)?);
    put_line(args.output, &Listens { address })?;
    say(
        &"apiserver: a stand-in in memory, not Kubernetes; kubectl --server=URL reaches it, and nothing is kept at the end",
    );
    http::serve(listener, MAX_CONNECTIONS, move |request| Arc::clone(&server).serve(request)).await;
    Ok(())
}
