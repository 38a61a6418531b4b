//! HTTP endpoints of a program that stays: `/metrics`, and `/healthz`, which fails when the program's loop
//! stands still.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::failure::LiveError;
use super::http;
use super::metrics::Metrics;
use crate::say::say;

/// Largest number of connections at a time.
const MAX_CONNECTIONS: usize = 16;

/// Time without a round after which a program counts as stuck. A call that is repeated takes less.
const STANDSTILL: Duration = Duration::from_secs(180);

/// Metrics of a program, and the sign that it works. Clones are the same program's.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Vitals {
    /// Metrics of the program.
    pub metrics: Metrics,
    /// Last round of the program's loop; `None` before the first one.
    last_round: Arc<Mutex<Option<Instant>>>,
    /// Check of the program's own; none unless it is set.
    check: Arc<OnceLock<Check>>,
}

/// Says what is wrong with a program.
type Check = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

impl Vitals {
    /// Notes that the program's loop has gone round once more. A program that never says so counts as one that waits.
    pub fn round(&self) {
        *self.last_round.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Sets a check of the program's own, for `/healthz`: the error says what is wrong. Only the first one counts.
    pub fn check(&self, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        let _ = self.check.set(Box::new(check));
    }

    /// Serves `/metrics` and `/healthz` in the background, if there is an address, for as long as the runtime lives. Port 0
    /// is any that is free; the address is said on stderr.
    ///
    /// # Errors
    /// Nothing can listen there.
    pub async fn serve(&self, address: Option<SocketAddr>) -> Result<(), LiveError> {
        let Some(address) = address else { return Ok(()) };
        let failed = |error| LiveError::Listen { address, error };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        say(&format_args!("metrics at http://{}/metrics", listener.local_addr().map_err(failed)?));
        let vitals = self.clone();
        tokio::spawn(http::serve(listener, MAX_CONNECTIONS, move |request| {
            let response = vitals.answer(&request);
            async move { io::Result::Ok(response) }
        }));
        Ok(())
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        match (request.method(), request.uri().path()) {
            (&Method::GET | &Method::HEAD, "/metrics") => respond(StatusCode::OK, self.metrics.text()),
            (&Method::GET | &Method::HEAD, "/healthz") => match self.health() {
                Ok(()) => respond(StatusCode::OK, "ok".to_owned()),
                Err(text) => respond(StatusCode::INTERNAL_SERVER_ERROR, text),
            },
            _ => respond(StatusCode::NOT_FOUND, "there are /metrics and /healthz".to_owned()),
        }
    }

    /// Says what is wrong: no round for too long, or the error of the program's own check.
    fn health(&self) -> Result<(), String> {
        let last = *self.last_round.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = last.map(|last| last.elapsed()).filter(|since| *since > STANDSTILL) {
            return Err(format!("the program stands still for {} s", since.as_secs()));
        }
        self.check.get().map_or(Ok(()), |check| check())
    }
}

impl fmt::Debug for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vitals").field("metrics", &self.metrics).finish_non_exhaustive()
    }
}

fn respond(code: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = code;
    let content_type = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
