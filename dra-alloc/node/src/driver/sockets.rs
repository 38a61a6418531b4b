//! Names of the sockets on which a driver serves the kubelet, and the kubelet's name for them.
//!
//! Source: `kubeletplugin` of Kubernetes 1.36. The bound of a path is the kernel's (`sun_path` with its final NUL), one
//! byte less than upstream's, and holds for both sockets.

use crate::driver::digest::sha256;
use crate::driver::registration::PluginInfo;

/// Largest length in bytes of the path of a socket.
const MAX_PATH_LEN: usize = 107;

/// Path of a socket that no process can bind, since it is longer than 107 bytes in each of its forms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no name of a socket in {directory} is short enough: a path has at most {MAX_PATH_LEN} bytes")]
#[non_exhaustive]
pub struct SocketPathError {
    /// Directory of the socket.
    pub directory: String,
}

impl PluginInfo {
    /// Returns the name of the registration socket in `directory`, in which the kubelet looks for drivers.
    ///
    /// With `pod_uid`, the name is that of one instance of the driver, so that two instances can be registered during a
    /// rolling update. It is then shortened by hashing if the path is too long.
    ///
    /// # Errors
    /// No form of the name is short enough.
    ///
    /// ```
    /// use dra_node::driver::PluginInfo;
    /// let name = PluginInfo::registrar_socket("/var/lib/kubelet/plugins_registry", "gpu.example.com", None)?;
    /// assert_eq!(name, "gpu.example.com-reg.sock");
    /// # Ok::<(), dra_node::driver::SocketPathError>(())
    /// ```
    pub fn registrar_socket(directory: &str, driver: &str, pod_uid: Option<&str>) -> Result<String, SocketPathError> {
        match pod_uid {
            None => shortest_fitting(directory, [format!("{driver}-reg.sock")]),
            Some(uid) => {
                let both = hashed(&format!("{driver}\0{uid}"), 16);
                let names = [
                    format!("{driver}-{uid}-reg.sock"),
                    format!("{driver}-{}-reg.sock", hashed(uid, 8)),
                    format!("dra-{both}-reg.sock"),
                ];
                shortest_fitting(directory, names)
            }
        }
    }

    /// Returns the name of the socket in `directory` on which a driver serves `NodePrepareResources` and
    /// `NodeUnprepareResources`; with `pod_uid`, that of one instance of the driver.
    ///
    /// # Errors
    /// No form of the name is short enough.
    ///
    /// ```
    /// use dra_node::driver::PluginInfo;
    /// assert_eq!(PluginInfo::data_socket("/var/lib/kubelet/plugins/gpu.example.com", None)?, "dra.sock");
    /// # Ok::<(), dra_node::driver::SocketPathError>(())
    /// ```
    pub fn data_socket(directory: &str, pod_uid: Option<&str>) -> Result<String, SocketPathError> {
        match pod_uid {
            None => shortest_fitting(directory, ["dra.sock".to_owned()]),
            Some(uid) => {
                shortest_fitting(directory, [format!("dra-{uid}.sock"), format!("dra-{}.sock", hashed(uid, 8))])
            }
        }
    }

    /// Returns the `:authority` that the kubelet sends to a registration socket: its path, percent-encoded.
    ///
    /// ```
    /// use dra_node::driver::PluginInfo;
    /// assert_eq!(PluginInfo::kubelet_authority("/run/drv/x-reg.sock"), "%2Frun%2Fdrv%2Fx-reg.sock");
    /// ```
    #[must_use]
    pub fn kubelet_authority(path: &str) -> String {
        let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]@".contains(&byte);
        path.bytes()
            .map(|byte| if is_kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
            .collect()
    }
}

/// Returns the first name that is short enough.
fn shortest_fitting(directory: &str, names: impl IntoIterator<Item = String>) -> Result<String, SocketPathError> {
    let before = directory.trim_end_matches('/').len().saturating_add(1);
    let fitting = names.into_iter().find(|name| before.saturating_add(name.len()) <= MAX_PATH_LEN);
    fitting.ok_or_else(|| SocketPathError { directory: directory.to_owned() })
}

/// Returns the first `len` bytes of the hash of a text, in the URL-safe alphabet of Base64 without padding.
fn hashed(text: &str, len: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let hash = sha256(text);
    let (mut encoded, mut bits, mut count) = (String::new(), 0_u32, 0_u32);
    let mut push = |bits: u32| {
        encoded
            .extend(ALPHABET.get(usize::try_from(bits & 0x3f).unwrap_or_default()).map(|letter| char::from(*letter)));
    };
    for byte in hash.iter().take(len) {
        bits = (bits << 8 | u32::from(*byte)) & 0xffff;
        count += 8;
        while count >= 6 {
            count -= 6;
            push(bits >> count);
        }
    }
    if count > 0 {
        push(bits << (6 - count));
    }
    encoded
}
