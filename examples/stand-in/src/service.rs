//! Server: requests over HTTP, answered from the store.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::program::now;
use crate::program::say;
use dra_attrs::Profile;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited, StreamBody};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WARNING};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::chunk::Chunk;
use crate::discovery::{self, ServerVersion};
use crate::gate_metrics::gate_metrics;
use crate::misbehave::{Fault, Misbehaviour, Moment};
use crate::object::Object;
use crate::patch::Patch;
use crate::refusal::Refusal;
use crate::request::{Options, Subresource, Target};
use crate::served::Served;
use crate::shown::shown;
use crate::table::table;
use crate::verbs::{Answer, Api, place};
use crate::watching;

/// Largest body of a request, as in the API server.
const MAX_BODY: usize = 3 * 1024 * 1024;

/// Part of a larger body that is read and forgotten. A client that sends its body to the end reads the refusal then;
/// otherwise its connection may be cut before.
const MOST_FORGOTTEN: usize = 16 * 1024 * 1024;

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Reads the body of a request.
async fn bytes_of(mut body: Incoming) -> Result<Bytes, Refusal> {
    match Limited::new(&mut body, MAX_BODY).collect().await {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let mut forgotten = 0_usize;
            while let (true, Some(Ok(frame))) = (forgotten < MOST_FORGOTTEN, body.frame().await) {
                forgotten = forgotten.saturating_add(frame.data_ref().map_or(0, Bytes::len));
            }
            Err(Refusal::new(413, "RequestEntityTooLarge", format!("limit is {MAX_BODY}")))
        }
        Err(error) => Err(Refusal::bad_request(error.to_string())),
    }
}

/// Form in which objects are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Object,
    Table,
}

/// Server with everything that it knows.
#[derive(Debug)]
pub(crate) struct Service {
    api: Mutex<Api>,
    misbehaviour: Mutex<Misbehaviour>,
    version: ServerVersion,
    pub(crate) served: Served,
    pub(crate) profile: Profile,
    /// Tells the watches that something has changed.
    changed: watch::Sender<u64>,
}

/// Request as far as a verb needs it.
struct Call {
    method: Method,
    target: Target,
    options: Options,
    form: Form,
    content_type: String,
    body: Bytes,
}

impl Service {
    pub(crate) fn new(api: Api, misbehaviour: Misbehaviour, version: ServerVersion, served: Served) -> Self {
        let changed = watch::Sender::new(api.store.revision());
        let profile = api.door.profile;
        Self { api: Mutex::new(api), misbehaviour: Mutex::new(misbehaviour), version, served, profile, changed }
    }

    pub(crate) fn api(&self) -> MutexGuard<'_, Api> {
        self.api.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(crate) fn fault(&self, moment: Moment) -> Option<Fault> {
        self.misbehaviour.lock().unwrap_or_else(PoisonError::into_inner).draw(moment)
    }

    /// Answers a request. An error cuts the connection.
    ///
    /// # Errors
    /// The body can't be read, or the server misbehaves.
    pub(crate) async fn serve(self: Arc<Self>, request: Request<Incoming>) -> io::Result<Response<Body>> {
        let moment = match *request.method() {
            Method::GET | Method::HEAD => Moment::Read,
            Method::PUT | Method::PATCH => Moment::Update,
            _ => Moment::Write,
        };
        let fault = self.fault(moment);
        let refusal = match fault {
            Some(Fault::Drop) => return Err(io::Error::other("the connection is cut")),
            Some(Fault::Throttle) => Some(Refusal::too_many("the server misbehaves: try again later")),
            Some(Fault::Fail) => Some(Refusal::new(500, "InternalError", "the server misbehaves: nothing was done")),
            Some(Fault::Conflict) => {
                let message = "Operation cannot be fulfilled on the object: the server misbehaves; please apply your \
                    changes to the latest version and try again";
                Some(Refusal::new(409, "Conflict", message))
            }
            Some(Fault::Slow) => {
                let delay = self.misbehaviour.lock().unwrap_or_else(PoisonError::into_inner).delay();
                tokio::time::sleep(delay).await;
                None
            }
            _ => None,
        };
        let answer = match refusal {
            Some(refusal) => Err(refusal),
            None => self.answer(request).await,
        };
        if fault == Some(Fault::Lose) {
            return Err(io::Error::other("the answer is lost"));
        }
        if let Err(Refusal { stop: Some(reason), .. }) = &answer {
            say(&format_args!("a handler ends, and its connection is cut, as in this release: {reason}"));
            return Err(io::Error::other("the handler has ended"));
        }
        Ok(answer.unwrap_or_else(|refusal| refused(&refusal)))
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let (head, body) = request.into_parts();
        let path: Vec<&str> = head.uri.path().split('/').filter(|part| !part.is_empty()).collect();
        if let ["healthz" | "livez" | "readyz"] = path.as_slice() {
            return Ok(respond(StatusCode::OK, "text/plain", Bytes::from_static(b"ok")));
        }
        if let ["metrics"] = path.as_slice() {
            let door = self.api().door;
            let text = gate_metrics(door.gates, door.profile);
            return Ok(respond(StatusCode::OK, "text/plain; version=0.0.4", text.into()));
        }
        let served = &self.served;
        if let Some(answer) = discovery::answer(&path, &self.version, served) {
            return answer.map(|value| json_response(200, &value, &[]));
        }
        let target = match path.as_slice() {
            ["api", version, rest @ ..] => Target::parse(served, "", version, rest)?,
            ["apis", group, version, rest @ ..] => Target::parse(served, group, version, rest)?,
            _ => return Err(Refusal::no_path()),
        };
        let header =
            |name| head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
        let body = bytes_of(body).await?;
        let call = Call {
            options: Options::parse(head.uri.query().unwrap_or_default())?,
            form: if header(ACCEPT).contains("as=Table") { Form::Table } else { Form::Object },
            content_type: header(CONTENT_TYPE).to_owned(),
            method: head.method,
            target,
            body,
        };
        self.call(&call)
    }

    fn call(self: Arc<Self>, call: &Call) -> Result<Response<Body>, Refusal> {
        let Call { target, options, form, .. } = call;
        let allowed =
            || Refusal::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
        match (call.method.as_str(), &target.name, target.subresource) {
            ("GET", None, _) if options.is_watch => {
                let stream = watching::watch(Arc::clone(&self), options.selector(target)?, options, *form)?;
                let mut response = Response::new(BodyExt::boxed_unsync(StreamBody::new(stream)));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                Ok(response)
            }
            ("GET", None, _) => self.list(call),
            ("DELETE", None, Subresource::None) if target.kind.plural != "namespaces" => self.delete_collection(call),
            ("GET", Some(name), Subresource::None | Subresource::Status) => {
                let api = self.api();
                let found = api.store.get(&place(target, name)).ok_or_else(|| Refusal::not_found(target.kind, name))?;
                let answer = match form {
                    Form::Object => json_response(200, &shown(target.kind, self.profile, found), &[]),
                    Form::Table => {
                        table_response(target, [found], &json!({"resourceVersion": found.metadata("resourceVersion")}))
                    }
                };
                Ok(answer)
            }
            _ => {
                let mut api = self.api();
                let answer = write(&mut api, call).unwrap_or_else(|| Err(allowed()))?;
                self.changed.send_replace(api.store.revision());
                Ok(json_response(answer.code, &shown(target.kind, self.profile, &answer.object), &answer.warnings))
            }
        }
    }

    fn list(&self, call: &Call) -> Result<Response<Body>, Refusal> {
        let Call { target, options, form, .. } = call;
        let selector = options.selector(target)?;
        let api = self.api();
        let objects = api.store.list(target.kind, selector.namespace()).filter(|object| selector.matches(object));
        let Chunk { objects, metadata } = Chunk::of(objects, &api.store, options)?;
        Ok(match form {
            Form::Table => table_response(target, objects, &metadata),
            Form::Object => json_response(200, &self.list_of(target, objects, &metadata), &[]),
        })
    }

    /// Returns a list. Its items have neither kind nor version: the list says them.
    fn list_of<'o>(
        &self,
        target: &Target,
        objects: impl IntoIterator<Item = &'o Arc<Value>>,
        metadata: &Value,
    ) -> Value {
        let item = |object: &'o Arc<Value>| {
            let mut item = shown(target.kind, self.profile, object).into_owned();
            for field in ["kind", "apiVersion"] {
                item.fields().remove(field);
            }
            item
        };
        let items: Vec<Value> = objects.into_iter().map(item).collect();
        let (kind, version) = (format!("{}List", target.kind.name), target.kind.api_version());
        json!({"kind": kind, "apiVersion": version, "metadata": metadata, "items": items})
    }

    /// Deletes the objects that a list would have, and returns them.
    fn delete_collection(&self, call: &Call) -> Result<Response<Body>, Refusal> {
        let Call { target, options, .. } = call;
        let selector = options.selector(target)?;
        let (body, mut api) = (read(&call.body)?, self.api());
        let objects = api.store.list(target.kind, selector.namespace()).filter(|object| selector.matches(object));
        let objects: Vec<Arc<Value>> = objects.cloned().collect();
        for object in &objects {
            let namespace = Some(object.metadata("namespace").to_owned()).filter(|namespace| !namespace.is_empty());
            let target = Target { namespace, ..target.clone() };
            api.delete(&target, object.metadata("name"), &body, options, now())?;
        }
        self.changed.send_replace(api.store.revision());
        let metadata = json!({"resourceVersion": api.store.revision().to_string()});
        Ok(json_response(200, &self.list_of(target, &objects, &metadata), &[]))
    }
}

/// Carries out a write; `None` if the target has no such verb.
fn write(api: &mut Api, call: &Call) -> Option<Result<Answer, Refusal>> {
    let Call { target, options, body, content_type, .. } = call;
    let now = now();
    let read = || read(body);
    Some(match (call.method.as_str(), target.name.as_deref(), target.subresource) {
        ("POST", None, Subresource::None) => read().and_then(|body| api.create(target, body, options, now)),
        ("POST", Some(name), Subresource::Binding) => {
            read().and_then(|body| api.bind(target, name, &body, options, now))
        }
        ("PUT", Some(name), Subresource::None | Subresource::Status) => {
            read().and_then(|body| api.update(target, name, body, options, now))
        }
        ("PATCH", Some(name), Subresource::None | Subresource::Status) => {
            Patch::parse(content_type, body).and_then(|patch| api.patch(target, name, patch, options, now))
        }
        ("DELETE", Some(name), Subresource::None) => {
            read().and_then(|body| api.delete(target, name, &body, options, now))
        }
        _ => return None,
    })
}

/// Reads the body of a request, which may be empty.
fn read(body: &[u8]) -> Result<Value, Refusal> {
    if body.is_empty() {
        return Ok(json!({}));
    }
    serde_json::from_slice(body).map_err(|error| {
        Refusal::bad_request(format!(
            "the object provided is unrecognized: couldn't get version/kind; json parse error: {error}"
        ))
    })
}

fn table_response<'a>(
    target: &Target,
    objects: impl IntoIterator<Item = &'a Arc<Value>>,
    metadata: &Value,
) -> Response<Body> {
    json_response(200, &table(target.kind, objects.into_iter().map(|object| &**object), metadata, now()), &[])
}

fn refused(refusal: &Refusal) -> Response<Body> {
    let mut response = json_response(refusal.code, &refusal.body(), &[]);
    if let Some(seconds) = refusal.retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn json_response(code: u16, value: &Value, warnings: &[String]) -> Response<Body> {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = respond(code, "application/json", value.to_string().into());
    for warning in warnings {
        let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(header) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            response.headers_mut().append(WARNING, header);
        }
    }
    response
}

fn respond(code: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    let body = Full::new(body).map_err(|never| match never {});
    let mut response = Response::new(BodyExt::boxed_unsync(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
