//! Sockets of a driver: their paths, and listening on them.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use dra_node::driver::{PluginInfo, SocketPathError};
use tokio::net::UnixListener;

/// Mode of a socket: the kubelet's user alone may call.
const MODE: u32 = 0o600;

/// Directories of a driver's sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "arguments by name")]
pub struct Sockets {
    /// Directory of the DRA socket, under the same path on the host.
    pub plugin_dir: PathBuf,
    /// Directory of registration sockets, which the kubelet watches.
    pub registry: PathBuf,
    /// UID of the driver's pod: names sockets of its own, so that another instance can run beside it during an update.
    pub pod_uid: Option<String>,
}

impl Sockets {
    /// Returns the path of the socket for calls.
    ///
    /// # Errors
    /// No name in the directory is short enough.
    pub fn endpoint(&self) -> Result<PathBuf, SocketPathError> {
        let name = PluginInfo::data_socket(&self.plugin_dir.to_string_lossy(), self.pod_uid.as_deref())?;
        Ok(self.plugin_dir.join(name))
    }

    /// Returns the path of the registration socket of a driver.
    ///
    /// # Errors
    /// No name in the directory is short enough.
    pub fn registrar(&self, driver: &str) -> Result<PathBuf, SocketPathError> {
        let name = PluginInfo::registrar_socket(&self.registry.to_string_lossy(), driver, self.pod_uid.as_deref())?;
        Ok(self.registry.join(name))
    }

    /// Removes sockets of instances of the driver that are dead: nobody listens.
    pub(super) fn remove_dead(&self, driver: &str) {
        remove_dead(&self.registry, &format!("{driver}-"), "reg.sock");
        remove_dead(&self.plugin_dir, "dra", ".sock");
    }
}

/// Listens on a socket that the user of the driver alone may call. Its directory is created, and a socket that another run has left
/// is replaced; any other file is kept.
///
/// # Errors
/// The socket can't be created.
pub fn listen(socket: &Path) -> io::Result<UnixListener> {
    fs::create_dir_all(socket.parent().unwrap_or(socket))?;
    if socket.symlink_metadata().is_ok_and(|left| left.file_type().is_socket()) {
        fs::remove_file(socket)?;
    }
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, Permissions::from_mode(MODE))?;
    Ok(listener)
}

fn remove_dead(folder: &Path, beginning: &str, end: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_own = name.strip_prefix(beginning).is_some_and(|rest| rest.ends_with(end));
        let is_dead = || {
            let refused = UnixStream::connect(entry.path()).err();
            refused.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        };
        if is_own && is_dead() {
            // Another instance that starts may have removed it.
            let _ = fs::remove_file(entry.path());
        }
    }
}
