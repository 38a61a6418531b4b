//! The driver on a cluster: publishes its devices and keeps them so, and prepares the claims that the kubelet names.

mod counts;
mod publisher;
mod reports;

use dra_alloc::kubelet::ClaimRef;
use examples::live::claim_calls;
use examples::live::connect::Cluster;
use examples::live::failure::{LiveError as ClusterError, Trouble, text, trouble};
use examples::live::listing::list_selected;
use examples::live::retry::answered;
use examples::live::stop::told_to_stop;
use examples::live::vitals::Vitals;
use examples::manifest::Manifests;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{CounterSet, Device, ResourceSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Preconditions};
use tokio::sync::watch;

use crate::node::{ClaimSource, NodeError, ServeArgs, ServeError, clock, serving};
use crate::{DriverError, Survey, note};
pub(crate) use counts::Counts;
use publisher::{Contents, LivePublisher};
pub(crate) use reports::Reports;

/// Reason that the driver ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LiveError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Devices(#[from] Box<DriverError>),
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error("node {node}: {reason}; its slices would have no owner, and stay when it is gone")]
    NoNode { node: String, reason: String },
    #[error("{0}")]
    Files(String),
}

/// Publishes and serves until it is told to stop. Slices stay then, for the run that follows.
///
/// # Errors
/// The devices can't be found, the cluster can't be reached, or a socket can't be served.
pub(crate) fn run(args: &ServeArgs) -> Result<(), LiveError> {
    let contents = contents(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ClusterError::Runtime)?;
    let cluster = runtime.block_on(Cluster::connect(env!("CARGO_BIN_NAME"), &args.server))?;
    let driver = args.driver().to_owned();
    if args.withdraw {
        return runtime.block_on(withdraw(&cluster, &driver, &args.node_name));
    }
    let plugin = args.plugin()?;
    // Entries whose claim can't be looked up stay as they are.
    let find = |asked: &ClaimRef| runtime.block_on(claim_calls::find(&cluster.client, &asked.key));
    plugin.start(&find, clock())?;
    let vitals = Vitals::default();
    let counts = Counts::new(&vitals.metrics);
    runtime.block_on(async {
        vitals.serve(args.vitals.metrics_address).await?;
        let owner = owner(&cluster, &args.node_name).await?;
        let (stop, stopped) = watch::channel(false);
        let source = ClaimSource::Cluster(cluster.client.clone(), counts.clone(), Reports::default());
        // The run before may not have been allowed to write them.
        for (claim, devices) in plugin.prepared()? {
            source.report(&driver, &claim, &devices);
        }
        let sockets = args.sockets();
        let serving = serving(plugin, &driver, source, &sockets, args.output, stopped);
        let mut publisher = LivePublisher::new(&cluster, &driver, &args.node_name, contents, owner, counts);
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            ended = &mut serving => return Ok(ended?),
            failed = publisher.run() => return Err(failed.into()),
            stopped = told_to_stop() => stopped?,
        }
        note(&"stops: no new registration, running calls end, slices stay");
        let _ = stop.send(true);
        Ok(serving.await?)
    })
}

/// Returns the devices to publish: those of a file, or those of the machine.
fn contents(args: &ServeArgs) -> Result<Contents, LiveError> {
    let Some(file) = &args.devices else {
        let survey = Survey::of_machine(&args.machine).map_err(Box::new)?;
        survey.notes().for_each(|line| note(&line));
        return Ok(Contents { devices: survey.devices, counter_sets: Vec::new(), partition_type: None });
    };
    let mut manifests = Manifests::default();
    manifests.read_argument(file);
    manifests.notes.iter().for_each(note);
    manifests.ignored_lines("driver", &["ResourceSlice"]).iter().for_each(note);
    if let Some(problem) = manifests.problems.first() {
        return Err(LiveError::Files(problem.to_string()));
    }
    let slices = manifests.slices;
    let partition_type = slices.iter().find_map(|slice| slice.spec.partition_type_attribute.clone());
    let counter_sets: Vec<CounterSet> =
        slices.iter().flat_map(|slice| slice.spec.shared_counters.clone().unwrap_or_default()).collect();
    let devices: Vec<Device> = slices.into_iter().flat_map(|slice| slice.spec.devices.unwrap_or_default()).collect();
    Ok(Contents { devices, counter_sets, partition_type })
}

/// Returns the node as the owner of its slices.
async fn owner(cluster: &Cluster, name: &str) -> Result<OwnerReference, LiveError> {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let missing = |reason: String| LiveError::NoNode { node: name.to_owned(), reason };
    let found = answered(|| nodes.get(name)).await.outcome;
    let node = found.map_err(|error| match trouble(&error) {
        Trouble::Unauthenticated | Trouble::Forbidden => ClusterError::from_call("get", "nodes", &error).into(),
        _ => missing(text(&error)),
    })?;
    Ok(OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: name.to_owned(),
        uid: node.metadata.uid.ok_or_else(|| missing("it has no UID".to_owned()))?,
        controller: Some(true),
        block_owner_deletion: None,
    })
}

/// Deletes the slices of a driver on a node: it leaves for good.
async fn withdraw(cluster: &Cluster, driver: &str, node: &str) -> Result<(), LiveError> {
    let slices: Api<ResourceSlice> = Api::all(cluster.client.clone());
    let own = ListParams::default().fields(&format!("spec.driver={driver},spec.nodeName={node}"));
    let failed = |verb| move |error: kube::Error| ClusterError::from_call(verb, "resourceslices", &error);
    let found = list_selected(&slices, &own).await.map_err(failed("list"))?;
    for slice in found {
        let name = slice.metadata.name.unwrap_or_default();
        let params =
            DeleteParams::default().preconditions(Preconditions { uid: slice.metadata.uid, resource_version: None });
        match answered(|| slices.delete(&name, &params)).await.outcome {
            Err(error) if trouble(&error) != Trouble::Missing => {
                return Err(failed("delete")(error).into());
            }
            _ => note(&format_args!("deleted {name}")),
        }
    }
    Ok(())
}
