//! HTTP server whose work is bounded: a number of connections at a time, and a time in which each has to say what it wants.

use std::error::Error;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Largest number of connections at a time.
const MAX_CONNECTIONS: usize = 128;

/// Time in which a request's head must have arrived. Further connections wait meanwhile.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest time of a connection, which is longer than any watch: a client that reads nothing would keep its place for good.
const LONGEST: Duration = Duration::from_secs(35 * 60);

/// Time for the last answer of such a connection.
const LAST_ANSWER: Duration = Duration::from_secs(60);

/// Pause after a connection that could not be taken.
const PAUSE: Duration = Duration::from_millis(50);

/// Answers requests for ever. An error of `answer` cuts the connection.
pub(crate) async fn serve<B, F>(listener: TcpListener, answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static)
where
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    F: Future<Output = io::Result<Response<B>>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // Nobody closes the semaphore.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        // A connection that ended before it was taken is no reason to stop.
        let Ok((connection, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let service = service_fn(answer.clone());
        tokio::spawn(async move {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(connection), service);
            let mut connection = pin!(connection);
            // The end may be a client that goes away, or a cut that was meant.
            tokio::select! {
                _ = connection.as_mut() => {}
                () = tokio::time::sleep(LONGEST) => {
                    connection.as_mut().graceful_shutdown();
                    let _ = tokio::time::timeout(LAST_ANSWER, connection).await;
                }
            }
            drop(place);
        });
    }
}
