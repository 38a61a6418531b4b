//! Validation of device taints and tolerations (KEP-5055).

use dra_attrs::internal::release::{StoredPart, Strictness};
use dra_attrs::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{DeviceTaint, DeviceToleration};

use super::context::ValidationContext;
use super::list::List;
use super::names;

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];
/// Effects before a taint could have none.
const EFFECTS_ON_PODS: [&str; 2] = ["NoExecute", "NoSchedule"];
const OPERATORS: [&str; 2] = ["Equal", "Exists"];

/// Checks the taints of a device.
pub(super) fn check_list(taints: Option<&Vec<DeviceTaint>>, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let taints = List::new(taints).at_most(context.rules.limits.taints);
    taints.each(at, context, |taint, at, context| check(taint, None, at, context));
}

/// Checks a taint. `old` is the stored taint; an unchanged effect is not checked again.
pub(super) fn check(new: &DeviceTaint, old: Option<&DeviceTaint>, at: &FieldPath<'_>, context: &mut ValidationContext) {
    names::label_key(&new.key, &at.child("key"), context);
    if let Some(value) = &new.value {
        names::label_value(value, &at.child("value"), context);
    }
    let is_trusted = match context.rules.validation.stored_taints {
        StoredPart::Trusted => old.is_some_and(|old| old.effect == new.effect),
        StoredPart::Validated => false,
    };
    if !is_trusted {
        check_required_effect(&new.effect, &at.child("effect"), context);
    }
}

/// Checks the tolerations of a request or allocation result. Their number is not limited.
pub(super) fn check_tolerations(
    tolerations: Option<&Vec<DeviceToleration>>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    List::new(tolerations).each(&at.child("tolerations"), context, check_toleration);
}

fn check_toleration(toleration: &DeviceToleration, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if let Some(key) = toleration.key.as_deref().filter(|key| !key.is_empty()) {
        names::label_key(key, &at.child("key"), context);
    }
    let value = toleration.value.as_deref().unwrap_or_default();
    match toleration.operator.as_deref() {
        Some("Exists") if !value.is_empty() => {
            let detail = "must be empty for operator `Exists`";
            context.push(FieldError::invalid(&at.child("value"), value, detail));
        }
        Some("Exists") => {}
        // The default operator is `Equal`.
        None | Some("Equal") => names::label_value(value, &at.child("value"), context),
        Some(other) => context.push(FieldError::not_supported(&at.child("operator"), other, &OPERATORS)),
    }
    if let Some(effect) = toleration.effect.as_deref().filter(|effect| !effect.is_empty()) {
        check_effect(effect, &at.child("effect"), context);
    }
}

fn check_required_effect(effect: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if effect.is_empty() {
        context.push(FieldError::required(at, ""));
    } else {
        check_effect(effect, at, context);
    }
}

fn check_effect(effect: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let effects: &[&str] = match context.rules.validation.none_effect {
        Strictness::Accepted => &EFFECTS,
        Strictness::Refused => &EFFECTS_ON_PODS,
    };
    if !effects.contains(&effect) {
        context.push(FieldError::not_supported(at, effect, effects));
    }
}
