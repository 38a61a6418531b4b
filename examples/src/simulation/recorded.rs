//! Objects that were recorded or written: nodes, slices and classes beside those of a description, and pods with times.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dra_alloc::Component;
use dra_alloc::claims::{ClaimKey, PodClaimError};
use dra_alloc::kubelet::ClaimCache;
use dra_alloc::{Profile, claims};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;

use super::description::Span;
use crate::manifest::{Manifests, name_of};
use crate::movable::must_stay;

/// Annotation of a pod: time from the begin of the day to its arrival. Without it, the pod comes as long after the first pod
/// as their creation times say.
const ARRIVES: &str = "example.com/arrives";

/// Annotation of a pod: time from placing to end.
const STAYS: &str = "example.com/stays";

/// Annotation of a pod: time after which it gives up waiting.
const PATIENCE: &str = "example.com/patience";

/// Reason that a recorded pod can't be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordedError {
    /// An annotation is not a duration.
    #[error("pod {pod}: metadata.annotations[{annotation}]: {reason}")]
    Annotation {
        /// Namespace and name of the pod.
        pod: String,
        /// Name of the annotation.
        annotation: &'static str,
        /// Reason that the text is not a duration.
        reason: String,
    },
    /// The name of a claim can't be determined.
    #[error("pod {pod}: {source}")]
    Claim {
        /// Namespace and name of the pod.
        pod: String,
        /// Reason.
        source: PodClaimError,
    },
    /// A claim is not among the manifests.
    #[error("pod {pod}: no claim {claim} among the manifests")]
    NoClaim {
        /// Namespace and name of the pod.
        pod: String,
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
    /// Two pods name one claim.
    #[error("pod {pod}: claim {claim} is used by another pod too, and a simulated claim has one pod")]
    Shared {
        /// Namespace and name of the second pod.
        pod: String,
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
}

/// Objects of manifests.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Recorded {
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Slices of all pools.
    pub slices: Vec<Arc<ResourceSlice>>,
    /// Device classes.
    pub classes: Vec<Arc<DeviceClass>>,
    /// Taints of devices.
    pub taint_rules: Vec<DeviceTaintRule>,
    /// Pods with claims.
    pub pods: Vec<RecordedPod>,
    /// Number of pods without claims, which are left out.
    pub pods_without_claims: usize,
}

/// Pod with claims.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedPod {
    /// Namespace and name.
    pub name: String,
    /// Milliseconds from the begin of the day to the arrival.
    pub at: u64,
    /// Milliseconds from placing to end; `None` to the end of the day.
    pub stay: Option<u64>,
    /// Milliseconds after which the pod gives up waiting.
    pub patience: Option<u64>,
    /// Priority.
    pub priority: i32,
    /// True if an annotation forbids that the pod is moved.
    pub is_fixed: bool,
    /// Claims as they were before they were allocated.
    pub claims: Vec<ResourceClaim>,
}

impl Recorded {
    /// Takes the objects of manifests. Where pods were and what claims had is forgotten: a simulation places them anew.
    ///
    /// # Errors
    /// A pod has an annotation that is no duration, or a claim that is missing or shared with another pod.
    ///
    /// ```
    /// use examples::manifest::Manifests;
    /// use examples::simulation::Recorded;
    /// let mut manifests = Manifests::default();
    /// manifests.read("pods.yaml", "kind: Pod
    /// metadata: {namespace: ml, name: train, annotations: {example.com/arrives: 5m}}
    /// spec: {resourceClaims: [{name: gpu, resourceClaimName: train}]}
    /// ---
    /// {kind: ResourceClaim, metadata: {namespace: ml, name: train}, spec: {}}");
    /// assert_eq!(Recorded::from_manifests(&manifests)?.pods[0].at, 300_000);
    /// # Ok::<(), examples::simulation::RecordedError>(())
    /// ```
    pub fn from_manifests(manifests: &Manifests) -> Result<Self, RecordedError> {
        let first = manifests.pods.iter().filter_map(created).min();
        let claims = manifests.claims.iter().map(|claim| (ClaimKey::from_metadata(&claim.metadata), claim));
        let mut reader = PodReader { first, claims: claims.collect(), used: BTreeSet::new() };
        let (mut pods, mut pods_without_claims) = (Vec::new(), 0);
        for pod in &manifests.pods {
            match reader.pod(pod)? {
                read if read.claims.is_empty() => pods_without_claims += 1,
                read => pods.push(read),
            }
        }
        Ok(Self {
            nodes: manifests.nodes.clone(),
            slices: manifests.slices.iter().cloned().map(Arc::new).collect(),
            classes: manifests.classes.iter().cloned().map(Arc::new).collect(),
            taint_rules: manifests.taint_rules.clone(),
            pods,
            pods_without_claims,
        })
    }
}

/// Reader of pods, with the claims of all manifests.
struct PodReader<'m> {
    /// Creation time of the first pod.
    first: Option<Timestamp>,
    claims: BTreeMap<ClaimKey, &'m ResourceClaim>,
    used: BTreeSet<ClaimKey>,
}

impl PodReader<'_> {
    fn pod(&mut self, pod: &Pod) -> Result<RecordedPod, RecordedError> {
        let name = name_of(&pod.metadata);
        let mut claims = Vec::new();
        for claim in ClaimCache::claims_of_pod(pod, Component::of(Profile::V1_37)) {
            let claims::PodClaim { claim, .. } =
                claim.map_err(|source| RecordedError::Claim { pod: name.clone(), source })?;
            if !self.used.insert(claim.clone()) {
                return Err(RecordedError::Shared { pod: name, claim });
            }
            match self.claims.get(&claim) {
                Some(found) => claims.push(ResourceClaim { status: None, ..ResourceClaim::clone(found) }),
                None => return Err(RecordedError::NoClaim { pod: name, claim }),
            }
        }
        let after_first =
            created(pod).zip(self.first).map(|(created, first)| created.duration_since(first).as_millis());
        let at = match annotation(pod, ARRIVES)? {
            Some(at) => at,
            None => after_first.and_then(|millis| u64::try_from(millis).ok()).unwrap_or_default(),
        };
        let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default();
        let (stay, patience) = (annotation(pod, STAYS)?, annotation(pod, PATIENCE)?);
        Ok(RecordedPod { name, at, stay, patience, priority, is_fixed: must_stay(pod), claims })
    }
}

fn created(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

fn annotation(pod: &Pod, annotation: &'static str) -> Result<Option<u64>, RecordedError> {
    let text = pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(annotation));
    let span = text.map(|text| text.parse::<Span>()).transpose();
    let wrong = |reason| RecordedError::Annotation { pod: name_of(&pod.metadata), annotation, reason };
    span.map(|span| span.map(Span::millis)).map_err(wrong)
}
