//! Features that nodes declare and pods require, as far as skipping node operations needs them (KEP-5945, Node Declared
//! Features Integration; KEP-5328).
//!
//! A kubelet that can skip says so in `node.status.declaredFeatures`. In the KEP's text, a pod requires that of its node if
//! one of its claims is allocated with a device that skips; scheduler and kubelet's admission ask the same function. In
//! Kubernetes 1.37 no pod requires it: the allocator looks at the node itself ([`crate::allocator`]), and for a claim that
//! is allocated already the scheduler asks [`DeclaredFeature::required_by_claim`].

use dra_attrs::profile::Profile;
use dra_attrs::semver::Version;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde::Serialize;

use crate::graduation::Stage;
use crate::kubelet::gate::{Gate, Settings};
use crate::kubelet::pod_claims::of_pod;
use crate::profile::{Decisions, Inference};
use crate::skip::aggregate::is_used_by;

/// The reason of a pod that the kubelet does not admit.
pub const POD_FEATURE_UNSUPPORTED: &str = "PodFeatureUnsupported";

/// The reason of the event of a pod that fits on no node.
pub const FAILED_SCHEDULING: &str = "FailedScheduling";

/// The feature "node operations may be skipped", as nodes declare it.
///
/// ```
/// use dra_alloc::declared_features::DeclaredFeature;
/// use dra_attrs::profile::Profile;
/// assert_eq!(DeclaredFeature::new(Profile::Kep).name(), "DraOptionalNodePreparation");
/// assert_eq!(DeclaredFeature::new(Profile::V1_37).name(), "DRAOptionalNodeOperations");
/// ```
#[derive(Clone, Debug)]
pub struct DeclaredFeature {
    profile: Profile,
    max_version: Option<Version>,
}

impl DeclaredFeature {
    /// The feature without a bound on versions, as it is until it is stable everywhere.
    #[must_use]
    pub const fn new(profile: Profile) -> Self {
        Self { profile, max_version: None }
    }

    /// The feature with the last version that declares and requires it. Versions compare as semantic versions: 1.38.1 is
    /// beyond a bound of 1.38.0, and 1.38.0-rc.1 is not.
    #[must_use]
    pub fn until(self, max_version: Version) -> Self {
        Self { max_version: Some(max_version), ..self }
    }

    /// The name in `node.status.declaredFeatures`. It is not that of the gate in the KEP.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        Decisions::of(self.profile).declared_feature
    }

    /// What a kubelet declares: the name, if and only if its gate is on.
    ///
    /// ```
    /// use dra_alloc::declared_features::DeclaredFeature;
    /// use dra_alloc::kubelet::{Settings, gate::Gate};
    /// use dra_attrs::profile::Profile;
    /// let feature = DeclaredFeature::new(Profile::Kep);
    /// let kubelet = Settings::new(Profile::Kep).with(Gate::OptionalNodeOperations);
    /// assert_eq!(feature.declared_by(kubelet, &"1.37.0".parse()?), Some("DraOptionalNodePreparation"));
    /// # Ok::<(), dra_attrs::semver::VersionError>(())
    /// ```
    #[must_use]
    pub fn declared_by(&self, kubelet: Settings, version: &Version) -> Option<&'static str> {
        (kubelet.has(Gate::OptionalNodeOperations) && self.covers(version)).then(|| self.name())
    }

    /// What a pod requires of its node: the name, if a claim that it references is allocated with a device that skips
    /// operations, in a profile that infers it. Claims that are not there, not made or not allocated require nothing.
    ///
    /// `target` is the version of the asking component. An allocation that a scheduler has just made belongs into `claims`
    /// before it binds the pod: only then is the answer about the devices that the pod will get.
    ///
    /// ```
    /// use dra_alloc::declared_features::DeclaredFeature;
    /// use dra_attrs::profile::Profile;
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
        let infers = Decisions::of(self.profile).inference == Inference::FromClaims;
        (infers && self.covers(target) && uses_skipping(pod, claims, self.profile)).then(|| self.name())
    }

    /// What a claim that is allocated already requires of the node of any further pod: the name, if one of its devices
    /// skips operations. kube-scheduler 1.37 rejects nodes that do not declare it ([`Candidates::among`]).
    ///
    /// ```
    /// use dra_alloc::declared_features::{Candidates, DeclaredFeature};
    /// use dra_attrs::profile::Profile;
    /// use k8s_openapi::api::{core::v1::Node, resource::v1::ResourceClaim};
    /// use serde_json::{from_value, json};
    /// let claim: ResourceClaim = from_value(json!({"status": {"allocation": {"devices": {"results": [{"request": "r",
    ///     "driver": "d.example.com", "pool": "p", "device": "d", "skipNodeOperations": ["*"]}]}}}}))?;
    /// let old: Node = from_value(json!({"metadata": {"name": "old"}}))?;
    /// let new: Node = from_value(json!({"metadata": {"name": "new"},
    ///     "status": {"declaredFeatures": ["DRAOptionalNodeOperations"]}}))?;
    /// let required = DeclaredFeature::new(Profile::V1_37).required_by_claim(&claim);
    /// assert_eq!(Candidates::among([&old, &new], required.as_slice()).fitting, ["new"]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn required_by_claim(&self, claim: &ResourceClaim) -> Option<&'static str> {
        is_used_by(claim).then(|| self.name())
    }

    fn covers(&self, version: &Version) -> bool {
        self.max_version.as_ref().is_none_or(|max| version <= max)
    }
}

/// Whether the feature constrains pods in a release: until it is stable, and every kubelet that may be in the cluster has
/// it. `since` is the first version with the feature.
///
/// ```
/// use dra_alloc::declared_features::constrains;
/// use dra_alloc::graduation::Stage;
/// let since = "1.37.0".parse()?;
/// assert!(constrains(Stage::Stable, &"1.36.0".parse()?, &since));
/// assert!(constrains(Stage::Beta, &"1.37.0".parse()?, &since));
/// assert!(!constrains(Stage::Stable, &"1.37.0".parse()?, &since));
/// # Ok::<(), dra_attrs::semver::VersionError>(())
/// ```
#[must_use]
pub fn constrains(stage: Stage, oldest_kubelet: &Version, since: &Version) -> bool {
    stage != Stage::Stable || oldest_kubelet < since
}

fn uses_skipping(pod: &Pod, claims: &[ResourceClaim], profile: Profile) -> bool {
    of_pod(pod, Settings::new(profile)).filter_map(Result::ok).any(|used| {
        claims.iter().any(|claim| {
            let metadata = &claim.metadata;
            metadata.name.as_ref() == Some(&used.claim.name)
                && metadata.namespace.as_deref().unwrap_or_default() == used.claim.namespace
                && is_used_by(claim)
        })
    })
}

/// The required features that are not declared: sorted, each once. Neither list needs an order.
///
/// ```
/// use dra_alloc::declared_features::missing;
/// assert_eq!(missing(&["C", "A", "C"], &["B".to_owned(), "A".to_owned()]), ["C"]);
/// ```
#[must_use]
pub fn missing<'a>(required: &[&'a str], declared: &[String]) -> Vec<&'a str> {
    let mut missing = required.to_vec();
    missing.retain(|name| !declared.iter().any(|declared| declared == name));
    missing.sort_unstable();
    missing.dedup();
    missing
}

/// A pod that a kubelet does not admit. It has failed, with this reason and message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Pod requires node features that are not available: {}", missing.join(", "))]
#[non_exhaustive]
pub struct NotAdmitted {
    /// The features.
    pub missing: Vec<String>,
}

impl NotAdmitted {
    /// The reason.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        POD_FEATURE_UNSUPPORTED
    }
}

/// Whether a kubelet admits a pod that requires features. A kubelet without node declared features does not ask.
///
/// # Errors
/// The features that the node does not declare.
pub fn admit(required: &[&str], declared: &[String]) -> Result<(), NotAdmitted> {
    let missing: Vec<String> = missing(required, declared).into_iter().map(str::to_owned).collect();
    if missing.is_empty() { Ok(()) } else { Err(NotAdmitted { missing }) }
}

/// Which nodes a pod may go to, as far as declared features decide.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Candidates {
    /// Names of the nodes that declare everything required, in the given order.
    pub fitting: Vec<String>,
    /// The other nodes, each with what it does not declare.
    pub rejected: Vec<(String, Vec<String>)>,
}

impl Candidates {
    /// Sorts nodes out for a pod that requires features.
    ///
    /// ```
    /// use dra_alloc::declared_features::Candidates;
    /// use k8s_openapi::api::core::v1::Node;
    /// let node: Node = serde_json::from_str(r#"{"metadata": {"name": "old"}}"#)?;
    /// let none = Candidates::among([&node], &["DraOptionalNodePreparation"]);
    /// assert!(none.fitting.is_empty());
    /// assert_eq!(
    ///     none.message(),
    ///     "0/1 nodes are available: 1 node(s) didn't match Pod's required features (DraOptionalNodePreparation)."
    /// );
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn among<'a>(nodes: impl IntoIterator<Item = &'a Node>, required: &[&str]) -> Self {
        let mut candidates = Self::default();
        for node in nodes {
            let name = node.metadata.name.clone().unwrap_or_default();
            let declared = node.status.as_ref().and_then(|status| status.declared_features.as_deref());
            let missing = missing(required, declared.unwrap_or_default());
            if missing.is_empty() {
                candidates.fitting.push(name);
            } else {
                candidates.rejected.push((name, missing.into_iter().map(str::to_owned).collect()));
            }
        }
        candidates
    }

    /// The text of the event [`FAILED_SCHEDULING`], with the names of the features.
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
