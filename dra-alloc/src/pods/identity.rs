//! Identity of a pod, as far as decisions about its claims need it.

use dra_device::internal::PodFields;
use k8s_openapi::api::core::v1::Pod;

use super::options::PodOptions;

/// Identity of a pod: namespace, name and UID, and the name of its group if groups count.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct PodIdentity {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// UID of the pod.
    pub uid: String,
    /// Name of the pod's group, if it has one and `Gate::WorkloadResourceClaims` is on.
    pub group: Option<String>,
}

impl PodIdentity {
    pub(crate) fn new(pod: &Pod, options: PodOptions) -> Self {
        Self {
            namespace: pod.namespace().to_owned(),
            name: pod.metadata.name.clone().unwrap_or_default(),
            uid: pod.uid().to_owned(),
            group: options.group_of(pod).map(str::to_owned),
        }
    }
}
