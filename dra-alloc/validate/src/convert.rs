//! Conversion of other forms of an object to version `v1` of its group.
//!
//! Source: `pkg/apis/resource/v1beta1/conversion.go` of Kubernetes 1.36, and its API types.

use dra_attrs::NodeAllocatableForm;
use dra_attrs::{Gate, GateName, Profile};
use serde_json::{Map, Value, json};

use super::unknown_field::UnknownField;

/// Version to which objects of the group are converted.
const V1: &str = "resource.k8s.io/v1";

/// Conversion of one object.
#[derive(Debug, Default)]
pub(super) struct Conversion {
    /// Form of the object as it was written, if it was converted.
    pub(super) form: Option<String>,
    /// Paths of fields that the new form can't hold.
    pub(super) dropped: Vec<String>,
    /// Fields of the new form that the release does not know.
    pub(super) unknown: Vec<UnknownField>,
}

/// Changes an object from one form, and names the fields that the new form can't hold.
type Convert = fn(&mut Value, &mut Vec<String>);

/// Kinds whose older versions have other fields.
const VERSIONS: [(&str, &str, Convert); 4] = [
    ("ResourceSlice", "resource.k8s.io/v1beta1", slice_of_v1beta1),
    ("ResourceClaim", "resource.k8s.io/v1beta1", claim_of_v1beta1),
    ("ResourceClaimTemplate", "resource.k8s.io/v1beta1", template_of_v1beta1),
    ("DeviceTaintRule", "resource.k8s.io/v1alpha3", rule_of_v1alpha3),
];

/// Brings an object to the form of Kubernetes 1.37.
pub(super) fn to_v1(object: &mut Value, profile: Profile) -> Conversion {
    let mut conversion = Conversion::default();
    let text = |object: &Value, field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, version) = (text(object, "kind"), text(object, "apiVersion"));
    if version.starts_with("resource.k8s.io/") && version != V1 {
        for (_, _, convert) in VERSIONS.iter().filter(|(name, from, _)| *name == kind && *from == version) {
            convert(object, &mut conversion.dropped);
        }
        set(object, "apiVersion", json!(V1));
        conversion.form = Some(version);
    }
    let has_mappings = match profile.node_allocatable_form() {
        NodeAllocatableForm::Mappings => true,
        NodeAllocatableForm::Absent | NodeAllocatableForm::Resources => false,
    };
    if kind == "ResourceSlice" && has_mappings {
        conversion.unknown.extend(later_resources(object, profile));
    }
    if kind == "ResourceSlice" && has_mappings && mappings(object) {
        conversion.form.get_or_insert_with(|| MAPPINGS.to_owned());
    }
    if kind == "Pod" && claim_sources(object) {
        conversion.form.get_or_insert_with(|| "spec.resourceClaims[*].source".to_owned());
    }
    conversion
}

/// Moves the fields of `basic`, in which version `v1beta1` has the whole device but its name, to the device.
fn slice_of_v1beta1(slice: &mut Value, _: &mut Vec<String>) {
    for device in items(slice, "/spec/devices") {
        let Some(Value::Object(basic)) = take(device, "basic") else { continue };
        for (field, value) in basic {
            set(device, &field, value);
        }
    }
}

/// Fields of a request in version `v1beta1` that are those of `exactly` in `v1`.
const EXACTLY: [&str; 8] = [
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
    "derivedAttributes",
];

fn claim_of_v1beta1(claim: &mut Value, _: &mut Vec<String>) {
    items(claim, "/spec/devices/requests").iter_mut().for_each(nest_exactly);
}

fn template_of_v1beta1(template: &mut Value, _: &mut Vec<String>) {
    items(template, "/spec/spec/devices/requests").iter_mut().for_each(nest_exactly);
}

fn nest_exactly(request: &mut Value) {
    let exactly: Map<String, Value> =
        EXACTLY.iter().filter_map(|field| Some(((*field).to_owned(), take(request, field)?))).collect();
    let is_set = |value: &Value| !value.is_null() && *value != "" && *value != 0;
    if exactly.values().any(is_set) {
        set(request, "exactly", Value::Object(exactly));
    }
}

/// Version `v1alpha3` could select devices by class and expression; later ones can't.
fn rule_of_v1alpha3(rule: &mut Value, dropped: &mut Vec<String>) {
    let Some(selector) = rule.pointer_mut("/spec/deviceSelector") else { return };
    let lost = ["deviceClassName", "selectors"].into_iter().filter(|field| take(selector, field).is_some());
    dropped.extend(lost.map(|field| format!("spec.deviceSelector.{field}")));
}

/// Removes the node resources of devices in the form of 1.37, which 1.36 does not know.
fn later_resources(slice: &mut Value, profile: Profile) -> Vec<UnknownField> {
    let gate = Some(GateName::new(Gate::NodeAllocatableResources, profile));
    let mut unknown = Vec::new();
    for (index, device) in items(slice, "/spec/devices").iter_mut().enumerate() {
        if take(device, "nodeAllocatableResources").is_some_and(|resources| !resources.is_null()) {
            unknown.push(UnknownField { field: format!("spec.devices[{index}].nodeAllocatableResources"), gate });
        }
    }
    unknown
}

const MAPPINGS: &str = "spec.devices[*].nodeAllocatableResourceMappings";

/// Brings the node resources of devices from the form of Kubernetes 1.36, a multiplier for each, to that of 1.37.
fn mappings(slice: &mut Value) -> bool {
    let mut changed = false;
    for device in items(slice, "/spec/devices") {
        let Some(Value::Object(mappings)) = take(device, "nodeAllocatableResourceMappings") else { continue };
        changed = true;
        let resources = mappings.into_iter().map(|(name, mapping)| (name, json!({"mapping": mapping_of(&mapping)})));
        set(device, "nodeAllocatableResources", Value::Object(resources.collect()));
    }
    changed
}

fn mapping_of(mapping: &Value) -> Value {
    let multiplier = mapping.get("allocationMultiplier").filter(|multiplier| !multiplier.is_null());
    let multiplier = multiplier.cloned().unwrap_or_else(|| json!("1"));
    match mapping.get("capacityKey").filter(|key| !key.is_null()) {
        Some(key) => json!({"capacityKey": key, "capacityMultiplier": multiplier}),
        None => json!({"deviceMultiplier": multiplier}),
    }
}

/// Moves the fields of `source`, in which pods before 1.31 named their claims, to the entry.
fn claim_sources(pod: &mut Value) -> bool {
    let mut changed = false;
    for entry in items(pod, "/spec/resourceClaims") {
        let Some(Value::Object(source)) = take(entry, "source") else { continue };
        changed = true;
        for (field, value) in source.into_iter().filter(|(field, _)| field != "source") {
            set(entry, &field, value);
        }
    }
    changed
}

fn items<'v>(object: &'v mut Value, pointer: &str) -> &'v mut [Value] {
    object.pointer_mut(pointer).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}

fn take(object: &mut Value, field: &str) -> Option<Value> {
    object.as_object_mut()?.remove(field)
}

fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}
