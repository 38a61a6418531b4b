//! Validation of opaque driver configuration and of other JSON that Kubernetes does not interpret.

use dra_attrs::{BadValue, FieldError, FieldPath};
use k8s_openapi::api::resource::v1::OpaqueDeviceConfiguration;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::Value;

use super::context::ValidationContext;
use super::{limits, names};

/// Strictness of the size limit of opaque parameters. Stored parameters may exceed it, because the limit is newer than
/// the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Limited,
    Stored,
}

/// Checks one opaque configuration: the name of its driver and its parameters.
pub(super) fn check(
    opaque: Option<&OpaqueDeviceConfiguration>,
    size: Size,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let at = at.child("opaque");
    let Some(opaque) = opaque else {
        return context.push(FieldError::required(&at, ""));
    };
    names::declared_driver(&opaque.driver, &at.child("driver"), context);
    let max = match size {
        Size::Limited => limits::OPAQUE_PARAMETERS,
        Size::Stored => usize::MAX,
    };
    check_object(&opaque.parameters, max, &at.child("parameters"), context);
}

/// Checks that the JSON is an object of at most `max` bytes.
pub(super) fn check_object(json: &RawExtension, max: usize, at: &FieldPath<'_>, context: &mut ValidationContext) {
    match &json.0 {
        Value::Null => context.push(FieldError::required(at, "")),
        value if value.to_string().len() > max => context.push(FieldError::too_long(at, max)),
        Value::Object(_) => {}
        _ => {
            let value = BadValue::from("<value omitted>");
            context.push(FieldError::invalid(at, value, "must be a valid JSON object"));
        }
    }
}
