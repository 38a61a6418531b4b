//! Versions of objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Version of an object as a number; versions of Kubernetes objects compare as numbers (KEP-5504). One that is not set, or is
/// no number, is neither older nor newer than any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(Option<u128>);

impl Version {
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        Self::parse(metadata.resource_version.as_deref())
    }

    pub(crate) fn parse(text: Option<&str>) -> Self {
        Self(text.and_then(|text| text.parse().ok()))
    }

    /// Returns true if both versions are known, and this one is older.
    pub(crate) fn is_older_than(self, other: Self) -> bool {
        self.0.zip(other.0).is_some_and(|(own, other)| own < other)
    }

    /// Returns true if both versions are known, and this one is newer.
    pub(crate) fn is_newer_than(self, other: Self) -> bool {
        other.is_older_than(self)
    }
}
