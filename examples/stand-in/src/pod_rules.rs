//! Rules of pods that programs around devices meet, in the order in which a real API server looks at them.

use std::collections::BTreeSet;

use dra_attrs::{BadValue, FieldError, FieldErrors, FieldPath, NameFormat};
use object_patches::Object;
use serde_json::Value;

use crate::defaults::CONTAINERS;
use crate::go_values;
use crate::metadata::{check_format, check_label};

/// Field of a specification with the values that it may have.
type Choice = (&'static str, &'static [&'static str]);

const POD_CHOICES: [Choice; 2] = [
    ("restartPolicy", &["Always", "OnFailure", "Never"]),
    ("dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]),
];

const CONTAINER_CHOICES: [Choice; 2] = [
    ("imagePullPolicy", &["Always", "IfNotPresent", "Never"]),
    ("terminationMessagePolicy", &["FallbackToLogsOnError", "File"]),
];

/// Fields of a pod that an update may change.
const CHANGEABLE: [&str; 4] =
    ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"];

const FIXED: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
    `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Returns the entries of a list.
fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn names(entries: &[Value]) -> BTreeSet<&str> {
    entries.iter().map(|entry| entry.text("/name")).filter(|name| !name.is_empty()).collect()
}

/// Names that the containers of a pod may use.
struct Named<'p> {
    claims: BTreeSet<&'p str>,
    volumes: BTreeSet<&'p str>,
}

/// Checks a new pod.
pub(crate) fn create(pod: &Value, errors: &mut FieldErrors) {
    of_spec(pod, Some(pod.metadata("name")), errors);
}

/// Checks the template of a workload's pods, whose names nobody knows yet.
pub(crate) fn template(template: &Value, errors: &mut FieldErrors) {
    of_spec(template, None, errors);
}

fn of_spec(pod: &Value, name: Option<&str>, errors: &mut FieldErrors) {
    let (spec, at) = (pod.get("spec").unwrap_or(&Value::Null), FieldPath::new("spec"));
    unique_labels(list(spec, "volumes"), &at.child("volumes"), errors);
    claims(name, list(spec, "resourceClaims"), &at.child("resourceClaims"), errors);
    let named = Named { claims: names(list(spec, "resourceClaims")), volumes: names(list(spec, "volumes")) };
    containers(spec, &named, &at, errors);
    for (field, choices) in POD_CHOICES {
        chosen(spec, field, choices, &at, errors);
    }
    selector_of_nodes(spec, &at.child("nodeSelector"), errors);
    gates(list(spec, "schedulingGates"), &at.child("schedulingGates"), errors);
    for (field, format) in [("serviceAccountName", NameFormat::Subdomain), ("nodeName", NameFormat::Subdomain)] {
        let name = spec.text(&format!("/{field}"));
        if !name.is_empty() {
            check_format(format, name, &at.child(field), errors);
        }
    }
    if !spec.text("/nodeName").is_empty() && !list(spec, "schedulingGates").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&at.child("nodeName"), detail));
    }
    tolerations(list(spec, "tolerations"), &at.child("tolerations"), errors);
}

/// Checks names that are labels and differ.
fn unique_labels(entries: &[Value], at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (index, entry) in entries.iter().enumerate() {
        let at = at.index(index);
        label(entry.text("/name"), &at.child("name"), &mut seen, errors);
    }
}

fn label<'n>(name: &'n str, at: &FieldPath<'_>, seen: &mut BTreeSet<&'n str>, errors: &mut FieldErrors) {
    if name.is_empty() {
        return errors.push(FieldError::required(at, ""));
    }
    check_format(NameFormat::Label, name, at, errors);
    if !seen.insert(name) {
        errors.push(FieldError::duplicate(at, name));
    }
}

fn claims(pod: Option<&str>, claims: &[Value], at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let at = at.index(index);
        let (name, at_name) = (claim.text("/name"), at.child("name"));
        let sources = ["resourceClaimName", "resourceClaimTemplateName"].map(|field| (field, claim.get(field)));
        let maker = pod.filter(|_| claim.get("resourceClaimTemplateName").is_some());
        let problems = NameFormat::Label.problems(name);
        if name.is_empty() {
            errors.push(FieldError::required(&at_name, ""));
        } else if !seen.insert(name) {
            errors.push(FieldError::duplicate(&at_name, name));
        } else if let Some(pod) = maker.filter(|_| problems.is_empty()) {
            let made = format!("{pod}-{name}");
            for problem in NameFormat::Subdomain.problems(&made) {
                let detail = format!("final ResourceClaim name: {problem}");
                errors.push(FieldError::invalid(&at_name, made.as_str(), detail));
            }
        } else {
            check_format(NameFormat::Label, name, &at_name, errors);
        }
        let detail = match sources.iter().filter(|(_, source)| source.is_some()).count() {
            0 => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => None,
            _ => Some("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
        };
        if let Some(detail) = detail {
            errors.push(FieldError::invalid(&at, go_values::pod_claim(claim), detail));
        }
        for (field, source) in sources {
            let Some(name) = source.and_then(Value::as_str) else { continue };
            check_format(NameFormat::Subdomain, name, &at.child(field), errors);
        }
    }
}

fn containers(spec: &Value, named: &Named<'_>, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    if list(spec, "containers").is_empty() {
        errors.push(FieldError::required(&at.child("containers"), ""));
    }
    let mut seen = BTreeSet::new();
    for field in ["containers", "initContainers"] {
        let at = at.child(field);
        for (index, container) in list(spec, field).iter().enumerate() {
            let at = at.index(index);
            label(container.text("/name"), &at.child("name"), &mut seen, errors);
            check_container(container, named, &at, errors);
        }
    }
}

fn check_container(container: &Value, named: &Named<'_>, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let image = container.text("/image");
    if image.trim().is_empty() {
        errors.push(FieldError::required(&at.child("image"), ""));
    } else if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid(&at.child("image"), image, detail));
    }
    for (field, choices) in CONTAINER_CHOICES {
        chosen(container, field, choices, at, errors);
    }
    let at_mounts = at.child("volumeMounts");
    let mut paths = BTreeSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let (at, name, path) = (at_mounts.index(index), mount.text("/name"), mount.text("/mountPath"));
        match name {
            "" => errors.push(FieldError::required(&at.child("name"), "")),
            name if !named.volumes.contains(name) => errors.push(FieldError::not_found(&at.child("name"), name)),
            _ => {}
        }
        match path {
            "" => errors.push(FieldError::required(&at.child("mountPath"), "")),
            path if !paths.insert(path) => {
                errors.push(FieldError::invalid(&at.child("mountPath"), path, "must be unique"));
            }
            _ => {}
        }
    }
    if let Some(resources) = container.get("resources") {
        used_claims(list(resources, "claims"), named, &at.child("resources").child("claims"), errors);
    }
}

fn used_claims(used: &[Value], named: &Named<'_>, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (index, claim) in used.iter().enumerate() {
        let (at, name, request) = (at.index(index), claim.text("/name"), claim.text("/request"));
        if name.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }
        if !seen.insert((name, request)) {
            let shown = if request.is_empty() { name.to_owned() } else { format!("{name}/{request}") };
            errors.push(FieldError::duplicate(&at, shown));
        }
        if !named.claims.contains(name) {
            let known: Vec<&str> = named.claims.iter().copied().collect();
            let known = if known.is_empty() { " which is empty".to_owned() } else { format!(": {}", known.join(", ")) };
            let mut error = FieldError::not_found(&at, name);
            error.detail = format!("must be one of the names in pod.spec.resourceClaims{known}");
            errors.push(error);
        }
    }
}

fn chosen(object: &Value, field: &str, choices: &[&str], at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let value = object.text(&format!("/{field}"));
    if value.is_empty() {
        errors.push(FieldError::required(&at.child(field), ""));
    } else if !choices.contains(&value) {
        let mut sorted = choices.to_vec();
        sorted.sort_unstable();
        errors.push(FieldError::not_supported(&at.child(field), value, &sorted));
    }
}

fn selector_of_nodes(spec: &Value, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (key, value) in spec.get("nodeSelector").and_then(Value::as_object).into_iter().flatten() {
        check_label(key, value, at, errors);
    }
}

fn gates(gates: &[Value], at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (index, gate) in gates.iter().enumerate() {
        let (at, name) = (at.index(index), gate.text("/name"));
        check_format(NameFormat::LabelKey, name, &at, errors);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&at, name));
        }
    }
}

fn tolerations(tolerations: &[Value], at: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, toleration) in tolerations.iter().enumerate() {
        let at = at.index(index);
        let [key, operator, value, effect] =
            ["/key", "/operator", "/value", "/effect"].map(|field| toleration.text(field));
        if !key.is_empty() {
            check_format(NameFormat::LabelKey, key, &at.child("key"), errors);
        } else if operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(&at.child("operator"), operator, detail));
        }
        if toleration.get("tolerationSeconds").is_some() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(&at.child("effect"), effect, detail));
        }
        match operator {
            "" | "Equal" => {
                check_format(NameFormat::LabelValue, value, &at.child("operator"), errors);
            }
            "Exists" if !value.is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                let shown = BadValue::from(value);
                errors.push(FieldError::invalid(&at.child("operator"), shown, detail));
            }
            "Exists" => {}
            other => errors.push(FieldError::not_supported(&at.child("operator"), other, &["Equal", "Exists"])),
        }
        if !effect.is_empty() && !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
            let choices = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            errors.push(FieldError::not_supported(&at.child("effect"), effect, &choices));
        }
    }
}

/// Checks a change of the specification of a pod.
pub(crate) fn update(old: &Value, new: &Value, errors: &mut FieldErrors) {
    let at = FieldPath::new("spec");
    for field in ["containers", "initContainers"] {
        let count = |pod: &Value| pod.get("spec").map_or(0, |spec| list(spec, field).len());
        if count(old) != count(new) {
            return errors
                .push(FieldError::forbidden(&at.child(field), "pod updates may not add or remove containers"));
        }
        for (index, container) in new.get("spec").map(|spec| list(spec, field)).unwrap_or_default().iter().enumerate() {
            if container.text("/image").is_empty() {
                let (at, spec) = (at.child(field), "image");
                errors.push(FieldError::required(&at.index(index).child(spec), ""));
            }
        }
    }
    deadline(old, new, &at.child("activeDeadlineSeconds"), errors);
    kept_tolerations(old, new, &at.child("tolerations"), errors);
    fewer_gates(old, new, &at.child("schedulingGates"), errors);
    if errors.is_empty() && fixed(old) != fixed(new) {
        errors.push(FieldError::forbidden(&at, FIXED));
    }
}

fn deadline(old: &Value, new: &Value, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let seconds = |pod: &Value| pod.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64);
    match (seconds(old), seconds(new)) {
        (_, Some(new)) if new <= 0 => {
            errors.push(FieldError::invalid(at, new, "must be between 1 and 2147483647, inclusive"));
        }
        (Some(old), Some(new)) if new > old => {
            errors.push(FieldError::invalid(at, new, "must be less than or equal to previous value"));
        }
        (Some(_), None) => {
            errors.push(FieldError::invalid(
                at,
                BadValue::literal("null"),
                "must not update from a positive integer to nil value",
            ));
        }
        _ => {}
    }
}

/// A pod's tolerations may become more, and not other ones.
fn kept_tolerations(old: &Value, new: &Value, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let of = |pod: &Value| pod.get("spec").map(|spec| list(spec, "tolerations").to_vec()).unwrap_or_default();
    let (old, new) = (of(old), of(new));
    let same = |one: &Value, other: &Value| {
        ["key", "operator", "value", "effect"].iter().all(|field| one.get(*field) == other.get(*field))
    };
    if !old.iter().all(|toleration| new.iter().any(|it| same(it, toleration))) {
        errors.push(FieldError::forbidden(at, "existing toleration can not be modified except its tolerationSeconds"));
    }
}

fn fewer_gates(old: &Value, new: &Value, at: &FieldPath<'_>, errors: &mut FieldErrors) {
    let of = |pod: &Value| -> BTreeSet<String> {
        let gates = pod.get("spec").map(|spec| list(spec, "schedulingGates")).unwrap_or_default();
        gates.iter().map(|gate| gate.text("/name").to_owned()).collect()
    };
    let (old, new) = (of(old), of(new));
    let added: Vec<&String> = new.difference(&old).collect();
    if let Some(first) = added.first() {
        let detail = format!("only deletion is allowed, but found new scheduling gate '{first}'");
        errors.push(FieldError::forbidden(at, detail));
    }
}

/// Returns what an update of a pod may not change.
fn fixed(pod: &Value) -> Value {
    let mut spec = pod.get("spec").cloned().unwrap_or_default();
    for field in CHANGEABLE {
        spec.fields().remove(field);
    }
    for list in CONTAINERS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container.fields().remove("image");
        }
    }
    spec
}
