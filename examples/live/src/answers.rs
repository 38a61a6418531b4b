//! Answers of a server, within bounds. A layer of the client ends an answer that is too long, a list that never ends and a
//! connection that says nothing any more, and passes all others on with times that can be held.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame};
use hyper::{Request, Response};
use kube::client::Body as ClientBody;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tower::{BoxError, Layer, Service};

use super::times;

/// Bounds of answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes of an answer: an object, a page of a list, a text.
    answer: usize,
    /// Bytes of an event of a watch.
    event: usize,
    /// Bytes of all pages of a list.
    list: usize,
    /// Bytes that each page of a list counts beside its own, so that empty pages end, too.
    page: usize,
    /// Time without a byte of an answer.
    silence: Duration,
    /// Time without a byte of a watch. A server ends each watch earlier, and most say every minute where they are.
    watch_silence: Duration,
}

/// Bounds of the programs. An API server takes objects of 1.5 MiB, and a page has at most 500.
pub(super) const LIMITS: Limits = Limits {
    answer: 128 << 20,
    event: 16 << 20,
    list: 1 << 30,
    page: 16 << 10,
    silence: Duration::from_secs(60),
    watch_silence: Duration::from_secs(600),
};

/// Reason that an answer is not read to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerError {
    /// The answer or an event of a watch is too long.
    #[error("more than {most} bytes in {part}")]
    TooLong {
        /// Part of the server's answers.
        part: &'static str,
        /// Largest number of bytes.
        most: usize,
    },
    /// The server holds the connection and sends nothing.
    #[error("the server sent nothing for {} s", .0.as_secs())]
    Silent(Duration),
}

/// Layer of a client that bounds answers.
#[derive(Clone, Debug)]
pub(super) struct AnswersLayer(pub(super) Limits);

/// Service of [`AnswersLayer`].
#[derive(Debug)]
pub(super) struct Answers<S> {
    inner: S,
    limits: Limits,
    lists: OpenLists,
}

/// Bytes of the lists that are being read, by path. A request for a first page begins anew.
type OpenLists = Arc<Mutex<BTreeMap<String, usize>>>;

type Answer = Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, BoxError>> + Send>>;
type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

impl<S> Layer<S> for AnswersLayer {
    type Service = Answers<S>;

    fn layer(&self, inner: S) -> Answers<S> {
        Answers { inner, limits: self.0, lists: OpenLists::default() }
    }
}

impl<S, B> Service<Request<ClientBody>> for Answers<S>
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
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<ClientBody>) -> Answer {
        if let Some((code, text)) = times::refused(&request) {
            let body = Full::new(text).map_err(|never| match never {}).boxed_unsync();
            return Box::pin(async move { Ok(Response::builder().status(code).body(body)?) });
        }
        let bounds = Bounds::of(&request, self.limits, &self.lists);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = timeout(bounds.silence, answer).await.map_err(|_| AnswerError::Silent(bounds.silence))?;
            Ok(answer.map_err(Into::into)?.map(|body| Lines::new(body, bounds).boxed_unsync()))
        })
    }
}

/// Bounds of one answer.
#[derive(Debug)]
struct Bounds {
    silence: Duration,
    kind: Kind,
}

/// Sort of an answer, with its largest number of bytes.
#[derive(Debug)]
enum Kind {
    /// Events, a line each.
    Watch { most: usize },
    /// Anything else; a page of a list counts for the list, too.
    One { most: usize, list: Option<ListPage> },
}

/// Page of a list.
#[derive(Debug)]
struct ListPage {
    path: String,
    most: usize,
    lists: OpenLists,
}

impl Bounds {
    fn of(request: &Request<ClientBody>, limits: Limits, lists: &OpenLists) -> Self {
        let query = request.uri().query().unwrap_or_default();
        let has = |name: &str| query.split('&').any(|field| field.split('=').next() == Some(name));
        if has("watch") {
            return Self { silence: limits.watch_silence, kind: Kind::Watch { most: limits.event } };
        }
        let list = (has("limit") || has("continue")).then(|| {
            let page = ListPage { path: request.uri().path().to_owned(), most: limits.list, lists: Arc::clone(lists) };
            if !has("continue") {
                page.begin();
            }
            page.add(limits.page);
            page
        });
        Self { silence: limits.silence, kind: Kind::One { most: limits.answer, list } }
    }

    /// Takes some bytes, of an answer of which `before` have not been passed on yet.
    fn take(&self, before: usize, taken: &mut usize, bytes: usize) -> Result<(), AnswerError> {
        *taken = taken.saturating_add(bytes);
        match &self.kind {
            Kind::Watch { most } => within(before.saturating_add(bytes), *most, "an event of a watch"),
            Kind::One { most, list } => {
                within(*taken, *most, "an answer")?;
                list.as_ref().map_or(Ok(()), |page| within(page.add(bytes), page.most, "a list"))
            }
        }
    }
}

impl ListPage {
    fn begin(&self) {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner).insert(self.path.clone(), 0);
    }

    fn add(&self, bytes: usize) -> usize {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = lists.entry(self.path.clone()).or_default();
        *sum = sum.saturating_add(bytes);
        *sum
    }
}

const fn within(bytes: usize, most: usize, part: &'static str) -> Result<(), AnswerError> {
    if bytes <= most { Ok(()) } else { Err(AnswerError::TooLong { part, most }) }
}

/// Body of an answer. It is passed on by whole lines: events of a watch are one each, and so is an object or a list.
struct Lines<B> {
    body: B,
    bounds: Bounds,
    /// Beginning of a line.
    open: Vec<u8>,
    /// Bytes so far.
    taken: usize,
    silence: Pin<Box<Sleep>>,
}

impl<B> Lines<B> {
    fn new(body: B, bounds: Bounds) -> Self {
        let silence = Box::pin(sleep(bounds.silence));
        Self { body, bounds, open: Vec::new(), taken: 0, silence }
    }

    /// Waits for the next byte of a silent server for as long as the bounds say.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<AnswerError> {
        ready!(self.silence.as_mut().poll(context));
        Poll::Ready(AnswerError::Silent(self.bounds.silence))
    }

    fn heard(&mut self) {
        if let Some(until) = Instant::now().checked_add(self.bounds.silence) {
            self.silence.as_mut().reset(until);
        }
    }
}

impl<B> Body for Lines<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        loop {
            let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) else {
                return this.poll_silence(context).map(|silent| Some(Err(silent.into())));
            };
            this.heard();
            let frame = match frame {
                None if this.open.is_empty() => return Poll::Ready(None),
                None => return Poll::Ready(Some(Ok(Frame::data(times::read(std::mem::take(&mut this.open)))))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                Some(Ok(frame)) => frame,
            };
            let data = match frame.into_data() {
                Ok(data) => data,
                Err(other) => return Poll::Ready(Some(Ok(other))),
            };
            if let Err(error) = this.bounds.take(this.open.len(), &mut this.taken, data.len()) {
                return Poll::Ready(Some(Err(error.into())));
            }
            let end = data.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
            let (ended, begun) = data.split_at_checked(end).unwrap_or_default();
            if ended.is_empty() {
                this.open.extend_from_slice(begun);
                continue;
            }
            this.open.extend_from_slice(ended);
            let lines = std::mem::replace(&mut this.open, begun.to_vec());
            return Poll::Ready(Some(Ok(Frame::data(times::read(lines)))));
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use futures_util::{StreamExt, stream};
    use http_body_util::combinators::UnsyncBoxBody;
    use http_body_util::{BodyExt, StreamBody};
    use hyper::body::{Bytes, Frame};
    use hyper::{Request, Response};
    use kube::client::Body as ClientBody;
    use tower::{BoxError, Layer, Service, service_fn};

    use super::{AnswerBody, Answers, AnswersLayer, Limits};

    const SMALL: Limits = Limits {
        answer: 100,
        event: 20,
        list: 250,
        page: 10,
        silence: Duration::from_millis(20),
        watch_silence: Duration::from_millis(100),
    };

    type TestBody = UnsyncBoxBody<Bytes, Infallible>;

    fn line(bytes: usize) -> String {
        format!("{}\n", "x".repeat(bytes - 1))
    }

    /// Answers by the path of a request. The body of `/silent` does not end, and `/deaf` is not answered.
    async fn served(request: Request<ClientBody>) -> Result<Response<TestBody>, Infallible> {
        let path = request.uri().path();
        if path == "/deaf" {
            std::future::pending::<()>().await;
        }
        let parts = match path {
            "/silent" => vec![line(20)],
            "/long" => vec![line(60), line(60)],
            "/events" => vec![line(20); 20],
            "/empty" => vec![line(1)],
            "/event" => vec![line(20), "x".repeat(15), "x".repeat(15)],
            _ => vec![line(100)],
        };
        let parts = stream::iter(parts.into_iter().map(|part| Ok(Frame::data(Bytes::from(part)))));
        let body = if path == "/silent" {
            StreamBody::new(parts.chain(stream::pending())).boxed_unsync()
        } else {
            StreamBody::new(parts).boxed_unsync()
        };
        Ok(Response::new(body))
    }

    async fn ask<S>(server: &mut Answers<S>, uri: &str) -> Result<usize, String>
    where
        Answers<S>: Service<Request<ClientBody>, Response = Response<AnswerBody>, Error = BoxError>,
    {
        let request = Request::get(uri).body(ClientBody::empty()).unwrap();
        let answer = server.call(request).await.map_err(|error| error.to_string())?;
        let body = answer.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok(body.to_bytes().len())
    }

    #[tokio::test]
    async fn answers_end_at_their_bounds() {
        let mut server = AnswersLayer(SMALL).layer(service_fn(served));
        let silent = |time: &str| Err(format!("the server sent nothing for {time} s"));
        let too_long = |most: usize, part: &str| Err(format!("more than {most} bytes in {part}"));
        assert_eq!(ask(&mut server, "/object").await, Ok(100));
        assert_eq!(ask(&mut server, "/long").await, too_long(100, "an answer"));
        assert_eq!(ask(&mut server, "/events?watch=true").await, Ok(400), "a watch has no end");
        assert_eq!(ask(&mut server, "/event?watch=true").await, too_long(20, "an event of a watch"));
        assert_eq!(ask(&mut server, "/silent").await, silent("0"));
        assert_eq!(ask(&mut server, "/silent?watch=true").await, silent("0"));
        assert_eq!(ask(&mut server, "/deaf").await, silent("0"));
        for (uri, answer) in [
            ("/pods?limit=500", Ok(100)),
            ("/pods?limit=500&continue=1", Ok(100)),
            ("/nodes?limit=500", Ok(100)),
            ("/pods?limit=500&continue=2", too_long(250, "a list")),
            ("/pods?limit=500", Ok(100)),
            ("/pods?limit=500&continue=1", Ok(100)),
            ("/empty?limit=500", Ok(1)),
        ] {
            assert_eq!(ask(&mut server, uri).await, answer, "{uri}");
        }
        let mut pages = 0;
        while ask(&mut server, "/empty?limit=500&continue=1").await.is_ok() {
            pages += 1;
        }
        assert_eq!(pages, 21, "empty pages end, too");
    }
}
