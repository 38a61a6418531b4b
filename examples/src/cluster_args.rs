//! Flags of the programs that can work on a cluster. They are there in every build, so that a program which was built
//! without the feature `live` says what is missing.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Flags that choose a cluster.
#[derive(Args, Clone, Debug, Default)]
#[non_exhaustive]
pub struct ClusterArgs {
    /// Work on a cluster: that of the kubeconfig, or the one that the program runs in (cargo feature live)
    #[arg(long)]
    pub live: bool,
    /// Address of an API server that asks nobody who they are, such as the stand-in, instead of a kubeconfig
    #[arg(long, value_name = "URL", requires = "live", conflicts_with_all = ["context", "kubeconfig"])]
    pub server: Option<String>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME", requires = "live")]
    pub context: Option<String>,
    /// File to read instead of the kubeconfig of the environment
    #[arg(long, value_name = "FILE", requires = "live")]
    pub kubeconfig: Option<PathBuf>,
}

/// Flags of programs that stay on a cluster.
#[derive(Args, Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct VitalsArgs {
    /// Address at which to serve /metrics and /healthz, such as 127.0.0.1:9090 [default: nowhere]
    #[arg(long, value_name = "ADDRESS", requires = "live")]
    pub metrics_address: Option<SocketAddr>,
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
