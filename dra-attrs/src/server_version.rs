//! Version of a running API server.

use k8s_openapi::apimachinery::pkg::version::Info;

use crate::profile::Profile;

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

impl Profile {
    /// Returns the release of an API server by its answer to `/version`, or the nearest one that is known. A server that
    /// emulates another release (`--emulated-version`) has the gates of that one. Additions of a provider, such as `37+`, are ignored.
    ///
    /// # Errors
    /// The major version is not 1, or the minor version does not begin with a number.
    ///
    /// ```
    /// use dra_attrs::Profile;
    /// use k8s_openapi::apimachinery::pkg::version::Info;
    /// let info = Info { major: "1".to_owned(), minor: "37+".to_owned(), ..Info::default() };
    /// assert_eq!(Profile::of_server(&info)?, Profile::V1_37);
    /// # Ok::<(), dra_attrs::ServerVersionError>(())
    /// ```
    pub fn of_server(info: &Info) -> Result<Self, ServerVersionError> {
        let stated = |emulated: &Option<String>, own: &String| {
            emulated.clone().filter(|text| !text.is_empty()).unwrap_or_else(|| own.clone())
        };
        let (major, minor) = (stated(&info.emulation_major, &info.major), stated(&info.emulation_minor, &info.minor));
        if major != "1" {
            return Err(ServerVersionError::Major { major });
        }
        let digits = minor.bytes().take_while(u8::is_ascii_digit).count();
        let number = minor.get(..digits).and_then(|digits| digits.parse().ok());
        number.map(Self::of_minor).ok_or(ServerVersionError::Minor { minor })
    }
}
