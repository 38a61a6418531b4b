//! Types and calls between kubelet and drivers, generated from `proto`.
#![allow(
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

/// Preparing of claims, version v1.
pub mod dra {
    tonic::include_proto!("k8s.io.kubelet.pkg.apis.dra.v1");
}

/// Preparing of claims, version v1beta1.
pub mod dra_v1beta1 {
    tonic::include_proto!("k8s.io.kubelet.pkg.apis.dra.v1beta1");
}

/// Health stream, version v1alpha1.
pub mod health {
    tonic::include_proto!("v1alpha1");
}

/// Health stream, version v1.
pub mod health_v1 {
    tonic::include_proto!("v1");
}

/// Registration of plugins.
pub mod registration {
    tonic::include_proto!("pluginregistration");
}
