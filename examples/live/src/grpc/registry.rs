//! Registration of drivers: the kubelet's side, once for each socket in a directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::api::registration::registration_client::RegistrationClient;
use super::api::registration::{InfoRequest, PluginInfo, RegistrationStatus};
use dra_node::driver::{self, PluginService};
use tokio::task::JoinSet;

use super::connection::{Connection, timed, within};
use super::failure::failure;

/// Time that a kubelet waits for the whole answer to `GetInfo`.
const GET_INFO: Duration = Duration::from_secs(1);
/// Time that a plugin has for the whole registration.
const PATIENCE: Duration = Duration::from_secs(3);
/// End of the names of registration sockets.
const SOCKET: &str = ".sock";

/// Asks every socket of a directory and tells it the outcome. Returns the DRA sockets of the drivers that are taken, and
/// the sockets that are not, with the reason.
pub async fn registered(registry: &Path) -> (BTreeMap<String, PathBuf>, Vec<String>) {
    let (mut plugins, mut refused) = (BTreeMap::new(), Vec::new());
    // All at the same time: a plugin that hangs keeps no other one waiting.
    let asked = sockets(registry).into_iter().map(|socket| async move {
        let outcome = within(PATIENCE, register(&socket)).await;
        (socket, outcome)
    });
    let mut answers = asked.collect::<JoinSet<_>>().join_all().await;
    answers.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (socket, outcome) in answers {
        match outcome {
            Ok(info) => {
                plugins.insert(info.name, info.endpoint.into());
            }
            Err(reason) => refused.push(format!("{}: {reason}", socket.display())),
        }
    }
    (plugins, refused)
}

fn sockets(registry: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(registry).into_iter().flatten().flatten();
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_socket = |path: &PathBuf| name(path).ends_with(SOCKET) && !name(path).starts_with('.');
    let mut sockets: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_socket).collect();
    sockets.sort();
    sockets
}

/// Registers the plugin of a socket.
async fn register(socket: &Path) -> Result<PluginInfo, String> {
    let (connection, info) = within(GET_INFO, ask(socket)).await?;
    let outcome = check(&info);
    let status = RegistrationStatus {
        plugin_registered: outcome.is_ok(),
        error: outcome.as_ref().err().cloned().unwrap_or_default(),
    };
    let mut client = RegistrationClient::new(connection.channel.clone());
    client.notify_registration_status(status).await.map_err(|status| failure(&status))?;
    outcome.map(|()| info)
}

/// Connects to a plugin and asks for its name and services.
async fn ask(socket: &Path) -> Result<(Connection, PluginInfo), String> {
    let connection = Connection::open(socket).await?;
    let mut client = RegistrationClient::new(connection.channel.clone());
    let info = client.get_info(timed(InfoRequest::default(), GET_INFO)).await.map_err(|status| failure(&status))?;
    Ok((connection, info.into_inner()))
}

/// Checks what a plugin says about itself, as the kubelet's manager of DRA plugins does.
fn check(info: &PluginInfo) -> Result<(), String> {
    let known = PluginService::DraV1.short_name();
    match info.supported_versions.as_slice() {
        _ if info.r#type != driver::PluginInfo::TYPE => {
            Err(format!("no handler registered for plugin type: {}", info.r#type))
        }
        [] => Err(format!("empty list of supported gRPC services (aka supported versions) for plugin {}", info.name)),
        services if services.iter().any(|service| service == known) => Ok(()),
        services => Err(format!("none of services supported by the plugin {} are supported: {services:?}", info.name)),
    }
}
