//! Flags of the programs that can work on a cluster. They are there in every build, so that a program which was built
//! without the feature `live` says what is missing.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

/// Flags that choose a cluster, if the program works on one.
#[derive(Args, Clone, Debug, Default)]
#[command(mut_group("ClusterPlace", |place| place.requires("live")))]
#[non_exhaustive]
pub struct ClusterArgs {
    /// Work on a cluster: that of the kubeconfig, or the one that the program runs in (cargo feature live)
    #[arg(long)]
    pub live: bool,
    /// Place of the cluster.
    #[command(flatten)]
    pub place: ClusterPlace,
}

/// Flags that choose a cluster.
#[derive(Args, Clone, Debug, Default)]
#[non_exhaustive]
pub struct ClusterPlace {
    /// Address of an API server that asks nobody who they are, such as the stand-in, instead of a kubeconfig
    #[arg(long, value_name = "URL", conflicts_with_all = ["context", "kubeconfig"])]
    pub server: Option<String>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// File to read instead of the kubeconfig of the environment
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

impl ClusterPlace {
    /// Returns true if a flag names a cluster.
    #[must_use]
    pub const fn is_given(&self) -> bool {
        self.server.is_some() || self.context.is_some() || self.kubeconfig.is_some()
    }
}

/// For a program that works on nothing else.
impl From<ClusterPlace> for ClusterArgs {
    fn from(place: ClusterPlace) -> Self {
        Self { live: true, place }
    }
}

/// Flags of programs that stay on a cluster.
#[derive(Args, Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct VitalsArgs {
    /// Address at which to serve /metrics and /healthz, such as 127.0.0.1:9090 [default: nowhere]
    #[arg(long, value_name = "ADDRESS", requires = "live")]
    pub metrics_address: Option<SocketAddr>,
}

/// Flags of programs of which one copy works at a time.
#[derive(Args, Clone, Debug)]
#[non_exhaustive]
pub struct LeaseArgs {
    /// Namespace of the lease that keeps a second copy waiting
    #[arg(long, value_name = "NAMESPACE", default_value = "default")]
    pub lease_namespace: String,
    /// Seconds that the lease lasts without being renewed
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub lease_seconds: u32,
}

impl LeaseArgs {
    /// Returns the time that the lease lasts without being renewed.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_secs(self.lease_seconds.into())
    }
}

/// Error of a program that was built without the feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "--live: the program was built without what talks to a cluster: add --features live to the cargo command; the stand-in \
     for a cluster is cargo run -p examples --features live --bin apiserver"
)]
#[non_exhaustive]
pub struct BuiltWithoutLive;

impl BuiltWithoutLive {
    /// Creates the error.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Default for BuiltWithoutLive {
    fn default() -> Self {
        Self::new()
    }
}
