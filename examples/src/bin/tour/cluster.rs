//! Cluster of the story: nodes, classes, claims and a pod from a manifest, and the slices that the drivers add.

use dra_alloc::{Gate, GateSet};
use dra_attrs::Profile;
use examples::manifest::Manifests;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};

use super::error::TourError;

const MANIFEST: &str = include_str!("../../../data/tour/cluster.yaml");

/// Profile of the story. The step "validate" shows where the text of the KEPs answers otherwise.
pub(super) const PROFILE: Profile = Profile::V1_37;

/// Cluster in its current state of the story.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) nodes: Vec<Node>,
    pub(super) classes: Vec<DeviceClass>,
    /// Claims, with the status that the story gives them.
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

/// Returns the feature gates of all components: the defaults, and those of the story's two KEPs.
pub(super) fn gates() -> GateSet {
    GateSet::of(Profile::V1_37).with(Gate::ListTypeAttributes).with(Gate::OptionalNodeOperations)
}

/// Returns the name of an object.
pub(super) fn name(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}
