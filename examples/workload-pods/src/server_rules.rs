//! Rules of an API server for workloads: fields that it fills in, and writes that it refuses. The pod templates in them have rules of their
//! own, those of pods.

use std::collections::BTreeMap;

use dra_attrs::{BadValue, FieldError, FieldErrors, FieldPath, label_selector_matches};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

/// Field that is filled in: kind, place of the object that has it, name, value as JSON.
type FilledIn = (&'static str, &'static str, &'static str, &'static str);

const DEFAULTS: [FilledIn; 28] = [
    ("Deployment", "/spec", "replicas", "1"),
    ("Deployment", "/spec", "revisionHistoryLimit", "10"),
    ("Deployment", "/spec", "progressDeadlineSeconds", "600"),
    ("Deployment", "/spec", "strategy", "{}"),
    ("Deployment", "/spec/strategy", "type", r#""RollingUpdate""#),
    ("ReplicaSet", "/spec", "replicas", "1"),
    ("StatefulSet", "/spec", "replicas", "1"),
    ("StatefulSet", "/spec", "revisionHistoryLimit", "10"),
    ("StatefulSet", "/spec", "podManagementPolicy", r#""OrderedReady""#),
    ("StatefulSet", "/spec", "serviceName", r#""""#),
    (
        "StatefulSet",
        "/spec",
        "persistentVolumeClaimRetentionPolicy",
        r#"{"whenDeleted": "Retain", "whenScaled": "Retain"}"#,
    ),
    ("StatefulSet", "/spec", "updateStrategy", "{}"),
    ("StatefulSet", "/spec/updateStrategy", "type", r#""RollingUpdate""#),
    ("DaemonSet", "/spec", "revisionHistoryLimit", "10"),
    ("DaemonSet", "/spec", "updateStrategy", "{}"),
    ("DaemonSet", "/spec/updateStrategy", "type", r#""RollingUpdate""#),
    ("CronJob", "/spec", "concurrencyPolicy", r#""Allow""#),
    ("CronJob", "/spec", "suspend", "false"),
    ("CronJob", "/spec", "successfulJobsHistoryLimit", "3"),
    ("CronJob", "/spec", "failedJobsHistoryLimit", "1"),
    ("CronJob", "/spec/jobTemplate", "spec", "{}"),
    ("Job", "/spec", "backoffLimit", "6"),
    ("Job", "/spec", "completionMode", r#""NonIndexed""#),
    ("Job", "/spec", "suspend", "false"),
    ("Job", "/spec", "podReplacementPolicy", r#""TerminatingOrFailed""#),
    ("Job", "/spec", "parallelism", "1"),
    ("Job", "", "status", "{}"),
    ("Deployment", "", "status", "{}"),
];

/// Steps of a rollout, if it has some: kind, place, what is filled in.
const ROLLING: [(&str, &str, &str); 3] = [
    ("Deployment", "/spec/strategy", r#"{"maxUnavailable": "25%", "maxSurge": "25%"}"#),
    ("StatefulSet", "/spec/updateStrategy", r#"{"partition": 0}"#),
    ("DaemonSet", "/spec/updateStrategy", r#"{"maxUnavailable": 1, "maxSurge": 0}"#),
];

/// Kinds of workloads that run for ever: their pods start again whenever they end.
const ENDLESS: [&str; 4] = ["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"];

/// Labels of the pods of a job: its UID and its name, by the names that Kubernetes gave them first and gives them now.
const OF_UID: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];
const OF_NAME: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];

/// Returns the place of the pod template in objects of a kind; `None` if they are no workloads.
///
/// ```
/// assert_eq!(workload_pods::server_rules::template_of("Job"), Some("/spec/template"));
/// assert_eq!(workload_pods::server_rules::template_of("Pod"), None);
/// ```
#[must_use]
pub fn template_of(kind: &str) -> Option<&'static str> {
    match kind {
        "CronJob" => Some("/spec/jobTemplate/spec/template"),
        "Job" => Some("/spec/template"),
        kind => ENDLESS.contains(&kind).then_some("/spec/template"),
    }
}

/// Fills in what a workload lacks. Fields of its pod template are left to the rules of pods.
///
/// ```
/// let mut set = serde_json::json!({"spec": {"template": {}}});
/// workload_pods::server_rules::fill("ReplicaSet", &mut set);
/// assert_eq!(set.pointer("/spec/replicas"), Some(&1.into()));
/// ```
pub fn fill(kind: &str, object: &mut Value) {
    if kind == "Job" {
        one_at_a_time(object);
    }
    for (_, place, field, text) in DEFAULTS.iter().filter(|row| row.0 == kind) {
        default(object, place, field, text);
    }
    for (_, place, text) in ROLLING.iter().filter(|row| row.0 == kind) {
        if object.pointer(place).and_then(|strategy| strategy.get("type")) == Some(&json!("RollingUpdate")) {
            default(object, place, "rollingUpdate", text);
        }
    }
}

fn default(object: &mut Value, place: &str, field: &str, text: &str) {
    if let Some(Value::Object(fields)) = object.pointer_mut(place) {
        fields.entry(field).or_insert_with(|| serde_json::from_str(text).unwrap_or_default());
    }
}

/// A job that says nothing of its number has one pod that succeeds once.
fn one_at_a_time(job: &mut Value) {
    let says = |field: &str| job.pointer("/spec").is_some_and(|spec| spec.get(field).is_some());
    if !says("completions") && !says("parallelism") {
        default(job, "/spec", "completions", "1");
    }
}

/// Gives the pods of a new job labels with its name and UID, and the job a selector for them, unless it has one of its own.
pub fn select_pods(job: &mut Value) {
    let text = |field: &str| job.pointer(&format!("/metadata/{field}")).cloned().unwrap_or_default();
    let (uid, name) = (text("uid"), text("name"));
    if job.pointer("/spec/manualSelector") == Some(&json!(true)) {
        return;
    }
    for (place, field) in [("/spec/template", "metadata"), ("/spec/template/metadata", "labels"), ("/spec", "selector")]
    {
        default(job, place, field, "{}");
    }
    if let Some(Value::Object(labels)) = job.pointer_mut("/spec/template/metadata/labels") {
        labels.extend(OF_UID.map(|label| (label.to_owned(), uid.clone())));
        labels.extend(OF_NAME.map(|label| (label.to_owned(), name.clone())));
    }
    default(job, "/spec/selector", "matchLabels", "{}");
    if let Some(Value::Object(labels)) = job.pointer_mut("/spec/selector/matchLabels") {
        let [newest, _] = OF_UID;
        labels.insert(newest.to_owned(), uid);
    }
}

/// Returns the problems of a workload, of a new one or of a new version of `old`, without those of its pod template as a pod.
///
/// ```
/// let set = serde_json::json!({"spec": {"replicas": -1, "selector": {"matchLabels": {"a": "b"}},
///     "template": {"metadata": {"labels": {"a": "c"}}, "spec": {"restartPolicy": "Always"}}}});
/// let problems = workload_pods::server_rules::problems("ReplicaSet", None, &set);
/// let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
/// assert_eq!(fields, ["spec.replicas", "spec.template.metadata.labels"]);
/// ```
#[must_use]
pub fn problems(kind: &str, old: Option<&Value>, new: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let spec = FieldPath::new("spec");
    for field in ["replicas", "parallelism", "completions", "backoffLimit"] {
        let number = new.pointer(&format!("/spec/{field}")).and_then(Value::as_i64);
        if let Some(number) = number.filter(|number| *number < 0) {
            errors.push(FieldError::invalid(&spec.child(field), number, "must be greater than or equal to 0"));
        }
    }
    if ENDLESS.contains(&kind) {
        selector(kind, new, &spec, &mut errors);
    }
    restart_policy(kind, new, &mut errors);
    let fixed: &[&str] = if kind == "Job" { &["selector", "template", "completionMode"] } else { &["selector"] };
    for field in fixed.iter().filter(|_| kind != "CronJob") {
        let of = |object: &Value| object.pointer(&format!("/spec/{field}")).cloned().unwrap_or_default();
        if old.is_some_and(|old| of(old) != of(new)) {
            let value = BadValue::literal(of(new).to_string());
            errors.push(FieldError::invalid(&spec.child(field), value, "field is immutable"));
        }
    }
    errors
}

/// Pods of a workload that runs for ever must be those that it selects.
fn selector(kind: &str, object: &Value, spec: &FieldPath<'_>, errors: &mut FieldErrors) {
    let given = object.pointer("/spec/selector").cloned().unwrap_or_default();
    let selector: LabelSelector = serde_json::from_value(given.clone()).unwrap_or_default();
    if selector == LabelSelector::default() {
        let problem = format!("empty selector is invalid for {}", kind.to_lowercase());
        errors.push(FieldError::invalid(&spec.child("selector"), BadValue::literal(given.to_string()), problem));
        return;
    }
    let labels = object.pointer("/spec/template/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    let read: BTreeMap<String, String> = serde_json::from_value(labels.clone()).unwrap_or_default();
    if !label_selector_matches(&selector, &read).unwrap_or(false) {
        let template = spec.child("template").to_string();
        let metadata = FieldPath::new(&template).child("metadata").to_string();
        let at = FieldPath::new(&metadata);
        let problem = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(&at.child("labels"), BadValue::literal(labels.to_string()), problem));
    }
}

fn restart_policy(kind: &str, object: &Value, errors: &mut FieldErrors) {
    let Some(place) = template_of(kind) else { return };
    let given = object.pointer(place).and_then(|template| template.pointer("/spec/restartPolicy"));
    let given = given.and_then(Value::as_str).unwrap_or_default();
    let field = format!("{}.spec", place.trim_start_matches('/').replace('/', "."));
    let spec = FieldPath::new(&field);
    let at = spec.child("restartPolicy");
    match (ENDLESS.contains(&kind), given) {
        (true, "Always") | (false, "OnFailure" | "Never") => {}
        (true, given) => errors.push(FieldError::not_supported(&at, given, &["Always"])),
        (false, "" | "Always") => errors.push(FieldError::required(&at, "valid values: \"OnFailure\", \"Never\"")),
        (false, given) => errors.push(FieldError::not_supported(&at, given, &["OnFailure", "Never"])),
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn job(spec: &Value) -> Value {
        let mut job = json!({"metadata": {"name": "j", "uid": "u"}, "spec": spec});
        job["spec"]["template"] = json!({"spec": {"restartPolicy": "Never"}});
        fill("Job", &mut job);
        job
    }

    #[test]
    fn a_job_has_one_pod_unless_it_says_a_number() {
        let numbers = |spec: Value| {
            let job = job(&spec);
            (job["spec"].get("completions").cloned(), job["spec"]["parallelism"].clone())
        };
        assert_eq!(numbers(json!({})), (Some(json!(1)), json!(1)));
        assert_eq!(numbers(json!({"completions": 3})), (Some(json!(3)), json!(1)));
        assert_eq!(numbers(json!({"parallelism": 3})), (None, json!(3)));
    }

    #[test]
    fn the_pods_of_a_job_are_selected_by_its_uid() {
        let mut made = job(&json!({}));
        select_pods(&mut made);
        assert_eq!(made["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"], "u");
        assert_eq!(made["spec"]["template"]["metadata"]["labels"]["job-name"], "j");
        let mut own = job(&json!({"manualSelector": true}));
        select_pods(&mut own);
        assert_eq!(own["spec"].get("selector"), None);
    }

    #[test]
    fn rules_differ_by_kind() {
        let template = |policy: &str| json!({"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": policy}});
        let set =
            |policy: &str| json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template(policy)}});
        let told = |kind: &str, old: Option<&Value>, new: &Value| -> Vec<String> {
            problems(kind, old, new).iter().map(ToString::to_string).collect()
        };
        assert_eq!(told("Deployment", None, &set("Always")), [""; 0]);
        assert_eq!(
            told("DaemonSet", None, &set("Never")),
            ["spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\""]
        );
        assert_eq!(
            told("Job", None, &set("Always")),
            ["spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""]
        );
        let mut other = set("Always");
        other["spec"]["selector"] = json!({});
        assert_eq!(
            told("ReplicaSet", Some(&set("Always")), &other),
            [
                "spec.selector: Invalid value: {}: empty selector is invalid for replicaset",
                "spec.selector: Invalid value: {}: field is immutable"
            ]
        );
    }

    #[test]
    fn a_rollout_in_steps_has_its_numbers() {
        let mut set = json!({"spec": {"updateStrategy": {"type": "OnDelete"}}});
        fill("DaemonSet", &mut set);
        assert_eq!(set["spec"]["updateStrategy"], json!({"type": "OnDelete"}));
        let mut web = json!({"spec": {}});
        fill("Deployment", &mut web);
        assert_eq!(web["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");
    }
}
