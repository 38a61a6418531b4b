//! `partitionTypeAttribute`: the attribute that tells the kinds of partitions apart (KEP-5677).

use dra_attrs::field::{FieldError, FieldPath};
use dra_attrs::name::lookup;
use k8s_openapi::api::resource::v1::ResourceSliceSpec;

use super::findings::{Findings, json};
use super::{counters, names};
use crate::features::Feature;

/// Checks the name, unless it is the stored one, and that each device that consumes counters has the attribute as a
/// string.
pub(super) fn check(
    spec: &ResourceSliceSpec,
    old: Option<&ResourceSliceSpec>,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    let Some(name) = &spec.partition_type_attribute else { return };
    let at_name = at.child("partitionTypeAttribute");
    if old.is_none_or(|old| old.partition_type_attribute.as_ref() != Some(name)) {
        check_name(name, &at_name, findings);
    }
    let mut consumers =
        spec.devices.iter().flatten().enumerate().filter(|(_, device)| counters::consumes(device)).peekable();
    if consumers.peek().is_none() {
        let detail = "may only be set on a slice which declares devices that consume counters";
        return findings.push(FieldError::invalid(&at_name, name, detail));
    }
    if !names::is_fully_qualified(name) {
        // No device can have it, and saying so for each would bury the one problem.
        return;
    }
    let devices = at.child("devices");
    for (index, device) in consumers {
        let device_path = devices.index(index);
        let attributes = device_path.child("attributes");
        let at = attributes.key(name);
        let attribute = device.attributes.as_ref().and_then(|attributes| lookup(attributes, name, &spec.driver));
        match attribute {
            None => {
                let detail =
                    "device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set";
                findings.push(FieldError::required(&at, detail));
            }
            Some(attribute) if attribute.string.is_none() => {
                let detail = "must be a string value because `partitionTypeAttribute` names this attribute";
                findings.push(FieldError::invalid(&at, json(attribute), detail));
            }
            Some(_) => {}
        }
    }
}

/// Checks a new name. While the feature is off, a slice that is using it may keep the name that it has.
fn check_name(name: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    if findings.has(Feature::PartitionTypes) {
        names::declared_fully_qualified(name, at, findings);
    } else {
        findings.push(FieldError::forbidden(at, ""));
    }
}
