//! Door before an API server that writes down each call as RBAC names it, refuses what is not granted, and can lose answers.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use dra_live::http;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING, USER_AGENT};
use hyper::{Method, Request, Response};
use kube::client::Body;
use kube::{Client, Config};
use serde_json::json;
use tokio::net::TcpListener;

/// Right that a call needs, or that a role grants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Right {
    pub(crate) group: String,
    /// Resource, with its subresource.
    pub(crate) resource: String,
    pub(crate) verb: String,
    /// Namespace of a right within one.
    pub(crate) namespace: Option<String>,
}

impl Right {
    /// Reads a call. Paths that need no right have none.
    fn of_call(method: &Method, path: &str, query: &str) -> Option<Self> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
            rest => (None, rest),
        };
        let (resource, is_named) = match rest {
            [resource] => ((*resource).to_owned(), false),
            [resource, _] => ((*resource).to_owned(), true),
            [resource, _, below] => (format!("{resource}/{below}"), true),
            _ => return None,
        };
        let verb = match (method.as_str(), is_named) {
            ("GET", true) => "get",
            ("GET", false) if query.contains("watch=") => "watch",
            ("GET", false) => "list",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", true) => "delete",
            _ => "deletecollection",
        };
        Some(Self { group: group.to_owned(), resource, verb: verb.to_owned(), namespace })
    }

    fn is_write(&self) -> bool {
        !["get", "list", "watch"].contains(&self.verb.as_str())
    }

    fn is_binding(&self) -> bool {
        self.resource == "pods/binding"
    }

    /// Returns true if a right that is granted covers this one.
    fn is_covered_by(&self, granted: &Self) -> bool {
        let here = granted.namespace.is_none() || granted.namespace == self.namespace;
        here && (&self.group, &self.resource, &self.verb) == (&granted.group, &granted.resource, &granted.verb)
    }
}

/// Behaviour of the door beside writing down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mischief {
    None,
    /// The answer to the first write of each sort is lost, after the write was carried out. The first binding of all is a
    /// conflict.
    LosesFirstAnswers,
    /// No resource of the API group is served.
    HasNoDevices,
    /// Lists of slices have the end of year 9999 as the time of taints.
    SaysNever,
    /// The slice `node-1` can't be decoded.
    BreaksASlice,
    /// Bindings of pods are refused.
    RefusesBindings,
    /// The first two patches of the status of a claim are refused.
    RefusesReports,
    /// Every list fails.
    FailsLists,
    /// Nobody is known who has no token, or another one than [`TOKEN`].
    KnowsOne,
}

impl Mischief {
    /// Returns a list of slices as the door shows it.
    async fn changed(self, answer: Response<Body>) -> io::Result<Response<Body>> {
        let (from, to) = match self {
            Self::SaysNever => ("2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
            Self::BreaksASlice => (r#""nodeName":"node-1""#, r#""nodeName":["node-1"]"#),
            _ => return Ok(answer),
        };
        let (mut parts, body) = answer.into_parts();
        parts.headers.remove(CONTENT_LENGTH);
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let text = String::from_utf8(body.to_vec()).map_err(io::Error::other)?;
        assert!(text.contains(from), "nothing to change in {text}");
        Ok(Response::from_parts(parts, Body::from(text.replace(from, to).into_bytes())))
    }
}

/// Token of somebody who is known.
pub(crate) const TOKEN: &str = "token-of-somebody";

/// Running door.
pub(crate) struct Recorder {
    pub(crate) url: String,
    state: Arc<State>,
}

struct State {
    client: Client,
    granted: Option<BTreeSet<Right>>,
    mischief: Mischief,
    /// True while nothing is answered.
    is_away: AtomicBool,
    /// Number of calls for each right.
    calls: Mutex<BTreeMap<Right, usize>>,
    /// Programs that made writes, as they call themselves.
    writers: Mutex<BTreeSet<String>>,
    /// Number of those that were carried out.
    carried_out: Mutex<BTreeMap<Right, usize>>,
}

impl Recorder {
    /// Opens a door to `server`, for a program with some rights, or with all.
    pub(crate) fn start(server: &str, granted: Option<BTreeSet<Right>>, mischief: Mischief) -> Self {
        let (server, (send, receive)) = (server.to_owned(), std::sync::mpsc::channel());
        // A runtime of its own: a test that waits for a program would keep the program waiting.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let client = Client::try_from(Config::new(server.parse().unwrap())).unwrap();
                let state = Arc::new(State {
                    client,
                    granted,
                    mischief,
                    is_away: AtomicBool::new(false),
                    calls: Mutex::default(),
                    writers: Mutex::default(),
                    carried_out: Mutex::default(),
                });
                let url = format!("http://{}", listener.local_addr().unwrap());
                send.send(Self { url, state: Arc::clone(&state) }).ok().unwrap();
                http::serve(listener, 64, move |request| Arc::clone(&state).pass(request)).await;
            });
        });
        receive.recv().unwrap()
    }

    /// Returns the rights that the calls up to now have needed.
    pub(crate) fn used(&self) -> BTreeSet<Right> {
        self.state.calls.lock().unwrap().keys().cloned().collect()
    }

    /// Returns the User-Agents of the writes up to now.
    pub(crate) fn writers(&self) -> BTreeSet<String> {
        self.state.writers.lock().unwrap().clone()
    }

    /// Stops to answer, or begins again.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.state.is_away.store(is_away, Ordering::Relaxed);
    }

    /// Returns the number of calls, whatever became of them.
    pub(crate) fn asked(&self, verb: &str, resource: &str) -> usize {
        let calls = self.state.calls.lock().unwrap();
        calls.iter().filter(|(right, _)| right.verb == verb && right.resource == resource).map(|(_, count)| count).sum()
    }

    /// Returns the number of calls that were carried out; a dry run is not.
    pub(crate) fn carried_out(&self, verb: &str, resource: &str) -> usize {
        let calls = self.state.carried_out.lock().unwrap();
        calls.iter().filter(|(right, _)| right.verb == verb && right.resource == resource).map(|(_, count)| count).sum()
    }
}

impl State {
    async fn pass(self: Arc<Self>, request: Request<Incoming>) -> io::Result<Response<Body>> {
        let (parts, body) = request.into_parts();
        if self.is_away.load(Ordering::Relaxed) {
            return Err(io::Error::other("away"));
        }
        let is_known = || parts.headers.get(AUTHORIZATION).is_some_and(|value| *value == format!("Bearer {TOKEN}"));
        if self.mischief == Mischief::KnowsOne && !is_known() {
            return Ok(refusal(401, "Unauthorized", "Unauthorized", ""));
        }
        let Some(right) = Right::of_call(&parts.method, parts.uri.path(), parts.uri.query().unwrap_or_default()) else {
            return self.forward(parts, body).await;
        };
        if right.is_write() {
            let agent = parts.headers.get(USER_AGENT).map(|agent| agent.to_str().unwrap().to_owned());
            self.writers.lock().unwrap().insert(agent.unwrap_or_default());
        }
        let earlier = {
            let mut calls = self.calls.lock().unwrap();
            let count = calls.entry(right.clone()).or_default();
            *count += 1;
            *count - 1
        };
        if self.mischief == Mischief::HasNoDevices && right.group == "resource.k8s.io" {
            return Ok(refusal(404, "NotFound", "the server could not find the requested resource", ""));
        }
        if self.granted.as_ref().is_some_and(|granted| !granted.iter().any(|one| right.is_covered_by(one))) {
            let text = format!("cannot {} resource {:?} in API group {:?}", right.verb, right.resource, right.group);
            return Ok(refusal(403, "Forbidden", &text, ""));
        }
        let loses = self.mischief == Mischief::LosesFirstAnswers && right.is_write();
        if loses && right.is_binding() && earlier == 0 {
            return Ok(refusal(409, "Conflict", "another scheduler was faster, it says", "some"));
        }
        if self.mischief == Mischief::FailsLists && right.verb == "list" {
            return Ok(refusal(500, "InternalError", "etcd is gone", ""));
        }
        if self.mischief == Mischief::RefusesBindings && right.is_binding() {
            return Ok(refusal(403, "Forbidden", "admission says no", "p"));
        }
        let is_report = (right.verb.as_str(), right.resource.as_str()) == ("patch", "resourceclaims/status");
        if self.mischief == Mischief::RefusesReports && is_report && earlier < 2 {
            return Ok(refusal(403, "Forbidden", "not on this node", "c"));
        }
        let is_dry_run = parts.uri.query().is_some_and(|query| query.contains("dryRun=All"));
        let answer = self.forward(parts, body).await;
        if !is_dry_run && answer.as_ref().is_ok_and(|answer| answer.status().is_success()) {
            *self.carried_out.lock().unwrap().entry(right.clone()).or_default() += 1;
        }
        if right.verb == "list" && right.resource == "resourceslices" {
            return self.mischief.changed(answer?).await;
        }
        if loses && earlier == usize::from(right.is_binding()) { Err(io::Error::other("lost")) } else { answer }
    }

    async fn forward(&self, parts: hyper::http::request::Parts, body: Incoming) -> io::Result<Response<Body>> {
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = parts.method;
        *request.uri_mut() = parts.uri;
        for name in [ACCEPT, CONTENT_TYPE] {
            if let Some(value) = parts.headers.get(&name) {
                request.headers_mut().insert(name, value.clone());
            }
        }
        let mut response = self.client.send(request).await.map_err(io::Error::other)?;
        response.headers_mut().remove(TRANSFER_ENCODING);
        Ok(response)
    }
}

fn refusal(code: u16, reason: &str, message: &str, name: &str) -> Response<Body> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": message, "details": {"name": name}});
    let mut response = Response::new(Body::from(status.to_string().into_bytes()));
    *response.status_mut() = code.try_into().unwrap();
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    response
}

/// Program behind its door, with its output in a file.
pub(crate) struct Running {
    pub(crate) program: &'static str,
    path: &'static str,
    pub(crate) door: Recorder,
    process: Option<Child>,
    log: PathBuf,
}

impl Running {
    pub(crate) fn new(path: &'static str, door: Recorder, log: PathBuf, program: &'static str) -> Self {
        Self { program, path, door, process: None, log }
    }

    pub(crate) fn start(&mut self, args: &[&str]) {
        let log = File::options().create(true).append(true).open(&self.log).unwrap();
        let mut command = Command::new(self.path);
        command.args(args).args(["--server", &self.door.url]).stdin(Stdio::null());
        self.process = Some(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
    }

    pub(crate) fn stop(&mut self) {
        let mut process = self.process.take().unwrap();
        Command::new("kill").arg(process.id().to_string()).status().unwrap();
        process.wait().unwrap();
    }

    /// Ends the program in the middle of whatever it does.
    pub(crate) fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn has_used(&self, verb: &str, resource: &str) -> bool {
        self.door.used().iter().any(|right| right.verb == verb && right.resource == resource)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
