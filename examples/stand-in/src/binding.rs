//! The binding of a pod to a node.

use std::sync::Arc;

use dra_attrs::{FieldError, FieldErrors, FieldPath, Gate};
use object_patches::Object;
use serde_json::{Value, json};

use crate::api::{Answer, Api, Context, seconds};
use crate::refusal::Refusal;

impl Api {
    /// Binds a pod to a node.
    ///
    /// # Errors
    /// The pod is missing, bound, or being deleted.
    pub(crate) fn bind(&mut self, context: Context<'_>, name: &str, binding: &Value) -> Result<Answer, Refusal> {
        let Context { target, now, .. } = context;
        check(binding, name)?;
        let node = binding.text("/target/name");
        let old = self.found(target, name)?;
        let conflict = |detail: String| Refusal::conflict_on(target.kind, "binding", name, &detail);
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
        new.fields().entry("spec").or_insert_with(|| json!({})).set_field("nodeName", node);
        for field in ["annotations", "labels"] {
            for (key, value) in
                binding.pointer(&format!("/metadata/{field}")).and_then(Value::as_object).into_iter().flatten()
            {
                let metadata = new.fields().entry("metadata").or_insert_with(|| json!({}));
                metadata.fields().entry(field).or_insert_with(|| json!({})).set_field(key, value.clone());
            }
        }
        let condition = json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": seconds(now),
        });
        let status = new.fields().entry("status").or_insert_with(|| json!({})).fields();
        if self.door.gates.has(Gate::ClearingNominatedNodeNameAfterBinding) {
            status.remove("nominatedNodeName");
        }
        if let Value::Array(conditions) = status.entry("conditions").or_insert_with(|| json!([])) {
            conditions.retain(|known| known.text("/type") != "PodScheduled");
            conditions.push(condition);
        }
        self.put(context, name, new)?;
        let answer = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        Ok(Answer { code: 201, object: Arc::new(answer), warnings: Vec::new() })
    }
}

fn check(binding: &Value, name: &str) -> Result<(), Refusal> {
    let named = binding.metadata("name");
    if named != name {
        return Err(Refusal::bad_request("name in URL does not match name in Binding object"));
    }
    let (at, kind) = (FieldPath::new("target"), binding.text("/target/kind"));
    let mut errors = FieldErrors::new();
    if !["", "Node"].contains(&kind) {
        errors.push(FieldError::not_supported(&at.child("kind"), kind, &["Node", "<empty>"]));
    }
    if binding.text("/target/name").is_empty() {
        errors.push(FieldError::required(&at.child("name"), ""));
    }
    if errors.is_empty() { Ok(()) } else { Err(Refusal::invalid_of("", "Binding", named, &errors)) }
}
