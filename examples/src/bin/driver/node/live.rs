//! The driver on a cluster.

use dra_live::driver::{DriverError, DriverSettings, run as run_driver};
use dra_live::failure::LiveError as ClusterError;
use dra_live::prepared_claims::PreparedClaimsError;
use dra_live::slice_publisher::withdraw;
use examples::live::cluster::connect;

use super::command::ServeArgs;
use super::line::Line;
use super::shown_devices::{ShownDevices, ShownDevicesError};
use crate::note;

/// Reason that the driver ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LiveError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error(transparent)]
    Claims(#[from] PreparedClaimsError),
    #[error(transparent)]
    Devices(#[from] ShownDevicesError),
}

/// Publishes and serves until it is told to stop.
///
/// # Errors
/// The devices can't be found, the cluster can't be reached, or a socket can't be served.
pub(super) fn run(args: &ServeArgs) -> Result<(), LiveError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ClusterError::Runtime)?;
    let hardware = args.hardware(Some(devices(args)?))?;
    runtime.block_on(async {
        let cluster = connect(env!("CARGO_BIN_NAME"), &args.server).await?;
        if args.withdraw {
            let names = withdraw(&cluster, args.driver(), &args.node_name).await?;
            for name in names {
                note(&format_args!("deleted {name}"));
            }
            return Ok(());
        }
        let mut settings = DriverSettings::new(args.driver(), &args.node_name);
        settings.sockets = args.sockets();
        settings.metrics_address = args.vitals.metrics_address;
        let claims = args.claim_settings()?;
        (settings.state, settings.cdi, settings.lost) = (claims.state, claims.cdi, claims.lost);
        settings.boot_id = Some(claims.boot_id);
        let form = args.output;
        // A closed output is no reason to reject claims.
        let running = run_driver(hardware, &settings, &cluster, move |happening| drop(Line::put(form, happening)));
        Ok(Box::pin(running).await?)
    })
}

/// Finds the devices to publish: those of a file, or those of the machine.
///
/// # Errors
/// The file or the machine can't be read.
fn devices(args: &ServeArgs) -> Result<ShownDevices, ShownDevicesError> {
    match &args.devices {
        Some(file) => ShownDevices::of_file(file, &args.node_name),
        None => ShownDevices::of_machine(&args.machine, &args.node_name),
    }
}
