//! Driver that prepares every claim, and reports the calls.

use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use dra_live::grpc::api::dra::dra_plugin_server::{DraPlugin, DraPluginServer};
use dra_live::grpc::api::dra::{
    Claim, Device, NodePrepareResourceResponse, NodePrepareResourcesRequest, NodePrepareResourcesResponse,
    NodeUnprepareResourceResponse, NodeUnprepareResourcesRequest, NodeUnprepareResourcesResponse,
};

/// Callback for every call: the method, and the claims as `namespace/name`.
pub(crate) type OnCall = Box<dyn Fn(&'static str, &[String]) + Send + Sync>;

/// Reason that a fake driver does not serve.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// The socket can't be created.
    #[error("{socket}: {error}")]
    Socket {
        /// Path of the socket.
        socket: String,
        /// Error of the operating system.
        error: std::io::Error,
    },
    /// Another process serves on the socket.
    #[error("{socket}: another driver listens there")]
    Taken {
        /// Path of the socket.
        socket: String,
    },
    /// The server stopped.
    #[error(transparent)]
    Server(#[from] tonic::transport::Error),
    /// The server stopped without an error.
    #[error("the driver has ended")]
    Ended,
}

/// Listening socket of a driver that does not answer yet.
#[derive(Debug)]
pub(crate) struct Listener(UnixListener);

/// Listens on a unix socket. Replaces a socket that another run has left; any other file is kept.
///
/// # Errors
/// The socket can't be created, or another process listens on it.
pub(crate) fn listen(socket: &Path) -> Result<Listener, ServeError> {
    let failed = |error| ServeError::Socket { socket: socket.display().to_string(), error };
    if socket.symlink_metadata().is_ok_and(|left| left.file_type().is_socket()) {
        if UnixStream::connect(socket).is_ok() {
            return Err(ServeError::Taken { socket: socket.display().to_string() });
        }
        std::fs::remove_file(socket).map_err(failed)?;
    }
    UnixListener::bind(socket).map(Listener).map_err(failed)
}

/// Answers calls until the future is dropped.
///
/// # Errors
/// The reason that the server stopped.
pub(crate) async fn serve(Listener(listener): Listener, driver: &str, on_call: OnCall) -> Result<(), ServeError> {
    let driver = FakeDriver { name: driver.to_owned(), on_call };
    let server = Server::builder().add_service(DraPluginServer::new(driver));
    Ok(server.serve_with_incoming(UnixListenerStream::new(listener)).await?)
}

/// Answers calls until the work is done, and returns what the work returns.
///
/// # Errors
/// The server stopped before.
pub(crate) async fn serve_while<T>(
    listener: Listener,
    driver: &str,
    on_call: OnCall,
    work: impl Future<Output = T>,
) -> Result<T, ServeError> {
    tokio::select! {
        done = work => Ok(done),
        ended = serve(listener, driver, on_call) => Err(ended.err().unwrap_or(ServeError::Ended)),
    }
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

    /// Returns the device of a claim, always the same one.
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
        self.tell(dra_alloc::skip::SkipSet::NODE_PREPARE_RESOURCES, &claims);
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
        self.tell(dra_alloc::skip::SkipSet::NODE_UNPREPARE_RESOURCES, &claims);
        let answer = |claim: Claim| (claim.uid, NodeUnprepareResourceResponse::default());
        Ok(Response::new(NodeUnprepareResourcesResponse { claims: claims.into_iter().map(answer).collect() }))
    }
}
