//! Configuration for a driver, and other JSON that Kubernetes does not look into.

use dra_attrs::field::{BadValue, FieldError, FieldPath};
use k8s_openapi::api::resource::v1::OpaqueDeviceConfiguration;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::Value;

use super::findings::Findings;
use super::{limits, names};

/// Whether the size of the parameters is limited. Stored ones may be larger: the limit came late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Limited,
    Stored,
}

/// Checks one configuration.
pub(super) fn check(
    opaque: Option<&OpaqueDeviceConfiguration>,
    size: Size,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    let at = at.child("opaque");
    let Some(opaque) = opaque else {
        return findings.push(FieldError::required(&at, ""));
    };
    names::driver(&opaque.driver, &at.child("driver"), findings);
    let max = match size {
        Size::Limited => limits::OPAQUE_PARAMETERS,
        Size::Stored => usize::MAX,
    };
    check_object(&opaque.parameters, max, &at.child("parameters"), findings);
}

/// Checks that JSON is an object of at most `max` bytes.
pub(super) fn check_object(json: &RawExtension, max: usize, at: &FieldPath<'_>, findings: &mut Findings) {
    match &json.0 {
        Value::Null => findings.push(FieldError::required(at, "")),
        value if value.to_string().len() > max => findings.push(FieldError::too_long(at, max)),
        Value::Object(_) => {}
        _ => {
            let value = BadValue::from("<value omitted>");
            findings.push(FieldError::invalid(at, value, "must be a valid JSON object"));
        }
    }
}
