//! The subresource `scale`: the number of pods of a workload, as `kubectl scale` writes it.

use std::sync::Arc;

use object_patches::{Object, Patch};
use serde_json::{Value, json};

use crate::api::{Answer, Api, Context};
use crate::refusal::Refusal;
use crate::request::{Subresource, Target};

/// Kinds that have it.
pub(crate) const SCALED: [&str; 3] = ["Deployment", "ReplicaSet", "StatefulSet"];

/// Fields of the metadata that a scale has.
const METADATA: [&str; 5] = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];

/// Returns the scale of a workload.
fn scale_of(object: &Value) -> Value {
    let number = |place: &str| object.pointer(place).and_then(Value::as_i64).unwrap_or_default();
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {},
        "spec": {"replicas": number("/spec/replicas")},
        "status": {"replicas": number("/status/replicas"), "selector": selector(object)},
    });
    for field in METADATA {
        scale.keep_metadata(field, object);
    }
    scale
}

/// Returns the labels that a workload selects, as text.
fn selector(object: &Value) -> String {
    let labels = object.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let label = |(key, value): (&String, &Value)| format!("{key}={}", value.as_str().unwrap_or_default());
    labels.into_iter().flatten().map(label).collect::<Vec<_>>().join(",")
}

impl Api {
    /// Returns the scale of a workload.
    ///
    /// # Errors
    /// There is no such workload.
    pub(crate) fn scale(&self, target: &Target, name: &str) -> Result<Arc<Value>, Refusal> {
        self.found(target, name).map(|object| Arc::new(scale_of(&object)))
    }

    /// Replaces the scale of a workload.
    ///
    /// # Errors
    /// As for an update of the workload, or the body is no scale.
    pub(crate) fn set_scale(&mut self, context: Context<'_>, name: &str, scale: &Value) -> Result<Answer, Refusal> {
        let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default();
        let mut patch = json!({"spec": {"replicas": replicas}});
        for field in ["uid", "resourceVersion"] {
            if !scale.metadata(field).is_empty() {
                patch.set_metadata(field, scale.metadata(field));
            }
        }
        let target = Target { subresource: Subresource::None, ..context.target.clone() };
        let answer = self.patch(Context { target: &target, ..context }, name, Patch::Merge(patch))?;
        Ok(Answer { object: Arc::new(scale_of(&answer.object)), ..answer })
    }

    /// Patches the scale of a workload.
    ///
    /// # Errors
    /// As for [`Self::set_scale`], or the patch can't be carried out.
    pub(crate) fn patch_scale(&mut self, context: Context<'_>, name: &str, patch: Patch) -> Result<Answer, Refusal> {
        let mut scale = scale_of(&*self.found(context.target, name)?);
        // Who names no version writes to whichever there is.
        scale.keep_metadata("resourceVersion", &Value::Null);
        let patched = patch.patched("Scale", &scale)?;
        self.set_scale(context, name, &patched)
    }
}
