//! Drivers over gRPC: calls to them, and a driver of the program's own. `no_grpc.rs` stands in without the feature.

mod client;
mod connection;
mod failure;
mod fake_driver;
mod registry;

use std::io;

use tokio::runtime::Builder;

pub(crate) use client::{prepare, unprepare};
pub(crate) use fake_driver::{ServeError, listen, serve, serve_while};
pub(crate) use registry::registered;

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
mod api {
    tonic::include_proto!("k8s.io.kubelet.pkg.apis.dra.v1");
}

/// Runs a future to its end.
///
/// # Errors
/// The operating system offers no way to wait for sockets and timers.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> io::Result<T> {
    Ok(Builder::new_current_thread().enable_all().build()?.block_on(future))
}
