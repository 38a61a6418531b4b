//! What the story is about: nodes, classes, claims and a pod from a manifest, and the slices that the drivers add.

use dra_alloc::features::{Feature, Features};
use dra_attrs::profile::Profile;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};

use super::TourError;
use crate::manifest::Manifests;

const MANIFEST: &str = include_str!("../../data/tour/cluster.yaml");

/// The story follows the text of the KEPs.
pub(super) const PROFILE: Profile = Profile::Kep;

/// The cluster as far as the story has come.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) nodes: Vec<Node>,
    pub(super) classes: Vec<DeviceClass>,
    /// With the status that the story gives them.
    pub(super) claims: Vec<ResourceClaim>,
    pub(super) pod: Pod,
    pub(super) slices: Vec<ResourceSlice>,
}

impl Cluster {
    pub(super) fn load() -> Result<Self, TourError> {
        let mut manifests = Manifests::default();
        manifests.read("tour/cluster.yaml", MANIFEST);
        if let Some(problem) = manifests.problems.first() {
            return Err(TourError::Cluster(problem.to_string()));
        }
        let pod = manifests.pods.pop().ok_or_else(|| TourError::Cluster("no pod in tour/cluster.yaml".to_owned()))?;
        let Manifests { nodes, classes, claims, .. } = manifests;
        Ok(Self { nodes, classes, claims, pod, slices: Vec::new() })
    }
}

/// The features of all components: what the two KEPs of the story need is on.
pub(super) fn features() -> Features {
    Features::default().with(Feature::ListTypeAttributes).with(Feature::OptionalNodeOperations)
}

/// The name of an object.
pub(super) fn name(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}
