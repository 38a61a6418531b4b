//! Example kubelet for claims: manifests, a checkpoint on disk, drivers over gRPC.

pub mod agent;
pub mod driver_client;
pub mod fake_driver;
pub mod state_file;
pub mod story;

/// Types and calls of the kubelet's DRA API v1, generated from `proto/dra.proto`.
#[allow(
    missing_docs,
    unused_qualifications,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::exhaustive_structs,
    clippy::exhaustive_enums,
    clippy::use_self,
    reason = "generated code"
)]
pub mod api {
    tonic::include_proto!("k8s.io.kubelet.pkg.apis.dra.v1");
}
