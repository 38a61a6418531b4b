//! Times of year 9999, which an API server stores and `k8s_openapi` can't hold: a layer of the client reads them as the last
//! instant that can be held, in every answer and every event of a watch, and refuses to write one back: by a PUT of the object, or
//! by a patch with the list that it is in.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use dra_attrs::{has_saturated_time, saturate_times};
use futures_util::FutureExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame};
use hyper::{Method, Request, Response, StatusCode};
use kube::client::Body as ClientBody;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower::{BoxError, Layer, Service};

/// Beginnings of texts that may be times which can't be held.
const SUSPICIOUS: [&str; 3] = ["\"9999-", "\"10000-", "\"-0"];

/// Text of an object that may have a time which was not read as it is stored.
const LAST_INSTANT: &str = "\"9999-12-30T22:00:00";

/// Layer of a client that reads times which can't be held.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimesLayer;

/// Service of [`TimesLayer`].
#[derive(Debug)]
pub(super) struct Times<S>(S);

type Answer = Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, BoxError>> + Send>>;
type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

impl<S> Layer<S> for TimesLayer {
    type Service = Times<S>;

    fn layer(&self, inner: S) -> Times<S> {
        Times(inner)
    }
}

impl<S, B> Service<Request<ClientBody>> for Times<S>
where
    S: Service<Request<ClientBody>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = Answer;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<ClientBody>) -> Answer {
        if [Method::PUT, Method::PATCH].contains(request.method()) && has_time_of_its_own(request.body()) {
            return Box::pin(std::future::ready(refusal()));
        }
        let answer = self.0.call(request);
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into)?;
            Ok(answer.map(|body| Lines { body, open: Vec::new() }.boxed_unsync()))
        })
    }
}

/// Returns true if the object that a request writes may have another time in the store.
fn has_time_of_its_own(body: &ClientBody) -> bool {
    let bytes = body.try_clone().and_then(|body| body.collect_bytes().now_or_never()?.ok()).unwrap_or_default();
    contains(&bytes, LAST_INSTANT)
        && serde_json::from_slice(&bytes).is_ok_and(|object: Value| has_saturated_time(&object))
}

/// Returns the answer to a write that is not sent.
fn refusal() -> Result<Response<AnswerBody>, BoxError> {
    let message =
        "not written: the object has a time at the end of year 9999, which this program can't write back as it is";
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": "Invalid", "code": StatusCode::UNPROCESSABLE_ENTITY.as_u16()});
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never| match never {}).boxed_unsync();
    Ok(Response::builder().status(StatusCode::UNPROCESSABLE_ENTITY).body(body)?)
}

/// Body of an answer. It is passed on by whole lines: events of a watch are one each, and so is an object or a list.
struct Lines<B> {
    body: B,
    /// Beginning of a line.
    open: Vec<u8>,
}

impl<B> Body for Lines<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                None if self.open.is_empty() => return Poll::Ready(None),
                None => return Poll::Ready(Some(Ok(Frame::data(read(std::mem::take(&mut self.open)))))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                Some(Ok(frame)) => frame,
            };
            let data = match frame.into_data() {
                Ok(data) => data,
                Err(other) => return Poll::Ready(Some(Ok(other))),
            };
            let end = data.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
            let (ended, begun) = data.split_at_checked(end).unwrap_or_default();
            if ended.is_empty() {
                self.open.extend_from_slice(begun);
                continue;
            }
            self.open.extend_from_slice(ended);
            let lines = std::mem::replace(&mut self.open, begun.to_vec());
            return Poll::Ready(Some(Ok(Frame::data(read(lines)))));
        }
    }
}

/// Event of a watch. The type comes first, as servers write it and readers want it.
#[derive(Serialize, Deserialize)]
struct WatchLine {
    #[serde(rename = "type")]
    kind: Value,
    object: Value,
}

/// Returns lines with times that can be held.
fn read(lines: Vec<u8>) -> Bytes {
    if !SUSPICIOUS.iter().any(|suspicious| contains(&lines, suspicious)) {
        return lines.into();
    }
    lines.split_inclusive(|byte| *byte == b'\n').flat_map(read_line).collect()
}

fn read_line(line: &[u8]) -> Vec<u8> {
    let as_it_is = || line.to_vec();
    let written = if let Ok(mut event) = serde_json::from_slice::<WatchLine>(line) {
        if saturate_times(&mut event.object) == 0 {
            return as_it_is();
        }
        serde_json::to_vec(&event)
    } else if let Ok(mut object) = serde_json::from_slice::<Value>(line) {
        if saturate_times(&mut object) == 0 {
            return as_it_is();
        }
        serde_json::to_vec(&object)
    } else {
        return as_it_is();
    };
    let mut written = written.unwrap_or_else(|_| as_it_is());
    if line.ends_with(b"\n") && !written.ends_with(b"\n") {
        written.push(b'\n');
    }
    written
}

/// Returns true if a text contains a part, or is no text: then reading it will tell.
fn contains(text: &[u8], part: &str) -> bool {
    str::from_utf8(text).map_or(true, |text| text.contains(part))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::read;

    fn read_text(lines: &str) -> String {
        String::from_utf8(read(lines.as_bytes().to_vec()).to_vec()).unwrap()
    }

    #[test]
    fn late_times_are_read_in_objects_and_in_events() {
        let late = r#"{"spec":{"taints":[{"timeAdded":"9999-12-31T23:59:59Z"}]}}"#;
        let held = r#"{"spec":{"taints":[{"timeAdded":"9999-12-30T22:00:00Z"}]}}"#;
        assert_eq!(read_text(late), held);
        let event = |object: &str| format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n");
        let other = event(r#"{"metadata":{"annotations":{"until":"9999-12-31T23:59:59Z"}}}"#);
        let lines = [event(late), other.clone(), event(held)].concat();
        assert_eq!(read_text(&lines), [event(held), other, event(held)].concat());
    }

    #[test]
    fn everything_else_is_passed_on_byte_for_byte() {
        for lines in ["", "\n", "{ \"a\": 1 }\n", "\"9999-\n", "{\"x\": \"9999-12-31T23:59:59Z\" }", "not json \"9999-"]
        {
            assert_eq!(read_text(lines), lines);
        }
        assert_eq!(read(b"\xff\xfe\n".to_vec()), b"\xff\xfe\n".as_slice());
    }
}
