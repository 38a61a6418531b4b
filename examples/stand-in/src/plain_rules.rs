//! Rules of the kinds that are no devices: nodes, pods, workloads, events, leases, namespaces and service accounts.

use dra_attrs::{BadValue, FieldError, FieldErrors, FieldPath, NameFormat};
use object_patches::Object;
use serde_json::{Value, json};
use workload_pods::server_rules;

use crate::door::{Attempt, Part, next_generation};
use crate::metadata::{self, check_format};
use crate::pod_rules;

/// Effects of taints.
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Checks an object, and sets what the server sets.
pub(crate) fn check(attempt: Attempt<'_>, object: &mut Value) -> FieldErrors {
    let is_new = attempt.old.is_none();
    let of_name = if is_new { metadata::name_problems(attempt.kind.name, object) } else { FieldErrors::new() };
    let mut errors: FieldErrors =
        of_name.iter().chain(metadata::problems(attempt.old, object).iter()).cloned().collect();
    match (attempt.kind.name, attempt.old) {
        ("Pod", None) => {
            let class = qos_class(object);
            object.set_field("status", json!({"phase": "Pending", "qosClass": class}));
            object.set_metadata("generation", 1);
            pod_rules::create(object, &mut errors);
        }
        ("Pod", Some(old)) if attempt.part == Part::Main && old.get("spec") != object.get("spec") => {
            next_generation(object);
            pod_rules::update(old, object, &mut errors);
        }
        // Its controller takes this when nothing is in the namespace any more.
        ("Namespace", None) => {
            let spec = object.fields().entry("spec").or_insert_with(|| json!({}));
            spec.fields().entry("finalizers").or_insert_with(|| json!(["kubernetes"]));
        }
        ("Node", old) if attempt.part == Part::Main => node(old, object, &mut errors),
        ("Event", _) => event(object, &mut errors),
        (kind, old) if server_rules::template_of(kind).is_some() && attempt.part == Part::Main => {
            workload(kind, old, object, &mut errors);
        }
        ("Lease", old) => lease(old, attempt.new, object, &mut errors),
        _ => {}
    }
    errors
}

fn workload(kind: &str, old: Option<&Value>, object: &mut Value, errors: &mut FieldErrors) {
    if old.is_none_or(|old| old.get("spec") != object.get("spec")) {
        next_generation(object);
    }
    if kind == "Job" && old.is_none() {
        server_rules::select_pods(object);
    }
    for error in &server_rules::problems(kind, old, object) {
        errors.push(error.clone());
    }
    let place = server_rules::template_of(kind).unwrap_or_default();
    let mut of_pod = FieldErrors::new();
    pod_rules::template(object.pointer(place).unwrap_or(&Value::Null), &mut of_pod);
    let outer = place.trim_start_matches('/').replace('/', ".");
    for error in &of_pod {
        let mut error = error.clone();
        error.field = format!("{outer}.{}", error.field);
        errors.push(error);
    }
}

fn node(old: Option<&Value>, node: &Value, errors: &mut FieldErrors) {
    let at = FieldPath::new("spec").child("taints").to_string();
    let at = FieldPath::new(&at);
    let taints = node.pointer("/spec/taints").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut seen = std::collections::BTreeSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let (at, key, effect) = (at.index(index), taint.text("/key"), taint.text("/effect"));
        check_format(NameFormat::LabelKey, key, &at.child("key"), errors);
        check_format(NameFormat::LabelValue, taint.text("/value"), &at.child("value"), errors);
        if effect.is_empty() {
            errors.push(FieldError::required(&at.child("effect"), ""));
        } else if !EFFECTS.contains(&effect) {
            errors.push(FieldError::not_supported(&at.child("effect"), effect, &EFFECTS));
        }
        if !seen.insert((key, effect)) {
            let mut error = FieldError::duplicate(&at, BadValue::literal(taint_in_go(taint)));
            "taints must be unique by key and effect pair".clone_into(&mut error.detail);
            errors.push(error);
        }
    }
    let kept = |node: &Value| node.text("/spec/providerID").to_owned();
    if old.is_some_and(|old| !kept(old).is_empty() && kept(old) != kept(node)) {
        let detail = "node updates may not change providerID except from \"\" to valid";
        let spec = FieldPath::new("spec");
        errors.push(FieldError::forbidden(&spec.child("providerID"), detail));
    }
}

fn taint_in_go(taint: &Value) -> String {
    let added = taint.get("timeAdded").unwrap_or(&Value::Null);
    let [key, value, effect] = ["/key", "/value", "/effect"].map(|field| json!(taint.text(field)));
    format!("{{\"Key\":{key},\"Value\":{value},\"Effect\":{effect},\"TimeAdded\":{added}}}")
}

fn event(event: &Value, errors: &mut FieldErrors) {
    let found = event.text("/involvedObject/namespace");
    // Events about objects of the cluster are in `default`.
    let namespace = event.metadata("namespace");
    if found != namespace && (found, namespace) != ("", "default") {
        let field = FieldPath::new("involvedObject").child("namespace").to_string();
        errors.push(FieldError::invalid(&FieldPath::new(&field), found, "does not match event.namespace"));
    }
}

fn lease(old: Option<&Value>, sent: &Value, lease: &Value, errors: &mut FieldErrors) {
    let spec = FieldPath::new("spec");
    let number = |field: &str| lease.pointer(&format!("/spec/{field}")).and_then(Value::as_i64);
    if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        errors.push(FieldError::invalid(&spec.child("leaseDurationSeconds"), seconds, "must be greater than 0"));
    }
    if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
        errors.push(FieldError::invalid(&spec.child("leaseTransitions"), count, "must be greater than or equal to 0"));
    }
    if old.is_some() && sent.metadata("resourceVersion").is_empty() {
        let metadata = FieldPath::new("metadata");
        errors.push(FieldError::invalid(&metadata.child("resourceVersion"), 0, "must be specified for an update"));
    }
}

/// Returns the class of a pod by its requests and limits of CPU and memory.
fn qos_class(pod: &Value) -> &'static str {
    let containers = ["containers", "initContainers"].map(|list| pod.pointer(&format!("/spec/{list}")));
    let containers: Vec<&Value> = containers.into_iter().flatten().filter_map(Value::as_array).flatten().collect();
    let amount = |container: &&Value, kind: &str, resource: &str| {
        container.pointer(&format!("/resources/{kind}/{resource}")).cloned()
    };
    let asks = |container: &&Value| {
        ["requests", "limits"]
            .iter()
            .any(|kind| ["cpu", "memory"].iter().any(|it| amount(container, kind, it).is_some()))
    };
    let is_guaranteed = |container: &&Value| {
        ["cpu", "memory"].iter().all(|resource| {
            let limit = amount(container, "limits", resource);
            limit.is_some() && amount(container, "requests", resource).is_none_or(|request| Some(request) == limit)
        })
    };
    match (containers.iter().any(asks), containers.iter().all(is_guaranteed)) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
