//! Taints and tolerations (KEP-5055).

use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{DeviceTaint, DeviceToleration};

use super::findings::Findings;
use super::list::List;
use super::{limits, names};

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];
const OPERATORS: [&str; 2] = ["Equal", "Exists"];

/// Checks the taints of a device.
pub(super) fn check_list(taints: Option<&Vec<DeviceTaint>>, at: &FieldPath<'_>, findings: &mut Findings) {
    let taints = List::new(taints).at_most(limits::TAINTS);
    taints.each(at, findings, |taint, at, findings| check(taint, None, at, findings));
}

/// Checks the effects of taints, and nothing else about them.
pub(super) fn check_effects(taints: Option<&Vec<DeviceTaint>>, at: &FieldPath<'_>, findings: &mut Findings) {
    List::new(taints).each(at, findings, |taint, at, findings| {
        check_required_effect(&taint.effect, &at.child("effect"), findings);
    });
}

/// Checks a taint. An effect that is in storage is not looked at again.
pub(super) fn check(new: &DeviceTaint, old: Option<&DeviceTaint>, at: &FieldPath<'_>, findings: &mut Findings) {
    names::label_key(&new.key, &at.child("key"), findings);
    if let Some(value) = &new.value {
        names::label_value(value, &at.child("value"), findings);
    }
    if old.is_none_or(|old| old.effect != new.effect) {
        check_required_effect(&new.effect, &at.child("effect"), findings);
    }
}

/// Checks the tolerations of a request or a result. Their number is not limited.
pub(super) fn check_tolerations(
    tolerations: Option<&Vec<DeviceToleration>>,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    List::new(tolerations).each(&at.child("tolerations"), findings, check_toleration);
}

fn check_toleration(toleration: &DeviceToleration, at: &FieldPath<'_>, findings: &mut Findings) {
    if let Some(key) = toleration.key.as_deref().filter(|key| !key.is_empty()) {
        names::label_key(key, &at.child("key"), findings);
    }
    let value = toleration.value.as_deref().unwrap_or_default();
    match toleration.operator.as_deref() {
        Some("Exists") if !value.is_empty() => {
            let detail = "must be empty for operator `Exists`";
            findings.push(FieldError::invalid(&at.child("value"), value, detail));
        }
        Some("Exists") => {}
        // The default of an absent operator.
        None | Some("Equal") => names::label_value(value, &at.child("value"), findings),
        Some("") => findings.push(FieldError::required(&at.child("operator"), "")),
        Some(other) => findings.push(FieldError::not_supported(&at.child("operator"), other, &OPERATORS)),
    }
    if let Some(effect) = toleration.effect.as_deref().filter(|effect| !effect.is_empty()) {
        check_effect(effect, &at.child("effect"), findings);
    }
}

fn check_required_effect(effect: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    if effect.is_empty() {
        findings.push(FieldError::required(at, ""));
    } else {
        check_effect(effect, at, findings);
    }
}

fn check_effect(effect: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    if !EFFECTS.contains(&effect) {
        findings.push(FieldError::not_supported(at, effect, &EFFECTS));
    }
}
