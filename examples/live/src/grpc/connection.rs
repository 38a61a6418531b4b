//! Connection to a driver that ends with the value that stands for it, and calls that end in time.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::causes::with_causes;
use hyper::rt::Executor;
use tokio::task::AbortHandle;
use tonic::Request;
use tonic::transport::{self, Channel, Endpoint};

use super::failure::DEADLINE_EXCEEDED;

/// Waits for a whole answer: connection, head, body and trailers. The deadline in a request is for the driver, and tonic
/// ends only the wait for the head by it.
///
/// # Errors
/// Those of the call; [`DEADLINE_EXCEEDED`].
pub(super) async fn within<T>(timeout: Duration, call: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    tokio::time::timeout(timeout, call).await.unwrap_or_else(|_| Err(DEADLINE_EXCEEDED.to_owned()))
}

/// Builds a request with a deadline that the driver sees.
pub(super) fn timed<T>(request: T, timeout: Duration) -> Request<T> {
    let mut request = Request::new(request);
    request.set_timeout(timeout);
    request
}

/// Connection to a unix socket. Its tasks and the socket end with it: a peer that never reads can't keep them.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) channel: Channel,
    _tasks: TasksOfOne,
}

impl Connection {
    /// Connects to a socket.
    ///
    /// # Errors
    /// There is no such socket, or nobody listens on it.
    pub(super) async fn open(socket: &Path) -> Result<Self, String> {
        let unavailable = |error: transport::Error| {
            format!("rpc error: code = Unavailable desc = {}: {}", socket.display(), with_causes(&error))
        };
        let tasks = TasksOfOne::default();
        let endpoint = Endpoint::from_shared(format!("unix:{}", socket.display())).map_err(unavailable)?;
        let channel = endpoint.executor(Spawn(tasks.0.clone())).connect().await.map_err(unavailable)?;
        Ok(Self { channel, _tasks: tasks })
    }
}

/// Tasks of one connection, aborted when this is dropped.
#[derive(Debug, Default)]
struct TasksOfOne(Arc<Mutex<Vec<AbortHandle>>>);

impl Drop for TasksOfOne {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(AbortHandle::abort);
    }
}

/// Starts tasks that others can abort.
#[derive(Clone, Debug)]
struct Spawn(Arc<Mutex<Vec<AbortHandle>>>);

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Spawn {
    fn execute(&self, task: F) {
        let handle = tokio::spawn(task).abort_handle();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
    }
}
