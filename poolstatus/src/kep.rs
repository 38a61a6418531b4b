//! The objects in the form of the KEP's text, `resource.k8s.io/v1alpha1`. Kubernetes ships another form, for which
//! k8s-openapi has the types (`resource/v1alpha3`).

use dra_attrs::profile::Profile;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use k8s_openapi::{ClusterResourceScope, Metadata, Resource};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The short names of the resource for `kubectl`. The shipped resource has none.
///
/// ```
/// use dra_attrs::profile::Profile;
/// use k8s_openapi::Resource;
/// use poolstatus::kep::{ResourcePoolStatusRequest, short_names};
/// assert_eq!(short_names(Profile::Kep), ["rpsr"]);
/// assert_eq!(ResourcePoolStatusRequest::API_VERSION, "resource.k8s.io/v1alpha1");
/// assert_eq!(ResourcePoolStatusRequest::URL_PATH_SEGMENT, "resourcepoolstatusrequests");
/// ```
#[must_use]
pub const fn short_names(profile: Profile) -> &'static [&'static str] {
    match profile {
        Profile::V1_37 => &[],
        _ => &["rpsr"],
    }
}

/// A question about the pools of a driver, and its answer. Cluster-scoped.
///
/// As with the types of k8s-openapi, JSON has the version and the kind, and an object of another one is refused.
///
/// ```
/// use poolstatus::kep::ResourcePoolStatusRequest;
/// use serde_json::{from_value, json, to_value};
/// let request = json!({"apiVersion": "resource.k8s.io/v1alpha1", "kind": "ResourcePoolStatusRequest",
///     "metadata": {}, "spec": {"driver": "gpu.example.com"}});
/// assert_eq!(to_value(from_value::<ResourcePoolStatusRequest>(request.clone())?)?, request);
/// assert!(from_value::<ResourcePoolStatusRequest>(json!({"kind": "Pod"})).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(try_from = "Wire", into = "Wire"))]
#[expect(clippy::exhaustive_structs, reason = "an object of an API, like those of k8s-openapi")]
pub struct ResourcePoolStatusRequest {
    /// Name, UID, time of creation.
    pub metadata: ObjectMeta,
    /// The question; immutable.
    pub spec: Spec,
    /// The answer. Without an observation time there is none yet.
    pub status: Status,
}

/// The object as JSON.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename = "ResourcePoolStatusRequest", rename_all = "camelCase")]
struct Wire {
    api_version: Option<String>,
    kind: Option<String>,
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
}

impl Serialize for ResourcePoolStatusRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { metadata, spec, status } = self.clone();
        let (api_version, kind) = (Some(Self::API_VERSION.to_owned()), Some(Self::KIND.to_owned()));
        let status = Some(status).filter(|status| !status.is_unset());
        Wire { api_version, kind, metadata, spec, status }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ResourcePoolStatusRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { api_version, kind, metadata, spec, status } = Wire::deserialize(deserializer)?;
        for (field, found, expected) in [("apiVersion", api_version, Self::API_VERSION), ("kind", kind, Self::KIND)] {
            if let Some(found) = found.filter(|found| found != expected) {
                return Err(D::Error::custom(format!("{field}: invalid value: {found:?}, expected {expected}")));
            }
        }
        Ok(Self { metadata, spec, status: status.unwrap_or_default() })
    }
}

impl Resource for ResourcePoolStatusRequest {
    const API_VERSION: &'static str = "resource.k8s.io/v1alpha1";
    const GROUP: &'static str = "resource.k8s.io";
    const KIND: &'static str = "ResourcePoolStatusRequest";
    const VERSION: &'static str = "v1alpha1";
    const URL_PATH_SEGMENT: &'static str = "resourcepoolstatusrequests";
    type Scope = ClusterResourceScope;
}

impl Metadata for ResourcePoolStatusRequest {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Which pools are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "an object of an API, like those of k8s-openapi")]
pub struct Spec {
    /// The driver; required.
    pub driver: String,
    /// The name of one pool; every pool of the driver if unset or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_name: Option<String>,
    /// The most pools to list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i32>,
    /// How many seconds after its completion the request is deleted; never if unset. The KEP plans it for beta.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_complete: Option<i64>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "an object of an API, like those of k8s-openapi")]
pub struct Status {
    /// When the answer was computed. A request with a time is never processed again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation_time: Option<Time>,
    /// The pools, by driver and name; at most `spec.limit`.
    pub pools: Vec<PoolStatus>,
    /// `Complete`, once the answer is there.
    pub conditions: Vec<Condition>,
    /// What is inconsistent about the listed pools: at most 10 texts of at most 256 characters.
    pub validation_errors: Vec<String>,
    /// Whether there are more pools than listed.
    pub truncated: bool,
    /// How many pools match, listed or not.
    pub total_matching_pools: i32,
}

impl Status {
    /// Whether there is no answer yet.
    #[must_use]
    pub fn is_unset(&self) -> bool {
        *self == Self::default()
    }
}

/// One pool. Every field is written, also where it is zero or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "an object of an API, like those of k8s-openapi")]
pub struct PoolStatus {
    /// The driver.
    pub driver: String,
    /// The name of the pool.
    pub pool_name: String,
    /// The node that has the pool; empty if the pool is not that of one node.
    pub node_name: String,
    /// Devices over all slices of the newest generation, as they are listed.
    pub total_devices: i32,
    /// Those that a claim holds, each once.
    pub allocated_devices: i32,
    /// The others: total less allocated and unavailable.
    pub available_devices: i32,
    /// Those that no claim holds and that a taint keeps from being allocated.
    pub unavailable_devices: i32,
    /// Slices of the newest generation that are there.
    pub slice_count: i32,
    /// The newest generation.
    pub generation: i64,
}
