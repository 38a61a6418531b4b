//! Version of a running API server.

use k8s_openapi::apimachinery::pkg::version::Info;

/// Reason why an answer of `/version` has no minor version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerVersionError {
    /// The major version is not 1.
    #[error("major version {major:?} is not 1")]
    Major {
        /// Major version of the server.
        major: String,
    },
    /// The minor version is not a number, optionally followed by `+` or another suffix.
    #[error("minor version {minor:?} is not a number")]
    Minor {
        /// Minor version of the server.
        minor: String,
    },
}

/// Returns the minor version of an API server from its answer to `/version`: 37 for Kubernetes 1.37. What a provider
/// appends to the number (`37+`) is ignored.
///
/// # Errors
/// The major version is not 1, or the minor version does not begin with a number.
///
/// ```
/// use dra_attrs::server_minor;
/// use k8s_openapi::apimachinery::pkg::version::Info;
/// let info = Info { major: "1".to_owned(), minor: "37+".to_owned(), ..Info::default() };
/// assert_eq!(server_minor(&info)?, 37);
/// # Ok::<(), dra_attrs::ServerVersionError>(())
/// ```
pub fn server_minor(info: &Info) -> Result<u32, ServerVersionError> {
    if info.major != "1" {
        return Err(ServerVersionError::Major { major: info.major.clone() });
    }
    let digits = info.minor.bytes().take_while(u8::is_ascii_digit).count();
    let number = info.minor.get(..digits).and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| ServerVersionError::Minor { minor: info.minor.clone() })
}
