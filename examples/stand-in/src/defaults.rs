//! Fields that a real API server fills in when it reads an object of a kind that is no device's, one row each.

use object_patches::{MAPS, Object};
use serde_json::{Value, json};

/// Lists of containers of a pod.
pub(crate) const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Kinds of probes of a container.
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// Volumes whose files have a mode.
const WITH_MODE: [&str; 4] = ["secret", "configMap", "downwardAPI", "projected"];

/// Fields of a node's information, which is there even if it is empty.
const NODE_INFO: [&str; 10] = [
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
];

/// Sets a field that is missing.
fn default(object: &mut Value, field: &str, value: Value) {
    object.fields().entry(field).or_insert(value);
}

/// Returns the entries of a list in an object.
pub(crate) fn entries<'v>(object: &'v mut Value, field: &str) -> &'v mut [Value] {
    object.get_mut(field).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}

/// Fills in what an object of a kind lacks. Objects about devices have a door of their own.
pub(crate) fn fill(kind: &str, object: &mut Value) {
    match kind {
        "Pod" => pod(object),
        "Node" => node(object),
        "Namespace" => namespace(object),
        "Event" => event(object),
        "Lease" => default(object, "spec", json!({})),
        _ => workload(kind, object),
    }
}

fn workload(kind: &str, object: &mut Value) {
    workload_pods::server_rules::fill(kind, object);
    let template = workload_pods::server_rules::template_of(kind).and_then(|place| object.pointer_mut(place));
    if let Some(template) = template {
        default(template, "metadata", json!({}));
        pod_spec(template);
    }
}

/// Fills in the specification of a pod or of a pod template.
fn pod_spec(pod: &mut Value) {
    let spec = pod.fields().entry("spec").or_insert_with(|| json!({}));
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("securityContext", json!({})),
        ("enableServiceLinks", json!(true)),
    ] {
        default(spec, field, value);
    }
    // Two names of one field.
    let account = [spec.text("/serviceAccountName"), spec.text("/serviceAccount")].concat();
    if !account.is_empty() {
        let named = if spec.text("/serviceAccountName").is_empty() {
            account
        } else {
            spec.text("/serviceAccountName").to_owned()
        };
        spec.set_field("serviceAccountName", named.clone());
        spec.set_field("serviceAccount", named);
    }
    let is_on_host = spec.get("hostNetwork") == Some(&json!(true));
    for list in CONTAINERS {
        for it in entries(spec, list) {
            container(it, is_on_host);
        }
    }
    entries(spec, "volumes").iter_mut().for_each(volume);
}

fn pod(pod: &mut Value) {
    pod_spec(pod);
    let status = pod.fields().entry("status").or_insert_with(|| json!({}));
    for condition in entries(status, "conditions") {
        default(condition, "lastProbeTime", Value::Null);
        default(condition, "lastTransitionTime", Value::Null);
    }
}

fn container(container: &mut Value, is_on_host: bool) {
    let image = container.text("/image");
    let tag = image.rsplit('/').next().unwrap_or_default();
    let is_newest = !image.contains('@') && tag.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    let pull = if is_newest { "Always" } else { "IfNotPresent" };
    for (field, value) in [
        ("imagePullPolicy", json!(pull)),
        ("terminationMessagePath", json!("/dev/termination-log")),
        ("terminationMessagePolicy", json!("File")),
        ("resources", json!({})),
    ] {
        default(container, field, value);
    }
    for port in entries(container, "ports") {
        default(port, "protocol", json!("TCP"));
        if let (true, Some(number)) = (is_on_host, port.get("containerPort").cloned()) {
            default(port, "hostPort", number);
        }
    }
    for variable in entries(container, "env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            default(field, "apiVersion", json!("v1"));
        }
    }
    for probe in PROBES {
        if let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) {
            for (field, value) in
                [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
            {
                default(probe, field, json!(value));
            }
            http_get(probe);
        }
    }
    for moment in ["/lifecycle/postStart", "/lifecycle/preStop"] {
        if let Some(handler) = container.pointer_mut(moment) {
            http_get(handler);
        }
    }
    requests_from_limits(container);
}

fn http_get(handler: &mut Value) {
    if let Some(get) = handler.get_mut("httpGet").filter(|get| get.is_object()) {
        default(get, "path", json!("/"));
        default(get, "scheme", json!("HTTP"));
    }
    if let Some(call) = handler.get_mut("grpc").filter(|call| call.is_object()) {
        default(call, "service", json!(""));
    }
}

/// A limit without a request is the request, too.
fn requests_from_limits(container: &mut Value) {
    let Some(resources) = container.get_mut("resources") else { return };
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else { return };
    let requests = resources.fields().entry("requests").or_insert_with(|| json!({}));
    for (resource, amount) in limits {
        default(requests, &resource, amount);
    }
}

fn volume(volume: &mut Value) {
    if volume.as_object().is_some_and(|fields| fields.keys().all(|field| field == "name")) {
        default(volume, "emptyDir", json!({}));
    }
    for source in WITH_MODE {
        if let Some(source) = volume.get_mut(source).filter(|source| source.is_object()) {
            default(source, "defaultMode", json!(0o644));
        }
    }
    if let Some(path) = volume.get_mut("hostPath").filter(|path| path.is_object()) {
        default(path, "type", json!(""));
    }
    let sources = volume.get_mut("projected").map(|projected| entries(projected, "sources")).unwrap_or_default();
    for source in sources {
        if let Some(token) = source.get_mut("serviceAccountToken").filter(|token| token.is_object()) {
            default(token, "expirationSeconds", json!(3600));
        }
        for item in source.get_mut("downwardAPI").map(|source| entries(source, "items")).unwrap_or_default() {
            if let Some(field) = item.get_mut("fieldRef") {
                default(field, "apiVersion", json!("v1"));
            }
        }
    }
}

fn node(node: &mut Value) {
    default(node, "spec", json!({}));
    default(node, "status", json!({}));
    let Some(status) = node.get_mut("status") else { return };
    if let Some(capacity) = status.get("capacity").cloned() {
        default(status, "allocatable", capacity);
    }
    default(status, "daemonEndpoints", json!({"kubeletEndpoint": {"Port": 0}}));
    default(status, "nodeInfo", json!({}));
    if let Some(info) = status.get_mut("nodeInfo") {
        for field in NODE_INFO {
            default(info, field, json!(""));
        }
    }
    for condition in entries(status, "conditions") {
        default(condition, "lastHeartbeatTime", Value::Null);
        default(condition, "lastTransitionTime", Value::Null);
    }
}

fn namespace(namespace: &mut Value) {
    let name = namespace.metadata("name").to_owned();
    if !name.is_empty() {
        let labels = namespace.fields().entry("metadata").or_insert_with(|| json!({}));
        let labels = labels.fields().entry("labels").or_insert_with(|| json!({}));
        labels.set_field("kubernetes.io/metadata.name", name);
    }
    default(namespace, "spec", json!({}));
    default(namespace, "status", json!({}));
    if let Some(status) = namespace.get_mut("status") {
        default(status, "phase", json!("Active"));
    }
}

fn event(event: &mut Value) {
    for (field, value) in [
        ("source", json!({})),
        ("involvedObject", json!({})),
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("eventTime", Value::Null),
        ("reportingComponent", json!("")),
        ("reportingInstance", json!("")),
    ] {
        default(event, field, value);
    }
}

/// Lists that are written even if they are empty.
const KEPT_EMPTY: [&str; 2] = ["containers", "nodeSelectorTerms"];

/// Removes empty lists and maps, which a real server does not write. What a driver or a user has chosen stays as it is.
pub(crate) fn omit_empty(object: &mut Value) {
    match object {
        Value::Object(fields) => {
            fields.retain(|field, value| match value {
                Value::Array(list) => !list.is_empty() || KEPT_EMPTY.contains(&field.as_str()),
                Value::Object(map) => !map.is_empty() || !MAPS.contains(&field.as_str()),
                _ => true,
            });
            for (_, value) in fields.iter_mut().filter(|(field, _)| *field != "parameters" && *field != "data") {
                omit_empty(value);
            }
        }
        Value::Array(list) => {
            for value in list {
                omit_empty(value);
            }
        }
        _ => {}
    }
}
