//! The rules for one gate, and those between the gates of a list.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Taint;

use super::error::{ErrorType, FieldError, Warning, WarningKind};
use super::{LengthPolicy, Limits, Report};
use crate::gate::{FailureAction, NodeReadinessGate};
use crate::label::LABEL_PREFIX;
use crate::name::{MAX_DOMAIN, domain_problems, key_problems, name_problems, value_problems};
use crate::taint::{EFFECTS, NO_EXECUTE, PREFER_NO_SCHEDULE, is_managed};

/// 253 bytes of a domain without the prefix of the label.
const MAX_TYPE: usize = MAX_DOMAIN - LABEL_PREFIX.len();

/// What is the matter with one gate.
pub(super) struct GateReport {
    pub(super) report: Report,
    /// An error that comes of earlier gates, which have another value for the same taint.
    pub(super) conflict: Option<FieldError>,
}

/// One report for each gate. Gates that were stored do not conflict among each other.
pub(super) fn reports(
    gates: &[NodeReadinessGate],
    was_stored: impl Fn(usize) -> bool,
    limits: &Limits,
) -> Vec<GateReport> {
    let mut types = BTreeSet::new();
    // By key and effect: the values, and whether all gates with a value were stored.
    let mut taints: BTreeMap<(&str, &str), BTreeMap<&str, bool>> = BTreeMap::new();
    let mut reports = Vec::with_capacity(gates.len());
    for (index, gate) in gates.iter().enumerate() {
        let path = format!("{}[{index}]", limits.path);
        let (mut report, mut conflict) = (Report::default(), None);
        let field = format!("{path}.conditionType");
        report.errors.extend(type_errors(&gate.condition_type, &field, limits.lengths));
        if !gate.condition_type.is_empty() && !types.insert(gate.condition_type.as_str()) {
            report.errors.push(FieldError::text(ErrorType::Duplicate, field, &gate.condition_type, ""));
        }
        check_timeout(gate, &path, limits, &mut report);
        check_action(gate, &path, &mut report);
        let field = format!("{path}.readinessTaint");
        check_presence(gate, &field, &mut report);
        if let Some(taint) = gate.taint() {
            check_taint(taint, &field, &mut report);
            let value = taint.value.as_deref().unwrap_or_default();
            let values = taints.entry((&taint.key, &taint.effect)).or_default();
            *values.entry(value).or_insert(true) &= was_stored(index);
            if values.iter().any(|(other, all_stored)| *other != value && !(*all_stored && was_stored(index))) {
                let quoted = format!("{}={value}:{}", taint.key, taint.effect);
                let detail = "taints must be unique by key and effect pair";
                conflict = Some(FieldError::text(ErrorType::Duplicate, field, &quoted, detail));
            }
        }
        reports.push(GateReport { report, conflict });
    }
    reports
}

/// What is wrong with a condition type. Its uniqueness is not looked at.
pub(super) fn type_errors(condition_type: &str, field: &str, lengths: LengthPolicy) -> Vec<FieldError> {
    const FORM: &str = "must be a domain, a slash and a name (e.g. 'domainname.com/MyCondition')";
    if condition_type.is_empty() {
        return vec![FieldError::required(field, "")];
    }
    let too_long = |what: &str| {
        let detail = format!("{what}may not be more than {MAX_TYPE} bytes");
        vec![FieldError::text(ErrorType::TooLong, field, condition_type, &detail)]
    };
    if lengths == LengthPolicy::Strict && condition_type.len() > MAX_TYPE {
        return too_long("");
    }
    let invalid = |detail: &str| FieldError::text(ErrorType::Invalid, field, condition_type, detail);
    let Some((domain, name)) = condition_type.split_once('/').filter(|(_, name)| !name.contains('/')) else {
        return vec![invalid(FORM)];
    };
    if domain.len() > MAX_TYPE {
        return too_long("the domain ");
    }
    domain_problems(domain).chain(name_problems(name)).map(invalid).collect()
}

fn check_timeout(gate: &NodeReadinessGate, path: &str, limits: &Limits, report: &mut Report) {
    let field = format!("{path}.timeoutSeconds");
    let advised = limits.status_update_seconds.saturating_mul(2);
    match gate.timeout_seconds {
        None => report.errors.push(FieldError::required(field, "")),
        Some(seconds) if seconds <= 0 => {
            report.errors.push(FieldError::new(ErrorType::Invalid, field, seconds, "must be greater than 0"));
        }
        Some(seconds) if seconds < advised => {
            report.warnings.push(Warning { field, kind: WarningKind::ShortTimeout { seconds, advised } });
        }
        Some(_) => {}
    }
}

fn check_action(gate: &NodeReadinessGate, path: &str, report: &mut Report) {
    let FailureAction::Other(action) = &gate.failure_action else { return };
    let hint = if action == "TaintNode" { "; did you mean \"Taint\"?" } else { "" };
    let detail = format!("supported values: {}{hint}", quoted(&FailureAction::KNOWN));
    report.errors.push(FieldError::text(ErrorType::NotSupported, format!("{path}.failureAction"), action, &detail));
}

fn check_presence(gate: &NodeReadinessGate, field: &str, report: &mut Report) {
    let has_taint = gate.readiness_taint.is_some();
    match gate.failure_action {
        FailureAction::Taint if !has_taint => {
            report.errors.push(FieldError::required(field, "must be set if failureAction is Taint"));
        }
        FailureAction::BypassWithWarning if has_taint => {
            report.warnings.push(Warning { field: field.to_owned(), kind: WarningKind::IgnoredTaint });
        }
        _ => {}
    }
}

fn check_taint(taint: &Taint, path: &str, report: &mut Report) {
    let field = format!("{path}.key");
    let invalid = |problem| FieldError::text(ErrorType::Invalid, &*field, &taint.key, problem);
    report.errors.extend(key_problems(&taint.key).into_iter().map(invalid));
    if is_managed(&taint.key) {
        let detail = "taints with this key are added and removed by the node lifecycle controller or a cloud provider";
        report.errors.push(FieldError::forbidden(field, detail));
    }
    let value = taint.value.as_deref().unwrap_or_default();
    let problems: Vec<&str> = value_problems(value).collect();
    if !problems.is_empty() {
        let detail = problems.join(";");
        report.errors.push(FieldError::text(ErrorType::Invalid, format!("{path}.value"), value, &detail));
    }
    check_effect(&taint.effect, format!("{path}.effect"), report);
}

fn check_effect(effect: &str, field: String, report: &mut Report) {
    match effect {
        NO_EXECUTE => report.warnings.push(Warning { field, kind: WarningKind::Evicting }),
        PREFER_NO_SCHEDULE => report.warnings.push(Warning { field, kind: WarningKind::NotBlocking }),
        "" => report.errors.push(FieldError::required(field, "")),
        known if EFFECTS.contains(&known) => {}
        other => {
            let detail = format!("supported values: {}", quoted(&EFFECTS));
            report.errors.push(FieldError::text(ErrorType::NotSupported, field, other, &detail));
        }
    }
}

fn quoted(values: &[&str]) -> String {
    values.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(", ")
}
