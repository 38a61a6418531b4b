//! Door of the store: an object goes in as a real API server would store it, with defaults filled in, or not at all.
//!
//! Objects of Dynamic Resource Allocation are validated by `dra_alloc::validate` and `poolstatus`. Of pods, nodes, events
//! and leases only the types of the fields and the names are checked, and what may not change of a pod.

use dra_alloc::validate::{Accepted, ApiServer, NamespaceAccess, Write};
use dra_attrs::{Component, ErrorType, FieldError, FieldErrors, FieldPath, Gate, GateSet, NameFormat, Profile};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Pod};
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
use k8s_openapi::jiff::Timestamp;
use poolstatus::StatusRequest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::kinds::{Kind, RESOURCE};
use crate::object::Object;
use crate::refusal::Refusal;

/// Part of an object that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All but the status.
    Main,
    /// The status alone.
    Status,
}

/// Write of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) kind: &'static Kind,
    pub(crate) part: Part,
    pub(crate) old: Option<&'a Value>,
    /// The object as it shall be, with the metadata that the server sets.
    pub(crate) new: &'a Value,
    /// Namespace of the object as stored.
    pub(crate) namespace: Option<&'a Value>,
    pub(crate) now: Timestamp,
}

/// Object as it is stored, with what the client is told.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    pub(crate) object: Value,
    pub(crate) warnings: Vec<String>,
}

/// Profile and gates of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Door {
    pub(crate) profile: Profile,
    pub(crate) gates: GateSet,
    pub(crate) pool_status: GateSet,
}

/// Fields of a pod that an update may change.
const CHANGEABLE: [&str; 4] =
    ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"];

impl Door {
    /// Returns the object that is stored.
    ///
    /// # Errors
    /// The object is malformed or invalid.
    pub(crate) fn admit(self, attempt: Attempt<'_>) -> Result<Admitted, Refusal> {
        let Attempt { kind, part, now, .. } = attempt;
        let mut server = ApiServer::new(Component::new(self.profile, self.gates)).with_now(now);
        if let Some(namespace) = attempt.namespace {
            let namespace: Namespace = typed(kind, namespace)?;
            server = server.with_namespace(NamespaceAccess::from_namespace(&namespace));
        }
        match (kind.name, part) {
            ("ResourceSlice", _) => device(self, attempt, |write| server.validate_slice(write)),
            ("ResourceClaim", Part::Main) => device(self, attempt, |write| server.validate_claim(write)),
            ("ResourceClaim", Part::Status) => device(self, attempt, |write| server.validate_claim_status(write)),
            ("ResourceClaimTemplate", _) => device(self, attempt, |write| server.validate_claim_template(write)),
            ("DeviceClass", _) => device(self, attempt, |write| server.validate_class(write)),
            ("DeviceTaintRule", Part::Main) => device(self, attempt, |write| server.validate_taint_rule(write)),
            ("DeviceTaintRule", Part::Status) => {
                device(self, attempt, |write| server.validate_taint_rule_status(write))
            }
            ("ResourcePoolStatusRequest", _) => self.pool_status_request(attempt),
            ("Pod", _) => self.pod(attempt),
            ("Node", _) => plain::<Node>(attempt),
            ("Event", _) => plain::<Event>(attempt),
            ("Lease", _) => plain::<Lease>(attempt),
            ("Namespace", _) => plain::<Namespace>(attempt),
            _ => Err(Refusal::no_path()),
        }
    }

    /// Returns an object of `resource.k8s.io` in version `v1`, without the fields that the release does not know. Others are
    /// returned as they are.
    ///
    /// # Errors
    /// A value can't be decoded.
    pub(crate) fn read(self, kind: &Kind, object: &Value) -> Result<Value, Refusal> {
        if kind.group != RESOURCE || kind.name == "ResourcePoolStatusRequest" {
            return Ok(object.clone());
        }
        let read = dra_alloc::validate::read(object.clone(), self.profile);
        read.map(|read| read.object).map_err(|errors| {
            let (name, version) = (kind.name, kind.version);
            Refusal::bad_request(format!("{name} in version {version:?} cannot be handled as a {name}: {errors}"))
        })
    }

    /// Checks a pod: a nomination of a bound pod would be a promise that nobody can keep.
    fn pod(self, attempt: Attempt<'_>) -> Result<Admitted, Refusal> {
        let nominated = |pod: &Value| pod.text("/status/nominatedNodeName").to_owned();
        let bound = attempt.old.filter(|old| attempt.part == Part::Status && !old.text("/spec/nodeName").is_empty());
        let is_new =
            bound.is_some_and(|old| !nominated(attempt.new).is_empty() && nominated(attempt.new) != nominated(old));
        if is_new && self.gates.has(Gate::ClearingNominatedNodeNameAfterBinding) {
            let field = FieldPath::new("status").child("nominatedNodeName").to_string();
            let detail = "may not be set on pods that are already bound to a node";
            let error = FieldError::forbidden(&FieldPath::new(&field), detail);
            return Err(Refusal::invalid(attempt.kind, attempt.new.metadata("name"), &[error].into_iter().collect()));
        }
        plain::<Pod>(attempt)
    }

    fn pool_status_request(self, attempt: Attempt<'_>) -> Result<Admitted, Refusal> {
        let new: ResourcePoolStatusRequest = typed(attempt.kind, &with_parts(attempt))?;
        let old = attempt.old.map(|old| typed::<ResourcePoolStatusRequest>(attempt.kind, old)).transpose()?;
        let errors = match (&old, attempt.part) {
            (None, _) => StatusRequest::from(&new).validate(self.pool_status),
            (Some(old), Part::Main) => StatusRequest::from(old).validate_update((&new).into()),
            (Some(old), Part::Status) => {
                let check = |status| poolstatus::validate_status(old.status.as_ref(), status);
                new.status.as_ref().map(check).unwrap_or_default()
            }
        };
        valid(attempt, &errors)?;
        Ok(Admitted { object: as_json(&new)?, warnings: Vec::new() })
    }
}

/// Validates an object about devices.
fn device<T: DeserializeOwned + Serialize>(
    door: Door,
    attempt: Attempt<'_>,
    validate: impl FnOnce(Write<'_, T>) -> Result<Accepted<T>, FieldErrors>,
) -> Result<Admitted, Refusal> {
    let name = attempt.new.metadata("name");
    let old = attempt.old.map(|old| typed::<T>(attempt.kind, old)).transpose()?;
    let new = typed::<T>(attempt.kind, &door.read(attempt.kind, attempt.new)?)?;
    let accepted = validate(Write { old: old.as_ref(), new: &new });
    let accepted = accepted.map_err(|errors| {
        let stop = errors.iter().find(|error| error.r#type == ErrorType::ServerStops);
        let stop = stop.map(|error| Refusal::stop(format!("{} {name}: {error}", attempt.kind.name)));
        stop.unwrap_or_else(|| Refusal::invalid(attempt.kind, name, &errors))
    })?;
    let mut object = as_json(&accepted.object)?;
    if attempt.kind.name == "ResourceClaim" {
        object.fields().entry("status").or_insert_with(|| json!({}));
    }
    Ok(Admitted { object, warnings: accepted.warnings })
}

/// Checks an object whose rules are not of interest here: its types and name, and what keeps pods as they are.
fn plain<T: DeserializeOwned + Serialize>(attempt: Attempt<'_>) -> Result<Admitted, Refusal> {
    let mut object = as_json(&typed::<T>(attempt.kind, &with_parts(attempt))?)?;
    let mut errors = FieldErrors::new();
    let metadata = FieldPath::new("metadata");
    for problem in NameFormat::Subdomain.problems(object.metadata("name")) {
        errors.push(FieldError::invalid(&metadata.child("name"), object.metadata("name"), problem));
    }
    match (attempt.kind.name, attempt.old) {
        ("Pod", None) => new_pod(&mut object),
        ("Pod", Some(old)) if attempt.part == Part::Main && old.get("spec") != object.get("spec") => {
            next_generation(&mut object);
            if fixed(old) != fixed(&object) {
                errors.push(pod_is_fixed());
            }
        }
        ("Namespace", None) => object
            .fields()
            .entry("status")
            .or_insert_with(|| json!({}))
            .fields()
            .extend([("phase".to_owned(), "Active".into())]),
        ("Event", _) if object.text("/involvedObject/namespace") != namespace_of_event(&object) => {
            let field = FieldPath::new("involvedObject").child("namespace").to_string();
            let found = object.text("/involvedObject/namespace");
            errors.push(FieldError::invalid(&FieldPath::new(&field), found, "does not match event.namespace"));
        }
        ("Lease", _)
            if object.pointer("/spec/leaseDurationSeconds").and_then(Value::as_i64).is_some_and(|it| it <= 0) =>
        {
            let spec = FieldPath::new("spec");
            let found = object.pointer("/spec/leaseDurationSeconds").and_then(Value::as_i64).unwrap_or_default();
            errors.push(FieldError::invalid(&spec.child("leaseDurationSeconds"), found, "must be greater than 0"));
        }
        ("Lease", Some(_)) if attempt.new.metadata("resourceVersion").is_empty() => {
            errors.push(FieldError::invalid(&metadata.child("resourceVersion"), 0, "must be specified for an update"));
        }
        _ => {}
    }
    valid(attempt, &errors)?;
    Ok(Admitted { object, warnings: Vec::new() })
}

/// Returns the namespace that the object of an event must have. Events about objects of the cluster are in `default`.
fn namespace_of_event(event: &Value) -> &str {
    match (event.text("/involvedObject/namespace"), event.metadata("namespace")) {
        ("", "default") => "",
        (_, namespace) => namespace,
    }
}

fn valid(attempt: Attempt<'_>, errors: &FieldErrors) -> Result<(), Refusal> {
    if errors.is_empty() { Ok(()) } else { Err(Refusal::invalid(attempt.kind, attempt.new.metadata("name"), errors)) }
}

/// Returns the object with the part that is written, and the other part as stored.
fn with_parts(attempt: Attempt<'_>) -> Value {
    let (mut object, status_from) = match (attempt.part, attempt.old) {
        (Part::Status, Some(old)) => (old.clone(), Some(attempt.new)),
        (_, old) => (attempt.new.clone(), old),
    };
    // Nodes and namespaces are created with their status, other kinds without one.
    let keeps_status = attempt.old.is_none() && matches!(attempt.kind.name, "Node" | "Namespace");
    if attempt.kind.has_status() && !keeps_status {
        match status_from.and_then(|from| from.get("status")) {
            Some(status) => drop(object.fields().insert("status".to_owned(), status.clone())),
            None => drop(object.fields().remove("status")),
        }
    }
    if attempt.part == Part::Status {
        object.keep_metadata("resourceVersion", attempt.new);
    }
    object
}

fn pod_is_fixed() -> FieldError {
    let changeable = CHANGEABLE.map(|field| format!("`spec.{field}`")).join(", ");
    let detail = format!("pod updates may not change fields other than `spec.containers[*].image`, {changeable}");
    FieldError::forbidden(&FieldPath::new("spec"), detail)
}

/// Counts a change of an object.
pub(crate) fn next_generation(object: &mut Value) {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
    object.set_metadata("generation", generation.saturating_add(1));
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

fn new_pod(pod: &mut Value) {
    let class = qos_class(pod);
    pod.set_field("status", json!({"phase": "Pending", "qosClass": class}));
    pod.set_metadata("generation", 1);
    let spec = pod.fields().entry("spec").or_insert_with(|| json!({})).fields();
    for (field, default) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("terminationGracePeriodSeconds", json!(30)),
    ] {
        spec.entry(field).or_insert(default);
    }
}

/// Returns what an update of a pod may not change.
fn fixed(pod: &Value) -> Value {
    let mut spec = pod.get("spec").cloned().unwrap_or_default();
    for field in CHANGEABLE {
        spec.fields().remove(field);
    }
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container.fields().remove("image");
        }
    }
    spec
}

fn typed<T: DeserializeOwned>(kind: &Kind, object: &Value) -> Result<T, Refusal> {
    serde_path_to_error::deserialize(object.clone()).map_err(|error| {
        let (name, version) = (kind.name, kind.api_version());
        Refusal::bad_request(format!("{name} in version {version:?} cannot be handled as a {name}: {error}"))
    })
}

fn as_json<T: Serialize>(object: &T) -> Result<Value, Refusal> {
    serde_json::to_value(object).map_err(|error| Refusal::new(500, "InternalError", error.to_string()))
}

/// Returns an object as it is after it was read into its type and written again.
///
/// # Errors
/// A field is missing or of a wrong type.
pub(crate) fn read_again(kind: &Kind, object: &Value) -> Result<Value, Refusal> {
    macro_rules! again {
        ($($name:literal: $type:ty),*) => {
            match kind.name {
                $($name => as_json(&typed::<$type>(kind, object)?),)*
                _ => Err(Refusal::no_path()),
            }
        };
    }
    again!("DeviceClass": DeviceClass, "DeviceTaintRule": DeviceTaintRule, "Event": Event, "Lease": Lease,
        "Namespace": Namespace, "Node": Node, "Pod": Pod, "ResourceClaim": ResourceClaim,
        "ResourceClaimTemplate": ResourceClaimTemplate, "ResourcePoolStatusRequest": ResourcePoolStatusRequest,
        "ResourceSlice": ResourceSlice)
}
