//! Validation of gates and requirements with the API server's errors and warnings (KEP-5233, API Validation).
//!
//! Tests: `tests/it/validate.rs`.

mod gate;
mod gate_update;
mod options;
mod warning;

use std::collections::BTreeSet;

use dra_attrs::{FieldError, FieldErrors, FieldPath};

use crate::gate::NodeReadinessGate;
use crate::pod::NodeReadinessRequirement;

pub use gate_update::validate_gate_update;
pub use options::ValidationOptions;
pub use warning::{GateWarning, GateWarningKind};

/// Errors and warnings of a validated list, in the order of its items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidationReport {
    /// Errors, for which the API server refuses the list.
    pub errors: FieldErrors,
    /// Warnings, despite which the API server accepts the list.
    pub warnings: Vec<GateWarning>,
}

impl ValidationReport {
    /// Returns true if there are no errors.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

/// Validates a list of readiness gates by the rules of KEP-5233.
///
/// - `conditionType`: required, unique, one slash, a DNS-1123 subdomain before it and a label's name after it; so
///   `Ready` and the other conditions of kubelet are no gates.
/// - `timeoutSeconds`: required, positive.
/// - `failureAction`: `Taint` (also when left out) or `BypassWithWarning`.
/// - `readinessTaint`: required for `Taint`, valid, and not managed by the node lifecycle controller; ignored otherwise.
///   Two gates may share a taint only if it has the same value.
///
/// # Complexity
/// `n log n` in the number of gates, times the number of values of a taint that several gates share.
///
/// ```
/// use dra_attrs::ErrorType;
/// use readiness::NodeReadinessGate;
/// use readiness::validate::{ValidationOptions, validate_gates};
/// let gates = [NodeReadinessGate::new("datadog.com/AgentReady", 0).with_bypass_warning()];
/// let report = validate_gates(&gates, &ValidationOptions::default());
/// let error = &report.errors[0];
/// assert_eq!(error.r#type, ErrorType::Invalid);
/// assert_eq!(error.field, "spec.readinessGates[0].timeoutSeconds");
/// ```
#[must_use]
pub fn validate_gates(gates: &[NodeReadinessGate], options: &ValidationOptions) -> ValidationReport {
    let mut report = ValidationReport::default();
    for findings in gate::check_gates(gates, |_| false, options) {
        report.errors.extend(findings.errors);
        report.errors.extend(findings.conflict);
        report.warnings.extend(findings.warnings);
    }
    report
}

/// Validates the requirements of a pod: condition types as those of gates, each once, and the status `True`.
///
/// ```
/// use readiness::NodeReadinessRequirement;
/// use readiness::validate::{ValidationOptions, validate_requirements};
/// let requirement = |status: &str| NodeReadinessRequirement {
///     condition_type: "nvidia.com/GPUDriversReady".into(), status: status.into(),
/// };
/// assert!(validate_requirements(&[requirement("True")], &ValidationOptions::default()).is_valid());
/// assert_eq!(validate_requirements(&[requirement("False")], &ValidationOptions::default()).errors.len(), 1);
/// ```
#[must_use]
pub fn validate_requirements(
    requirements: &[NodeReadinessRequirement],
    options: &ValidationOptions,
) -> ValidationReport {
    let mut seen = BTreeSet::new();
    let mut errors = FieldErrors::new();
    let list = FieldPath::new("spec.nodeReadinessRequirements");
    for (index, requirement) in requirements.iter().enumerate() {
        let path = list.index(index);
        let field = path.child("conditionType");
        let name = &requirement.condition_type;
        errors.extend(gate::type_errors(name, &field, options));
        if !name.is_empty() && !seen.insert(name) {
            errors.push(FieldError::duplicate(&field, name));
        }
        let field = path.child("status");
        match requirement.status.as_str() {
            crate::condition::TRUE => {}
            "" => errors.push(FieldError::required(&field, "")),
            other => errors.push(FieldError::not_supported(&field, other, &[crate::condition::TRUE])),
        }
    }
    ValidationReport { errors, warnings: Vec::new() }
}
