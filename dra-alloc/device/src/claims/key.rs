//! Identity of a claim on an API server.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

/// Identity of a claim: its namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a name has these two parts")]
pub struct ClaimKey {
    /// Namespace of the claim.
    pub namespace: String,
    /// Name of the claim.
    pub name: String,
}

impl ClaimKey {
    /// Creates the key of a claim.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Creates the key of a claim from its metadata.
    #[must_use]
    pub fn from_metadata(metadata: &ObjectMeta) -> Self {
        Self::new(metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
    }
}

impl fmt::Display for ClaimKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
