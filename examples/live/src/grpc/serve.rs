//! A driver on its sockets: registration, and the kubelet's calls in each version.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dra_node::driver::{PluginInfo, PluginService as Offered, RegistrationEvent, SocketPathError};
use tokio::sync::watch;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::transport::server::Router;

use super::api::dra::dra_plugin_server::DraPluginServer;
use super::api::dra_v1beta1::dra_plugin_server::DraPluginServer as DraPluginServerV1beta1;
use super::api::health::dra_resource_health_server::DraResourceHealthServer;
use super::api::health_v1::dra_resource_health_server::DraResourceHealthServer as HealthServerV1;
use super::api::registration::registration_server::RegistrationServer;
use super::calls::KubeletCalls;
use super::health_service::HealthService;
use super::plugin_service::PluginService;
use super::registrar::{Registrar, RegistrationState};
use super::rewritten::Rewritten;
use super::sockets::{Sockets, listen};

/// Time for which calls may go on after the driver was told to stop: that of the kubelet for a call.
const LAST_CALLS: Duration = Duration::from_secs(45);

/// Services in the versions of kubelets from 1.34 on.
const OFFERED: [Offered; 4] = [Offered::DraV1, Offered::DraV1beta1, Offered::HealthV1, Offered::HealthV1alpha1];

/// Reason that a driver does not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A path of a socket is too long.
    #[error(transparent)]
    PathTooLong(#[from] SocketPathError),
    /// A socket can't be listened on.
    #[error("{}: {error}", socket.display())]
    Socket {
        /// Path of the socket.
        socket: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A server has stopped.
    #[error(transparent)]
    Server(#[from] tonic::transport::Error),
}

/// Serves the kubelet's calls until `stopped` is true, and then calls that run for as long as the kubelet waits for them. The registration
/// socket appears when calls are answered, and goes first. `registration` follows what the kubelet says. `begun` is called with the path of the socket for calls.
///
/// # Errors
/// A socket can't be created, or a server has stopped.
pub async fn serve<C: KubeletCalls>(
    calls: C,
    driver: &str,
    sockets: &Sockets,
    registration: &RegistrationState,
    stopped: watch::Receiver<bool>,
    begun: impl FnOnce(&Path),
) -> Result<(), ServeError> {
    let (endpoint, registrar) = (sockets.endpoint()?, sockets.registrar(driver)?);
    let info = PluginInfo::new(driver, &endpoint.to_string_lossy(), &OFFERED);
    sockets.remove_dead(driver);
    let calls = Arc::new(calls);
    let health = || HealthService { calls: Arc::clone(&calls), stopped: stopped.clone() };
    let served = Server::builder()
        .add_service(DraPluginServer::new(PluginService(Arc::clone(&calls))))
        .add_service(DraPluginServerV1beta1::new(PluginService(Arc::clone(&calls))))
        .add_service(HealthServerV1::new(health()))
        .add_service(DraResourceHealthServer::new(health()));
    let served = listening(served, &endpoint, stopped.clone())?;
    let service = Registrar { info, registration: registration.clone() };
    let asked = Server::builder().add_service(RegistrationServer::new(service));
    let asked = listening(asked, &registrar, stopped.clone())?;
    begun(&endpoint);
    let mut last_calls = stopped;
    let end = async {
        if last_calls.wait_for(|is_stopped| *is_stopped).await.is_err() {
            std::future::pending::<()>().await;
        }
        registration.apply(RegistrationEvent::Stop);
        let _ = fs::remove_file(&registrar);
        tokio::time::sleep(LAST_CALLS).await;
    };
    let ended = tokio::select! {
        // The registration goes before the servers end.
        biased;
        () = end => Ok(()),
        ended = async { tokio::try_join!(served, asked).map(|_| ()) } => ended,
    };
    let _ = fs::remove_file(&endpoint);
    ended
}

/// Listens on a socket at once, and returns the server as a future.
fn listening(
    server: Router,
    socket: &Path,
    mut stopped: watch::Receiver<bool>,
) -> Result<impl Future<Output = Result<(), ServeError>>, ServeError> {
    let listener = listen(socket).map_err(|error| ServeError::Socket { socket: socket.to_owned(), error })?;
    let connections = UnixListenerStream::new(listener).map(|connection| connection.map(Rewritten::new));
    let stop = async move {
        if stopped.wait_for(|is_stopped| *is_stopped).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    Ok(async move { Ok(server.serve_with_incoming_shutdown(connections, stop).await?) })
}
