//! To which nodes a slice or a device belongs: one way of saying it, and only one.

use dra_attrs::field::{BadValue, FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{Device, ResourceSliceSpec};

use super::findings::{Findings, json};
use super::{names, node_selector};

const TRUE_OR_UNSET: &str = "must be either unset or set to true";
const ONE_OF_SLICE: &str =
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
const ONE_OF_DEVICE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                             `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
const NOT_PER_DEVICE: &str = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is \
                              set to true in the ResourceSlice spec";

/// Checks the four fields of a slice.
pub(super) fn check_slice(spec: &ResourceSliceSpec, at: &FieldPath<'_>, findings: &mut Findings) {
    let empty = "must be either unset or set to a non-empty string";
    let named = node_name(spec.node_name.as_deref(), empty, at, findings);
    if let Some(selector) = &spec.node_selector {
        let at = at.child("nodeSelector");
        node_selector::check(selector, &at, findings);
        if selector.node_selector_terms.len() != 1 {
            // Selectors of several slices are merged for one allocation; one term each keeps that simple.
            let detail = "must have exactly one node selector term";
            let value = json(&selector.node_selector_terms);
            findings.push(FieldError::invalid(&at.child("nodeSelectorTerms"), value, detail));
        }
    }
    let set = [
        ("`nodeName`", named),
        ("`nodeSelector`", spec.node_selector.is_some()),
        ("`allNodes`", truth(spec.all_nodes, &at.child("allNodes"), findings)),
        (
            "`perDeviceNodeSelection`",
            truth(spec.per_device_node_selection, &at.child("perDeviceNodeSelection"), findings),
        ),
    ];
    let several = format!("{ONE_OF_SLICE}, but multiple fields are set");
    one_of(&set, ONE_OF_SLICE, &several, at, findings);
}

/// Checks the three fields of a device, which has them only where the slice leaves it to its devices.
pub(super) fn check_device(device: &Device, per_device: Option<bool>, at: &FieldPath<'_>, findings: &mut Findings) {
    let selector = device.node_selector.as_ref();
    if per_device != Some(true) {
        if device.node_name.is_some() || selector.is_some() || device.all_nodes.is_some() {
            findings.push(FieldError::invalid(at, BadValue::literal("null"), NOT_PER_DEVICE));
        }
        return;
    }
    let named = node_name(device.node_name.as_deref(), "must not be empty", at, findings);
    if let Some(selector) = selector {
        node_selector::check(selector, &at.child("nodeSelector"), findings);
    }
    let set = [
        ("`nodeName`", named),
        ("`nodeSelector`", selector.is_some()),
        ("`allNodes`", truth(device.all_nodes, &at.child("allNodes"), findings)),
    ];
    one_of(&set, ONE_OF_DEVICE, ONE_OF_DEVICE, at, findings);
}

/// Whether the name is set. An empty one does not count, and is a problem.
fn node_name(name: Option<&str>, empty: &str, at: &FieldPath<'_>, findings: &mut Findings) -> bool {
    let at = at.child("nodeName");
    match name {
        None => false,
        Some("") => {
            findings.push(FieldError::invalid(&at, "", empty));
            false
        }
        Some(name) => {
            names::subdomain(name, &at, findings);
            true
        }
    }
}

/// Whether the field is true. False is a problem.
fn truth(value: Option<bool>, at: &FieldPath<'_>, findings: &mut Findings) -> bool {
    if value == Some(false) {
        findings.push(FieldError::invalid(at, false, TRUE_OR_UNSET));
    }
    value == Some(true)
}

fn one_of(fields: &[(&str, bool)], none: &str, several: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    let set: Vec<&str> = fields.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
    match set.as_slice() {
        [_] => {}
        [] => findings.push(FieldError::required(at, none)),
        names => findings.push(FieldError::invalid(at, format!("{{{}}}", names.join(", ")), several)),
    }
}
