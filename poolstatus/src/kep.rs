//! Types of the API as KEP-5677 defines it, `resource.k8s.io/v1alpha1`.
//!
//! Kubernetes 1.37 ships another form, `resource.k8s.io/v1alpha3`, for which k8s-openapi has the types.

use dra_attrs::PoolStatusForm;
use dra_attrs::Profile;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use k8s_openapi::{ClusterResourceScope, Metadata, Resource};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A request for the status of a driver's pools, with its answer. Cluster-scoped.
///
/// As for the types of k8s-openapi, JSON has `apiVersion` and `kind`, and an object with other values is refused.
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
    /// Metadata of the object, such as name, UID and creation time.
    pub metadata: ObjectMeta,
    /// The pools that the request asks for. Immutable.
    pub spec: Spec,
    /// The answer to the request. Its observation time is unset while the request is pending.
    pub status: Status,
}

/// JSON form of [`ResourcePoolStatusRequest`].
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
        let status = Some(status).filter(|status| *status != Status::default());
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

impl ResourcePoolStatusRequest {
    /// Returns the short names for `kubectl` of the resource `resourcepoolstatusrequests`: `rpsr` in the KEP, none in
    /// Kubernetes 1.37.
    ///
    /// ```
    /// use k8s_openapi::Resource;
    /// use dra_attrs::Profile;
    /// use poolstatus::kep::ResourcePoolStatusRequest;
    /// assert_eq!(ResourcePoolStatusRequest::short_names(Profile::Kep), ["rpsr"]);
    /// assert_eq!(ResourcePoolStatusRequest::API_VERSION, "resource.k8s.io/v1alpha1");
    /// assert_eq!(ResourcePoolStatusRequest::URL_PATH_SEGMENT, "resourcepoolstatusrequests");
    /// ```
    #[must_use]
    pub const fn short_names(profile: Profile) -> &'static [&'static str] {
        match profile.rules().pool_status {
            PoolStatusForm::V1alpha3 => &[],
            PoolStatusForm::Kep => &["rpsr"],
        }
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

/// Selection of the pools that a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "an object of an API, like those of k8s-openapi")]
pub struct Spec {
    /// Name of the driver. Required.
    pub driver: String,
    /// Name of one pool. Selects every pool of the driver if unset or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_name: Option<String>,
    /// Maximum number of pools that the status lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i32>,
    /// Time from completion to deletion of the request, in seconds. The request is kept if unset. The KEP plans the field
    /// for beta.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_complete: Option<i64>,
}

/// Answer to a `ResourcePoolStatusRequest`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "an object of an API, like those of k8s-openapi")]
pub struct Status {
    /// Time at which the status was computed. A request with an observation time is never processed again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation_time: Option<Time>,
    /// Pools, sorted by driver and name; at most `spec.limit`.
    pub pools: Vec<PoolStatus>,
    /// Conditions: `Complete` once the request is answered.
    pub conditions: Vec<Condition>,
    /// Inconsistencies of the listed pools: at most 10 texts of at most 256 characters.
    pub validation_errors: Vec<String>,
    /// True if more pools match the request than the status lists.
    pub truncated: bool,
    /// Number of all pools that match the request, including those beyond its limit.
    pub total_matching_pools: i32,
}

/// Status of one pool. JSON has every field, even if it is zero or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "an object of an API, like those of k8s-openapi")]
pub struct PoolStatus {
    /// Name of the driver.
    pub driver: String,
    /// Name of the pool.
    pub pool_name: String,
    /// Name of the pool's node, empty if the slices do not all name the same node.
    pub node_name: String,
    /// Number of devices in all slices of the latest generation. A name that is listed twice counts twice.
    pub total_devices: i32,
    /// Number of devices that claims hold, each counted once.
    pub allocated_devices: i32,
    /// Number of devices that can be allocated: total minus allocated and unavailable.
    pub available_devices: i32,
    /// Number of devices that no claim holds and that a taint keeps from being allocated.
    pub unavailable_devices: i32,
    /// Number of slices of the latest generation.
    pub slice_count: i32,
    /// Latest generation of the pool, from its slices.
    pub generation: i64,
}
