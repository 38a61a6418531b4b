//! Flags and commands of the kubelet.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use examples::cluster_args::{ClusterArgs, VitalsArgs};
use examples::output::LineForm;
use examples::release_args::ReleaseArgs;
use examples::workload::WorkloadArgs;

use super::agent::CALL_TIMEOUT;
use super::diagnose;
use super::error::KubeletError;

/// Prepares and unprepares the resource claims of pods like a kubelet; without a command, runs a demonstration
#[derive(Debug, Parser)]
#[command(name = "kubelet", version)]
pub(crate) struct Args {
    /// Serve a driver on this socket that prepares every claim, and print the calls
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["plugin", "registry", "state"])]
    pub(crate) fake_driver: Option<PathBuf>,
    /// Name of the served driver
    #[arg(long, value_name = "NAME", default_value = "gpu.example.com", requires = "fake_driver")]
    pub(crate) driver: String,
    /// Registered driver, as NAME=SOCKET; may be repeated (only with a command)
    #[arg(long, value_name = "PLUGIN", value_parser = plugin)]
    pub(crate) plugin: Vec<(String, PathBuf)>,
    /// Directory of registration sockets: each is asked, and its driver registered (only with a command)
    #[arg(long, value_name = "DIR")]
    pub(crate) registry: Option<PathBuf>,
    /// Seconds that a driver has for a call
    #[arg(long, value_name = "SECONDS", default_value_t = CALL_TIMEOUT.as_secs(), value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) call_seconds: u64,
    /// Checkpoint file (only with a command)
    #[arg(long, value_name = "FILE", default_value = "dra_manager_state")]
    pub(crate) state: PathBuf,
    /// Feature gates that differ from the defaults of the release, by their names in the profile
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    pub(crate) feature_gates: String,
    /// Print the counters of skipped calls and of operations at the end (only with prepare and unprepare)
    #[arg(long)]
    pub(crate) metrics: bool,
    /// Do not check that the node declares what a pod requires, like a kubelet with that feature gate off
    #[arg(long)]
    pub(crate) no_admission: bool,
    /// Rules to follow.
    #[command(flatten)]
    pub(crate) rules: ReleaseArgs,
    /// Go on if a manifest has fields that are unknown, as the API server does; a claim below a misspelt field is not
    /// prepared
    #[arg(long)]
    pub(crate) ignore_unknown_fields: bool,
    #[command(flatten)]
    pub(crate) server: ClusterArgs,
    /// Name of the node that the kubelet is an agent of
    #[arg(long, value_name = "NAME", default_value = "node-1", requires = "live")]
    pub(crate) node_name: String,
    /// Form of the lines that tell what has happened
    #[arg(short, long, value_enum, default_value_t, requires = "live")]
    pub(crate) output: LineForm,
    #[command(flatten)]
    pub(crate) vitals: VitalsArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
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
pub(crate) struct PodArgs {
    /// Name of the pod, with its namespace if it is not "default"
    pub(crate) pod: String,
    /// Manifests with the pod and its claims, or with its workload, templates, classes, nodes and slices: files, directories, -
    /// for stdin
    #[arg(required = true)]
    pub(crate) files: Vec<String>,
    #[command(flatten)]
    pub(crate) workloads: WorkloadArgs,
}

impl Args {
    pub(crate) const fn call_timeout(&self) -> Duration {
        Duration::from_secs(self.call_seconds)
    }

    /// Returns the sockets of the registered drivers.
    pub(crate) fn plugins(&self) -> Result<BTreeMap<String, PathBuf>, KubeletError> {
        let mut plugins = BTreeMap::new();
        for (driver, socket) in &self.plugin {
            if plugins.insert(driver.clone(), socket.clone()).is_some() {
                return Err(KubeletError::Plugin(driver.clone()));
            }
        }
        Ok(plugins)
    }
}

fn plugin(text: &str) -> Result<(String, PathBuf), String> {
    let parts = text.split_once('=').filter(|(driver, socket)| !driver.is_empty() && !socket.is_empty());
    parts.map(|(driver, socket)| (driver.to_owned(), socket.into())).ok_or_else(|| "not NAME=SOCKET".to_owned())
}
