//! Objects as clients see them: stored in version `v1`, shown in the version of the request and the form of the release.

use std::borrow::Cow;

use dra_attrs::NodeAllocatableForm;
use dra_attrs::Profile;
use object_patches::Object;
use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::kinds::{Kind, RESOURCE};

/// Object as it is written into an answer. The text of its `managedFields` is taken over as it is.
#[derive(Clone, Debug)]
pub(crate) struct Answered<'o> {
    pub(crate) object: Cow<'o, Value>,
    /// Items of lists have neither kind nor version: the list says them.
    pub(crate) is_item: bool,
}

/// Metadata of an object.
struct Metadata<'o>(&'o Value);

impl Serialize for Answered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = &*self.object else { return self.object.serialize(serializer) };
        let mut map = serializer.serialize_map(None)?;
        for (field, value) in fields {
            match field.as_str() {
                "kind" | "apiVersion" if self.is_item => {}
                "metadata" => map.serialize_entry(field, &Metadata(value))?,
                _ => map.serialize_entry(field, value)?,
            }
        }
        map.end()
    }
}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = self.0 else { return self.0.serialize(serializer) };
        let mut map = serializer.serialize_map(None)?;
        for (field, value) in fields {
            match value {
                Value::String(text) if field == "managedFields" => {
                    map.serialize_entry(field, &RawValue::from_string(text.clone()).map_err(S::Error::custom)?)?;
                }
                _ => map.serialize_entry(field, value)?,
            }
        }
        map.end()
    }
}

/// Returns a stored object in the version of a kind. Other answers, such as a `Status`, are returned as they are.
pub(crate) fn shown<'o>(kind: &Kind, profile: Profile, object: &'o Value) -> Cow<'o, Value> {
    if kind.group != RESOURCE || object.text("/kind") != kind.name {
        return Cow::Borrowed(object);
    }
    let has_mappings = match profile.node_allocatable_form() {
        NodeAllocatableForm::Mappings => kind.name == "ResourceSlice",
        NodeAllocatableForm::Absent | NodeAllocatableForm::Resources => false,
    };
    if object.text("/apiVersion") == kind.api_version() && !has_mappings {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    object.fields().insert("apiVersion".to_owned(), kind.api_version().into());
    if has_mappings {
        items(&mut object, "/spec/devices").iter_mut().for_each(with_mappings);
    }
    match (kind.version, kind.name) {
        ("v1beta1", "ResourceSlice") => items(&mut object, "/spec/devices").iter_mut().for_each(with_basic),
        ("v1beta1", "ResourceClaim") => items(&mut object, "/spec/devices/requests").iter_mut().for_each(flat),
        ("v1beta1", "ResourceClaimTemplate") => {
            items(&mut object, "/spec/spec/devices/requests").iter_mut().for_each(flat);
        }
        _ => {}
    }
    Cow::Owned(object)
}

fn items<'v>(object: &'v mut Value, pointer: &str) -> &'v mut [Value] {
    object.pointer_mut(pointer).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}

/// Moves everything but the name of a device below `basic`.
fn with_basic(device: &mut Value) {
    let fields = std::mem::take(device.fields());
    let (named, basic): (Map<_, _>, Map<_, _>) = fields.into_iter().partition(|(field, _)| field == "name");
    *device.fields() = named;
    device.fields().insert("basic".to_owned(), basic.into());
}

/// Moves the fields of `exactly` to the request.
fn flat(request: &mut Value) {
    if let Some(Value::Object(exactly)) = request.fields().remove("exactly") {
        request.fields().extend(exactly);
    }
}

/// Brings the node resources of a device to the form of Kubernetes 1.36.
fn with_mappings(device: &mut Value) {
    let Some(Value::Object(resources)) = device.fields().remove("nodeAllocatableResources") else { return };
    let mapping = |resource: &Value| {
        let of = |field: &str| resource.get("mapping").and_then(|mapping| mapping.get(field)).cloned();
        let multiplier = of("capacityMultiplier").or_else(|| of("deviceMultiplier"));
        let fields = [("capacityKey", of("capacityKey")), ("allocationMultiplier", multiplier)];
        let fields = fields.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?)));
        Value::Object(fields.collect())
    };
    let mappings: Map<_, _> = resources.iter().map(|(name, resource)| (name.clone(), mapping(resource))).collect();
    device.fields().insert("nodeAllocatableResourceMappings".to_owned(), json!(mappings));
}
