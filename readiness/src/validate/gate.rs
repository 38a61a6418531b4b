//! Validation of each gate in a list, and of gates that share a condition type or a taint.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::{BadValue, ErrorType, FieldError, FieldPath, NameFormat};
use k8s_openapi::api::core::v1::Taint;

use super::options::ValidationOptions;
use super::warning::{GateWarning, GateWarningKind};
use crate::gate::{FailureAction, NodeReadinessGate};
use crate::gate_label::GATE_LABEL_PREFIX;
use crate::taint::{EFFECTS, NO_EXECUTE, PREFER_NO_SCHEDULE, is_managed};

/// Maximum length of a condition type in bytes: 253 for the domain of a label key, minus 15 for the prefix
/// `readiness-gate.`.
const MAX_TYPE_LEN: usize = NameFormat::MAX_SUBDOMAIN_LEN - GATE_LABEL_PREFIX.len();

/// Errors and warnings from validating one gate.
#[derive(Default)]
pub(super) struct GateFindings {
    pub(super) errors: Vec<FieldError>,
    pub(super) warnings: Vec<GateWarning>,
    /// Error of a taint if an earlier gate has a taint of equal key and effect with another value.
    pub(super) conflict: Option<FieldError>,
}

impl GateFindings {
    fn warn(&mut self, field: &FieldPath<'_>, kind: GateWarningKind) {
        self.warnings.push(GateWarning { field: field.to_string(), kind });
    }
}

/// Validates each gate of a list. Two gates that were both stored before never conflict over a taint.
pub(super) fn check_gates(
    gates: &[NodeReadinessGate],
    was_stored: impl Fn(usize) -> bool,
    options: &ValidationOptions,
) -> Vec<GateFindings> {
    let mut types = BTreeSet::new();
    // By key and effect: the values, each with true if all gates with it were stored.
    let mut taints: BTreeMap<(&str, &str), BTreeMap<&str, bool>> = BTreeMap::new();
    let mut all = Vec::with_capacity(gates.len());
    let list = FieldPath::new(&options.path);
    for (index, gate) in gates.iter().enumerate() {
        let path = list.index(index);
        let mut findings = GateFindings::default();
        let field = path.child("conditionType");
        findings.errors.extend(type_errors(&gate.condition_type, &field, options));
        if !gate.condition_type.is_empty() && !types.insert(gate.condition_type.as_str()) {
            findings.errors.push(FieldError::duplicate(&field, &gate.condition_type));
        }
        check_timeout(gate, &path, options, &mut findings);
        check_action(gate, &path, &mut findings);
        let field = path.child("readinessTaint");
        check_presence(gate, &field, &mut findings);
        if let Some(taint) = gate.taint() {
            check_taint(taint, &field, &mut findings);
            let value = taint.value.as_deref().unwrap_or_default();
            let values = taints.entry((&taint.key, &taint.effect)).or_default();
            *values.entry(value).or_insert(true) &= was_stored(index);
            if values.iter().any(|(other, all_stored)| *other != value && !(*all_stored && was_stored(index))) {
                let text = format!("{}={value}:{}", taint.key, taint.effect);
                let detail = "taints must be unique by key and effect pair";
                findings.conflict = Some(FieldError::new(ErrorType::Duplicate, &field, text.into(), detail));
            }
        }
        all.push(findings);
    }
    all
}

/// Validates the form and length of a condition type, but not that it is unique.
pub(super) fn type_errors(condition_type: &str, field: &FieldPath<'_>, options: &ValidationOptions) -> Vec<FieldError> {
    const FORM: &str = "must be a domain, a slash and a name (e.g. 'domainname.com/MyCondition')";
    if condition_type.is_empty() {
        return vec![FieldError::required(field, "")];
    }
    let too_long = |part: &str| {
        let detail = format!("{part}may not be more than {MAX_TYPE_LEN} bytes");
        vec![FieldError::new(ErrorType::TooLong, field, BadValue::Omitted, detail)]
    };
    if !options.limits_domain_alone && condition_type.len() > MAX_TYPE_LEN {
        return too_long("");
    }
    let invalid = |detail: String| FieldError::invalid(field, condition_type, detail);
    let Some((domain, name)) = condition_type.split_once('/').filter(|(_, name)| !name.contains('/')) else {
        return vec![invalid(FORM.to_owned())];
    };
    if domain.len() > MAX_TYPE_LEN {
        return too_long("the domain ");
    }
    NameFormat::LabelKeyPrefix
        .problems(domain)
        .into_iter()
        .chain(NameFormat::LabelKeyName.problems(name))
        .map(invalid)
        .collect()
}

fn check_timeout(
    gate: &NodeReadinessGate,
    path: &FieldPath<'_>,
    options: &ValidationOptions,
    findings: &mut GateFindings,
) {
    let field = path.child("timeoutSeconds");
    let advised = options.status_update_seconds.saturating_mul(2);
    match gate.timeout_seconds {
        None => findings.errors.push(FieldError::required(&field, "")),
        Some(seconds) if seconds <= 0 => {
            findings.errors.push(FieldError::invalid(&field, seconds, "must be greater than 0"));
        }
        Some(seconds) if seconds < advised => findings.warn(&field, GateWarningKind::ShortTimeout { seconds, advised }),
        Some(_) => {}
    }
}

fn check_action(gate: &NodeReadinessGate, path: &FieldPath<'_>, findings: &mut GateFindings) {
    let FailureAction::Other(action) = &gate.failure_action else { return };
    let mut error = FieldError::not_supported(&path.child("failureAction"), action, &FailureAction::KNOWN);
    if action == "TaintNode" {
        error.detail.push_str("; did you mean \"Taint\"?");
    }
    findings.errors.push(error);
}

fn check_presence(gate: &NodeReadinessGate, field: &FieldPath<'_>, findings: &mut GateFindings) {
    let has_taint = gate.readiness_taint.is_some();
    match gate.failure_action {
        FailureAction::Taint if !has_taint => {
            findings.errors.push(FieldError::required(field, "must be set if failureAction is Taint"));
        }
        FailureAction::BypassWithWarning if has_taint => findings.warn(field, GateWarningKind::IgnoredTaint),
        _ => {}
    }
}

fn check_taint(taint: &Taint, path: &FieldPath<'_>, findings: &mut GateFindings) {
    let field = path.child("key");
    let invalid = |problem| FieldError::invalid(&field, &taint.key, problem);
    findings.errors.extend(NameFormat::LabelKey.problems(&taint.key).into_iter().map(invalid));
    if is_managed(&taint.key) {
        let detail = "taints with this key are added and removed by the node lifecycle controller or a cloud provider";
        findings.errors.push(FieldError::forbidden(&field, detail));
    }
    let value = taint.value.as_deref().unwrap_or_default();
    let problems = NameFormat::LabelValue.problems(value);
    if !problems.is_empty() {
        findings.errors.push(FieldError::invalid(&path.child("value"), value, problems.join(";")));
    }
    check_effect(&taint.effect, &path.child("effect"), findings);
}

fn check_effect(effect: &str, field: &FieldPath<'_>, findings: &mut GateFindings) {
    match effect {
        NO_EXECUTE => findings.warn(field, GateWarningKind::Evicting),
        PREFER_NO_SCHEDULE => findings.warn(field, GateWarningKind::NotBlocking),
        "" => findings.errors.push(FieldError::required(field, "")),
        known if EFFECTS.contains(&known) => {}
        other => findings.errors.push(FieldError::not_supported(field, other, &EFFECTS)),
    }
}
