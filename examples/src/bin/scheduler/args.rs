//! Command line of `scheduler`.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use dra_alloc::explain::Detail;
use dra_alloc::preemption::Harm;
use examples::cluster_args::{ClusterArgs, LeaseArgs, VitalsArgs};
use examples::output::Format;
use examples::release_args::ReleaseArgs;
use examples::workload::WorkloadArgs;

use super::evict::EvictArgs;

/// Allocates the pending resource claims of a cluster on its nodes
///
/// Claims are allocated in the order in which they are read, those of one pod together, on the first node that can serve
/// all of them. Claims that already have an allocation keep their devices. Of workloads (Deployment, Job and the like) pods are
/// made, and of templates claims. Messages about manifests go to stderr. The
/// exit status is 1 if something can't be read, and 0 otherwise, even if claims can't be allocated.
#[derive(Clone, Debug, Parser)]
#[command(name = "scheduler", version, mut_group("LeaseArgs", |lease| lease.requires("bind")))]
pub(crate) struct Args {
    /// Manifests: YAML or JSON files, directories, - for stdin [default: a built-in cluster]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Built-in cluster to use if there are no manifests
    #[arg(long, value_enum, default_value_t = Cluster::Rack, conflicts_with = "files")]
    pub(crate) cluster: Cluster,
    /// Node to try; may be repeated, in this order [default: all nodes]
    #[arg(long = "node", value_name = "NAME")]
    pub(crate) nodes: Vec<String>,
    /// Schedule the pods instead of the claims: print the node of each pod and the calls of its binding, or the reasons of
    /// all nodes. Pods of one group are a gang: all or none
    #[arg(long)]
    pub(crate) pods: bool,
    /// Among the nodes with the highest score, take the one whose pools have the least room left, not the first one; with
    /// --pods. kube-scheduler has no such order
    #[arg(long, requires = "pods")]
    pub(crate) best_fit: bool,
    /// Take the devices that are the best for the objective in a JSON file, not the first that fit. kube-scheduler has no such
    /// rule
    #[arg(long, value_name = "FILE")]
    pub(crate) objective: Option<PathBuf>,
    /// Feature gates that differ from the defaults of the release, by their names in the profile, such as
    /// DRAListTypeAttributes=true,DRADeviceTaints=false
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    pub(crate) feature_gates: String,
    /// Rules to follow.
    #[command(flatten)]
    pub(crate) rules: ReleaseArgs,
    #[command(flatten)]
    pub(crate) workloads: WorkloadArgs,
    /// Level of detail for claims that can't be allocated
    #[arg(long, value_enum, default_value_t = Explain::Summary)]
    pub(crate) explain: Explain,
    /// Output format; with --bind, JSON is one object a line
    #[arg(short, long, value_enum, default_value_t = Format::Table, global = true)]
    pub(crate) output: Format,
    #[command(flatten)]
    pub(crate) server: ClusterArgs,
    /// Work as a second scheduler on the cluster: bind the pods that name it in spec.schedulerName
    #[arg(long, requires = "live")]
    pub(crate) bind: bool,
    /// Preempt pods of lower priority for the devices of a pod that waits, by a rule; with --bind. No release of kube-scheduler does
    #[arg(long, value_enum, value_name = "RULE", requires = "bind", num_args = 0..=1, require_equals = true,
        default_missing_value = "kube")]
    pub(crate) preempt: Option<Preempt>,
    /// Name that pods give in spec.schedulerName; may be repeated. The lease has the first name
    #[arg(long, value_name = "NAME", default_value = "dra-sdk", requires = "live")]
    pub(crate) scheduler_name: Vec<String>,
    /// Number of pods whose claims and bindings are written at a time; 1 is one after another
    #[arg(long, value_name = "COUNT", default_value_t = 32, requires = "bind",
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) binds: u16,
    /// Driver whose devices another scheduler gives away: they are not allocated; may be repeated
    #[arg(long = "leave-driver", value_name = "DRIVER", requires = "bind")]
    pub(crate) leave_drivers: Vec<String>,
    /// Device class that is left to another scheduler: pods with a claim of it are refused; may be repeated
    #[arg(long = "leave-class", value_name = "CLASS", requires = "bind")]
    pub(crate) leave_classes: Vec<String>,
    #[command(flatten)]
    pub(crate) lease: LeaseArgs,
    #[command(flatten)]
    pub(crate) vitals: VitalsArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Rule by which victims are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preempt {
    /// Say who would have to go with the least harm, and preempt nobody
    Say,
    /// That of kube-scheduler, as KEP-5690 applies it to devices
    Kube,
    /// The least harm by the same criteria, of all nodes and sets of pods
    Least,
}

impl From<Preempt> for Harm {
    fn from(rule: Preempt) -> Self {
        match rule {
            Preempt::Kube => Self::Kube,
            Preempt::Say | Preempt::Least => Self::KubeExact,
        }
    }
}

/// Question about a cluster.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Explain what is pending on the cluster (with --live before it)
    Why {
        /// Pod, or claim of pods, with its namespace if it is not that of the context [default: all pods that are pending]
        #[arg(value_name = "CLAIM or POD")]
        name: Option<String>,
    },
    /// Say before a device taint rule is written which pods it would evict, and when
    Evict(EvictArgs),
}

/// Built-in cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cluster {
    /// Two nodes with GPUs, NICs, CPUs and memory
    Rack,
    /// User stories of KEP-6072
    Stories,
    /// Boards of KEP-6072
    Boards,
}

/// Level of detail of explanations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Explain {
    /// No reasons
    Off,
    /// One line for each node
    Summary,
    /// All reasons, as a tree for each node
    Full,
}

impl Cluster {
    /// Returns the file's name and text.
    pub(crate) const fn manifest(self) -> (&'static str, &'static str) {
        match self {
            Self::Rack => ("rack.yaml", include_str!("../../../data/clusters/rack.yaml")),
            Self::Stories => ("stories.yaml", include_str!("../../../data/clusters/stories.yaml")),
            Self::Boards => ("boards.yaml", include_str!("../../../data/clusters/boards.yaml")),
        }
    }
}

impl From<Explain> for Detail {
    fn from(explain: Explain) -> Self {
        match explain {
            Explain::Off => Self::Off,
            Explain::Summary => Self::Summary,
            Explain::Full => Self::Full,
        }
    }
}
