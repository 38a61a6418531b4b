//! Sockets of the driver: registration, and the kubelet's calls. `no_grpc.rs` stands in without the feature.

mod claim_source;
mod line;
mod rewritten;
mod services;

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, io};

use dra_alloc::driver::{PluginInfo, PluginService, Registration, SocketPathError};
use examples::grpc_api::dra::dra_plugin_server::DraPluginServer;
use examples::grpc_api::health::dra_resource_health_server::DraResourceHealthServer;
use examples::grpc_api::registration::registration_server::RegistrationServer;
use examples::output::{LineForm, OutputError, put_line};
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::transport::server::Router;

use super::NodePlugin;
use super::command::ApiFiles;
pub(crate) use claim_source::ClaimSource;
use line::Line;
use rewritten::Rewritten;
use services::{Claims, Health, Registrar};

/// Directories of the sockets, and the pod that they are named after.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub(super) plugin_dir: PathBuf,
    pub(super) registry: PathBuf,
    pub(super) pod_uid: Option<String>,
}

/// Reason that the driver does not serve.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    PathTooLong(#[from] SocketPathError),
    #[error("{socket}: {error}")]
    Socket { socket: PathBuf, error: io::Error },
    #[error(transparent)]
    Server(#[from] tonic::transport::Error),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Runtime(io::Error),
}

/// Time for which calls may go on after the driver was told to stop: that of the kubelet for a call.
const LAST_CALLS: Duration = Duration::from_secs(45);

/// Serves until the process is killed.
///
/// # Errors
/// As for [`serving`].
pub(super) fn serve(
    plugin: NodePlugin,
    driver: &str,
    api: ApiFiles,
    sockets: &Sockets,
    form: LineForm,
) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Runtime)?;
    // Nobody tells it to stop.
    let (_running, stopped) = watch::channel(false);
    runtime.block_on(serving(plugin, driver, ClaimSource::Files(api), sockets, form, stopped))
}

/// Serves until it is told to stop: first the calls, then the registration that invites them. At the end the registration
/// goes first, then running calls end.
///
/// # Errors
/// A socket can't be created, or a server stopped.
pub(crate) async fn serving(
    plugin: NodePlugin,
    driver: &str,
    source: ClaimSource,
    sockets: &Sockets,
    form: LineForm,
    stopped: watch::Receiver<bool>,
) -> Result<(), ServeError> {
    let text = |path: &Path| path.display().to_string();
    let pod_uid = sockets.pod_uid.as_deref();
    let endpoint = sockets.plugin_dir.join(PluginInfo::data_socket(&text(&sockets.plugin_dir), pod_uid)?);
    let registrar = sockets.registry.join(PluginInfo::registrar_socket(&text(&sockets.registry), driver, pod_uid)?);
    let info = PluginInfo::new(driver, &text(&endpoint), &[PluginService::DraV1, PluginService::HealthV1alpha1]);
    let registration = Arc::new(Mutex::new(Registration::default()));
    remove_dead(&sockets.registry, &format!("{driver}-"), "reg.sock");
    remove_dead(&sockets.plugin_dir, "dra", ".sock");
    let claims = Claims { driver: driver.to_owned(), plugin: plugin.clone(), source, form };
    let calls = Server::builder()
        .add_service(DraPluginServer::new(claims))
        .add_service(DraResourceHealthServer::new(Health { plugin, stopped: stopped.clone() }));
    let calls = listening(calls, &endpoint, stopped.clone())?;
    let asked = Server::builder().add_service(RegistrationServer::new(Registrar { info, registration }));
    let asked = listening(asked, &registrar, stopped.clone())?;
    put_line(form, &Line::Serves { driver: driver.to_owned(), socket: text(&endpoint) })?;
    let mut last_calls = stopped;
    let end = async {
        if last_calls.wait_for(|is_stopped| *is_stopped).await.is_err() {
            std::future::pending::<()>().await;
        }
        let _ = fs::remove_file(&registrar);
        tokio::time::sleep(LAST_CALLS).await;
    };
    let served = tokio::select! {
        // The registration goes before the servers end.
        biased;
        () = end => Ok(()),
        served = async { tokio::try_join!(calls, asked).map(|_| ()) } => served,
    };
    let _ = fs::remove_file(&endpoint);
    served
}

/// Removes sockets of instances of this driver that are dead: nobody listens.
fn remove_dead(folder: &Path, beginning: &str, end: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_own = name.strip_prefix(beginning).is_some_and(|rest| rest.ends_with(end));
        let is_dead = || {
            let refused = std::os::unix::net::UnixStream::connect(entry.path()).err();
            refused.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        };
        if is_own && is_dead() {
            // Another instance that starts may have removed it.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Listens on a socket at once, and returns the server as a future. A socket that another run has left is replaced; any
/// other file is kept.
fn listening(
    server: Router,
    socket: &Path,
    mut stopped: watch::Receiver<bool>,
) -> Result<impl Future<Output = Result<(), ServeError>>, ServeError> {
    let failed = |error| ServeError::Socket { socket: socket.to_owned(), error };
    fs::create_dir_all(socket.parent().unwrap_or(socket)).map_err(failed)?;
    if socket.symlink_metadata().is_ok_and(|left| left.file_type().is_socket()) {
        fs::remove_file(socket).map_err(failed)?;
    }
    let listener = UnixListener::bind(socket).map_err(failed)?;
    let connections = UnixListenerStream::new(listener).map(|connection| connection.map(Rewritten::new));
    let stop = async move {
        if stopped.wait_for(|is_stopped| *is_stopped).await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    Ok(async move { Ok(server.serve_with_incoming_shutdown(connections, stop).await?) })
}
