//! Command line of `pool-status`.

use std::num::NonZeroU32;

use clap::{Parser, ValueEnum};
use dra_attrs::GateError;
use k8s_openapi::jiff::Timestamp;
use poolstatus::{InputKind, StatusRequest};

use examples::cluster_args::{ClusterArgs, LeaseArgs, VitalsArgs};
use examples::feature_gates::{POOL_STATUS_GATES, feature_gates};
use examples::instant::instant;
use examples::output::Format;
use examples::pool_question::Question;
use examples::pool_table::By;
use examples::release_args::ReleaseArgs;

/// Shows how many devices of each resource pool are allocated, available or unavailable
///
/// Slices, claims and taint rules are read from manifests, as `kubectl get resourceslices,resourceclaims,devicetaintrules
/// --all-namespaces -o yaml` prints them. Requests among them are answered, and printed with their status. Problems of the manifests go to stderr. The exit status is 1 if a manifest can't
/// be read, and 0 otherwise.
#[derive(Clone, Debug, Parser)]
#[command(name = "pool-status", version, mut_group("LeaseArgs", |lease| lease.requires("controller")))]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct Args {
    /// Manifests: YAML or JSON files, directories, - for stdin [default: a built-in cluster]
    #[arg(value_name = "FILE", conflicts_with = "live")]
    pub(crate) files: Vec<String>,
    /// Driver to show; may be repeated [default: all drivers that publish slices]
    #[arg(long = "driver", value_name = "NAME")]
    pub(crate) drivers: Vec<String>,
    /// Show only the pool of that name
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<String>,
    /// Maximum number of listed pools per driver
    #[arg(long, value_name = "NUMBER", default_value_t = StatusRequest::DEFAULT_LIMIT,
        value_parser = clap::value_parser!(i32).range(1..=i64::from(StatusRequest::MAX_LIMIT)))]
    pub(crate) limit: i32,
    /// Attribute that tells partition types apart where slices name none, such as gpu.example.com/profile
    #[arg(long, value_name = "ATTRIBUTE")]
    pub(crate) partition_type: Option<String>,
    /// Show only pools of which claims of that namespace hold devices
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Print a row for each pool or for each node
    #[arg(long, value_enum, default_value_t = By::Pool)]
    pub(crate) by: By,
    /// Feature gates that differ from the defaults of the release, such as DRADeviceTaintRules=false
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    pub(crate) feature_gates: String,
    /// Rules to follow.
    #[command(flatten)]
    pub(crate) rules: ReleaseArgs,
    /// Observation time, such as 2026-11-21T12:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) now: Option<Timestamp>,
    /// Output format [default: yaml if the manifests have requests, table otherwise]
    #[arg(short, long, value_enum)]
    pub(crate) output: Option<Format>,
    /// Print an alert for each request with fewer available devices
    #[arg(long, value_name = "DEVICES")]
    pub(crate) alert_below: Option<i64>,
    /// Print the metrics of the controller for each request; with --now, time stands still
    #[arg(long)]
    pub(crate) metrics: bool,
    /// Refuse further requests of one minute, as a limit per user does; all requests are of one user
    #[arg(long, value_name = "REQUESTS")]
    pub(crate) per_user: Option<NonZeroU32>,
    /// Create and read the requests as a user who has this `ClusterRole` of the manifests, and no other
    #[arg(long, value_name = "NAME")]
    pub(crate) as_role: Option<String>,
    /// Print the `ClusterRole` of users who may ask for the status of pools
    #[arg(long)]
    pub(crate) role: bool,
    /// Leave requests pending, like a controller that is not running
    #[arg(long)]
    pub(crate) no_controller: bool,
    /// Serve no requests, like an API server whose feature gate is off
    #[arg(long)]
    pub(crate) not_served: bool,
    /// Leave requests pending, like a controller whose initial list of this kind is not complete
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) not_synced: Option<Listed>,
    /// Answer like a controller that can't list the objects of this kind
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) list_error: Option<Listed>,
    #[command(flatten)]
    pub(crate) server: ClusterArgs,
    /// Print the tables again whenever they change
    #[arg(long, requires = "live")]
    pub(crate) watch: bool,
    /// Answer the requests of the cluster, and delete them an hour later
    #[arg(long, requires = "live", conflicts_with = "watch")]
    pub(crate) controller: bool,
    /// Largest number of requests that the controller answers in a second
    #[arg(long, value_name = "NUMBER", default_value = "100", requires = "controller")]
    pub(crate) answers_per_second: NonZeroU32,
    #[command(flatten)]
    pub(crate) lease: LeaseArgs,
    #[command(flatten)]
    pub(crate) vitals: VitalsArgs,
}

/// Kind of objects from which a status is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listed {
    /// `ResourceSlice`s
    Slices,
    /// `ResourceClaim`s
    Claims,
}

impl From<Listed> for InputKind {
    fn from(listed: Listed) -> Self {
        match listed {
            Listed::Slices => Self::ResourceSlices,
            Listed::Claims => Self::ResourceClaims,
        }
    }
}

impl Args {
    /// Builds the question for each driver.
    ///
    /// # Errors
    /// A gate is unknown, or a part of the list is not `NAME=true` or `NAME=false`.
    pub(crate) fn question(&self) -> Result<Question, GateError> {
        Ok(Question {
            drivers: self.drivers.clone(),
            pool: self.pool.clone(),
            limit: self.limit,
            partition_type: self.partition_type.clone(),
            namespace: self.namespace.clone(),
            gates: feature_gates(&self.feature_gates, self.rules.profile, &POOL_STATUS_GATES)?,
            profile: self.rules.profile,
        })
    }
}
