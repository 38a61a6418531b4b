//! A driver that prepares whatever it is asked to, and tells what it was asked.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use super::api::dra_plugin_server::{DraPlugin, DraPluginServer};
use super::api::{
    Claim, Device, NodePrepareResourceResponse, NodePrepareResourcesRequest, NodePrepareResourcesResponse,
    NodeUnprepareResourceResponse, NodeUnprepareResourcesRequest, NodeUnprepareResourcesResponse,
};

/// Hears of every call: the method, and the claims as `namespace/name`.
pub type OnCall = Box<dyn Fn(&'static str, &[String]) + Send + Sync>;

/// Why a fake driver does not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The socket can't be made.
    #[error("{socket}: {error}")]
    Socket {
        /// The path.
        socket: String,
        /// Why.
        error: std::io::Error,
    },
    /// The server has ended.
    #[error(transparent)]
    Server(#[from] tonic::transport::Error),
}

/// A driver that listens and does not answer yet.
#[derive(Debug)]
pub struct Listener(UnixListener);

/// Listens on a unix socket. One that another run has left is replaced; any other file stays.
///
/// # Errors
/// The socket can't be made.
pub fn listen(socket: &Path) -> Result<Listener, ServeError> {
    let failed = |error| ServeError::Socket { socket: socket.display().to_string(), error };
    if socket.symlink_metadata().is_ok_and(|left| left.file_type().is_socket()) {
        std::fs::remove_file(socket).map_err(failed)?;
    }
    UnixListener::bind(socket).map(Listener).map_err(failed)
}

/// Answers the calls that come in, until it is dropped.
///
/// # Errors
/// Why it has ended.
pub async fn serve(Listener(listener): Listener, driver: &str, on_call: OnCall) -> Result<(), ServeError> {
    let driver = FakeDriver { name: driver.to_owned(), on_call };
    let server = Server::builder().add_service(DraPluginServer::new(driver));
    Ok(server.serve_with_incoming(UnixListenerStream::new(listener)).await?)
}

struct FakeDriver {
    name: String,
    on_call: OnCall,
}

impl FakeDriver {
    fn tell(&self, method: &'static str, claims: &[Claim]) {
        let names: Vec<String> = claims.iter().map(|claim| format!("{}/{}", claim.namespace, claim.name)).collect();
        (self.on_call)(method, &names);
    }

    /// One device for a claim, always the same.
    fn device(&self, claim: &Claim) -> Device {
        Device {
            pool_name: "node-1".to_owned(),
            device_name: claim.name.clone(),
            cdi_device_ids: vec![format!("{}/device={}", self.name, claim.name)],
            ..Device::default()
        }
    }
}

#[tonic::async_trait]
impl DraPlugin for FakeDriver {
    async fn node_prepare_resources(
        &self,
        request: Request<NodePrepareResourcesRequest>,
    ) -> Result<Response<NodePrepareResourcesResponse>, Status> {
        let claims = request.into_inner().claims;
        self.tell(dra_alloc::skip::PREPARE, &claims);
        let answer = |claim: Claim| {
            let devices = vec![self.device(&claim)];
            (claim.uid, NodePrepareResourceResponse { devices, ..Default::default() })
        };
        Ok(Response::new(NodePrepareResourcesResponse { claims: claims.into_iter().map(answer).collect() }))
    }

    async fn node_unprepare_resources(
        &self,
        request: Request<NodeUnprepareResourcesRequest>,
    ) -> Result<Response<NodeUnprepareResourcesResponse>, Status> {
        let claims = request.into_inner().claims;
        self.tell(dra_alloc::skip::UNPREPARE, &claims);
        let answer = |claim: Claim| (claim.uid, NodeUnprepareResourceResponse::default());
        Ok(Response::new(NodeUnprepareResourcesResponse { claims: claims.into_iter().map(answer).collect() }))
    }
}
