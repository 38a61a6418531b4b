//! Identity of a claim that holds devices.

use std::fmt;

use k8s_openapi::api::resource::v1::ResourceClaim;

/// Identity of a claim: namespace, name and UID.
///
/// ```
/// use dra_alloc::ClaimId;
/// use k8s_openapi::api::resource::v1::ResourceClaim;
///
/// let mut claim = ResourceClaim::default();
/// claim.metadata.namespace = Some("ml".to_owned());
/// claim.metadata.name = Some("training".to_owned());
/// assert_eq!(ClaimId::from(&claim).to_string(), "ml/training");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "these three texts identify a claim")]
pub struct ClaimId {
    /// Namespace of the claim.
    pub namespace: String,
    /// Name of the claim.
    pub name: String,
    /// UID of the claim, which tells it from an earlier claim of the same name.
    pub uid: String,
}

impl From<&ResourceClaim> for ClaimId {
    fn from(claim: &ResourceClaim) -> Self {
        let [namespace, name, uid] = texts(claim).map(str::to_owned);
        Self { namespace, name, uid }
    }
}

impl fmt::Display for ClaimId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl ClaimId {
    pub(super) fn texts(&self) -> [&str; 3] {
        [&self.namespace, &self.name, &self.uid]
    }

    /// Returns a claim with this identity and nothing else.
    pub(crate) fn to_claim(&self) -> ResourceClaim {
        let mut claim = ResourceClaim::default();
        let metadata = &mut claim.metadata;
        (metadata.namespace, metadata.name) = (Some(self.namespace.clone()), Some(self.name.clone()));
        metadata.uid = Some(self.uid.clone());
        claim
    }
}

/// Returns namespace, name and UID of a claim; a text that is not set is empty.
pub(super) fn texts(claim: &ResourceClaim) -> [&str; 3] {
    let metadata = &claim.metadata;
    [&metadata.namespace, &metadata.name, &metadata.uid].map(|text| text.as_deref().unwrap_or_default())
}
