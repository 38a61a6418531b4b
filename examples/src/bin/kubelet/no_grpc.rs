//! Doors of `grpc` in a program that was built without the feature: each says what to add.

use std::collections::BTreeMap;
use std::future::{Ready, ready};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dra_alloc::kubelet::{ClaimRef, PreparedDevice, Responses};

/// Callback for every call: the method, and the claims as `namespace/name`.
pub(crate) type OnCall = Box<dyn Fn(&'static str, &[String]) + Send + Sync>;

/// Reason that no driver is called or served.
#[derive(Debug, thiserror::Error)]
#[error("drivers are called over gRPC, which this program was built without: add --features grpc to the cargo command")]
pub(crate) struct ServeError;

/// Listening socket, which there is none of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Listener {}

/// Refuses to listen.
pub(crate) const fn listen(_: &Path) -> Result<Listener, ServeError> {
    Err(ServeError)
}

/// Never serves: there is no listener.
pub(crate) fn serve(listener: Listener, _: &str, _: OnCall) -> Ready<Result<(), ServeError>> {
    match listener {}
}

/// Never serves: there is no listener.
pub(crate) fn serve_while<T>(
    listener: Listener,
    _: &str,
    _: OnCall,
    _: impl Future<Output = T>,
) -> Ready<Result<T, ServeError>> {
    match listener {}
}

/// Registers no driver.
pub(crate) fn registered(_: &Path) -> Ready<(BTreeMap<String, PathBuf>, Vec<String>)> {
    ready((BTreeMap::new(), vec![ServeError.to_string()]))
}

/// Calls no driver.
pub(crate) fn prepare(_: &Path, _: &[ClaimRef], _: Duration) -> Ready<Result<Responses<Vec<PreparedDevice>>, String>> {
    ready(Err(ServeError.to_string()))
}

/// Calls no driver.
pub(crate) fn unprepare(_: &Path, _: &[ClaimRef], _: Duration) -> Ready<Result<Responses<()>, String>> {
    ready(Err(ServeError.to_string()))
}

/// Runs a future to its end. Without calls there is nothing that it could wait for.
///
/// # Errors
/// None.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> io::Result<T> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(outcome) = future.as_mut().poll(&mut context) {
            return Ok(outcome);
        }
        std::thread::yield_now();
    }
}
