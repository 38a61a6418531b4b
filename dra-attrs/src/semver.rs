//! Semantic versions of attribute values (semver 2.0.0).
//!
//! There are two orders, which differ. An attribute constraint compares versions *as text*: build metadata counts. A
//! selector compares them *by precedence*: `1.2.3+a` equals `1.2.3+b`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::serde_text::serde_as_text;

/// Reason that a text is not a semantic version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("version {text:?}: {reason}")]
#[non_exhaustive]
pub struct VersionError {
    /// The invalid text.
    pub text: String,
    /// Description of the error, with its position.
    pub reason: String,
}

/// Semantic version, compared by precedence (build metadata does not count).
///
/// Each number must fit in 64 bits, including those of the pre-release; kube-scheduler's own parser has the same limit.
///
/// ```
/// use dra_attrs::Version;
/// let version: Version = "1.10.0-rc.1+build5".parse()?;
/// assert!(version < "1.10.0".parse()?);
/// assert!(version > "1.9.7".parse()?);
/// assert_eq!(version, "1.10.0-rc.1".parse()?);
/// assert!("v1.2.3".parse::<Version>().is_err());
/// assert!("01.2.3".parse::<Version>().is_err());
/// # Ok::<(), dra_attrs::VersionError>(())
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(with = "String"))]
pub struct Version(semver::Version);

impl Version {
    /// Returns the major version.
    #[must_use]
    pub const fn major(&self) -> u64 {
        self.0.major
    }

    /// Returns the minor version.
    #[must_use]
    pub const fn minor(&self) -> u64 {
        self.0.minor
    }

    /// Returns the patch version.
    #[must_use]
    pub const fn patch(&self) -> u64 {
        self.0.patch
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let version = parse(text)?;
        match version.pre.split('.').find(|identifier| is_oversized(identifier)) {
            Some(identifier) => {
                let reason = format!("number {identifier:?} in the pre-release does not fit in 64 bits");
                Err(VersionError { text: text.to_owned(), reason })
            }
            None => Ok(Self(version)),
        }
    }
}

/// Checks that a text has the form of a version. The API server checks no more for an attribute: numbers in the
/// pre-release may have any size.
pub(crate) fn check_form(text: &str) -> Result<(), VersionError> {
    parse(text).map(|_| ())
}

fn parse(text: &str) -> Result<semver::Version, VersionError> {
    semver::Version::parse(text).map_err(|error| VersionError { text: text.to_owned(), reason: error.to_string() })
}

/// Returns true if a part of the pre-release is a number that does not fit in 64 bits.
fn is_oversized(identifier: &str) -> bool {
    let is_number = !identifier.is_empty() && identifier.bytes().all(|c| c.is_ascii_digit());
    is_number && identifier.parse::<u64>().is_err()
}

serde_as_text!(Version, str::parse);

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp_precedence(&other.0)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
