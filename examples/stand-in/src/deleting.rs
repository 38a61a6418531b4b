//! Deletes: of an object, of what a selector selects, of a pod by an eviction.

use std::sync::Arc;

use k8s_openapi::jiff::SignedDuration;
use object_patches::Object;
use serde_json::{Value, json};

use crate::api::{Answer, Api, Context, place, seconds};
use crate::door::next_generation;
use crate::kinds::{KINDS, Kind};
use crate::options::OptionsOf;
use crate::refusal::{Refusal, success};
use crate::request::Target;

/// Kinds of which a delete returns the object.
const RETURNED: [&str; 6] =
    ["Pod", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "ResourcePoolStatusRequest", "ServiceAccount"];

/// Namespaces that can't be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

impl Api {
    /// Deletes an object, or marks it as being deleted.
    ///
    /// # Errors
    /// The object is missing, or another one than is meant.
    pub(crate) fn delete(&mut self, context: Context<'_>, name: &str, body: &Value) -> Result<Answer, Refusal> {
        let options = &context.options.with_body(body)?;
        options.check(OptionsOf::Delete)?;
        let context = Context { options, ..context };
        let Context { target, now, .. } = context;
        let kind = target.kind;
        if options.orphans() && workload_pods::server_rules::template_of(kind.name).is_some() {
            return Err(Refusal::new(
                422,
                "Invalid",
                "this stand-in keeps no orphans: the pods of a workload go with it",
            ));
        }
        if kind.name == "Namespace" && IMMORTAL.contains(&name) {
            return Err(Refusal::forbidden(kind, name, "this namespace may not be deleted"));
        }
        let old = self.found(target, name)?;
        for (what, field) in [("UID", "uid"), ("ResourceVersion", "resourceVersion")] {
            let wanted = body.text(&format!("/preconditions/{field}"));
            if !wanted.is_empty() && wanted != old.metadata(field) {
                return Err(Refusal::not_to_delete(kind, name, what, wanted, old.metadata(field)));
            }
        }
        let grace = grace_period(kind, &old, options.grace_period);
        if kind.name != "Namespace" && grace == 0 && !old.has_finalizers() {
            if !options.is_dry_run() {
                self.remove(target, name);
            }
            return Ok(Answer { code: 200, object: returned(kind, name, old), warnings: Vec::new() });
        }
        if old.is_terminating() && (kind.name != "Pod" || grace >= grace_of(&old)) {
            return Ok(Answer { code: 200, object: old, warnings: Vec::new() });
        }
        let mut new = Value::clone(&old);
        let end = now.checked_add(SignedDuration::from_secs(grace)).unwrap_or(now);
        new.set_metadata("deletionTimestamp", seconds(end));
        new.set_metadata("deletionGracePeriodSeconds", grace);
        match kind.name {
            "Pod" => next_generation(&mut new),
            "Namespace" => {
                new.keep_metadata("deletionGracePeriodSeconds", &Value::Null);
                new.fields().entry("status").or_insert_with(|| json!({})).set_field("phase", "Terminating");
            }
            // There is no generation of most kinds; of the others, a delete is a change.
            _ if new.pointer("/metadata/generation").is_some() => next_generation(&mut new),
            _ => {}
        }
        let object = self.put(context, name, new)?;
        if kind.name == "Namespace" && !options.is_dry_run() {
            self.end_namespace(name);
        }
        Ok(Answer { code: 200, object, warnings: Vec::new() })
    }

    /// Deletes the objects that a list would have, and returns them as they were.
    ///
    /// # Errors
    /// A selector is malformed.
    pub(crate) fn delete_collection(&mut self, context: Context<'_>, body: &Value) -> Result<Vec<Arc<Value>>, Refusal> {
        let Context { target, options, .. } = context;
        options.with_body(body)?.check(OptionsOf::Delete)?;
        let selector = options.selector(target)?;
        let objects = self.store.list(target.kind, selector.namespace()).filter(|object| selector.matches(object));
        let objects: Vec<Arc<Value>> = objects.cloned().collect();
        for object in &objects {
            let namespace = Some(object.metadata("namespace").to_owned()).filter(|namespace| !namespace.is_empty());
            let target = Target { namespace, ..target.clone() };
            self.delete(Context { target: &target, ..context }, object.metadata("name"), body)?;
        }
        Ok(objects)
    }

    /// Removes an object, and its namespace if that waits for its end.
    pub(crate) fn remove(&mut self, target: &Target, name: &str) {
        self.store.remove(target.kind, &place(target, name));
        if let Some(namespace) = &target.namespace {
            self.end_namespace(namespace);
        }
    }

    /// Removes a namespace that is to go once nothing is in it. On a cluster, this is its controller's.
    fn end_namespace(&mut self, name: &str) {
        let Some(kind) = Kind::find("", "v1", "namespaces") else { return };
        let place = (kind.plural, String::new(), name.to_owned());
        let is_going = self.store.get(&place).is_some_and(|namespace| namespace.is_terminating());
        let has_objects = |kind: &'static Kind| self.store.list(kind, Some(name)).next().is_some();
        if is_going && !KINDS.iter().any(|kind| kind.is_namespaced() && has_objects(kind)) {
            self.store.remove(kind, &place);
        }
    }

    /// Deletes a pod as an eviction asks for. There are no disruption budgets here that could be against it.
    ///
    /// # Errors
    /// As for [`Self::delete`].
    pub(crate) fn evict(&mut self, context: Context<'_>, name: &str, eviction: &Value) -> Result<Answer, Refusal> {
        if eviction.metadata("name") != name {
            return Err(Refusal::bad_request("name in URL does not match name in Eviction object"));
        }
        let body = eviction.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
        self.delete(context, name, &body)?;
        let answer = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        Ok(Answer { code: 201, object: Arc::new(answer), warnings: Vec::new() })
    }
}

fn returned(kind: &Kind, name: &str, old: Arc<Value>) -> Arc<Value> {
    if !RETURNED.contains(&kind.name) {
        return Arc::new(success(kind, name, old.metadata("uid")));
    }
    old
}

fn grace_of(object: &Value) -> i64 {
    object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default()
}

/// Returns the seconds that a deleted object stays: those of a pod on a node, until its kubelet has stopped it.
fn grace_period(kind: &Kind, old: &Value, wanted: Option<i64>) -> i64 {
    let has_ended = matches!(old.text("/status/phase"), "Succeeded" | "Failed");
    if kind.name != "Pod" || old.text("/spec/nodeName").is_empty() || has_ended {
        return 0;
    }
    let own = old.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    // A negative one is the least that there is.
    match wanted.or(own).unwrap_or(30) {
        0 => 0,
        seconds => seconds.max(1),
    }
}
