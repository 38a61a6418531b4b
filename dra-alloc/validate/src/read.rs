//! JSON of an object as the API server of a release reads it, brought to the form of the types of Kubernetes 1.37.

use dra_attrs::{FieldErrors, FieldPath, GateName, Profile};
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::gates::Kind;
use super::unknown_field::UnknownField;
use super::{convert, decoded};

/// An object as a release reads it, in the form of the types of Kubernetes 1.37.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Read {
    /// The object, in version `v1` of its group, without the fields that are not known.
    pub object: Value,
    /// Form in which it was written, if that is another one: an API version, or a field of an earlier form.
    pub converted: Option<String>,
    /// Paths of fields that the release knows, and that the types of 1.37 can't hold.
    pub dropped: Vec<String>,
    /// Fields that the release does not know. The API server drops them with a warning, and refuses them if the client
    /// asks for strict validation.
    pub unknown: Vec<UnknownField>,
}

/// Reads the JSON of an object as the API server of a release does, before it validates.
///
/// Other forms are converted: versions `v1beta1` and `v1beta2` of `resource.k8s.io`, versions `v1alpha3` and `v1beta2` of
/// `DeviceTaintRule`, `nodeAllocatableResourceMappings` of Kubernetes 1.36, and the claims of pods before 1.31. Fields that
/// the release does not know are removed, whatever they contain. `kind` and `apiVersion` decide what an object is; one
/// without them is only checked for values that can't be decoded.
///
/// # Errors
/// Every amount and time that can't be decoded, with the path of its field in version `v1`. The API server answers such a
/// request with status 400, before any validation. An empty text is no amount; in the types of k8s-openapi it equals an
/// absent amount. A time is written as in RFC 3339; k8s-openapi reads more forms.
///
/// # Complexity
/// Linear in the size of the object.
///
/// ```
/// use dra_attrs::Profile;
/// use dra_validate::read;
/// use serde_json::json;
///
/// let request = json!({"name": "gpu", "deviceClassName": "gpu.example.com"});
/// let claim = json!({
///     "apiVersion": "resource.k8s.io/v1beta1",
///     "kind": "ResourceClaim",
///     "spec": {"devices": {"requests": [request]}},
/// });
/// let read = read(claim, Profile::V1_37)?;
/// assert_eq!(read.converted.as_deref(), Some("resource.k8s.io/v1beta1"));
/// assert_eq!(read.object["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"], "gpu.example.com");
/// # Ok::<(), dra_attrs::FieldErrors>(())
/// ```
///
/// A list of values is an unknown field where attributes have none:
///
/// ```
/// # use dra_attrs::{Gate, Profile};
/// # use dra_validate::read;
/// # use serde_json::json;
/// let devices = json!([{"name": "gpu-0", "attributes": {"numa": {"ints": [0, 1]}}}]);
/// let slice = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": {"devices": devices}});
/// let read = read(slice, Profile::V1_35)?;
/// assert_eq!(read.unknown[0].field, "spec.devices[0].attributes[numa].ints");
/// assert_eq!(read.unknown[0].gate.map(|gate| gate.gate), Some(Gate::ListTypeAttributes));
/// # Ok::<(), dra_attrs::FieldErrors>(())
/// ```
pub fn read(mut object: Value, profile: Profile) -> Result<Read, FieldErrors> {
    let kind = object.get("kind").and_then(Value::as_str).and_then(known_kind);
    let mut conversion = convert::to_v1(&mut object, profile);
    let mut unknown = std::mem::take(&mut conversion.unknown);
    if let Some(known) = kind {
        remove_fields_of_absent_gates(&mut object, known.kind, profile, &mut unknown);
    }
    decoded::check(&mut object).into_result()?;
    if let Some(typed) = kind.and_then(|known| (known.as_typed)(&object)) {
        let mut lost = Vec::new();
        remove_lost(&mut object, &typed, &FieldPath::root(), &mut lost);
        unknown.extend(lost.into_iter().map(|field| UnknownField { field, gate: None }));
    }
    Ok(Read { object, converted: conversion.form, dropped: conversion.dropped, unknown })
}

/// A kind of `resource.k8s.io` that is written.
#[derive(Clone, Copy)]
struct KnownKind {
    name: &'static str,
    kind: Kind,
    /// Reads the object as its type, and writes it again.
    as_typed: fn(&Value) -> Option<Value>,
}

const KINDS: [KnownKind; 5] = [
    KnownKind { name: "DeviceClass", kind: Kind::Class, as_typed: as_typed::<DeviceClass> },
    KnownKind { name: "DeviceTaintRule", kind: Kind::TaintRule, as_typed: as_typed::<DeviceTaintRule> },
    KnownKind { name: "ResourceClaim", kind: Kind::Claim, as_typed: as_typed::<ResourceClaim> },
    KnownKind { name: "ResourceClaimTemplate", kind: Kind::Template, as_typed: as_typed::<ResourceClaimTemplate> },
    KnownKind { name: "ResourceSlice", kind: Kind::Slice, as_typed: as_typed::<ResourceSlice> },
];

fn known_kind(name: &str) -> Option<KnownKind> {
    KINDS.into_iter().find(|known| known.name == name)
}

fn as_typed<T: Serialize + DeserializeOwned>(object: &Value) -> Option<Value> {
    let typed: T = serde::Deserialize::deserialize(object).ok()?;
    serde_json::to_value(typed).ok()
}

fn remove_fields_of_absent_gates(object: &mut Value, kind: Kind, profile: Profile, unknown: &mut Vec<UnknownField>) {
    let Some((object, root)) = kind.object_of_spec(object) else { return };
    let mut found = Vec::new();
    kind.gated().visit(object, &root, &mut |place, value, at| {
        let is_absent = !place.rule.stage(profile).exists();
        if is_absent && !value.take().is_null() {
            let gate = Some(GateName::new(place.rule, profile));
            found.push((place.number, UnknownField { field: at.to_string(), gate }));
        }
    });
    found.sort_by_key(|(number, _)| *number);
    unknown.extend(found.into_iter().map(|(_, field)| field));
}

/// Removes the fields that an object lost when it was read as its type. Items of lists are compared in pairs.
fn remove_lost(object: &mut Value, typed: &Value, at: &FieldPath<'_>, lost: &mut Vec<String>) {
    match (object, typed) {
        (Value::Object(fields), Value::Object(kept)) => fields.retain(|name, value| match kept.get(name) {
            Some(kept) => {
                remove_lost(value, kept, &at.child(name), lost);
                true
            }
            None if is_blank(value) => true,
            None => {
                lost.push(at.child(name).to_string());
                false
            }
        }),
        (Value::Array(items), Value::Array(kept)) => {
            for (index, (item, kept)) in items.iter_mut().zip(kept).enumerate() {
                remove_lost(item, kept, &at.index(index), lost);
            }
        }
        _ => {}
    }
}

/// Returns true for a value that a type leaves out when it is written.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
