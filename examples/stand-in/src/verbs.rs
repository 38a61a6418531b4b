//! Verbs that write an object: create, update, patch, apply.

use std::sync::Arc;

use dra_attrs::{FieldError, FieldPath, Profile};
use object_patches::managed_fields::{self, Operation, managers_of};
use object_patches::{ApplyError, Object, Patch, apply};
use serde_json::{Value, json};

use crate::admission::{self, Newcomer};
use crate::api::{Answer, Api, Context, check_kind, place, seconds};
use crate::defaults;
use crate::door::Part;
use crate::kinds::Kind;
use crate::refusal::Refusal;
use crate::request::Subresource;
use crate::shown::shown;

/// Number of names that are tried for an object with `generateName`.
const NAME_ATTEMPTS: usize = 8;

/// Fields that the server sets in a new object, whatever the client sends.
const SERVER_S: [&str; 4] = ["deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"];

/// Fields of the metadata that no update changes.
const KEPT: [&str; 7] =
    ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];

/// Kinds that an update creates if they are missing.
const MADE_BY_UPDATE: [&str; 2] = ["Event", "Lease"];

impl Api {
    /// Creates an object.
    ///
    /// # Errors
    /// The object exists, is invalid, or its namespace is missing.
    pub(crate) fn create(&mut self, context: Context<'_>, body: Value) -> Result<Answer, Refusal> {
        self.create_as(context, body, |kind, object, context| {
            managed_fields::updated(kind, None, Vec::new(), object, &context.writer(Operation::Update));
        })
    }

    fn create_as(
        &mut self,
        context: Context<'_>,
        mut body: Value,
        manage: impl Fn(&str, &mut Value, Context<'_>),
    ) -> Result<Answer, Refusal> {
        let Context { target, options, now, .. } = context;
        let kind = target.kind;
        check_kind(target, &mut body)?;
        let mut warnings = self.check_fields(kind, &body, options.validation())?;
        for field in SERVER_S {
            body.keep_metadata(field, &Value::Null);
        }
        self.check_place(context, &body)?;
        defaults::fill(kind.name, &mut body);
        self.admit_newcomer(context, &mut body)?;
        if !body.metadata("resourceVersion").is_empty() {
            return Err(Refusal::bad_request("resourceVersion should not be set on objects to be created"));
        }
        let base = body.metadata("name").is_empty().then(|| body.metadata("generateName").to_owned());
        if base.as_ref().is_some_and(String::is_empty) {
            let metadata = FieldPath::new("metadata");
            let error = FieldError::required(&metadata.child("name"), "name or generateName is required");
            return Err(Refusal::invalid(kind, "", &[error].into_iter().collect()));
        }
        body.set_metadata("uid", self.random.uid());
        body.set_metadata("creationTimestamp", seconds(now));
        for _ in 0..NAME_ATTEMPTS {
            if let Some(base) = &base {
                body.set_metadata("name", self.random.name(base));
            }
            let mut admitted = self.admit(context, None, &body)?;
            if self.store.get(&place(target, body.metadata("name"))).is_some() {
                continue;
            }
            warnings.extend(admitted.warnings);
            manage(kind.name, &mut admitted.object, context);
            let object = self.put(context, body.metadata("name"), admitted.object)?;
            return Ok(Answer { code: 201, object, warnings });
        }
        Err(Refusal::already_exists(kind, body.metadata("name")))
    }

    /// Checks that the namespace of a new object is there, and stays.
    fn check_place(&self, context: Context<'_>, body: &Value) -> Result<(), Refusal> {
        let Some(name) = &context.target.namespace else { return Ok(()) };
        if self.namespace(name)?.is_terminating() {
            return Err(Refusal::going_namespace(context.target.kind, body.metadata("name"), name));
        }
        Ok(())
    }

    fn admit_newcomer(&mut self, context: Context<'_>, body: &mut Value) -> Result<(), Refusal> {
        let Self { store, random, off, .. } = self;
        let namespace = context.target.namespace.clone().unwrap_or_default();
        let account = |name: &str| {
            let found = store.get(&("serviceaccounts", namespace.clone(), name.to_owned()));
            found.map(|account| Value::clone(account))
        };
        let classes = || {
            let listed = Kind::find("scheduling.k8s.io", "v1", "priorityclasses").map(|kind| store.list(kind, None));
            listed.into_iter().flatten().cloned().collect()
        };
        let kind = context.target.kind;
        admission::admit(off, &mut Newcomer { kind, object: body, account: &account, classes: &classes, random })
    }

    /// Replaces an object or its status.
    ///
    /// # Errors
    /// The object is missing, has changed since it was read, or would be invalid.
    pub(crate) fn update(&mut self, context: Context<'_>, name: &str, mut body: Value) -> Result<Answer, Refusal> {
        let target = context.target;
        check_kind(target, &mut body)?;
        if body.metadata("name").is_empty() {
            // Some clients leave it to the URL.
            body.set_metadata("name", name);
        }
        check_name(&body, name)?;
        match self.store.get(&place(target, name)).cloned() {
            Some(old) => self.replace(context, name, &old, body),
            None if target.subresource == Subresource::None && MADE_BY_UPDATE.contains(&target.kind.name) => {
                self.create(context, body)
            }
            None => Err(Refusal::not_found(target.kind, name)),
        }
    }

    /// Patches an object or its status. An apply creates an object that is missing.
    ///
    /// # Errors
    /// As for [`Self::update`], or the patch can't be applied.
    pub(crate) fn patch(&mut self, context: Context<'_>, name: &str, patch: Patch) -> Result<Answer, Refusal> {
        let target = context.target;
        let Patch::Apply(config) = patch else {
            let old = self.found(target, name)?;
            let mut before = shown(target.kind, self.door.profile, &old).into_owned();
            before.set_metadata("managedFields", managed_fields::shown(&old));
            let mut new = patch.patched(target.kind.name, &before)?;
            check_kind(target, &mut new)?;
            check_name(&new, name)?;
            return self.replace(context, name, &old, new);
        };
        self.apply(context, name, config)
    }

    fn apply(&mut self, context: Context<'_>, name: &str, mut config: Value) -> Result<Answer, Refusal> {
        let Context { target, options, manager, .. } = context;
        let kind = target.kind;
        check_kind(target, &mut config)?;
        if !config.metadata("name").is_empty() {
            check_name(&config, name)?;
        }
        if config.pointer("/metadata/managedFields").is_some() {
            return Err(Refusal::bad_request("metadata.managedFields must be nil"));
        }
        let old = self.store.get(&place(target, name)).cloned();
        let mut entries = old.as_deref().map(managers_of).unwrap_or_default();
        let before = old.as_deref().map(|old| shown(kind, self.door.profile, old).into_owned());
        let mut new = before.unwrap_or_else(|| json!({}));
        new.keep_metadata("managedFields", &Value::Null);
        let wanted = apply(kind.name, &mut new, &config, (manager, options.on_conflict()), &mut entries);
        let wanted = wanted.map_err(|error| match &error {
            ApplyError::Conflicts(conflicts) => Refusal::apply_conflicts(error.to_string(), conflicts),
            _ => Refusal::new(422, "Invalid", error.to_string()),
        })?;
        let manage = |kind: &str, object: &mut Value, context: Context<'_>| {
            let writer = context.writer(Operation::Apply);
            managed_fields::applied(kind, entries.clone(), object, wanted.clone(), &writer);
        };
        match old {
            Some(old) => self.replace_as(context, name, &old, new, manage),
            None if target.subresource != Subresource::None => Err(Refusal::not_found(kind, name)),
            None => {
                new.set_metadata("name", name);
                self.create_as(context, new, manage)
            }
        }
    }

    fn replace(&mut self, context: Context<'_>, name: &str, old: &Arc<Value>, new: Value) -> Result<Answer, Refusal> {
        let sent = new.pointer("/metadata/managedFields").filter(|sent| sent.is_array());
        let entries = managed_fields::sent_or_stored(sent, old);
        self.replace_as(context, name, old, new, |kind, object, context| {
            managed_fields::updated(kind, Some(old), entries.clone(), object, &context.writer(Operation::Update));
        })
    }

    fn replace_as(
        &mut self,
        context: Context<'_>,
        name: &str,
        old: &Arc<Value>,
        mut new: Value,
        manage: impl Fn(&str, &mut Value, Context<'_>),
    ) -> Result<Answer, Refusal> {
        let Context { target, options, .. } = context;
        let (kind, part) = (target.kind, context.part());
        new.keep_metadata("managedFields", &Value::Null);
        let (version, uid) = (new.metadata("resourceVersion"), new.metadata("uid"));
        if !uid.is_empty() && uid != old.metadata("uid") {
            return Err(Refusal::precondition(kind, name, "UID", uid, old.metadata("uid")));
        }
        if !version.is_empty() && version != old.metadata("resourceVersion") {
            return Err(Refusal::modified(kind, name));
        }
        for field in KEPT {
            new.keep_metadata(field, old);
        }
        let mut warnings = self.check_fields(kind, &new, options.validation())?;
        let mut admitted = self.admit(context, Some(old), &new)?;
        warnings.extend(admitted.warnings);
        self.check_rights(context, old, &admitted.object)?;
        let object = &mut admitted.object;
        if part == Part::Status {
            let metadata = old.get("metadata").cloned().unwrap_or_default();
            object.fields().insert("metadata".to_owned(), metadata);
        }
        // What equals the stored object is no new version.
        object.keep_metadata("resourceVersion", old);
        object.keep_metadata("managedFields", old);
        let is_same = *object == **old;
        manage(kind.name, object, context);
        if is_same && object.metadata("managedFields") == old.metadata("managedFields") {
            return Ok(Answer { code: 200, object: Arc::clone(old), warnings });
        }
        if old.is_terminating() && !object.has_finalizers() && grace_left(object) == 0 {
            let object = Arc::new(admitted.object);
            if !options.is_dry_run() {
                self.remove(target, name);
            }
            return Ok(Answer { code: 200, object, warnings });
        }
        let object = self.put(context, name, admitted.object)?;
        Ok(Answer { code: 200, object, warnings })
    }
}

impl Api {
    /// Checks the rights to the parts of a claim's status that change.
    fn check_rights(&self, context: Context<'_>, old: &Value, new: &Value) -> Result<(), Refusal> {
        // Since 1.36.
        let is_asked = !matches!(self.door.profile, Profile::Kep | Profile::V1_34 | Profile::V1_35);
        let (Some(rights), Some(user), true) = (&self.rights, context.user, is_asked) else { return Ok(()) };
        if (context.target.kind.name, context.part()) != ("ResourceClaim", Part::Status) {
            return Ok(());
        }
        let errors = rights.check_claim_status(user, context.verb, old, new);
        let refusal = || Refusal::invalid(context.target.kind, new.metadata("name"), &errors);
        if errors.is_empty() { Ok(()) } else { Err(refusal()) }
    }
}

fn check_name(body: &Value, name: &str) -> Result<(), Refusal> {
    let found = body.metadata("name");
    if found == name {
        return Ok(());
    }
    Err(Refusal::bad_request(format!("the name of the object ({found}) does not match the name on the URL ({name})")))
}

fn grace_left(object: &Value) -> i64 {
    object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default()
}
