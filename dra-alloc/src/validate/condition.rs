//! Conditions in a status.

use std::collections::BTreeSet;

use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::findings::Findings;
use super::{limits, names};

/// The first second of the year 1, which is how Go writes a time that is not set.
const NO_TIME: i64 = -62_135_596_800;

const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of \
                      alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. \
                      'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used \
                      for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// Checks conditions: not too many, no type twice, each of its form.
pub(super) fn check_list(conditions: Option<&Vec<Condition>>, at: &FieldPath<'_>, findings: &mut Findings) {
    let conditions = conditions.map_or(&[][..], Vec::as_slice);
    if conditions.len() > limits::CONDITIONS {
        return findings.push(FieldError::too_many(at, conditions.len(), limits::CONDITIONS));
    }
    let mut types = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let at = at.index(index);
        if !types.insert(&condition.type_) {
            findings.push(FieldError::duplicate(&at, &condition.type_));
        }
        check(condition, &at, findings);
    }
}

fn check(condition: &Condition, at: &FieldPath<'_>, findings: &mut Findings) {
    let (at_type, at_status) = (at.child("type"), at.child("status"));
    if condition.type_.is_empty() {
        findings.push(FieldError::required(&at_type, "is required"));
    } else {
        names::label_key(&condition.type_, &at_type, findings);
    }
    if condition.status.is_empty() {
        findings.push(FieldError::required(&at_status, ""));
    } else if !STATUSES.contains(&condition.status.as_str()) {
        findings.push(FieldError::not_supported(&at_status, &condition.status, &STATUSES));
    }
    if let Some(generation) = condition.observed_generation.filter(|generation| *generation < 0) {
        let detail = "must be greater than or equal to zero";
        findings.push(FieldError::invalid(&at.child("observedGeneration"), generation, detail));
    }
    if condition.last_transition_time.0.as_second() == NO_TIME {
        findings.push(FieldError::required(&at.child("lastTransitionTime"), ""));
    }
    check_reason(&condition.reason, &at.child("reason"), findings);
    if condition.message.len() > limits::CONDITION_MESSAGE {
        findings.push(FieldError::too_long(&at.child("message"), limits::CONDITION_MESSAGE));
    }
}

fn check_reason(reason: &str, at: &FieldPath<'_>, findings: &mut Findings) {
    if reason.is_empty() {
        return findings.push(FieldError::required(at, ""));
    }
    let inner = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b',' | b':');
    let ends = reason.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if !(reason.starts_with(|c: char| c.is_ascii_alphabetic()) && ends && reason.bytes().all(inner)) {
        findings.push(FieldError::invalid(at, reason, REASON));
    }
    if reason.len() > limits::CONDITION_REASON {
        findings.push(FieldError::too_long(at, limits::CONDITION_REASON));
    }
}
