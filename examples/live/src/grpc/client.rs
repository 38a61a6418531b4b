//! Client for a driver on its unix socket.

use std::path::Path;
use std::time::Duration;

use crate::say::one_line;
use dra_node::kubelet::{ClaimRef, PreparedDevice, Responses};

use super::api::dra::dra_plugin_client::DraPluginClient;
use super::api::dra::{Claim, Device, NodePrepareResourcesRequest, NodeUnprepareResourcesRequest};
use super::connection::{Connection, timed, within};
use super::failure::failure;

/// Calls a driver's `NodePrepareResources`, with a time for the whole call.
///
/// # Errors
/// The reason that there is no response, with the text that kubelet would log.
pub async fn prepare(
    socket: &Path,
    claims: &[ClaimRef],
    timeout: Duration,
) -> Result<Responses<Vec<PreparedDevice>>, String> {
    let request = NodePrepareResourcesRequest { claims: claims.iter().map(Claim::from).collect() };
    let response = within(timeout, async {
        let connection = Connection::open(socket).await?;
        let mut client = DraPluginClient::new(connection.channel.clone());
        client.node_prepare_resources(timed(request, timeout)).await.map_err(|status| failure(&status))
    });
    let claims = response.await?.into_inner().claims.into_iter();
    Ok(claims.map(|(uid, claim)| (uid, result(&claim.error).map(|()| prepared(claim.devices)))).collect())
}

/// Calls a driver's `NodeUnprepareResources`, with a time for the whole call.
///
/// # Errors
/// The reason that there is no response.
pub async fn unprepare(socket: &Path, claims: &[ClaimRef], timeout: Duration) -> Result<Responses<()>, String> {
    let request = NodeUnprepareResourcesRequest { claims: claims.iter().map(Claim::from).collect() };
    let response = within(timeout, async {
        let connection = Connection::open(socket).await?;
        let mut client = DraPluginClient::new(connection.channel.clone());
        client.node_unprepare_resources(timed(request, timeout)).await.map_err(|status| failure(&status))
    });
    let claims = response.await?.into_inner().claims.into_iter();
    Ok(claims.map(|(uid, claim)| (uid, result(&claim.error))).collect())
}

fn result(error: &str) -> Result<(), String> {
    if error.is_empty() { Ok(()) } else { Err(one_line(error).into_owned()) }
}

fn prepared(devices: Vec<Device>) -> Vec<PreparedDevice> {
    let device = |device: Device| PreparedDevice {
        pool: device.pool_name,
        device: device.device_name,
        share_id: device.share_id,
        requests: device.request_names,
        cdi_ids: device.cdi_device_ids,
    };
    devices.into_iter().map(device).collect()
}

impl From<&ClaimRef> for Claim {
    fn from(claim: &ClaimRef) -> Self {
        Self { namespace: claim.key.namespace.clone(), uid: claim.uid.clone(), name: claim.key.name.clone() }
    }
}
