//! Client for a driver on its unix socket.

use std::error::Error;
use std::iter::successors;
use std::path::Path;
use std::time::Duration;

use dra_alloc::kubelet::{Answers, ClaimRef, PreparedDevice};
use examples::output::one_line;
use tonic::transport::{self, Channel, Endpoint};
use tonic::{Code, Request, Status, TimeoutExpired};

use super::api::dra_plugin_client::DraPluginClient;
use super::api::{Claim, Device, NodePrepareResourcesRequest, NodeUnprepareResourcesRequest};

/// Calls a driver's `NodePrepareResources`.
///
/// # Errors
/// The reason that there is no response, with the text that kubelet would log.
pub(crate) async fn prepare(
    socket: &Path,
    claims: &[ClaimRef],
    timeout: Duration,
) -> Result<Answers<Vec<PreparedDevice>>, String> {
    let request = NodePrepareResourcesRequest { claims: claims.iter().map(Claim::from).collect() };
    let mut client = connect(socket, timeout).await?;
    let response = client.node_prepare_resources(timed(request, timeout)).await.map_err(|status| failure(&status))?;
    let claims = response.into_inner().claims.into_iter();
    Ok(claims.map(|(uid, claim)| (uid, result(&claim.error).map(|()| prepared(claim.devices)))).collect())
}

/// Calls a driver's `NodeUnprepareResources`.
///
/// # Errors
/// The reason that there is no response.
pub(crate) async fn unprepare(socket: &Path, claims: &[ClaimRef], timeout: Duration) -> Result<Answers<()>, String> {
    let request = NodeUnprepareResourcesRequest { claims: claims.iter().map(Claim::from).collect() };
    let mut client = connect(socket, timeout).await?;
    let response = client.node_unprepare_resources(timed(request, timeout)).await.map_err(|status| failure(&status))?;
    let claims = response.into_inner().claims.into_iter();
    Ok(claims.map(|(uid, claim)| (uid, result(&claim.error))).collect())
}

async fn connect(socket: &Path, timeout: Duration) -> Result<DraPluginClient<Channel>, String> {
    let unavailable = |reason: String| format!("rpc error: code = Unavailable desc = {}: {reason}", socket.display());
    let endpoint =
        Endpoint::from_shared(format!("unix:{}", socket.display())).map_err(|error| unavailable(error.to_string()))?;
    let channel = endpoint.connect_timeout(timeout).connect().await;
    channel.map(DraPluginClient::new).map_err(|error| unavailable(with_causes(&error)))
}

/// Builds a request with a deadline that the driver sees.
fn timed<T>(request: T, timeout: Duration) -> Request<T> {
    let mut request = Request::new(request);
    request.set_timeout(timeout);
    request
}

/// Returns the text of a failure in the form of Go's gRPC, on one line.
fn failure(status: &Status) -> String {
    let lost = status.source().filter(|source| source.is::<transport::Error>());
    let (code, message) = match (status.code(), lost) {
        (Code::Cancelled, _) if is_expired(status) => {
            ("DeadlineExceeded".to_owned(), "context deadline exceeded".to_owned())
        }
        (Code::Cancelled, _) => ("Canceled".to_owned(), status.message().to_owned()),
        // As Go's client says of a connection that has ended, or over which something else is spoken.
        (Code::Unknown, Some(error)) => (format!("{:?}", Code::Unavailable), with_causes(error)),
        (code, _) => (format!("{code:?}"), status.message().to_owned()),
    };
    format!("rpc error: code = {code} desc = {}", one_line(&message))
}

/// Returns an error with its causes: the outermost one alone says that there was an error.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
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
