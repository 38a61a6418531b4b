//! Kubernetes objects from JSON, with the path of the field that can't be read.
//!
//! All programs read them here, with one deserializer: the code that reads a type is large, and is made once.

use dra_attrs::saturate_times;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{Binding, Node, Pod, PodTemplateSpec};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use k8s_openapi::api::resource::v1alpha3;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use poolstatus::kep;
use serde_json::{Error, Value};
use serde_path_to_error::Error as PathError;

/// Kubernetes object that several programs read.
pub trait KubeObject: Sized {
    /// Reads an object. Times that its type can't hold are read as the nearest that it can ([`saturate_times`]).
    ///
    /// # Errors
    /// A field is missing or of a wrong type.
    ///
    /// ```
    /// use examples::objects::KubeObject;
    /// use k8s_openapi::api::core::v1::Node;
    /// use serde_json::json;
    /// let error = Node::from_json(json!({"spec": {"taints": [{"key": 7}]}})).unwrap_err();
    /// assert_eq!(error.path().to_string(), "spec.taints[0].key");
    /// ```
    fn from_json(json: Value) -> Result<Self, PathError<Error>>;
}

macro_rules! kube_objects {
    ($($object:ty),*) => {
        $(impl KubeObject for $object {
            fn from_json(mut json: Value) -> Result<Self, PathError<Error>> {
                saturate_times(&mut json);
                serde_path_to_error::deserialize(json)
            }
        })*
    };
}

kube_objects!(
    Binding,
    ClusterRole,
    CronJob,
    DaemonSet,
    Deployment,
    DeviceClass,
    DeviceTaintRule,
    Job,
    Node,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    PodTemplateSpec,
    ReplicaSet,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    StatefulSet,
    kep::ResourcePoolStatusRequest,
    v1alpha3::ResourcePoolStatusRequest
);
