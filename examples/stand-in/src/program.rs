//! The program `apiserver`: flags, and the line with the address.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::{Parser, ValueEnum};
use dra_attrs::{GateError, GateSet, Profile, ProfileError};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;
use tokio::net::TcpListener;

use crate::admission::Plugin;
use crate::api::Api;
use crate::connections;
use crate::controllers;
use crate::discovery::ServerVersion;
use crate::door::Door;
use crate::misbehave::{Fault, Misbehaviour};
use crate::random::Random;
use crate::rights::Rights;
use crate::served::{RuntimeConfig, Served, runtime_config};
use crate::service::Service;
use crate::store::Store;

/// Serves a few kinds of Kubernetes objects from memory, to try programs without a cluster; this is no Kubernetes
#[derive(Debug, Parser)]
#[command(name = "apiserver", version)]
pub(crate) struct Args {
    /// Port of 127.0.0.1 to listen on; 0 for any that is free
    #[arg(long, value_name = "PORT", default_value_t = 8001)]
    port: u16,
    /// Rules to follow: a release of Kubernetes (1.34, 1.35, 1.36, 1.37), or kep (texts of the KEPs)
    #[arg(long, visible_alias = "release", value_name = "RELEASE", default_value_t = Profile::V1_37, value_parser = rules)]
    profile: Profile,
    /// Feature gates that differ from the defaults of the release, by their names in it
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    feature_gates: String,
    /// Versions to serve beside v1, as kube-apiserver takes them: resource.k8s.io/v1beta1=true,.. or api/all=true
    #[arg(long, value_name = "VERSIONS", default_value = "", hide_default_value = true, value_parser = runtime_config)]
    runtime_config: RuntimeConfig,
    /// Admission plugins to leave out
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PLUGIN,...")]
    disable_admission_plugins: Vec<Plugin>,
    /// Makes claims from templates and service accounts, takes the taint from nodes that report Ready, and removes what belongs to something that is gone
    #[arg(long)]
    controllers: bool,
    /// Manifests with roles and their bindings: tokens are the names of service accounts, system:serviceaccount:NAMESPACE:NAME,
    /// with @NODE if they are bound to one
    #[arg(long, value_name = "FILE", num_args = 1..)]
    rbac: Vec<PathBuf>,
    /// Time that passes before each answer, in milliseconds
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    delay_ms: u32,
    /// Largest number of objects in one answer to a list, whatever the client asks for [default: all]
    #[arg(long, value_name = "COUNT")]
    chunk: Option<NonZeroUsize>,
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

/// Form of the line with the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LineForm {
    /// Sentences
    Text,
    /// One JSON object a line
    Json,
}

/// Reason that a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The arguments are none of the program `apiserver`.
    #[error("{0}")]
    Arguments(#[from] clap::Error),
    /// A feature gate is none of the release.
    #[error("--feature-gates: {0}")]
    Gates(#[from] GateError),
    /// A file with roles can't be read, or is wrong.
    #[error("--rbac: {0}")]
    Rights(String),
    /// Nothing can listen on the port.
    #[error("127.0.0.1:{port}: {error}")]
    Listen {
        /// Port of the arguments.
        port: u16,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The namespaces that every cluster has can't be made.
    #[error("the server can't begin: {0}")]
    Begin(String),
    /// No thread or runtime can be started, or the address can't be printed.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl StartError {
    const fn is_usage(&self) -> bool {
        matches!(self, Self::Arguments(_) | Self::Gates(_) | Self::Rights(_))
    }
}

/// Reads the name of a release, with or without its `v`, or `kep`.
fn rules(name: &str) -> Result<Profile, ProfileError> {
    format!("v{name}").parse().or_else(|_| name.parse())
}

/// Returns the time. A clock before 1970 counts as 1970.
pub(crate) fn now() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Writes a line to stderr, with control characters escaped. Ignores failures, which could not be reported anywhere else.
pub(crate) fn say(line: &impl fmt::Display) {
    let line: String = line.to_string().chars().flat_map(shown).collect();
    let _ = writeln!(io::stderr(), "{line}");
}

fn shown(character: char) -> Vec<char> {
    if character.is_control() && character != '\n' { character.escape_default().collect() } else { vec![character] }
}

/// Runs the program `apiserver` with the arguments of the process, to its exit status: 2 if the command line is wrong.
#[must_use]
pub fn run() -> ExitCode {
    match Args::try_parse() {
        Err(help) if !help.use_stderr() => {
            let _ = help.print();
            ExitCode::SUCCESS
        }
        args => {
            let ended = args.map_err(StartError::Arguments).and_then(|args| serve(&args));
            ended.map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS)
        }
    }
}

fn failed(error: &StartError) -> ExitCode {
    match error {
        StartError::Arguments(error) => drop(error.print()),
        error => say(&format_args!("apiserver: {error}")),
    }
    if error.is_usage() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

fn serve(args: &Args) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listening = Listening::begin(args).await?;
        let mut stdout = io::stdout().lock();
        match args.output {
            LineForm::Text => writeln!(stdout, "{}", listening.url)?,
            LineForm::Json => writeln!(stdout, "{}", json!({"address": listening.url}))?,
        }
        stdout.flush()?;
        drop(stdout);
        say(
            &"apiserver: a stand-in in memory, not Kubernetes; kubectl --server=URL reaches it, and nothing is kept at the end",
        );
        listening.serve().await;
        Ok(())
    })
}

/// Server that has its port.
pub(crate) struct Listening {
    pub(crate) url: String,
    listener: TcpListener,
    service: Arc<Service>,
    has_controllers: bool,
}

impl Listening {
    /// Takes the port.
    ///
    /// # Errors
    /// The port is taken, or the flags contradict the release.
    pub(crate) async fn begin(args: &Args) -> Result<Self, StartError> {
        let service = Arc::new(service(args)?);
        let port = args.port;
        let failed = |error| StartError::Listen { port, error };
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.map_err(failed)?;
        let url = format!("http://{}", listener.local_addr().map_err(failed)?);
        Ok(Self { url, listener, service, has_controllers: args.controllers })
    }

    /// Answers requests for ever.
    pub(crate) async fn serve(self) {
        let service = self.service;
        if self.has_controllers {
            tokio::spawn(controllers::run(Arc::clone(&service)));
        }
        connections::serve(self.listener, move |request| Arc::clone(&service).serve(request)).await;
    }
}

/// Reads arguments as of the program, without its name.
///
/// # Errors
/// There is no such flag, or a value is none of its flag.
pub(crate) fn arguments(args: &[&str]) -> Result<Args, StartError> {
    let name = std::iter::once("apiserver");
    Ok(Args::try_parse_from(name.chain(args.iter().copied()).map(OsString::from))?)
}

fn service(args: &Args) -> Result<Service, StartError> {
    let time = now();
    let seed = args.seed.unwrap_or_else(|| u64::try_from(time.as_nanosecond() & 0xffff_ffff).unwrap_or_default());
    let mut random = Random::new(seed);
    let faults = Random::new(random.draw());
    let gates = GateSet::parse(&args.feature_gates, args.profile)?;
    let door = Door { profile: args.profile, gates, pool_status: gates };
    let store = Store::new(args.history);
    let served = Served::new(door.profile, &args.runtime_config);
    let off = args.disable_admission_plugins.clone();
    let api = Api::new(store, door, random, (off, rights(args)?), (&served, time))
        .map_err(|refusal| StartError::Begin(refusal.body().to_string()))?;
    let misbehaviour = Misbehaviour::new(&args.misbehave, args.misbehave_percent, faults);
    let delay = Duration::from_millis(args.delay_ms.into());
    Ok(Service::new(api, misbehaviour, (ServerVersion::of(door.profile), served), (delay, args.chunk)))
}

fn rights(args: &Args) -> Result<Option<Arc<Rights>>, StartError> {
    if args.rbac.is_empty() {
        return Ok(None);
    }
    let text = |path: &PathBuf| {
        std::fs::read_to_string(path).map_err(|error| StartError::Rights(format!("{}: {error}", path.display())))
    };
    let texts: Vec<String> = args.rbac.iter().map(text).collect::<Result<_, _>>()?;
    Ok(Some(Arc::new(Rights::read(&texts).map_err(StartError::Rights)?)))
}
