//! Drivers over gRPC: calls to them, and a driver of the program's own. `no_grpc.rs` stands in without the feature.

mod fake_driver;

use std::io;

use tokio::runtime::Builder;

pub(crate) use dra_live::grpc::{prepare, registered, unprepare};
pub(crate) use fake_driver::{ServeError, listen, serve, serve_while};

/// Runs a future to its end.
///
/// # Errors
/// The operating system offers no way to wait for sockets and timers.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> io::Result<T> {
    Ok(Builder::new_current_thread().enable_all().build()?.block_on(future))
}
