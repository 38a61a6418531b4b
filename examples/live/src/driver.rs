//! A whole driver: a [`Plugin`] published, registered and served until it is told to stop.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dra_node::driver::CdiSpec;
use dra_node::kubelet::ClaimRef;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::Client;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::claim_lookup;
use super::connect::Cluster;
use super::failure::LiveError;
use super::grpc::{ClaimLookup, DriverCalls, Happening, RegistrationState, ServeError, Sockets, serve};
use super::hardware_look::HardwareLook;
use super::metrics::Metrics;
use super::node_owner::node_owner;
use super::now;
use super::plugin::{Plugin, Pool};
use super::prepared_claims::{
    ClaimSettings, LostLedger, MetadataSettings, PreparedClaims, PreparedClaimsError, boot_id,
};
use super::reports::{Reports, device_report};
use super::say::say;
use super::slice_publisher::SlicePublisher;
use super::stop::told_to_stop;
use super::vitals::Vitals;

/// Place of a driver on its node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverSettings {
    /// Name of the driver, such as `gpu.example.com`.
    pub driver: String,
    /// Name of the node.
    pub node: String,
    /// Directories of the sockets.
    pub sockets: Sockets,
    /// Directory of the ledger, which outlives a boot.
    pub state: PathBuf,
    /// Directory of CDI specs.
    pub cdi: PathBuf,
    /// Metadata files, if containers get any.
    pub metadata: Option<MetadataSettings>,
    /// Treatment of CDI files without any ledger.
    pub lost: LostLedger,
    /// Id of the boot; that of the kernel if there is none.
    pub boot_id: Option<String>,
    /// Address at which to serve `/metrics` and `/healthz`.
    pub metrics_address: Option<SocketAddr>,
}

impl DriverSettings {
    /// Returns the settings of a driver on a node of a real cluster, with the directories of the kubelet.
    ///
    /// ```
    /// use dra_live::driver::DriverSettings;
    /// let settings = DriverSettings::new("gpu.example.com", "node-1");
    /// assert_eq!(settings.state.to_str(), Some("/var/lib/kubelet/plugins/gpu.example.com/state"));
    /// ```
    #[must_use]
    pub fn new(driver: &str, node: &str) -> Self {
        Self::below(Path::new("/var/lib/kubelet"), Path::new(CdiSpec::DIRECTORY), driver, node)
    }

    /// Returns the settings of a driver for a trial, with all directories in one.
    ///
    /// ```
    /// use dra_live::driver::DriverSettings;
    /// use std::path::Path;
    /// let settings = DriverSettings::within(Path::new("trial"), "gpu.example.com", "node-1");
    /// assert_eq!(settings.cdi.to_str(), Some("trial/cdi"));
    /// ```
    #[must_use]
    pub fn within(folder: &Path, driver: &str, node: &str) -> Self {
        Self::below(folder, &folder.join("cdi"), driver, node)
    }

    fn below(kubelet: &Path, cdi: &Path, driver: &str, node: &str) -> Self {
        let plugin_dir = kubelet.join("plugins").join(driver);
        Self {
            driver: driver.to_owned(),
            node: node.to_owned(),
            state: plugin_dir.join("state"),
            sockets: Sockets { plugin_dir, registry: kubelet.join("plugins_registry"), pod_uid: None },
            cdi: cdi.to_owned(),
            metadata: None,
            lost: LostLedger::Refused,
            boot_id: None,
            metrics_address: None,
        }
    }

    /// Sets the UID of the driver's pod, with which two instances run beside each other during an update.
    #[must_use]
    pub fn with_pod_uid(mut self, pod_uid: Option<String>) -> Self {
        self.sockets.pod_uid = pod_uid;
        self
    }

    fn claims(&self) -> Result<ClaimSettings, PreparedClaimsError> {
        Ok(ClaimSettings {
            driver: self.driver.clone(),
            boot_id: self.boot_id.clone().map_or_else(boot_id, Ok)?,
            state: self.state.clone(),
            cdi: self.cdi.clone(),
            metadata: self.metadata.clone(),
            lost: self.lost,
        })
    }
}

/// Reason that a driver ends.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// The cluster can't be worked on.
    #[error(transparent)]
    Cluster(#[from] LiveError),
    /// The ledger or a file can't be used.
    #[error(transparent)]
    Claims(#[from] PreparedClaimsError),
    /// The kubelet's calls can't be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// Runs a driver until the process is told to stop (SIGTERM, Ctrl-C): takes up what an earlier run has left, serves the kubelet's calls,
/// publishes the pools when the node is there, and reports the devices in `status.devices`. Slices stay at the end, for the run
/// that follows. `tell` hears of each claim.
///
/// # Errors
/// The cluster refuses a call for good, the ledger can't be read, or a socket can't be served.
pub async fn run<P: Plugin>(
    plugin: P,
    settings: &DriverSettings,
    cluster: &Cluster,
    tell: impl Fn(&Happening) + Send + Sync + 'static,
) -> Result<(), DriverError> {
    let (driver, client) = (settings.driver.as_str(), &cluster.client);
    let (vitals, registration, start_time) = (Vitals::default(), RegistrationState::default(), now());
    let registered = registration.clone();
    vitals.check(move || {
        let is_live = registered.is_live(start_time, now());
        if is_live { Ok(()) } else { Err("the kubelet has not taken the driver".to_owned()) }
    });
    vitals.serve(settings.metrics_address).await?;
    let claims = Arc::new(PreparedClaims::new(plugin, settings.claims()?)?);
    start(&claims, client).await?;
    let reports = Reports::default();
    // The run before may not have been allowed to write them.
    for (claim, devices) in claims.prepared()? {
        let devices = devices.iter().map(|device| device_report(device, None)).collect();
        reports.begin(client, driver, &claim, devices);
    }
    let listener = listener(driver, client.clone(), reports.clone(), &vitals.metrics, tell);
    let calls = DriverCalls::new(Arc::clone(&claims), Lookup(client.clone()), Arc::clone(&listener) as _);
    let (stop, stopped) = watch::channel(false);
    let begun = |socket: &Path| {
        listener(&Happening::Serves { driver: driver.to_owned(), socket: socket.display().to_string() });
    };
    let serving = serve(calls, driver, &settings.sockets, &registration, stopped, begun);
    let (publish, pools) = watch::channel(Vec::new());
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        ended = &mut serving => return Ok(ended?),
        failed = published(settings, cluster, pools, &vitals.metrics) => return Err(failed.into()),
        failed = HardwareLook::new(&claims, publish, settings, cluster, reports).run() => return Err(failed.into()),
        stopped = told_to_stop() => stopped?,
    }
    say(&format_args!("{driver}: stops: no new registration, running calls end, slices stay"));
    let _ = stop.send(true);
    Ok(serving.await?)
}

/// Takes up what an earlier run has left, on a thread that may wait.
async fn start<P: Plugin>(claims: &Arc<PreparedClaims<P>>, client: &Client) -> Result<(), DriverError> {
    let (claims, client, runtime) = (Arc::clone(claims), client.clone(), Handle::current());
    // Entries whose claim can't be looked up stay as they are.
    let find = move |asked: &ClaimRef| runtime.block_on(claim_lookup::find(&client, &asked.key));
    let started = tokio::task::spawn_blocking(move || claims.start(&find, now())).await;
    Ok(started.map_err(|error| LiveError::Runtime(std::io::Error::other(error)))??)
}

/// Look-up of claims in the cluster.
struct Lookup(Client);

impl ClaimLookup for Lookup {
    async fn find(&self, claim: &ClaimRef) -> Result<Option<ResourceClaim>, String> {
        claim_lookup::find(&self.0, &claim.key).await
    }
}

/// Returns a listener that counts the claims and reports their devices, and then tells.
fn listener(
    driver: &str,
    client: Client,
    reports: Reports,
    metrics: &Metrics,
    tell: impl Fn(&Happening) + Send + Sync + 'static,
) -> Arc<impl Fn(&Happening) + Send + Sync + 'static> {
    let labels = &["method_name", "is_error"];
    let counted = metrics.counter("dra_driver_claims_total", "Claims in calls of the kubelet", labels);
    let driver = driver.to_owned();
    Arc::new(move |happening: &Happening| {
        match happening {
            Happening::Prepared { claim, devices } => {
                counted.add(&["NodePrepareResources", "false"], 1);
                let devices = devices.iter().map(|device| device_report(device, None)).collect();
                reports.begin(&client, &driver, claim, devices);
            }
            Happening::Unprepared { claim } => {
                counted.add(&["NodeUnprepareResources", "false"], 1);
                reports.end(&claim.uid);
            }
            Happening::Failed { claim, method, .. } => {
                counted.add(&[method, "true"], 1);
                reports.end(&claim.uid);
            }
            Happening::Serves { .. } => {}
        }
        tell(happening);
    })
}

/// Publishes the pools once the node is there. Returns why it can't go on.
async fn published(
    settings: &DriverSettings,
    cluster: &Cluster,
    mut pools: watch::Receiver<Vec<Pool>>,
    metrics: &Metrics,
) -> LiveError {
    let DriverSettings { driver, node, .. } = settings;
    let owner = match node_owner(cluster, driver, node).await {
        Ok(owner) => owner,
        Err(error) => return error,
    };
    // Before the first look nothing is known of the hardware: a pool without devices would be wrong.
    let _ = pools.changed().await;
    SlicePublisher::new(cluster, driver, node, owner, metrics).run(pools).await
}
