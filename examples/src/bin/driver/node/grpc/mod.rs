//! Sockets of the driver: registration, and the kubelet's calls. `no_grpc.rs` stands in without the feature.

mod rewritten;
mod services;

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use dra_alloc::driver::{PathTooLong, PluginInfo, PluginService, Registration, data_socket, registrar_socket};
use examples::grpc_api::dra::dra_plugin_server::DraPluginServer;
use examples::grpc_api::health::dra_resource_health_server::DraResourceHealthServer;
use examples::grpc_api::registration::registration_server::RegistrationServer;
use examples::output::{OutputError, put};
use tokio::net::UnixListener;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::transport::server::Router;

use super::NodePlugin;
use super::command::ApiFiles;
use rewritten::Rewritten;
use services::{Claims, Health, Registrar};

/// Directories of the sockets, and the pod that they are named after.
#[derive(Debug)]
pub(super) struct Sockets {
    pub(super) plugin_dir: PathBuf,
    pub(super) registry: PathBuf,
    pub(super) pod_uid: Option<String>,
}

/// Reason that the driver does not serve.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    PathTooLong(#[from] PathTooLong),
    #[error("{socket}: {error}")]
    Socket { socket: PathBuf, error: io::Error },
    #[error(transparent)]
    Server(#[from] tonic::transport::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(io::Error),
}

/// Serves until the process is killed: first the calls, then the registration that invites them.
///
/// # Errors
/// A socket can't be created, or a server stopped.
pub(super) fn serve(plugin: NodePlugin, driver: &str, api: ApiFiles, sockets: &Sockets) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Runtime)?;
    let text = |path: &Path| path.display().to_string();
    let pod_uid = sockets.pod_uid.as_deref();
    let endpoint = sockets.plugin_dir.join(data_socket(&text(&sockets.plugin_dir), pod_uid)?);
    let registrar = sockets.registry.join(registrar_socket(&text(&sockets.registry), driver, pod_uid)?);
    let info = PluginInfo::new(driver, &text(&endpoint), &[PluginService::DraV1, PluginService::HealthV1alpha1]);
    let registration = Arc::new(Mutex::new(Registration::default()));
    runtime.block_on(async {
        let calls = Server::builder()
            .add_service(DraPluginServer::new(Claims { plugin: plugin.clone(), api }))
            .add_service(DraResourceHealthServer::new(Health { plugin }));
        let calls = listening(calls, &endpoint)?;
        let asked = Server::builder().add_service(RegistrationServer::new(Registrar { info, registration }));
        let asked = listening(asked, &registrar)?;
        put(&format!("{driver} serves {}\n", endpoint.display()))?;
        tokio::try_join!(calls, asked).map(|_| ())
    })
}

/// Listens on a socket at once, and returns the server as a future. A socket that another run has left is replaced; any
/// other file is kept.
fn listening(server: Router, socket: &Path) -> Result<impl Future<Output = Result<(), ServeError>>, ServeError> {
    let failed = |error| ServeError::Socket { socket: socket.to_owned(), error };
    fs::create_dir_all(socket.parent().unwrap_or(socket)).map_err(failed)?;
    if socket.symlink_metadata().is_ok_and(|left| left.file_type().is_socket()) {
        fs::remove_file(socket).map_err(failed)?;
    }
    let listener = UnixListener::bind(socket).map_err(failed)?;
    let connections = UnixListenerStream::new(listener).map(|connection| connection.map(Rewritten::new));
    Ok(async move { Ok(server.serve_with_incoming(connections).await?) })
}
