//! Validation of the nodes of a slice or device: exactly one of the fields that select nodes must be set.

use dra_attrs::{BadValue, FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{Device, ResourceSliceSpec};

use super::context::{ValidationContext, json};
use super::{names, node_selector};

const TRUE_OR_UNSET: &str = "must be either unset or set to true";
const ONE_OF_SLICE: &str =
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
const ONE_OF_DEVICE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                             `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
const NOT_PER_DEVICE: &str = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is \
                              set to true in the ResourceSlice spec";

/// Checks that a slice sets exactly one of the four fields that select nodes.
pub(super) fn check_slice(spec: &ResourceSliceSpec, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let empty = "must be either unset or set to a non-empty string";
    let named = node_name(spec.node_name.as_deref(), empty, at, context);
    if let Some(selector) = &spec.node_selector {
        let at = at.child("nodeSelector");
        node_selector::check(selector, &at, context);
        if selector.node_selector_terms.len() != 1 {
            // The allocator merges the selectors of several slices, which needs selectors with one term.
            let detail = "must have exactly one node selector term";
            let value = json(&selector.node_selector_terms);
            context.push(FieldError::invalid(&at.child("nodeSelectorTerms"), value, detail));
        }
    }
    let set = [
        ("`nodeName`", named),
        ("`nodeSelector`", spec.node_selector.is_some()),
        ("`allNodes`", truth(spec.all_nodes, &at.child("allNodes"), context)),
        (
            "`perDeviceNodeSelection`",
            truth(spec.per_device_node_selection, &at.child("perDeviceNodeSelection"), context),
        ),
    ];
    let several = format!("{ONE_OF_SLICE}, but multiple fields are set");
    one_of(&set, ONE_OF_SLICE, &several, at, context);
}

/// Checks the three fields of a device that select nodes. They may be set only if the slice has
/// `perDeviceNodeSelection`.
pub(super) fn check_device(
    device: &Device,
    per_device: Option<bool>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let selector = device.node_selector.as_ref();
    if per_device != Some(true) {
        if device.node_name.is_some() || selector.is_some() || device.all_nodes.is_some() {
            context.push(FieldError::invalid(at, BadValue::literal("null"), NOT_PER_DEVICE));
        }
        return;
    }
    let named = node_name(device.node_name.as_deref(), "must not be empty", at, context);
    if let Some(selector) = selector {
        node_selector::check(selector, &at.child("nodeSelector"), context);
    }
    let set = [
        ("`nodeName`", named),
        ("`nodeSelector`", selector.is_some()),
        ("`allNodes`", truth(device.all_nodes, &at.child("allNodes"), context)),
    ];
    one_of(&set, ONE_OF_DEVICE, ONE_OF_DEVICE, at, context);
}

/// Returns true if the node name is set. An empty name is an error and counts as not set.
fn node_name(name: Option<&str>, empty: &str, at: &FieldPath<'_>, context: &mut ValidationContext) -> bool {
    let at = at.child("nodeName");
    match name {
        None => false,
        Some("") => {
            context.push(FieldError::invalid(&at, "", empty));
            false
        }
        Some(name) => {
            names::subdomain(name, &at, context);
            true
        }
    }
}

/// Returns true if `value` is true. An explicit `false` is an error.
fn truth(value: Option<bool>, at: &FieldPath<'_>, context: &mut ValidationContext) -> bool {
    if value == Some(false) {
        context.push(FieldError::invalid(at, false, TRUE_OR_UNSET));
    }
    value == Some(true)
}

fn one_of(fields: &[(&str, bool)], none: &str, several: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let set: Vec<&str> = fields.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
    match set.as_slice() {
        [_] => {}
        [] => context.push(FieldError::required(at, none)),
        names => context.push(FieldError::invalid(at, format!("{{{}}}", names.join(", ")), several)),
    }
}
