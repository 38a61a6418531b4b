//! What the API server accepts, and what it makes of it: `ResourceSlice`, `ResourceClaim` and its status,
//! `ResourceClaimTemplate`, `DeviceClass`, `DeviceTaintRule`.
//!
//! Every problem is reported, each with the path of its field, the kind of the problem and the API server's words
//! ([`FieldErrors`]). A driver's author asks with one line, for Kubernetes 1.37 with every feature on:
//!
//! ```
//! use dra_alloc::validate::validate_slice;
//! # let slice = k8s_openapi::api::resource::v1::ResourceSlice::default();
//! let errors = validate_slice(&slice);
//! if !errors.is_empty() {
//!     eprintln!("not published: {errors}");
//! }
//! ```
//!
//! [`ApiServer`] is the whole: feature gates, profiles, and updates against the object in storage. A cluster that has not
//! all features on refuses or drops more.
//!
//! # Updates
//! What is immutable must be the same. What stands like this in storage is tolerated where Kubernetes tolerates it: fields
//! of features that are off, unchanged taints and capacities, CEL expressions, the size of configuration, and the rules
//! that only the types declare. Other rules hold for every write.
//!
//! # What is not checked
//! Metadata apart from the name, the cost of CEL expressions, what admission plugins and authorizers add, and everything
//! that takes more than one object.
//!
//! Source of the rules: `pkg/apis/resource/validation` and `pkg/registry/resource` of Kubernetes 1.37, the declarations in
//! its types, and KEP-5945.

mod admin_access;
mod admission;
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
mod counters;
mod derived;
mod device;
mod device_status;
mod equality;
mod findings;
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
mod request;
mod request_names;
mod request_policy;
mod selector;
mod skip_operations;
mod slice;
mod taint;
mod taint_rule;
mod template;

use dra_attrs::field::FieldErrors;
use dra_attrs::profile::Profile;
use k8s_openapi::api::resource::v1::ResourceSlice;

use crate::features::Features;

pub use admin_access::{ADMIN_ACCESS_LABEL, NamespaceAccess};
pub use admission::{Admission, Admitted};
pub use api_server::ApiServer;
pub use condition::validate_conditions;
pub use gates::GatePolicy;
pub use publish::PublishError;

/// All problems of a slice that is about to be published, as Kubernetes 1.37 would find them with every feature on.
///
/// ```
/// use dra_alloc::validate::validate_slice;
/// use k8s_openapi::api::resource::v1::ResourceSlice;
///
/// let errors = validate_slice(&ResourceSlice::default());
/// assert_eq!(errors.as_slice()[0].to_string(), "spec.driver: Required value");
/// ```
#[must_use]
pub fn validate_slice(slice: &ResourceSlice) -> FieldErrors {
    let server = ApiServer::new(Profile::V1_37, Features::all());
    server.slice(Admission::create(slice)).err().unwrap_or_default()
}
