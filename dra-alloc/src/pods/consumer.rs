//! Consumers of claims: the pod or the pod group that `status.reservedFor` names.
//!
//! Source: `resourceclaim.BindTo`, `IsReservedForPod`, `CanBeReserved`.

use dra_attrs::Gate;
use dra_device::claims::ClaimKey;
use dra_device::internal::PodFields;
use k8s_openapi::api::core::v1::{Pod, PodResourceClaim};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimConsumerReference};
use k8s_openapi::api::scheduling::v1beta1::{PodGroup, PodGroupResourceClaim};

use super::identity::PodIdentity;
use super::options::PodOptions;

/// Consumer of a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "kube-scheduler reserves claims for these two")]
pub enum Consumer {
    /// A pod.
    Pod {
        /// Name of the pod.
        name: String,
        /// UID of the pod.
        uid: String,
    },
    /// A pod group (KEP-5729).
    PodGroup {
        /// Name of the group.
        name: String,
        /// UID of the group.
        uid: String,
    },
}

impl Consumer {
    /// Largest number of entries of `status.reservedFor`.
    pub const MAX_PER_CLAIM: usize = 256;

    pub(super) fn pod(pod: &PodIdentity) -> Self {
        Self::Pod { name: pod.name.clone(), uid: pod.uid.clone() }
    }

    /// Returns the UID of the pod or group.
    #[must_use]
    pub fn uid(&self) -> &str {
        match self {
            Self::Pod { uid, .. } | Self::PodGroup { uid, .. } => uid,
        }
    }

    /// Returns the entry of `status.reservedFor`.
    ///
    /// ```
    /// use dra_alloc::pods::Consumer;
    /// let pod = Consumer::Pod { name: "p".to_owned(), uid: "1".to_owned() };
    /// assert_eq!(pod.reference().resource, "pods");
    /// ```
    #[must_use]
    pub fn reference(&self) -> ResourceClaimConsumerReference {
        let (api_group, resource, name, uid) = match self {
            Self::Pod { name, uid } => (None, "pods", name, uid),
            Self::PodGroup { name, uid } => (Some("scheduling.k8s.io"), "podgroups", name, uid),
        };
        ResourceClaimConsumerReference {
            api_group: api_group.map(str::to_owned),
            resource: resource.to_owned(),
            name: name.clone(),
            uid: uid.clone(),
        }
    }

    /// Returns the consumer for which the claim of a pod's entry is reserved: the pod's group if an entry of the group has the
    /// same name and source, the pod otherwise. Without [`Gate::WorkloadResourceClaims`] always the pod.
    ///
    /// # Errors
    /// An entry without a source, or a group that is not the pod's.
    pub fn of_entry(
        pod: &Pod,
        entry: &PodResourceClaim,
        group: Option<&PodGroup>,
        options: PodOptions,
    ) -> Result<Self, ConsumerError> {
        let source = (&entry.resource_claim_name, &entry.resource_claim_template_name);
        if source == (&None, &None) {
            let owner = format!("Pod {}", pod.full_name());
            return Err(ConsumerError::NoSource { owner, entry: entry.name.clone() });
        }
        let Some(group) = group.filter(|_| options.has(Gate::WorkloadResourceClaims)) else {
            return Ok(Self::pod(&PodIdentity::new(pod, options)));
        };
        check_membership(pod, group)?;
        for of_group in group.spec.resource_claims.iter().flatten() {
            let PodGroupResourceClaim { name, resource_claim_name, resource_claim_template_name } = of_group;
            if (resource_claim_name, resource_claim_template_name) == (&None, &None) {
                let owner = format!("PodGroup {}", ClaimKey::from_metadata(&group.metadata));
                return Err(ConsumerError::NoSource { owner, entry: name.clone() });
            }
            if (name, (resource_claim_name, resource_claim_template_name)) == (&entry.name, source) {
                let (name, uid) = (group.metadata.name.clone(), group.metadata.uid.clone());
                return Ok(Self::PodGroup { name: name.unwrap_or_default(), uid: uid.unwrap_or_default() });
            }
        }
        Ok(Self::pod(&PodIdentity::new(pod, options)))
    }
}

/// Reason why the consumer of a pod's claim can't be determined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConsumerError {
    /// An entry of the pod or of its group names neither a claim nor a template.
    #[error("{owner} claim {entry}: none of the supported fields are set")]
    NoSource {
        /// Kind, namespace and name of the pod or group.
        owner: String,
        /// Name of the entry in `spec.resourceClaims`.
        entry: String,
    },
    /// The pod belongs to another group.
    #[error("Pod {pod} belongs to PodGroup {group}, not PodGroup {other}")]
    OtherGroup {
        /// Namespace and name of the pod.
        pod: String,
        /// Namespace and name of the pod's group.
        group: String,
        /// Namespace and name of the group that was given.
        other: String,
    },
    /// The pod belongs to no group.
    #[error("Pod {pod} does not belong to a PodGroup")]
    NoGroup {
        /// Namespace and name of the pod.
        pod: String,
    },
}

fn check_membership(pod: &Pod, group: &PodGroup) -> Result<(), ConsumerError> {
    let Some(name) = pod.group_name() else {
        return Err(ConsumerError::NoGroup { pod: pod.full_name() });
    };
    if group.metadata.name.as_deref() == Some(name) {
        return Ok(());
    }
    let of_pod = ClaimKey::new(pod.metadata.namespace.as_deref().unwrap_or_default(), name);
    let other = ClaimKey::from_metadata(&group.metadata).to_string();
    Err(ConsumerError::OtherGroup { pod: pod.full_name(), group: of_pod.to_string(), other })
}

/// Returns true if a claim is reserved for a pod (by UID), or for its group if groups count (by name).
#[must_use]
pub fn is_reserved_for(pod: &Pod, claim: &ResourceClaim, options: PodOptions) -> bool {
    is_reserved(&PodIdentity::new(pod, options), claim)
}

pub(super) fn is_reserved(pod: &PodIdentity, claim: &ResourceClaim) -> bool {
    dra_device::internal::is_reserved_for(&pod.uid, claim, pod.group.as_deref())
}

/// Error of a claim that has as many consumers as a claim may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the claim is reserved for {consumers} consumers, of at most {}", Consumer::MAX_PER_CLAIM)]
#[non_exhaustive]
pub struct ClaimFullError {
    /// Number of entries of `status.reservedFor`.
    pub consumers: usize,
}

/// Checks that a claim can be reserved for one more consumer, or is reserved for it already. kube-scheduler does not look
/// at the limit, so that its last write is refused by the API server.
///
/// # Errors
/// `status.reservedFor` has [`Consumer::MAX_PER_CLAIM`] entries, and the consumer is not among them.
pub fn can_reserve(claim: &ResourceClaim, consumer: &Consumer) -> Result<(), ClaimFullError> {
    let reserved = claim.status.as_ref().and_then(|status| status.reserved_for.as_deref()).unwrap_or_default();
    let is_among = || reserved.iter().any(|entry| entry.uid == consumer.uid());
    if reserved.len() < Consumer::MAX_PER_CLAIM || is_among() {
        Ok(())
    } else {
        Err(ClaimFullError { consumers: reserved.len() })
    }
}
