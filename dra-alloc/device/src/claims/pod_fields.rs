//! Fields of a pod by which its claims are found.

use k8s_openapi::api::core::v1::Pod;

/// Fields of a pod; an absent one is empty.
pub trait PodFields {
    /// Returns the namespace.
    fn namespace(&self) -> &str;

    /// Returns the UID.
    fn uid(&self) -> &str;

    /// Returns the namespace and name, for messages.
    fn full_name(&self) -> String;

    /// Returns the name of the pod's group, if it has one.
    fn group_name(&self) -> Option<&str>;
}

impl PodFields for Pod {
    fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    fn full_name(&self) -> String {
        format!("{}/{}", self.namespace(), self.metadata.name.as_deref().unwrap_or_default())
    }

    fn group_name(&self) -> Option<&str> {
        self.spec.as_ref()?.scheduling_group.as_ref()?.pod_group_name.as_deref()
    }
}
