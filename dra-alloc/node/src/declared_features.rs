//! Node declared features for skipping node operations (KEP-5945, Node Declared Features Integration; KEP-5328).
//!
//! A kubelet that can skip node operations declares a feature in `node.status.declaredFeatures`. In the KEP, a pod
//! requires this feature of its node if one of its claims is allocated with a device that skips node operations;
//! scheduler and kubelet's admission use the same function ([`DeclaredFeature::required_by`]). In Kubernetes 1.37 no
//! pod requires the feature: the allocator reads it from the node (`dra_alloc::Allocator`), and for a claim that is
//! already allocated the scheduler uses [`DeclaredFeature::required_by_claim`].

use dra_attrs::internal::release::Inference;
use dra_attrs::{Component, Gate, Profile, Version};
use dra_device::skip::SkipSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde::Serialize;

use crate::kubelet::ClaimCache;

/// Reason in the status of a pod that the kubelet rejects for missing node features.
const POD_FEATURE_UNSUPPORTED: &str = "PodFeatureUnsupported";

/// Feature by which a kubelet declares that it can skip node operations.
///
/// ```
/// use dra_node::declared_features::DeclaredFeature;
/// use dra_attrs::Profile;
/// assert_eq!(DeclaredFeature::new(Profile::Kep).name(), "DraOptionalNodePreparation");
/// assert_eq!(DeclaredFeature::new(Profile::V1_37).name(), "DRAOptionalNodeOperations");
/// ```
#[derive(Clone, Debug)]
pub struct DeclaredFeature {
    profile: Profile,
    max_version: Option<Version>,
}

impl DeclaredFeature {
    /// Creates the feature with the name that the profile uses. All kubelet versions may declare it; see
    /// [`DeclaredFeature::with_max_version`].
    #[must_use]
    pub const fn new(profile: Profile) -> Self {
        Self { profile, max_version: None }
    }

    /// Sets the last Kubernetes version that declares and requires the feature. Versions compare as semantic versions:
    /// with the bound 1.38.0, version 1.38.1 is excluded and 1.38.0-rc.1 is included.
    #[must_use]
    pub fn with_max_version(self, max_version: Version) -> Self {
        Self { max_version: Some(max_version), ..self }
    }

    /// Returns the name of the feature in `node.status.declaredFeatures`. In the KEP, it differs from the name of the
    /// feature gate.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.profile.rules().skip.declared_feature
    }

    /// Returns the name of the feature if a kubelet with this configuration and version declares it. Needs the gate
    /// `Gate::OptionalNodeOperations` on the kubelet.
    ///
    /// ```
    /// use dra_attrs::Component;
    /// use dra_node::declared_features::DeclaredFeature;
    /// use dra_attrs::Gate;
    /// use dra_attrs::{GateSet, Profile};
    /// let feature = DeclaredFeature::new(Profile::Kep);
    /// let kubelet = Component::new(Profile::Kep, GateSet::of(Profile::V1_37).with(Gate::OptionalNodeOperations));
    /// assert_eq!(feature.declared_by(kubelet, &"1.37.0".parse()?), Some("DraOptionalNodePreparation"));
    /// # Ok::<(), dra_attrs::VersionError>(())
    /// ```
    #[must_use]
    pub fn declared_by(&self, kubelet: Component, version: &Version) -> Option<&'static str> {
        (kubelet.has(Gate::OptionalNodeOperations) && self.covers(version)).then(|| self.name())
    }

    /// Returns the name of the feature if the pod may run only on nodes that declare it: one of its claims is allocated
    /// with a device that skips node operations, and the profile is `Kep`. Claims that are missing in `claims`, not yet
    /// created or not allocated require nothing.
    ///
    /// `target` is the version of the calling component. A scheduler has to pass the allocation that it has just made
    /// in `claims`, so that the result is for the devices that the pod will get.
    ///
    /// ```
    /// use dra_node::declared_features::DeclaredFeature;
    /// use dra_attrs::Profile;
    /// use k8s_openapi::api::{core::v1::Pod, resource::v1::ResourceClaim};
    /// use serde_json::{from_value, json};
    /// let pod: Pod = from_value(json!({"metadata": {"namespace": "ns", "name": "p"},
    ///     "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}}))?;
    /// let claim: ResourceClaim = from_value(json!({"metadata": {"namespace": "ns", "name": "c"},
    ///     "status": {"allocation": {"devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p",
    ///         "device": "d", "skipNodeOperations": ["*"]}]}}}}))?;
    /// let required = |profile| DeclaredFeature::new(profile).required_by(&pod, &[claim.clone()], &"1.37.0".parse().unwrap());
    /// assert_eq!(required(Profile::Kep), Some("DraOptionalNodePreparation"));
    /// assert_eq!(required(Profile::V1_37), None);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn required_by(&self, pod: &Pod, claims: &[ResourceClaim], target: &Version) -> Option<&'static str> {
        match self.profile.rules().skip.inference {
            Inference::Never => None,
            Inference::FromClaims => {
                (self.covers(target) && uses_skipping(pod, claims, self.profile)).then(|| self.name())
            }
        }
    }

    /// Returns the name of the feature if pods that use this claim may run only on nodes that declare it: a device of
    /// its allocation skips node operations. kube-scheduler 1.37 rejects other nodes ([`CandidateNodes::from_nodes`]).
    ///
    /// ```
    /// use dra_node::declared_features::{CandidateNodes, DeclaredFeature};
    /// use dra_attrs::Profile;
    /// use k8s_openapi::api::{core::v1::Node, resource::v1::ResourceClaim};
    /// use serde_json::{from_value, json};
    /// let claim: ResourceClaim = from_value(json!({"status": {"allocation": {"devices": {"results": [{"request": "r",
    ///     "driver": "d.example.com", "pool": "p", "device": "d", "skipNodeOperations": ["*"]}]}}}}))?;
    /// let old: Node = from_value(json!({"metadata": {"name": "old"}}))?;
    /// let new: Node = from_value(json!({"metadata": {"name": "new"},
    ///     "status": {"declaredFeatures": ["DRAOptionalNodeOperations"]}}))?;
    /// let required = DeclaredFeature::new(Profile::V1_37).required_by_claim(&claim);
    /// assert_eq!(CandidateNodes::from_nodes([&old, &new], required.as_slice()).fitting, ["new"]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn required_by_claim(&self, claim: &ResourceClaim) -> Option<&'static str> {
        SkipSet::is_any_in(claim).then(|| self.name())
    }

    fn covers(&self, version: &Version) -> bool {
        self.max_version.as_ref().is_none_or(|max| version <= max)
    }

    /// Returns the required features that are not declared, sorted and without duplicates. The arguments need not be
    /// sorted.
    ///
    /// ```
    /// use dra_node::declared_features::DeclaredFeature;
    /// assert_eq!(DeclaredFeature::missing(&["C", "A", "C"], &["B".to_owned(), "A".to_owned()]), ["C"]);
    /// ```
    #[must_use]
    pub fn missing<'a>(required: &[&'a str], declared: &[String]) -> Vec<&'a str> {
        let mut missing = required.to_vec();
        missing.retain(|name| !declared.iter().any(|declared| declared == name));
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Checks that a kubelet admits a pod: the node declares all features that the pod requires. A kubelet with the gate
    /// `NodeDeclaredFeatures` off does not check this.
    ///
    /// # Errors
    /// Returns the features that the node does not declare.
    pub fn check_admission(required: &[&str], declared: &[String]) -> Result<(), AdmissionError> {
        let missing: Vec<String> = Self::missing(required, declared).into_iter().map(str::to_owned).collect();
        if missing.is_empty() { Ok(()) } else { Err(AdmissionError { missing }) }
    }
}

/// Stage of a feature gate (KEP-5945, Graduation Criteria).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "Kubernetes has these stages")]
pub enum Stage {
    /// Off by default.
    Alpha,
    /// On by default.
    Beta,
    /// Always on: the gate is locked.
    Stable,
}

/// Error of a configuration that turns off the gate of a stable feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the gate is locked to true: the feature is stable")]
#[non_exhaustive]
pub struct GateLockedError;

impl Stage {
    /// Returns true if the feature is on, given the value of its gate in the component's configuration (`None` if
    /// unset).
    ///
    /// # Errors
    /// The configuration turns off the gate of a stable feature.
    ///
    /// ```
    /// use dra_node::declared_features::Stage;
    /// assert_eq!(Stage::Alpha.is_on(None), Ok(false));
    /// assert_eq!(Stage::Beta.is_on(None), Ok(true));
    /// assert!(Stage::Stable.is_on(Some(false)).is_err());
    /// ```
    pub const fn is_on(self, configured: Option<bool>) -> Result<bool, GateLockedError> {
        match (self, configured) {
            (Self::Stable, Some(false)) => Err(GateLockedError),
            (Self::Stable, _) => Ok(true),
            (Self::Alpha | Self::Beta, Some(value)) => Ok(value),
            (stage, None) => Ok(matches!(stage, Self::Beta)),
        }
    }

    /// Returns true if a scheduler must still check nodes for the feature: it is not stable, or the cluster may have
    /// kubelets without it.
    ///
    /// The stage is that of the gate in the release, `oldest_kubelet` the oldest kubelet version that the release
    /// supports, and `since` the first version with the feature.
    ///
    /// ```
    /// use dra_node::declared_features::Stage;
    /// let since = "1.37.0".parse()?;
    /// assert!(Stage::Stable.restricts_nodes(&"1.36.0".parse()?, &since));
    /// assert!(Stage::Beta.restricts_nodes(&"1.37.0".parse()?, &since));
    /// assert!(!Stage::Stable.restricts_nodes(&"1.37.0".parse()?, &since));
    /// # Ok::<(), dra_attrs::VersionError>(())
    /// ```
    #[must_use]
    pub fn restricts_nodes(self, oldest_kubelet: &Version, since: &Version) -> bool {
        self != Self::Stable || oldest_kubelet < since
    }
}

fn uses_skipping(pod: &Pod, claims: &[ResourceClaim], profile: Profile) -> bool {
    ClaimCache::claims_of_pod(pod, Component::of(profile)).filter_map(Result::ok).any(|used| {
        claims.iter().any(|claim| {
            let metadata = &claim.metadata;
            metadata.name.as_ref() == Some(&used.claim.name)
                && metadata.namespace.as_deref().unwrap_or_default() == used.claim.namespace
                && SkipSet::is_any_in(claim)
        })
    })
}

/// Rejection of a pod by a kubelet's admission. The status of the pod gets this error as message and
/// [`AdmissionError::reason`] as reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Pod requires node features that are not available: {}", missing.join(", "))]
#[non_exhaustive]
pub struct AdmissionError {
    /// Names of the required features that the node does not declare, sorted.
    pub missing: Vec<String>,
}

impl AdmissionError {
    /// Returns the reason in the status of the rejected pod: `PodFeatureUnsupported`.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        POD_FEATURE_UNSUPPORTED
    }
}

/// Nodes for a pod, split into those that declare its required features and the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CandidateNodes {
    /// Names of the nodes that declare all required features, in the given order.
    pub fitting: Vec<String>,
    /// Names of the nodes that do not declare all required features, each with the missing ones.
    pub rejected: Vec<(String, Vec<String>)>,
}

impl CandidateNodes {
    /// Reason of the event for a pod that fits no node.
    pub const FAILED_SCHEDULING: &str = "FailedScheduling";

    /// Splits nodes by the features that a pod requires.
    ///
    /// ```
    /// use dra_node::declared_features::CandidateNodes;
    /// use k8s_openapi::api::core::v1::Node;
    /// let node: Node = serde_json::from_str(r#"{"metadata": {"name": "old"}}"#)?;
    /// let none = CandidateNodes::from_nodes([&node], &["DraOptionalNodePreparation"]);
    /// assert!(none.fitting.is_empty());
    /// assert_eq!(
    ///     none.message(),
    ///     "0/1 nodes are available: 1 node(s) didn't match Pod's required features (DraOptionalNodePreparation)."
    /// );
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn from_nodes<'a>(nodes: impl IntoIterator<Item = &'a Node>, required: &[&str]) -> Self {
        let mut candidates = Self::default();
        for node in nodes {
            let name = node.metadata.name.clone().unwrap_or_default();
            let declared = node.status.as_ref().and_then(|status| status.declared_features.as_deref());
            let missing = DeclaredFeature::missing(required, declared.unwrap_or_default());
            if missing.is_empty() {
                candidates.fitting.push(name);
            } else {
                candidates.rejected.push((name, missing.into_iter().map(str::to_owned).collect()));
            }
        }
        candidates
    }

    /// Returns the message of the event [`CandidateNodes::FAILED_SCHEDULING`], with the names of the missing features.
    #[must_use]
    pub fn message(&self) -> String {
        let mut names: Vec<&str> = self.rejected.iter().flat_map(|(_, missing)| missing).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let (fitting, rejected) = (self.fitting.len(), self.rejected.len());
        let total = fitting.saturating_add(rejected);
        if rejected == 0 {
            return format!("{fitting}/{total} nodes are available.");
        }
        let names = names.join(", ");
        format!(
            "{fitting}/{total} nodes are available: {rejected} node(s) didn't match Pod's required features ({names})."
        )
    }
}
