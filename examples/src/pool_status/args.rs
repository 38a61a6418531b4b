//! The command line of `pool-status`.

use clap::{Parser, ValueEnum};
use dra_attrs::profile::Profile;
use k8s_openapi::jiff::Timestamp;
use poolstatus::gate::{Gate, Gates};
use poolstatus::request::{DEFAULT_LIMIT, MAX_LIMIT};

use super::Question;
use crate::gates::{GateError, changed, profile};
use crate::instant::instant;

/// Shows how many devices of each resource pool are left, and why not more
///
/// Slices, claims and taint rules are read from manifests, as `kubectl get resourceslices,resourceclaims,devicetaintrules
/// --all-namespaces -o yaml` prints them. Lines about manifests go to stderr. The exit status is 1 if something can't be
/// read, and 0 otherwise.
#[derive(Clone, Debug, Parser)]
#[command(name = "pool-status")]
#[non_exhaustive]
pub struct Args {
    /// Manifests: YAML or JSON files, directories of them, - for stdin; a built-in cluster if there are none
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,
    /// A driver; every driver that publishes slices if there is none
    #[arg(long = "driver", value_name = "NAME")]
    pub drivers: Vec<String>,
    /// Only the pool of that name
    #[arg(long, value_name = "NAME")]
    pub pool: Option<String>,
    /// The most pools of a driver to list
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_LIMIT,
        value_parser = clap::value_parser!(i32).range(1..=i64::from(MAX_LIMIT)))]
    pub limit: i32,
    /// The attribute that tells types of partitions where slices name none, such as gpu.example.com/profile
    #[arg(long, value_name = "ATTRIBUTE")]
    pub partition_type: Option<String>,
    /// Only pools that claims of a namespace hold devices of
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// A row for each pool or each node
    #[arg(long, value_enum, default_value_t = By::Pool)]
    pub by: By,
    /// Gates that differ from the defaults of Kubernetes 1.37, such as DRADeviceTaintRules=false
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    pub feature_gates: String,
    /// The text to follow: kep or v1.37
    #[arg(long, value_name = "PROFILE", default_value = "kep", value_parser = profile)]
    pub profile: Profile,
    /// The time of the answer, such as 2026-11-21T12:00:00Z; now by default
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub now: Option<Timestamp>,
    /// What to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum By {
    /// A pool
    Pool,
    /// A node, with the pools that it has
    Node,
}

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum Output {
    /// Tables of pools, partitions and shares
    Table,
    /// The requests with their status: one object for one driver, a list for several
    Json,
    /// The requests with their status, one document each
    Yaml,
}

impl Args {
    /// What is asked.
    ///
    /// # Errors
    /// A gate that is not known, or a part that is no gate with a value.
    pub fn question(&self) -> Result<Question, GateError> {
        let known = Gate::all().map(|gate| (gate.name(), Gates::default().has(gate)));
        let on = changed(self.profile, known, &self.feature_gates)?;
        Ok(Question {
            drivers: self.drivers.clone(),
            pool: self.pool.clone(),
            limit: self.limit,
            partition_type: self.partition_type.clone(),
            namespace: self.namespace.clone(),
            gates: Gates::from_gates(|gate| on.get(gate).copied()),
            profile: self.profile,
        })
    }
}
