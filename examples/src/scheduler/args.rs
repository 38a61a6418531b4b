//! The command line of `scheduler`.

use std::collections::BTreeMap;

use clap::{Parser, ValueEnum};
use dra_alloc::explain::Detail;
use dra_alloc::features::{Feature, Features};
use dra_attrs::profile::Profile;

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
    /// Gates that differ from the defaults of Kubernetes 1.37, such as DRAListTypeAttributes=true,DRADeviceTaints=false
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

/// Why a list of feature gates can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// No gate of the profile has the name.
    #[error("--feature-gates: no gate {name:?} in profile {profile}; known: {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The profile.
        profile: Profile,
        /// The gates that there are.
        known: Vec<&'static str>,
    },
    /// A part is not `NAME=true` or `NAME=false`.
    #[error("--feature-gates: {part:?} is not NAME=true or NAME=false")]
    Part {
        /// The part.
        part: String,
    },
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
    let mut on: BTreeMap<&str, bool> = BTreeMap::new();
    for feature in Feature::all() {
        on.extend(feature.gates(profile).iter().map(|gate| (*gate, Features::default().has(feature))));
    }
    for part in gates.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let value = part.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)));
        let (name, value) = value.ok_or_else(|| GateError::Part { part: part.to_owned() })?;
        let Some(gate) = on.get_mut(name) else {
            let known = Feature::all().flat_map(|feature| feature.gates(profile)).copied().collect();
            return Err(GateError::Unknown { name: name.to_owned(), profile, known });
        };
        *gate = value;
    }
    Ok(Features::from_gates(profile, |gate| on.get(gate).copied().unwrap_or(false)))
}

fn profile(text: &str) -> Result<Profile, String> {
    let known = [Profile::Kep, Profile::V1_37];
    let found = known.into_iter().find(|profile| profile.name() == text);
    found.ok_or_else(|| format!("known: {}", known.map(Profile::name).join(", ")))
}
