//! The store behind its door: what all verbs share.

use std::collections::VecDeque;
use std::sync::Arc;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use object_patches::managed_fields::{Operation, Writer};
use object_patches::{Object, unknown_fields};
use serde_json::{Value, json};

use crate::admission::Plugin;
use crate::door::{Admitted, Attempt, Door, Part, read_again};
use crate::kinds::Kind;
use crate::options::{FieldValidation, Options};
use crate::random::Random;
use crate::refusal::Refusal;
use crate::request::{Subresource, Target};
use crate::rights::{Rights, User};
use crate::served::Served;
use crate::shown::shown;
use crate::store::{Place, Store};

/// Namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Time for which an event is kept after its last write, as in kube-apiserver.
const EVENT_AGE: SignedDuration = SignedDuration::from_hours(1);

/// Largest number of writes of events that are remembered; with more, the oldest events go earlier.
const MOST_EVENTS: usize = 100_000;

/// Answer to a write.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) object: Arc<Value>,
    pub(crate) warnings: Vec<String>,
}

/// Circumstances of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'c> {
    pub(crate) target: &'c Target,
    pub(crate) options: &'c Options,
    /// Name of the writer in `managedFields`.
    pub(crate) manager: &'c str,
    /// Who writes; none if nobody's rights are looked at.
    pub(crate) user: Option<&'c User>,
    /// Verb of the request, as roles name it.
    pub(crate) verb: &'static str,
    pub(crate) now: Timestamp,
}

impl Context<'_> {
    pub(crate) fn writer(&self, operation: Operation) -> Writer {
        Writer {
            manager: self.manager.to_owned(),
            operation,
            api_version: self.target.kind.api_version(),
            subresource: self.target.subresource.name().to_owned(),
            now: self.now,
        }
    }

    pub(crate) fn part(&self) -> Part {
        if self.target.subresource == Subresource::Status { Part::Status } else { Part::Main }
    }
}

/// Store with its door.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) store: Store,
    pub(crate) door: Door,
    pub(crate) random: Random,
    /// Admission plugins that are off.
    pub(crate) off: Vec<Plugin>,
    pub(crate) rights: Option<Arc<Rights>>,
    /// Writes of events, the oldest first, with the version that each has led to.
    events: VecDeque<(Timestamp, Place, String)>,
}

impl Api {
    pub(crate) fn new(
        store: Store,
        door: Door,
        random: Random,
        (off, rights): (Vec<Plugin>, Option<Arc<Rights>>),
        (served, now): (&Served, Timestamp),
    ) -> Result<Self, Refusal> {
        let mut api = Self { store, door, random, off, rights, events: VecDeque::new() };
        let target = Target::parse(served, "", "v1", &["namespaces"])?;
        for name in NAMESPACES {
            let context = Context {
                target: &target,
                options: &Options::default(),
                manager: "apiserver",
                user: None,
                verb: "create",
                now,
            };
            api.create(context, json!({"metadata": {"name": name}}))?;
        }
        Ok(api)
    }

    /// Passes an object through the door, which looks at its namespace.
    pub(crate) fn admit(&self, context: Context<'_>, old: Option<&Value>, new: &Value) -> Result<Admitted, Refusal> {
        let Context { target, now, .. } = context;
        let namespace = target.namespace.as_deref().map(|name| self.namespace(name)).transpose()?;
        let namespace = namespace.as_deref();
        self.door.admit(Attempt { kind: target.kind, part: context.part(), old, new, namespace, now })
    }

    /// Returns a namespace.
    ///
    /// # Errors
    /// There is none of the name.
    pub(crate) fn namespace(&self, name: &str) -> Result<Arc<Value>, Refusal> {
        let kind = Kind::find("", "v1", "namespaces").ok_or_else(Refusal::no_path)?;
        let found = self.store.get(&(kind.plural, String::new(), name.to_owned())).cloned();
        found.ok_or_else(|| Refusal::not_found(kind, name))
    }

    /// Returns warnings about unknown fields.
    pub(crate) fn check_fields(
        &self,
        kind: &'static Kind,
        body: &Value,
        validation: FieldValidation,
    ) -> Result<Vec<String>, Refusal> {
        let read = self.door.read(kind, body)?;
        let unknown = unknown_fields(body, &shown(kind, self.door.profile, &read_again(kind, &read)?));
        match validation {
            FieldValidation::Strict if !unknown.is_empty() => {
                let (name, version) = (kind.name, kind.version);
                let list = unknown.join(", ");
                Err(Refusal::bad_request(format!(
                    "{name} in version {version:?} cannot be handled as a {name}: strict decoding error: {list}"
                )))
            }
            FieldValidation::Ignore => Ok(Vec::new()),
            _ => Ok(unknown),
        }
    }

    pub(crate) fn found(&self, target: &Target, name: &str) -> Result<Arc<Value>, Refusal> {
        let found = self.store.get(&place(target, name)).cloned();
        found.ok_or_else(|| Refusal::not_found(target.kind, name))
    }

    pub(crate) fn put(&mut self, context: Context<'_>, name: &str, object: Value) -> Result<Arc<Value>, Refusal> {
        let Context { target, options, .. } = context;
        if options.is_dry_run() {
            return Ok(Arc::new(object));
        }
        let place = place(target, name);
        let stored = self.store.put(target.kind, &place, object)?;
        if target.kind.name == "Event" {
            self.events.push_back((context.now, place, stored.metadata("resourceVersion").to_owned()));
            self.forget_events(context.now);
        }
        Ok(stored)
    }

    /// Removes the events that nobody has written for an hour.
    fn forget_events(&mut self, now: Timestamp) {
        let is_old = |written: Timestamp| now.duration_since(written) > EVENT_AGE;
        while self.events.len() > MOST_EVENTS || self.events.front().is_some_and(|(written, ..)| is_old(*written)) {
            let Some((_, place, version)) = self.events.pop_front() else { return };
            let is_last = self.store.get(&place).is_some_and(|event| event.metadata("resourceVersion") == version);
            if let (true, Some(kind)) = (is_last, Kind::find("", "v1", "events")) {
                self.store.remove(kind, &place);
            }
        }
    }
}

/// Returns the place of an object in the store.
pub(crate) fn place(target: &Target, name: &str) -> Place {
    (target.kind.plural, target.namespace.clone().unwrap_or_default(), name.to_owned())
}

/// Checks that an object is of the kind and in the namespace of the request, and writes both into it.
pub(crate) fn check_kind(target: &Target, body: &mut Value) -> Result<(), Refusal> {
    let Value::Object(fields) = body else { return Err(Refusal::bad_request("the body is no object")) };
    let kind = target.kind;
    let text =
        |field: &str| fields.get(field).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let version = text("apiVersion").unwrap_or_else(|| kind.api_version());
    let name = text("kind").unwrap_or_else(|| kind.name.to_owned());
    if (name.as_str(), version.as_str()) != (kind.name, &kind.api_version()) {
        return Err(Refusal::bad_request(other_kind(kind, &name, &version)));
    }
    fields.insert("apiVersion".to_owned(), version.into());
    fields.insert("kind".to_owned(), name.into());
    let Some(namespace) = &target.namespace else {
        return if kind.is_namespaced() { Err(Refusal::not_allowed()) } else { Ok(()) };
    };
    match body.metadata("namespace") {
        "" => body.set_metadata("namespace", namespace.as_str()),
        found if found == namespace => {}
        _ => {
            return Err(Refusal::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    }
    Ok(())
}

/// Says that an object is of another kind, or of another version.
fn other_kind(kind: &Kind, name: &str, version: &str) -> String {
    let (group, short) = version.split_once('/').unwrap_or(("", version));
    let is_known = |other: &Kind| (other.name, other.group, other.version) == (name, group, short);
    if !crate::kinds::KINDS.iter().any(is_known) {
        let scheme = "pkg/api/legacyscheme/scheme.go:30";
        return format!(
            "{name} in version {short:?} cannot be handled as a {}: no kind {name:?} is registered for version {version:?} in \
             scheme {scheme:?}",
            kind.name
        );
    }
    if name == kind.name {
        let expected = kind.api_version();
        return format!("the API version in the data ({version}) does not match the expected API version ({expected})");
    }
    let package = match kind.group.split('.').next().unwrap_or_default() {
        "" => "core",
        package => package,
    };
    format!(
        "{name} in version {short:?} cannot be handled as a {to}: converting ({short}.{name}) to ({package}.{to}): unknown \
         conversion",
        to = kind.name
    )
}

pub(crate) fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
