//! Server: requests over HTTP, answered from the store.

use std::io;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::program::now;
use crate::program::say;
use dra_attrs::Profile;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use object_patches::managed_fields::manager_name;
use object_patches::{Object, Patch};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::answers::{
    Body, Form, ListAnswer, MetadataList, json_response, metadata_of, refused, respond, table_response,
};
use crate::api::{Answer, Api, Context, place};
use crate::bodies::{bytes_of, read, read_object, read_yaml};
use crate::chunk::Chunk;
use crate::discovery::{self, ServerVersion};
use crate::gate_metrics::gate_metrics;
use crate::media;
use crate::misbehave::{Fault, Misbehaviour, Moment};
use crate::options::{Options, OptionsOf};
use crate::refusal::Refusal;
use crate::request::{Subresource, Target};
use crate::rights::{Rights, User};
use crate::served::Served;
use crate::shown::{Answered, shown};
use crate::watching;

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
    rights: Option<Arc<Rights>>,
    /// Time that passes before each answer.
    delay: Duration,
    /// Largest number of objects in one answer to a list.
    chunk: Option<NonZeroUsize>,
}

/// Request as far as a verb needs it.
struct Call {
    method: Method,
    target: Target,
    options: Options,
    form: Form,
    content_type: String,
    /// Name of the writer in `managedFields`.
    manager: String,
    body: Bytes,
    user: Option<User>,
}

impl Call {
    fn context(&self) -> Context<'_> {
        Context {
            target: &self.target,
            options: &self.options,
            manager: &self.manager,
            user: self.user.as_ref(),
            verb: verb(&self.method, &self.target, &self.options),
            now: now(),
        }
    }
}

impl Service {
    pub(crate) fn new(
        api: Api,
        misbehaviour: Misbehaviour,
        (version, served): (ServerVersion, Served),
        (delay, chunk): (Duration, Option<NonZeroUsize>),
    ) -> Self {
        let changed = watch::Sender::new(api.store.revision());
        let (profile, rights) = (api.door.profile, api.rights.clone());
        Self {
            rights,
            delay,
            chunk,
            api: Mutex::new(api),
            misbehaviour: Mutex::new(misbehaviour),
            version,
            served,
            profile,
            changed,
        }
    }

    pub(crate) fn api(&self) -> MutexGuard<'_, Api> {
        self.api.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes, and tells the watches.
    pub(crate) fn write<T>(&self, act: impl FnOnce(&mut Api) -> T) -> T {
        let mut api = self.api();
        let before = api.store.revision();
        let done = act(&mut api);
        if api.store.revision() != before {
            self.changed.send_replace(api.store.revision());
        }
        done
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
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
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
        let header =
            |name| head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
        let rights = self.rights.as_deref();
        let user = rights.map(|_| User::of(header(AUTHORIZATION))).transpose()?.flatten();
        let granted = rights.zip(user.as_ref());
        if let Some((rights, user)) = granted.filter(|_| !is_of_objects(head.uri.path())) {
            rights.check_path(user, head.uri.path())?;
        }
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
        let form = media::accepted(header(ACCEPT), head.method == Method::GET)?;
        let options = Options::parse(head.uri.query().unwrap_or_default())?.cut_at(self.chunk);
        if let Some((rights, user)) = granted {
            rights.check_request(user, verb(&head.method, &target, &options), &target)?;
        }
        let manager = manager_name(&options.manager, header(USER_AGENT));
        let content_type = header(CONTENT_TYPE).to_owned();
        let call = Call {
            method: head.method,
            target,
            options,
            form,
            content_type,
            manager,
            body: bytes_of(body).await?,
            user,
        };
        self.call(&call)
    }

    fn call(self: Arc<Self>, call: &Call) -> Result<Response<Body>, Refusal> {
        let Call { target, options, form, .. } = call;
        match (call.method.as_str(), &target.name, target.subresource) {
            ("GET", None, _) if options.is_watch => {
                options.check(OptionsOf::List)?;
                let stream = watching::watch(Arc::clone(&self), options.selector(target)?, (target, options), *form)?;
                let mut response = Response::new(BodyExt::boxed_unsync(StreamBody::new(stream)));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                Ok(response)
            }
            ("GET", None, _) => {
                options.check(OptionsOf::List)?;
                self.list(call)
            }
            ("DELETE", None, Subresource::None) if target.kind.plural != "namespaces" => self.delete_collection(call),
            ("GET", Some(name), Subresource::None | Subresource::Status) => {
                let api = self.api();
                let found = api.store.get(&place(target, name)).ok_or_else(|| Refusal::not_found(target.kind, name))?;
                Ok(self.answered(call, 200, found, &[]))
            }
            ("GET", Some(name), Subresource::Scale) => {
                let scale = self.api().scale(target, name)?;
                Ok(self.answered(call, 200, &scale, &[]))
            }
            _ => {
                let mut api = self.api();
                let answer = write(&mut api, call).unwrap_or_else(|| Err(Refusal::not_allowed()))?;
                self.changed.send_replace(api.store.revision());
                drop(api);
                Ok(self.answered(call, answer.code, &answer.object, &answer.warnings))
            }
        }
    }

    /// Answers an object in the form that the client wants.
    fn answered(&self, call: &Call, code: u16, object: &Arc<Value>, warnings: &[String]) -> Response<Body> {
        let kind = call.target.kind;
        if call.form == Form::Table && object.text("/kind") == kind.name {
            return table_response(
                &call.target,
                [object],
                &json!({"resourceVersion": object.metadata("resourceVersion")}),
            );
        }
        if call.form == Form::Metadata {
            return json_response(code, &metadata_of(object), warnings);
        }
        let object = shown(kind, self.profile, object);
        json_response(code, &Answered { object, is_item: false }, warnings)
    }

    fn list(&self, call: &Call) -> Result<Response<Body>, Refusal> {
        let Call { target, options, form, .. } = call;
        let selector = options.selector(target)?;
        let api = self.api();
        let objects = api.store.list(target.kind, selector.namespace()).filter(|object| selector.matches(object));
        let Chunk { objects, metadata } = Chunk::of(objects, &api.store, target, options)?;
        Ok(match form {
            Form::Table => table_response(target, objects, &metadata),
            Form::Metadata => {
                let items: Vec<_> = objects.into_iter().map(|object| metadata_of(object)).collect();
                let list =
                    json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
                json_response(200, &MetadataList { list, items }, &[])
            }
            Form::Object => json_response(200, &self.list_of(target, objects, metadata), &[]),
        })
    }

    /// Returns a list. Its items have neither kind nor version: the list says them.
    fn list_of<'o>(
        &self,
        target: &Target,
        objects: impl IntoIterator<Item = &'o Arc<Value>>,
        metadata: Value,
    ) -> ListAnswer<'o> {
        let item =
            |object: &'o Arc<Value>| Answered { object: shown(target.kind, self.profile, object), is_item: true };
        ListAnswer {
            kind: format!("{}List", target.kind.name),
            api_version: target.kind.api_version(),
            metadata,
            items: objects.into_iter().map(item).collect(),
        }
    }

    /// Deletes the objects that a list would have, and returns them.
    fn delete_collection(&self, call: &Call) -> Result<Response<Body>, Refusal> {
        let body = read(&call.body, call.target.kind.name)?;
        let mut api = self.api();
        let objects = api.delete_collection(call.context(), &body)?;
        self.changed.send_replace(api.store.revision());
        let metadata = json!({"resourceVersion": api.store.revision().to_string()});
        drop(api);
        Ok(json_response(200, &self.list_of(&call.target, &objects, metadata), &[]))
    }
}

/// Returns true for paths of objects; others tell what the server has.
fn is_of_objects(path: &str) -> bool {
    let parts = path.split('/').filter(|part| !part.is_empty()).count();
    (path.starts_with("/api/") && parts > 2) || (path.starts_with("/apis/") && parts > 3)
}

/// Returns the verb of a request as roles name it.
fn verb(method: &Method, target: &Target, options: &Options) -> &'static str {
    match (method.as_str(), &target.name) {
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", Some(_)) => "delete",
        ("DELETE", None) => "deletecollection",
        (_, Some(_)) => "get",
        (_, None) if options.is_watch => "watch",
        _ => "list",
    }
}

/// Carries out a write; `None` if the target has no such verb.
fn write(api: &mut Api, call: &Call) -> Option<Result<Answer, Refusal>> {
    let Call { target, options, body, content_type, .. } = call;
    let context = call.context();
    let object = |of| {
        let form = media::check_body(content_type)?;
        options.check(of)?;
        match form {
            media::Body::Json => read_object(body, target.kind.name),
            media::Body::Yaml => read_yaml(body),
        }
    };
    let deletion = || read(body, "DeleteOptions");
    Some(match (call.method.as_str(), target.name.as_deref(), target.subresource) {
        ("POST", None, Subresource::None) => object(OptionsOf::Create).and_then(|body| api.create(context, body)),
        ("POST", Some(name), Subresource::Binding) => {
            object(OptionsOf::Create).and_then(|body| api.bind(context, name, &body))
        }
        ("POST", Some(name), Subresource::Eviction) => {
            object(OptionsOf::Create).and_then(|body| api.evict(context, name, &body))
        }
        ("PUT", Some(name), Subresource::None | Subresource::Status) => {
            object(OptionsOf::Update).and_then(|body| api.update(context, name, body))
        }
        ("PUT", Some(name), Subresource::Scale) => {
            object(OptionsOf::Update).and_then(|body| api.set_scale(context, name, &body))
        }
        ("PATCH", Some(name), Subresource::None | Subresource::Status | Subresource::Scale) => {
            Patch::parse(content_type, body).map_err(Refusal::from).and_then(|patch| {
                options.check(OptionsOf::Patch { is_apply: matches!(patch, Patch::Apply(_)) })?;
                if target.subresource == Subresource::Scale {
                    return api.patch_scale(context, name, patch);
                }
                api.patch(context, name, patch)
            })
        }
        ("DELETE", Some(name), Subresource::None) => deletion().and_then(|body| api.delete(context, name, &body)),
        _ => return None,
    })
}
