//! Commands of the driver on its node: `prepare`, `unprepare` and `serve`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use dra_alloc::claims::ClaimKey;
use dra_alloc::kubelet::ClaimRef;
use dra_live::now;
use dra_live::prepared_claims::{ClaimSettings, LostLedger, PreparedClaims, PreparedClaimsError, boot_id};
use examples::cluster_args::{ClusterArgs, VitalsArgs};
use examples::manifest::Manifests;
use examples::output::{LineForm, OutputError, put, say};
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::hardware::Hardware;
use super::shown_devices::ShownDevices;
use super::{live, serve};

/// Commands of the driver on its node.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Prepare claims: write the CDI file of each, and print its devices
    Prepare(ClaimArgs),
    /// Unprepare claims: remove what was prepared, also of claims that are not known
    Unprepare(ClaimArgs),
    /// Serve the kubelet's calls on unix sockets (cargo feature grpc)
    Serve(Box<ServeArgs>),
}

#[derive(Debug, Args)]
struct NodeArgs {
    /// Name of the driver
    #[arg(long, value_name = "NAME", default_value = "pci.example.com", value_parser = crate::driver_name)]
    driver: String,
    /// Directory of the ledger of prepared claims
    #[arg(long, value_name = "DIR")]
    state: PathBuf,
    /// Directory of CDI specs
    #[arg(long, value_name = "DIR", default_value = dra_alloc::driver::CdiSpec::DIRECTORY)]
    cdi: PathBuf,
    /// Begin with a new ledger though there are CDI files without one: remove these, and reset the devices of the drained node
    #[arg(long)]
    new_ledger: bool,
    /// Id of this boot instead of the kernel's
    #[arg(long, value_name = "ID")]
    boot_id: Option<String>,
}

/// Claims of a command.
#[derive(Debug, Args)]
pub(crate) struct ClaimArgs {
    #[command(flatten)]
    node: NodeArgs,
    /// Manifests with claims: files, directories, - for stdin
    #[arg(required = true)]
    files: Vec<String>,
}

/// Sockets of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    node: NodeArgs,
    /// Directory of the DRA socket
    #[arg(long, value_name = "DIR")]
    plugin_dir: PathBuf,
    /// Directory of registration sockets, which the kubelet watches
    #[arg(long, value_name = "DIR")]
    registry: PathBuf,
    /// UID of this instance's pod: names sockets of its own, so that another instance can run beside it during an update
    #[arg(long, value_name = "UID")]
    pod_uid: Option<String>,
    #[command(flatten)]
    pub(crate) server: ClusterArgs,
    #[command(flatten)]
    pub(crate) machine: crate::MachineArgs,
    /// Slices with the devices to publish instead of those of the machine: a file, - for stdin (with --live)
    #[arg(long, value_name = "FILE", requires = "live", conflicts_with_all = ["sysfs", "capture"])]
    pub(crate) devices: Option<String>,
    /// Name of the node and of the pool (with --live)
    #[arg(long, value_name = "NAME", default_value = "node-1", value_parser = crate::node_name)]
    pub(crate) node_name: String,
    /// Delete the slices of the driver on this node, and end (with --live)
    #[arg(long, requires = "live")]
    pub(crate) withdraw: bool,
    /// Form of the lines that tell what has happened
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: LineForm,
    #[command(flatten)]
    pub(crate) vitals: VitalsArgs,
    /// Manifests that stand for the API server: read again at each call
    #[arg(required_unless_present = "live")]
    pub(super) files: Vec<String>,
}

/// Reason that a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeCommandError {
    #[error("{}", with_flag(_0))]
    Claims(#[from] PreparedClaimsError),
    #[error("{0}")]
    Manifest(String),
    #[error("{0} claims failed")]
    Failed(usize),
    #[error(transparent)]
    Serve(#[from] serve::ServeError),
    #[error(transparent)]
    Live(#[from] Box<live::LiveError>),
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Runs a command.
///
/// # Errors
/// The reason that it failed, for some of the claims or altogether.
pub(crate) fn run(command: &NodeCommand) -> Result<(), NodeCommandError> {
    match command {
        NodeCommand::Prepare(args) => each(args, |claims, asked, claim| {
            let devices = claims.prepare(asked, &|_| Ok(Some(claim.clone())), now())?;
            let ids: Vec<String> = devices.into_iter().flat_map(|device| device.cdi_ids).collect();
            Ok(if ids.is_empty() { "no device of this driver".to_owned() } else { ids.join(" ") })
        }),
        NodeCommand::Unprepare(args) => each(args, |claims, asked, _| {
            claims.unprepare(&asked.uid, now())?;
            Ok("unprepared".to_owned())
        }),
        NodeCommand::Serve(args) if args.server.live => Ok(live::run(args).map_err(Box::new)?),
        NodeCommand::Serve(args) => Ok(serve::serve(args)?),
    }
}

type ClaimWork<'a> =
    &'a dyn Fn(&PreparedClaims<Hardware>, &ClaimRef, &ResourceClaim) -> Result<String, PreparedClaimsError>;

/// Does some work for each claim, and prints a line for each. A claim that fails keeps none from its turn.
fn each(
    args: &ClaimArgs,
    work: impl Fn(&PreparedClaims<Hardware>, &ClaimRef, &ResourceClaim) -> Result<String, PreparedClaimsError>,
) -> Result<(), NodeCommandError> {
    let work: ClaimWork<'_> = &work;
    let prepared = args.node.claims(None)?;
    let claims = read(&args.files).map_err(NodeCommandError::Manifest)?;
    prepared.start(&|asked| Ok(find(&claims, asked)), now())?;
    let mut failed = 0_usize;
    for claim in &claims {
        let key = ClaimKey::from_metadata(&claim.metadata);
        let asked = ClaimRef::new(&key.namespace, &key.name, claim.metadata.uid.as_deref().unwrap_or_default());
        let line = work(&prepared, &asked, claim).unwrap_or_else(|error| {
            failed = failed.saturating_add(1);
            format!("error: {error}")
        });
        put(&format!("{key}: {line}\n"))?;
    }
    if failed == 0 { Ok(()) } else { Err(NodeCommandError::Failed(failed)) }
}

impl NodeArgs {
    fn settings(&self) -> Result<ClaimSettings, PreparedClaimsError> {
        let Self { driver, state, cdi, .. } = self;
        Ok(ClaimSettings {
            driver: driver.clone(),
            boot_id: self.boot_id.clone().map_or_else(boot_id, Ok)?,
            state: state.clone(),
            cdi: cdi.clone(),
            metadata: None,
            lost: if self.new_ledger { LostLedger::BegunAnew } else { LostLedger::Refused },
        })
    }

    fn hardware(&self, shown: Option<ShownDevices>) -> Result<Hardware, PreparedClaimsError> {
        Ok(Hardware::new(self.state.join("hardware"), &self.settings()?.boot_id, shown)?)
    }

    fn claims(&self, shown: Option<ShownDevices>) -> Result<PreparedClaims<Hardware>, PreparedClaimsError> {
        PreparedClaims::new(self.hardware(shown)?, self.settings()?)
    }
}

#[cfg(feature = "grpc")]
impl ServeArgs {
    pub(super) fn driver(&self) -> &str {
        &self.node.driver
    }

    pub(super) fn sockets(&self) -> dra_live::grpc::Sockets {
        let Self { plugin_dir, registry, pod_uid, .. } = self;
        dra_live::grpc::Sockets { plugin_dir: plugin_dir.clone(), registry: registry.clone(), pod_uid: pod_uid.clone() }
    }

    /// Returns the claims of a driver that publishes nothing.
    ///
    /// # Errors
    /// A directory can't be created, or the boot has no id.
    pub(super) fn claims(&self) -> Result<PreparedClaims<Hardware>, PreparedClaimsError> {
        self.node.claims(None)
    }
}

#[cfg(feature = "live")]
impl ServeArgs {
    /// Returns the directories and the boot.
    ///
    /// # Errors
    /// The boot has no id.
    pub(super) fn claim_settings(&self) -> Result<ClaimSettings, PreparedClaimsError> {
        self.node.settings()
    }

    /// Returns the hardware with the devices that are published.
    ///
    /// # Errors
    /// The directory can't be created, or the boot has no id.
    pub(super) fn hardware(&self, shown: Option<ShownDevices>) -> Result<Hardware, PreparedClaimsError> {
        self.node.hardware(shown)
    }
}

/// Returns the text of an error, with the flag that helps.
fn with_flag(error: &PreparedClaimsError) -> String {
    match error {
        PreparedClaimsError::LedgerGone { .. } => format!("{error} (--new-ledger)"),
        error => error.to_string(),
    }
}

/// Returns the claim that has the name now.
pub(super) fn find(claims: &[ResourceClaim], asked: &ClaimRef) -> Option<ResourceClaim> {
    claims.iter().find(|claim| ClaimKey::from_metadata(&claim.metadata) == asked.key).cloned()
}

/// Reads the claims of manifests.
///
/// # Errors
/// The manifests can't be read: nothing is known about a claim.
pub(super) fn read(files: &[String]) -> Result<Vec<ResourceClaim>, String> {
    let mut manifests = Manifests::default();
    for file in files {
        manifests.read_argument(file);
    }
    manifests.ignored_lines("driver", &["ResourceClaim"]).iter().for_each(say);
    match manifests.problems.first() {
        Some(problem) => Err(problem.to_string()),
        None => Ok(manifests.claims),
    }
}
