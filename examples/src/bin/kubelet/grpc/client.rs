//! Client for a driver on its unix socket.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use dra_alloc::kubelet::{Answers, ClaimRef, PreparedDevice};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, TimeoutExpired};

use super::api::dra_plugin_client::DraPluginClient;
use super::api::{Claim, Device, NodePrepareResourcesRequest, NodeUnprepareResourcesRequest};

/// Time that a kubelet waits for a driver.
const TIMEOUT: Duration = Duration::from_secs(45);

/// Calls a driver's `NodePrepareResources`.
///
/// # Errors
/// The reason that there is no response, with the text that kubelet would log.
pub(crate) async fn prepare(socket: &Path, claims: &[ClaimRef]) -> Result<Answers<Vec<PreparedDevice>>, String> {
    let request = NodePrepareResourcesRequest { claims: claims.iter().map(Claim::from).collect() };
    let mut client = connect(socket).await?;
    let response = client.node_prepare_resources(timed(request)).await.map_err(|status| failure(&status))?;
    let claims = response.into_inner().claims.into_iter();
    Ok(claims.map(|(uid, claim)| (uid, result(&claim.error).map(|()| prepared(claim.devices)))).collect())
}

/// Calls a driver's `NodeUnprepareResources`.
///
/// # Errors
/// The reason that there is no response.
pub(crate) async fn unprepare(socket: &Path, claims: &[ClaimRef]) -> Result<Answers<()>, String> {
    let request = NodeUnprepareResourcesRequest { claims: claims.iter().map(Claim::from).collect() };
    let mut client = connect(socket).await?;
    let response = client.node_unprepare_resources(timed(request)).await.map_err(|status| failure(&status))?;
    let claims = response.into_inner().claims.into_iter();
    Ok(claims.map(|(uid, claim)| (uid, result(&claim.error))).collect())
}

async fn connect(socket: &Path) -> Result<DraPluginClient<Channel>, String> {
    let unavailable = |reason: String| format!("rpc error: code = Unavailable desc = {}: {reason}", socket.display());
    let endpoint =
        Endpoint::from_shared(format!("unix:{}", socket.display())).map_err(|error| unavailable(error.to_string()))?;
    let channel = endpoint.connect_timeout(TIMEOUT).connect().await;
    channel.map(DraPluginClient::new).map_err(|error| unavailable(error.to_string()))
}

/// Builds a request with a deadline that the driver sees.
fn timed<T>(request: T) -> Request<T> {
    let mut request = Request::new(request);
    request.set_timeout(TIMEOUT);
    request
}

/// Returns the text of a failure in the form of Go's gRPC.
fn failure(status: &Status) -> String {
    let (code, message) = match status.code() {
        Code::Cancelled if is_expired(status) => ("DeadlineExceeded".to_owned(), "context deadline exceeded"),
        Code::Cancelled => ("Canceled".to_owned(), status.message()),
        code => (format!("{code:?}"), status.message()),
    };
    format!("rpc error: code = {code} desc = {message}")
}

/// Returns true if the caller's own deadline expired.
fn is_expired(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        if error.is::<TimeoutExpired>() {
            return true;
        }
        source = error.source();
    }
    false
}

fn result(error: &str) -> Result<(), String> {
    if error.is_empty() { Ok(()) } else { Err(error.to_owned()) }
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
