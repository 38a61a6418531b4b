//! The command line of `scheduler`.

use clap::{Parser, ValueEnum};
use dra_alloc::explain::Detail;
use dra_alloc::features::{Feature, Features};
use dra_attrs::profile::Profile;

use crate::gates::{GateError, changed, profile};

/// Allocates the pending resource claims of a cluster on its nodes
///
/// Claims are allocated in the order in which they are read, each on the first node that can serve it; claims with an
/// allocation count as they are. Lines about manifests go to stderr. The exit status is 1 if something can't be read, and
/// 0 otherwise, also if claims can't be allocated.
#[derive(Clone, Debug, Parser)]
#[command(name = "scheduler")]
#[non_exhaustive]
pub struct Args {
    /// Manifests: YAML or JSON files, directories of them, - for stdin; a built-in cluster if there are none
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,
    /// The built-in cluster
    #[arg(long, value_enum, default_value_t = Cluster::Rack, conflicts_with = "files")]
    pub cluster: Cluster,
    /// A node to try, in this order; all nodes if there is none
    #[arg(long = "node", value_name = "NAME")]
    pub nodes: Vec<String>,
    /// Gates that differ from the defaults of Kubernetes 1.37, by their names in the profile, such as
    /// DRAListTypeAttributes=true,DRADeviceTaints=false
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    pub feature_gates: String,
    /// The text to follow: kep or v1.37
    #[arg(long, value_name = "PROFILE", default_value = "kep", value_parser = profile)]
    pub profile: Profile,
    /// How much to say about nodes that can't serve a claim
    #[arg(long, value_enum, default_value_t = Explain::Summary)]
    pub explain: Explain,
    /// What to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// A cluster that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum Cluster {
    /// Two nodes with GPUs, NICs, CPUs and memory
    Rack,
    /// The user stories of KEP-6072
    Stories,
    /// The boards of KEP-6072
    Boards,
}

/// How much is said about a "no".
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum Explain {
    /// That there is none
    Off,
    /// One line for each node
    Summary,
    /// Everything
    Full,
}

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum Output {
    /// A table, and below it why claims are not allocated
    Table,
    /// The claims with their status, as a list
    Json,
    /// The claims with their status, one document each
    Yaml,
}

impl Cluster {
    /// The file's name and text.
    #[must_use]
    pub const fn manifest(self) -> (&'static str, &'static str) {
        match self {
            Self::Rack => ("rack.yaml", include_str!("../../data/clusters/rack.yaml")),
            Self::Stories => ("stories.yaml", include_str!("../../data/clusters/stories.yaml")),
            Self::Boards => ("boards.yaml", include_str!("../../data/clusters/boards.yaml")),
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

/// The features of 1.37, with the gates of a list changed: `A=true,B=false`. Gates have the names of the profile.
///
/// # Errors
/// A gate that the profile does not know, or a part that is no gate with a value.
///
/// ```
/// use dra_alloc::features::{Feature, Features};
/// use dra_attrs::profile::Profile;
/// use examples::scheduler::args::features;
/// let expected = Features::default().with(Feature::ListTypeAttributes);
/// assert_eq!(features(Profile::Kep, "DRAListTypeAttributes=true"), Ok(expected));
/// ```
pub fn features(profile: Profile, gates: &str) -> Result<Features, GateError> {
    let of =
        |feature: Feature| feature.gates(profile).iter().map(move |gate| (*gate, Features::default().has(feature)));
    let on = changed(profile, Feature::all().flat_map(of), gates)?;
    Ok(Features::from_gates(profile, |gate| on.get(gate).copied()))
}
