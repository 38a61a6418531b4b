//! Validation of writes as the API server does it: `ResourceSlice`, `ResourceClaim` and its status,
//! `ResourceClaimTemplate`, `DeviceClass`, `DeviceTaintRule`.
//!
//! Every problem is reported with the path of its field, its type and the API server's message ([`FieldErrors`]). A
//! driver's author validates a slice with one call, for Kubernetes 1.37 with every feature on:
//!
//! ```
//! use dra_validate::validate_slice;
//! # let slice = k8s_openapi::api::resource::v1::ResourceSlice::default();
//! let errors = validate_slice(&slice);
//! if !errors.is_empty() {
//!     eprintln!("not published: {errors}");
//! }
//! ```
//!
//! [`ApiServer`] adds feature gates, profiles and updates of stored objects. A cluster with fewer features on drops or
//! rejects more fields.
//!
//! # Updates
//! Immutable fields must be equal to the stored ones: the spec (`immutable`), a claim's allocation once it is set
//! (`claim_status`). What counts as equal stands in `dra_device::equality`. Invalid values that are stored and unchanged are tolerated where
//! Kubernetes tolerates them: fields of disabled features, taints and capacities, CEL expressions, the size of opaque
//! configuration, and violations of rules that are only declared on the types. All other rules apply to every write.
//!
//! # What is not checked
//! Metadata other than the name, the checks of admission plugins and
//! authorizers, and every rule that needs more than one object.
//!
//! Source of the rules: `pkg/apis/resource/validation` and `pkg/registry/resource` of Kubernetes 1.37, the declarations
//! in its types, and KEP-5945.
//!
//! Tests: `tests/it`.

mod admin_access;
mod allocation;
mod api_server;
mod attribute;
mod binding;
mod capacity;
mod claim;
mod claim_status;
mod class;
mod condition;
mod config;
mod constraint;
mod context;
mod convert;
mod counters;
mod decoded;
mod derived;
mod device;
mod device_status;
mod fields;
mod gates;
mod immutable;
mod limits;
mod list;
mod metadata;
mod names;
mod network;
mod node_allocatable;
mod node_selection;
mod node_selector;
mod partition_type;
mod publish;
mod quantity;
mod ratchet;
mod read;
mod reject_while_off;
mod request;
mod request_names;
mod request_policy;
mod selector;
mod skip_operations;
mod slice;
mod stored;
mod taint;
mod taint_rule;
mod template;
mod unknown_field;
mod write;

use dra_attrs::{Component, FieldErrors, GateSet, Profile};
use k8s_openapi::api::resource::v1::ResourceSlice;

pub use admin_access::NamespaceAccess;
pub use api_server::ApiServer;
pub use publish::PublishError;
pub use read::{Read, read};
pub use unknown_field::UnknownField;
pub use write::{Accepted, Write};

/// Validates a new slice and returns all its problems, as found by Kubernetes 1.37 with every feature on.
///
/// ```
/// use dra_validate::validate_slice;
/// use k8s_openapi::api::resource::v1::ResourceSlice;
///
/// let errors = validate_slice(&ResourceSlice::default());
/// assert_eq!(errors[0].to_string(), "spec.driver: Required value");
/// ```
#[must_use]
pub fn validate_slice(slice: &ResourceSlice) -> FieldErrors {
    let server = ApiServer::new(Component::new(Profile::V1_37, GateSet::all()));
    server.validate_slice(Write::create(slice)).err().unwrap_or_default()
}
