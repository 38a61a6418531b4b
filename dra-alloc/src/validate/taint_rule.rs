//! A `DeviceTaintRule` and its status.

use dra_attrs::field::FieldPath;
use k8s_openapi::api::resource::v1::DeviceTaintRule;

use super::findings::Findings;
use super::{condition, metadata, names, taint};

/// Checks a rule, against the one in storage if there is one.
pub(super) fn check(new: &DeviceTaintRule, old: Option<&DeviceTaintRule>, findings: &mut Findings) {
    match old {
        None => metadata::check_name(&new.metadata, findings),
        Some(old) => metadata::check_update(&new.metadata, &old.metadata, findings),
    }
    let at = FieldPath::new("spec");
    if let Some(selector) = &new.spec.device_selector {
        let at = at.child("deviceSelector");
        if let Some(driver) = &selector.driver {
            names::driver(driver, &at.child("driver"), findings);
        }
        if let Some(pool) = &selector.pool {
            names::pool(pool, &at.child("pool"), findings);
        }
        if let Some(device) = &selector.device {
            names::label(device, &at.child("device"), findings);
        }
    }
    taint::check(&new.spec.taint, old.map(|old| &old.spec.taint), &at.child("taint"), findings);
}

/// Checks an update of the status.
pub(super) fn check_status(new: &DeviceTaintRule, findings: &mut Findings) {
    let conditions = new.status.as_ref().and_then(|status| status.conditions.as_ref());
    condition::check_list(conditions, &FieldPath::new("status").child("conditions"), findings);
}
