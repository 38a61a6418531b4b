//! Tables, which `kubectl get` asks for.

use k8s_openapi::jiff::Timestamp;
use object_patches::Object;
use serde_json::{Value, json};

use crate::kinds::Kind;

/// Returns a cell of an object.
type Cell = fn(&Value, Timestamp) -> Value;

/// Column between the name and the age.
type Column = (&'static str, Importance, Cell);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Importance {
    Always,
    /// Shown with `-o wide`.
    Wide,
}

use Importance::{Always, Wide};

fn columns(kind: &Kind) -> &'static [Column] {
    match kind.name {
        "Node" => &[
            ("Status", Always, node_status),
            ("Version", Always, |node, _| shown(node, "/status/nodeInfo/kubeletVersion")),
        ],
        "Namespace" => &[("Status", Always, |namespace, _| shown(namespace, "/status/phase"))],
        "Pod" => &[
            ("Ready", Always, pod_ready),
            ("Status", Always, pod_status),
            ("Restarts", Always, |_, _| json!(0)),
            ("Node", Wide, |pod, _| shown(pod, "/spec/nodeName")),
            ("Nominated Node", Wide, |pod, _| shown(pod, "/status/nominatedNodeName")),
        ],
        "Event" => &[
            ("Last Seen", Always, |event, now| age(event.text("/lastTimestamp"), now)),
            ("Type", Always, |event, _| shown(event, "/type")),
            ("Reason", Always, |event, _| shown(event, "/reason")),
            ("Object", Always, |event, _| {
                let kind = event.text("/involvedObject/kind").to_lowercase();
                json!(format!("{kind}/{}", event.text("/involvedObject/name")))
            }),
            ("Message", Always, |event, _| shown(event, "/message")),
        ],
        "Deployment" => &[
            ("Ready", Always, |it, _| of_wanted(it, "/status/readyReplicas", "/spec/replicas")),
            ("Up-to-date", Always, |it, _| number(it, "/status/updatedReplicas")),
            ("Available", Always, |it, _| number(it, "/status/availableReplicas")),
        ],
        "ReplicaSet" => &[
            ("Desired", Always, |it, _| number(it, "/spec/replicas")),
            ("Current", Always, |it, _| number(it, "/status/replicas")),
            ("Ready", Always, |it, _| number(it, "/status/readyReplicas")),
        ],
        "StatefulSet" => &[("Ready", Always, |it, _| of_wanted(it, "/status/readyReplicas", "/spec/replicas"))],
        "DaemonSet" => &[
            ("Desired", Always, |it, _| number(it, "/status/desiredNumberScheduled")),
            ("Current", Always, |it, _| number(it, "/status/currentNumberScheduled")),
            ("Ready", Always, |it, _| number(it, "/status/numberReady")),
            ("Up-to-date", Always, |it, _| number(it, "/status/updatedNumberScheduled")),
            ("Available", Always, |it, _| number(it, "/status/numberAvailable")),
        ],
        "Job" => &[
            ("Status", Always, job_status),
            ("Completions", Always, |it, _| of_wanted(it, "/status/succeeded", "/spec/completions")),
        ],
        "CronJob" => &[("Schedule", Always, |it, _| shown(it, "/spec/schedule"))],
        "Lease" => &[("Holder", Always, |lease, _| shown(lease, "/spec/holderIdentity"))],
        "ResourceClaim" => &[("State", Always, claim_state)],
        "ResourceSlice" => &[
            ("Node", Always, |slice, _| shown(slice, "/spec/nodeName")),
            ("Driver", Always, |slice, _| shown(slice, "/spec/driver")),
            ("Pool", Always, |slice, _| shown(slice, "/spec/pool/name")),
        ],
        _ => &[],
    }
}

/// Returns the table of some objects, with the metadata of their list.
pub(crate) fn table<'a>(
    kind: &Kind,
    objects: impl Iterator<Item = &'a Value>,
    metadata: &Value,
    now: Timestamp,
) -> Value {
    let columns = columns(kind);
    let has_age = kind.name != "Event";
    let definition = |name: &str, kind: &str, importance: Importance| {
        let format = if name == "Name" { "name" } else { "" };
        json!({"name": name, "type": kind, "format": format, "description": name, "priority": i32::from(importance == Wide)})
    };
    let mut definitions: Vec<Value> = Vec::new();
    // Events have no name that says anything.
    if has_age {
        definitions.push(definition("Name", "string", Always));
    }
    definitions.extend(columns.iter().map(|(name, importance, _)| definition(name, "string", *importance)));
    if has_age {
        definitions.push(definition("Age", "string", Always));
    }
    let row = |object: &Value| {
        let mut cells: Vec<Value> = Vec::new();
        if has_age {
            cells.push(object.metadata("name").into());
        }
        cells.extend(columns.iter().map(|(_, _, cell)| cell(object, now)));
        if has_age {
            cells.push(age(object.metadata("creationTimestamp"), now));
        }
        let mut metadata = object.get("metadata").cloned().unwrap_or_default();
        if let Ok(managers) = serde_json::from_str::<Value>(metadata.text("/managedFields")) {
            metadata.set_field("managedFields", managers);
        }
        let partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
        json!({"cells": cells, "object": partial})
    };
    let rows: Vec<Value> = objects.map(row).collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": definitions, "rows": rows,
    })
}

fn shown(object: &Value, pointer: &str) -> Value {
    match object.text(pointer) {
        "" => json!("<none>"),
        text => json!(text),
    }
}

/// Returns a number; an absent one is 0.
fn number(object: &Value, pointer: &str) -> Value {
    object.pointer(pointer).cloned().unwrap_or_else(|| json!(0))
}

/// Returns a number beside the one that is wanted.
fn of_wanted(object: &Value, pointer: &str, wanted: &str) -> Value {
    json!(format!("{}/{}", number(object, pointer), object.pointer(wanted).cloned().unwrap_or_else(|| json!(1))))
}

fn job_status(job: &Value, _: Timestamp) -> Value {
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let mut ended = conditions.map(|it| it.text("/type")).filter(|kind| ["Complete", "Failed"].contains(kind));
    let is_held = job.pointer("/spec/suspend") == Some(&Value::Bool(true));
    json!(ended.next().unwrap_or(if is_held { "Suspended" } else { "Running" }))
}

fn node_status(node: &Value, _: Timestamp) -> Value {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().find(|condition| condition.text("/type") == "Ready");
    let ready = match ready.map(|condition| condition.text("/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let is_cordoned = node.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
    json!(if is_cordoned { format!("{ready},SchedulingDisabled") } else { ready.to_owned() })
}

fn pod_ready(pod: &Value, _: Timestamp) -> Value {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array).map_or(0, Vec::len);
    let statuses = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
    let is_ready = |status: &&Value| status.get("ready") == Some(&Value::Bool(true));
    let ready = statuses.into_iter().flatten().filter(is_ready).count();
    json!(format!("{ready}/{containers}"))
}

fn pod_status(pod: &Value, _: Timestamp) -> Value {
    if pod.is_terminating() { json!("Terminating") } else { shown(pod, "/status/phase") }
}

/// Returns the state of a claim as the printer of Kubernetes names it.
fn claim_state(claim: &Value, _: Timestamp) -> Value {
    let mut states = Vec::new();
    if claim.is_terminating() {
        states.push("deleted");
    }
    if claim.pointer("/status/allocation").is_none() {
        states.push("pending");
    } else {
        states.push("allocated");
        if claim.pointer("/status/reservedFor").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
            states.push("reserved");
        }
    }
    json!(states.join(","))
}

/// Returns the time since an instant in the form of kubectl.
fn age(since: &str, now: Timestamp) -> Value {
    let Ok(since) = since.parse::<Timestamp>() else { return json!("<unknown>") };
    let seconds = now.as_second().saturating_sub(since.as_second()).max(0);
    json!(match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    })
}
