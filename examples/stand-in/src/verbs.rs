//! Verbs that change objects: create, update, patch, delete, bind.

use std::sync::Arc;

use crate::random::Random;
use dra_attrs::Gate;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::apply::{ApplyError, apply};
use crate::door::{Admitted, Attempt, Door, Part, next_generation};
use crate::kinds::{KINDS, Kind};
use crate::object::Object;
use crate::patch::Patch;
use crate::refusal::{Refusal, success};
use crate::request::{FieldValidation, Options, Subresource, Target};
use crate::served::Served;
use crate::shown::shown;
use crate::store::{Place, Store};
use crate::unknown::unknown_fields;

/// Namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Number of names that are tried for an object with `generateName`.
const NAME_ATTEMPTS: usize = 8;

/// Kinds of which a delete returns the object.
const RETURNED: [&str; 5] =
    ["Pod", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "ResourcePoolStatusRequest"];

/// Answer to a write.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) object: Arc<Value>,
    pub(crate) warnings: Vec<String>,
}

/// Conditions of a delete.
#[derive(Debug, Default)]
struct DeleteOptions {
    uid: String,
    version: String,
    grace_period: Option<i64>,
    is_dry_run: bool,
}

/// Store with its door.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) store: Store,
    pub(crate) door: Door,
    random: Random,
}

impl Api {
    pub(crate) fn new(
        store: Store,
        door: Door,
        random: Random,
        served: &Served,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        let mut api = Self { store, door, random };
        for name in NAMESPACES {
            let target = Target::parse(served, "", "v1", &["namespaces"])?;
            api.create(&target, json!({"metadata": {"name": name}}), &Options::default(), now)?;
        }
        Ok(api)
    }

    /// Creates an object.
    ///
    /// # Errors
    /// The object exists, is invalid, or its namespace is missing.
    pub(crate) fn create(
        &mut self,
        target: &Target,
        mut body: Value,
        options: &Options,
        now: Timestamp,
    ) -> Result<Answer, Refusal> {
        let kind = target.kind;
        check_kind(target, &mut body)?;
        let generate = body.metadata("name").is_empty().then(|| body.metadata("generateName").to_owned());
        let is_named = generate.as_ref().is_none_or(|base| !base.is_empty());
        if !is_named {
            let message = "name or generateName is required";
            return Err(Refusal::new(
                422,
                "Invalid",
                format!("{} \"\" is invalid: metadata.name: Required value: {message}", kind.name),
            ));
        }
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"] {
            body.keep_metadata(field, &Value::Null);
        }
        if !body.metadata("resourceVersion").is_empty() {
            return Err(Refusal::bad_request("resourceVersion should not be set on objects to be created"));
        }
        body.set_metadata("uid", self.random.uid());
        body.set_metadata("creationTimestamp", seconds(now));
        let mut warnings = self.check_fields(kind, &body, options.validation)?;
        for _ in 0..NAME_ATTEMPTS {
            if let Some(base) = &generate {
                body.set_metadata("name", self.random.name(base));
            }
            let place = place(target, body.metadata("name"));
            if self.store.get(&place).is_some() {
                continue;
            }
            let admitted = self.admit(target, Part::Main, None, &body, now)?;
            warnings.extend(admitted.warnings);
            let object = self.put(kind, &place, admitted.object, options.is_dry_run)?;
            return Ok(Answer { code: 201, object, warnings });
        }
        Err(Refusal::already_exists(kind, body.metadata("name")))
    }

    /// Replaces an object or its status.
    ///
    /// # Errors
    /// The object is missing, has changed since it was read, or would be invalid.
    pub(crate) fn update(
        &mut self,
        target: &Target,
        name: &str,
        mut body: Value,
        options: &Options,
        now: Timestamp,
    ) -> Result<Answer, Refusal> {
        check_kind(target, &mut body)?;
        if body.metadata("name").is_empty() {
            body.set_metadata("name", name);
        }
        if body.metadata("name") != name {
            let found = body.metadata("name");
            let message = format!("the name of the object ({found}) does not match the name on the URL ({name})");
            return Err(Refusal::bad_request(message));
        }
        let old = self.found(target, name)?;
        self.replace(target, name, &old, body, options, now)
    }

    /// Patches an object or its status. An apply creates an object that is missing.
    ///
    /// # Errors
    /// As for [`Self::update`], or the patch can't be applied.
    pub(crate) fn patch(
        &mut self,
        target: &Target,
        name: &str,
        patch: Patch,
        options: &Options,
        now: Timestamp,
    ) -> Result<Answer, Refusal> {
        let Patch::Apply(config) = patch else {
            let old = self.found(target, name)?;
            let new = patch.patched(target.kind, &shown(target.kind, self.door.profile, &old))?;
            return self.replace(target, name, &old, new, options, now);
        };
        self.apply(target, name, config, options, now)
    }

    fn apply(
        &mut self,
        target: &Target,
        name: &str,
        mut config: Value,
        options: &Options,
        now: Timestamp,
    ) -> Result<Answer, Refusal> {
        let kind = target.kind;
        if options.manager.is_empty() {
            return Err(Refusal::bad_request(
                "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
            ));
        }
        check_kind(target, &mut config)?;
        let place = place(target, name);
        let old = self.store.get(&place).cloned();
        let mut applied = self.store.applied(&place);
        let before = old.as_deref().map(|old| shown(kind, self.door.profile, old).into_owned());
        let mut new = before.unwrap_or_else(|| json!({}));
        apply(kind.name, &mut new, &config, &options.manager, options.is_forced, &mut applied).map_err(|error| {
            match error {
                ApplyError::Conflict { .. } => Refusal::new(409, "Conflict", error.to_string()),
                ApplyError::Managers => Refusal::new(422, "Invalid", error.to_string()),
            }
        })?;
        let answer = match old {
            Some(old) => self.replace(target, name, &old, new, options, now)?,
            None if target.subresource != Subresource::None => return Err(Refusal::not_found(kind, name)),
            None => {
                new.set_metadata("name", name);
                self.create(target, new, options, now)?
            }
        };
        if !options.is_dry_run {
            self.store.set_applied(&place, applied);
        }
        Ok(answer)
    }

    /// Deletes an object, or marks it as being deleted.
    ///
    /// # Errors
    /// The object is missing, or another one than is meant.
    pub(crate) fn delete(
        &mut self,
        target: &Target,
        name: &str,
        body: &Value,
        options: &Options,
        now: Timestamp,
    ) -> Result<Answer, Refusal> {
        let wanted = DeleteOptions {
            uid: body.text("/preconditions/uid").to_owned(),
            version: body.text("/preconditions/resourceVersion").to_owned(),
            grace_period: body.get("gracePeriodSeconds").and_then(Value::as_i64).or(options.grace_period),
            is_dry_run: options.is_dry_run || body.get("dryRun").is_some_and(|flag| flag == &json!(["All"])),
        };
        let (kind, place) = (target.kind, place(target, name));
        let old = self.found(target, name)?;
        for (what, field, wanted) in
            [("UID", "uid", &wanted.uid), ("ResourceVersion", "resourceVersion", &wanted.version)]
        {
            if !wanted.is_empty() && wanted != old.metadata(field) {
                return Err(Refusal::not_to_delete(kind, name, what, wanted, old.metadata(field)));
            }
        }
        let mut kinds = KINDS.iter().filter(|other| kind.plural == "namespaces" && other.is_namespaced());
        if let Some(full) = kinds.find(|kind| self.store.list(kind, Some(name)).next().is_some()) {
            let detail = format!("it has {}, which nobody here would remove", full.plural);
            return Err(Refusal::forbidden(kind, name, &detail));
        }
        let grace = grace_period(kind, &old, wanted.grace_period);
        if grace == 0 && !old.has_finalizers() {
            if !wanted.is_dry_run {
                self.store.remove(kind, &place);
            }
            let object =
                if RETURNED.contains(&kind.name) { old } else { Arc::new(success(kind, name, old.metadata("uid"))) };
            return Ok(Answer { code: 200, object, warnings: Vec::new() });
        }
        if old.is_terminating() && (kind.plural != "pods" || grace > 0) {
            return Ok(Answer { code: 200, object: old, warnings: Vec::new() });
        }
        let mut new = Value::clone(&old);
        let end = now.checked_add(SignedDuration::from_secs(grace)).unwrap_or(now);
        new.set_metadata("deletionTimestamp", seconds(end));
        new.set_metadata("deletionGracePeriodSeconds", grace);
        if kind.name == "Pod" {
            next_generation(&mut new);
        }
        let object = self.put(kind, &place, new, wanted.is_dry_run)?;
        Ok(Answer { code: 200, object, warnings: Vec::new() })
    }

    /// Binds a pod to a node.
    ///
    /// # Errors
    /// The pod is missing, bound, or being deleted.
    pub(crate) fn bind(
        &mut self,
        target: &Target,
        name: &str,
        binding: &Value,
        options: &Options,
        now: Timestamp,
    ) -> Result<Answer, Refusal> {
        let old = self.found(target, name)?;
        let conflict = |detail: String| Refusal::conflict_on(target.kind, "binding", name, &detail);
        let node = binding.text("/target/name");
        if node.is_empty() {
            return Err(Refusal::new(
                422,
                "Invalid",
                format!("Binding {name:?} is invalid: target.name: Required value"),
            ));
        }
        let (uid, stored) = (binding.metadata("uid"), old.metadata("uid"));
        if !uid.is_empty() && uid != stored {
            return Err(Refusal::precondition(target.kind, name, "UID", uid, stored));
        }
        if old.is_terminating() {
            return Err(conflict(format!("pod {name} is being deleted, cannot be assigned to a host")));
        }
        let bound = old.text("/spec/nodeName");
        if !bound.is_empty() {
            return Err(conflict(format!("pod {name} is already assigned to node {bound:?}")));
        }
        if old.pointer("/spec/schedulingGates").and_then(Value::as_array).is_some_and(|gates| !gates.is_empty()) {
            return Err(conflict(format!("pod {name} has non-empty .spec.schedulingGates")));
        }
        let mut new = Value::clone(&old);
        if let Some(spec) = new.get_mut("spec") {
            spec.fields().insert("nodeName".to_owned(), node.into());
        }
        let condition = json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": seconds(now),
        });
        let status = new.fields().entry("status").or_insert_with(|| json!({})).fields();
        if self.door.gates.has(Gate::ClearingNominatedNodeNameAfterBinding) {
            status.remove("nominatedNodeName");
        }
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        if let Value::Array(conditions) = conditions {
            conditions.retain(|known| known.text("/type") != "PodScheduled");
            conditions.push(condition);
        }
        self.put(target.kind, &place(target, name), new, options.is_dry_run)?;
        let answer = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        Ok(Answer { code: 201, object: Arc::new(answer), warnings: Vec::new() })
    }

    fn replace(
        &mut self,
        target: &Target,
        name: &str,
        old: &Arc<Value>,
        mut new: Value,
        options: &Options,
        now: Timestamp,
    ) -> Result<Answer, Refusal> {
        new.keep_metadata("managedFields", &Value::Null);
        let (kind, place) = (target.kind, place(target, name));
        let part = if target.subresource == Subresource::Status { Part::Status } else { Part::Main };
        let (version, uid) = (new.metadata("resourceVersion"), new.metadata("uid"));
        if !uid.is_empty() && uid != old.metadata("uid") {
            return Err(Refusal::precondition(kind, name, "UID", uid, old.metadata("uid")));
        }
        if !version.is_empty() && version != old.metadata("resourceVersion") {
            return Err(Refusal::modified(kind, name));
        }
        for field in [
            "name",
            "namespace",
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
        ] {
            new.keep_metadata(field, old);
        }
        let mut warnings = self.check_fields(kind, &new, options.validation)?;
        let mut admitted = self.admit(target, part, Some(old), &new, now)?;
        warnings.extend(admitted.warnings);
        if part == Part::Status {
            let metadata = old.get("metadata").cloned().unwrap_or_default();
            admitted.object.fields().insert("metadata".to_owned(), metadata);
        }
        // What equals the stored object is no new version.
        admitted.object.keep_metadata("resourceVersion", old);
        if admitted.object == **old {
            return Ok(Answer { code: 200, object: Arc::clone(old), warnings });
        }
        if old.is_terminating() && !admitted.object.has_finalizers() && grace_left(&admitted.object) == 0 {
            let object = Arc::new(admitted.object);
            if !options.is_dry_run {
                self.store.remove(kind, &place);
            }
            return Ok(Answer { code: 200, object, warnings });
        }
        let object = self.put(kind, &place, admitted.object, options.is_dry_run)?;
        Ok(Answer { code: 200, object, warnings })
    }

    fn admit(
        &self,
        target: &Target,
        part: Part,
        old: Option<&Value>,
        new: &Value,
        now: Timestamp,
    ) -> Result<Admitted, Refusal> {
        let namespace = match &target.namespace {
            None => None,
            Some(name) => {
                let kind = Kind::find("", "v1", "namespaces").ok_or_else(Refusal::no_path)?;
                let namespace = self.store.get(&(kind.plural, String::new(), name.clone()));
                Some(&**namespace.ok_or_else(|| Refusal::not_found(kind, name))?)
            }
        };
        self.door.admit(Attempt { kind: target.kind, part, old, new, namespace, now })
    }

    /// Returns warnings about unknown fields.
    fn check_fields(
        &self,
        kind: &'static Kind,
        body: &Value,
        validation: FieldValidation,
    ) -> Result<Vec<String>, Refusal> {
        let read = self.door.read(kind, body)?;
        let unknown = unknown_fields(body, &shown(kind, self.door.profile, &crate::door::read_again(kind, &read)?));
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

    fn found(&self, target: &Target, name: &str) -> Result<Arc<Value>, Refusal> {
        let found = self.store.get(&place(target, name)).cloned();
        found.ok_or_else(|| Refusal::not_found(target.kind, name))
    }

    fn put(
        &mut self,
        kind: &'static Kind,
        place: &Place,
        object: Value,
        is_dry_run: bool,
    ) -> Result<Arc<Value>, Refusal> {
        if is_dry_run { Ok(Arc::new(object)) } else { self.store.put(kind, place, object) }
    }
}

/// Returns the place of an object in the store.
pub(crate) fn place(target: &Target, name: &str) -> Place {
    (target.kind.plural, target.namespace.clone().unwrap_or_default(), name.to_owned())
}

/// Returns the seconds that a deleted object stays: those of a pod on a node, until its kubelet has stopped it.
fn grace_period(kind: &Kind, old: &Value, wanted: Option<i64>) -> i64 {
    let has_ended = matches!(old.text("/status/phase"), "Succeeded" | "Failed");
    if kind.plural != "pods" || old.text("/spec/nodeName").is_empty() || has_ended {
        return 0;
    }
    let own = old.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    wanted.or(own).unwrap_or(30).max(0)
}

fn grace_left(object: &Value) -> i64 {
    object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default()
}

fn check_kind(target: &Target, body: &mut Value) -> Result<(), Refusal> {
    let Value::Object(fields) = body else { return Err(Refusal::bad_request("the body is no object")) };
    for (field, expected) in [("apiVersion", target.kind.api_version()), ("kind", target.kind.name.to_owned())] {
        let found = fields.entry(field).or_insert_with(|| expected.clone().into());
        if found != &expected {
            return Err(Refusal::bad_request(format!(
                "the {field} in the data ({found}) does not match the expected one ({expected})"
            )));
        }
    }
    let Some(namespace) = &target.namespace else {
        if target.kind.is_namespaced() {
            return Err(Refusal::new(
                405,
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
            ));
        }
        return Ok(());
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

fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
