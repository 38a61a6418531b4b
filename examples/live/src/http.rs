//! HTTP server whose work is bounded: a number of connections at a time, and a time in which each has to say what it wants.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Time in which a request's head must have arrived.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Pause after a connection that could not be taken.
const PAUSE: Duration = Duration::from_millis(50);

/// Answers requests for ever, on `most` connections at a time; further ones wait. An error of `answer` cuts the connection.
pub async fn serve<B, F>(
    listener: TcpListener,
    most: usize,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) where
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    F: Future<Output = io::Result<Response<B>>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(most));
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
            // A client that goes away, or a cut that was meant.
            let _ = connection.await;
            drop(place);
        });
    }
}
