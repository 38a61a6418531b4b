//! Validation of a `DeviceTaintRule` and its status.

use dra_attrs::FieldPath;
use k8s_openapi::api::resource::v1::DeviceTaintRule;

use super::context::ValidationContext;
use super::{condition, metadata, names, taint};

/// Checks a create of a taint rule, or an update of the stored rule `old`.
pub(super) fn check(new: &DeviceTaintRule, old: Option<&DeviceTaintRule>, context: &mut ValidationContext) {
    match old {
        None => metadata::check_name(&new.metadata, context),
        Some(old) => metadata::check_update(&new.metadata, &old.metadata, context),
    }
    let at = FieldPath::new("spec");
    if let Some(selector) = &new.spec.device_selector {
        let at = at.child("deviceSelector");
        if let Some(driver) = &selector.driver {
            names::driver(driver, &at.child("driver"), context);
        }
        if let Some(pool) = &selector.pool {
            names::pool(pool, &at.child("pool"), context);
        }
        if let Some(device) = &selector.device {
            names::label(device, &at.child("device"), context);
        }
    }
    taint::check(&new.spec.taint, old.map(|old| &old.spec.taint), &at.child("taint"), context);
}

/// Checks an update of the status of a taint rule.
pub(super) fn check_status(new: &DeviceTaintRule, context: &mut ValidationContext) {
    let conditions = new.status.as_ref().and_then(|status| status.conditions.as_ref());
    condition::check_list(conditions, &FieldPath::new("status").child("conditions"), context);
}
