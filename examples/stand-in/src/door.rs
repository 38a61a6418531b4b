//! Door of the store: an object goes in as a real API server would store it, with defaults filled in, or not at all.
//!
//! Objects of Dynamic Resource Allocation are validated by `dra_alloc::validate` and `poolstatus`; the others by `plain_rules`
//! and `pod_rules`, as far as programs around devices meet their rules.

use dra_alloc::validate::{Accepted, ApiServer, NamespaceAccess, Write};
use dra_attrs::{Component, ErrorType, FieldError, FieldErrors, FieldPath, Gate, GateSet, Profile};
use k8s_openapi::Resource;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Pod, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::jiff::Timestamp;
use object_patches::Object;
use poolstatus::{StatusRequest, kep};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::defaults;
use crate::go_values;
use crate::kinds::{Kind, RESOURCE};
use crate::metadata;
use crate::plain_rules;
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

impl Door {
    pub(crate) fn component(self) -> Component {
        Component::new(self.profile, self.gates)
    }

    /// Returns the object that is stored.
    ///
    /// # Errors
    /// The object is malformed or invalid.
    pub(crate) fn admit(self, attempt: Attempt<'_>) -> Result<Admitted, Refusal> {
        let Attempt { kind, part, now, .. } = attempt;
        let mut server = ApiServer::new(self.component()).with_now(now);
        if let Some(namespace) = attempt.namespace {
            let namespace: Namespace = typed(kind, namespace)?;
            server = server.with_namespace(NamespaceAccess::from_namespace(&namespace));
        }
        let mut admitted = match (kind.name, part) {
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
            ("CronJob", _) => plain::<CronJob>(attempt),
            ("DaemonSet", _) => plain::<DaemonSet>(attempt),
            ("Deployment", _) => plain::<Deployment>(attempt),
            ("Job", _) => plain::<Job>(attempt),
            ("ReplicaSet", _) => plain::<ReplicaSet>(attempt),
            ("StatefulSet", _) => plain::<StatefulSet>(attempt),
            ("Namespace", _) => plain::<Namespace>(attempt),
            ("PodDisruptionBudget", _) => plain::<PodDisruptionBudget>(attempt),
            ("PriorityClass", _) => plain::<PriorityClass>(attempt),
            ("ServiceAccount", _) => plain::<ServiceAccount>(attempt),
            _ => Err(Refusal::no_path()),
        }?;
        defaults::omit_empty(&mut admitted.object);
        Ok(admitted)
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
        if attempt.kind.version == kep::ResourcePoolStatusRequest::VERSION {
            return self.kep_request(attempt);
        }
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

impl Door {
    /// Checks a request by the text of its KEP, which has no rules for the status.
    fn kep_request(self, attempt: Attempt<'_>) -> Result<Admitted, Refusal> {
        let new: kep::ResourcePoolStatusRequest = typed(attempt.kind, &with_parts(attempt))?;
        let old = attempt.old.map(|old| typed::<kep::ResourcePoolStatusRequest>(attempt.kind, old)).transpose()?;
        let errors = match (&old, attempt.part) {
            (None, _) => StatusRequest::from(&new).validate(self.pool_status),
            (Some(old), Part::Main) => StatusRequest::from(old).validate_update((&new).into()),
            (Some(_), Part::Status) => FieldErrors::new(),
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
    let validated = validate(Write { old: old.as_ref(), new: &new });
    let of_metadata =
        if attempt.part == Part::Main { metadata::problems(attempt.old, attempt.new) } else { FieldErrors::new() };
    let accepted = match validated {
        Ok(accepted) if of_metadata.is_empty() => accepted,
        validated => {
            let errors = validated.err().unwrap_or_default();
            let stop = errors.iter().find(|error| error.r#type == ErrorType::ServerStops);
            if let Some(error) = stop {
                return Err(Refusal::stop(format!("{} {name}: {error}", attempt.kind.name)));
            }
            let (of_name, others): (Vec<_>, Vec<_>) =
                errors.iter().cloned().partition(|error| error.field == "metadata.name");
            let errors = of_name.into_iter().chain(of_metadata.iter().cloned()).chain(others).collect();
            let errors = go_values::as_in_go(attempt.kind.name, attempt.new, &errors);
            return Err(Refusal::invalid(attempt.kind, name, &errors));
        }
    };
    let mut object = as_json(&accepted.object)?;
    always_there(attempt.kind.name, &mut object);
    Ok(Admitted { object, warnings: accepted.warnings })
}

/// Checks an object that is no device's.
fn plain<T: DeserializeOwned + Serialize>(attempt: Attempt<'_>) -> Result<Admitted, Refusal> {
    let mut object = as_json(&typed::<T>(attempt.kind, &with_parts(attempt))?)?;
    defaults::fill(attempt.kind.name, &mut object);
    let errors = plain_rules::check(attempt, &mut object);
    valid(attempt, &errors)?;
    Ok(Admitted { object, warnings: Vec::new() })
}

/// Sets the structs that are written even if nothing is in them.
fn always_there(kind: &str, object: &mut Value) {
    let fields: &[&str] = match kind {
        "ResourceClaim" => &["spec", "status"],
        "DeviceTaintRule" => &["status"],
        _ => &[],
    };
    for field in fields {
        object.fields().entry(*field).or_insert_with(|| json!({}));
    }
    let inner: &[(&str, &str)] = match kind {
        "ResourceClaim" => &[("/spec", "devices"), ("/status/allocation", "devices")],
        "ResourceClaimTemplate" => &[("/spec", "metadata"), ("/spec/spec", "devices")],
        _ => &[],
    };
    for (outer, field) in inner {
        if let Some(outer) = object.pointer_mut(outer).filter(|outer| outer.is_object()) {
            outer.fields().entry(*field).or_insert_with(|| json!({}));
        }
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

/// Counts a change of an object.
pub(crate) fn next_generation(object: &mut Value) {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
    object.set_metadata("generation", generation.saturating_add(1));
}

/// Reads an object into its type.
///
/// # Errors
/// A field is of another type.
pub(crate) fn typed<T: DeserializeOwned>(kind: &Kind, object: &Value) -> Result<T, Refusal> {
    let mut object = object.clone();
    if object.pointer("/metadata/managedFields").is_some_and(Value::is_string) {
        object.keep_metadata("managedFields", &Value::Null);
    }
    serde_path_to_error::deserialize(object).map_err(|error| {
        let (name, version) = (kind.name, kind.version);
        Refusal::bad_request(format!("{name} in version {version:?} cannot be handled as a {name}: {error}"))
    })
}

/// Writes an object as JSON.
///
/// # Errors
/// It has a map whose keys are no texts.
pub(crate) fn as_json<T: Serialize>(object: &T) -> Result<Value, Refusal> {
    serde_json::to_value(object).map_err(|error| Refusal::new(500, "InternalError", error.to_string()))
}

/// Returns an object as it is after it was read into its type and written again.
///
/// # Errors
/// A field is missing or of a wrong type.
pub(crate) fn read_again(kind: &Kind, object: &Value) -> Result<Value, Refusal> {
    if (kind.name, kind.version) == (kep::ResourcePoolStatusRequest::KIND, kep::ResourcePoolStatusRequest::VERSION) {
        return as_json(&typed::<kep::ResourcePoolStatusRequest>(kind, object)?);
    }
    macro_rules! again {
        ($($name:literal: $type:ty),*) => {
            match kind.name {
                $($name => as_json(&typed::<$type>(kind, object)?),)*
                _ => Err(Refusal::no_path()),
            }
        };
    }
    again!("CronJob": CronJob, "DaemonSet": DaemonSet, "Deployment": Deployment, "Job": Job,
        "ReplicaSet": ReplicaSet, "StatefulSet": StatefulSet, "DeviceClass": DeviceClass, "DeviceTaintRule": DeviceTaintRule, "Event": Event, "Lease": Lease,
        "Namespace": Namespace, "Node": Node, "PodDisruptionBudget": PodDisruptionBudget, "PriorityClass": PriorityClass, "Pod": Pod, "ResourceClaim": ResourceClaim,
        "ResourceClaimTemplate": ResourceClaimTemplate, "ResourcePoolStatusRequest": ResourcePoolStatusRequest,
        "ResourceSlice": ResourceSlice, "ServiceAccount": ServiceAccount)
}
