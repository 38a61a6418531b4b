//! Validation of `metav1.Condition` lists in a status.

use std::collections::BTreeSet;

use dra_attrs::internal::release::ConditionRules;
use dra_attrs::{FieldError, FieldErrors, FieldPath, NameFormat};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Go's zero time, the first second of the year 1, in seconds since the Unix epoch.
const NO_TIME: i64 = -62_135_596_800;

/// Largest length of a reason and of a message, in bytes.
const MAX_REASON: usize = 1024;
const MAX_MESSAGE: usize = 32 * 1024;

const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of \
                      alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. \
                      'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used \
                      for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// Validates the conditions of any object as the API server does: the form of each condition, and that no type occurs
/// twice. `at` is the path of the list in the errors. The length of the list is not checked, because each kind of
/// object has its own limit. `rules` are those of the release.
///
/// ```
/// use dra_device::internal::validate_conditions;
/// use dra_attrs::FieldPath;
/// use dra_attrs::internal::release::ConditionRules;
/// use serde_json::{from_value, json};
/// let time = "2026-02-07T10:30:00Z";
/// let condition = json!({"type": "Ready", "status": "", "reason": "Up", "message": "", "lastTransitionTime": time});
/// let errors = validate_conditions(&[from_value(condition)?], &FieldPath::new("conditions"), ConditionRules::Declared);
/// assert_eq!(errors.to_string(), "conditions[0].status: Required value");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn validate_conditions(conditions: &[Condition], at: &FieldPath<'_>, rules: ConditionRules) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut types = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let at = at.index(index);
        if !types.insert(&condition.type_) {
            errors.push(match rules {
                ConditionRules::Declared => FieldError::duplicate(&at, &condition.type_),
                ConditionRules::Written => FieldError::duplicate(&at.child("type"), &condition.type_),
            });
        }
        errors.extend(check_type(&condition.type_, &at.child("type"), rules));
        errors.extend(check_status(&condition.status, &at.child("status"), rules));
        errors.extend(check_generation(condition.observed_generation, &at.child("observedGeneration")));
        if condition.last_transition_time.0.as_second() == NO_TIME {
            errors.push(FieldError::required(&at.child("lastTransitionTime"), ""));
        }
        errors.extend(check_reason(&condition.reason, &at.child("reason")));
        errors.extend(too_long(&condition.message, MAX_MESSAGE, &at.child("message")));
    }
    errors
}

fn check_type(text: &str, at: &FieldPath<'_>, rules: ConditionRules) -> Vec<FieldError> {
    match rules {
        ConditionRules::Declared if text.is_empty() => return vec![FieldError::required(at, "is required")],
        ConditionRules::Declared | ConditionRules::Written => {}
    }
    let problems = NameFormat::LabelKey.problems(text);
    problems.into_iter().map(|problem| FieldError::invalid(at, text, problem)).collect()
}

fn check_status(status: &str, at: &FieldPath<'_>, rules: ConditionRules) -> Option<FieldError> {
    match rules {
        ConditionRules::Declared if status.is_empty() => return Some(FieldError::required(at, "")),
        ConditionRules::Declared | ConditionRules::Written => {}
    }
    (!STATUSES.contains(&status)).then(|| FieldError::not_supported(at, status, &STATUSES))
}

fn check_generation(generation: Option<i64>, at: &FieldPath<'_>) -> Option<FieldError> {
    let negative = generation.filter(|generation| *generation < 0)?;
    Some(FieldError::invalid(at, negative, "must be greater than or equal to zero"))
}

fn check_reason(reason: &str, at: &FieldPath<'_>) -> Vec<FieldError> {
    if reason.is_empty() {
        return vec![FieldError::required(at, "")];
    }
    let malformed = (!is_reason(reason)).then(|| FieldError::invalid(at, reason, REASON));
    malformed.into_iter().chain(too_long(reason, MAX_REASON, at)).collect()
}

fn is_reason(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b',' | b':');
    let ends = text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && ends && text.bytes().all(inner)
}

fn too_long(text: &str, max: usize, at: &FieldPath<'_>) -> Option<FieldError> {
    (text.len() > max).then(|| FieldError::too_long(at, max))
}
