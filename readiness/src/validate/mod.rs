//! What the API server would refuse (KEP-5233, API Validation), and what it would warn of.

mod error;
mod gate;
mod update;

use crate::gate::NodeReadinessGate;
use crate::pod::NodeReadinessRequirement;

pub use error::{ErrorType, FieldError, Warning, WarningKind};
pub use update::{Writer, validate_update};

/// How long a condition type may be. The KEP's 238 is the 253 bytes of a label key's domain without the prefix
/// `readiness-gate.`, but it applies the number to the whole type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LengthPolicy {
    /// The whole type has at most 238 bytes, as written.
    #[default]
    Strict,
    /// The domain has at most 238 bytes and the name 63: what a label key can hold.
    PrefixOnly,
}

/// Settings of validation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How long types may be.
    pub lengths: LengthPolicy,
    /// kubelet's `nodeStatusUpdateFrequency` in seconds: timeouts below twice as much get a warning.
    pub status_update_seconds: i32,
    /// Path of the list: `spec.readinessGates` of a Node, `nodeReadinessGates` of a `KubeletConfiguration`.
    pub path: String,
}

impl Default for Limits {
    fn default() -> Self {
        Self { lengths: LengthPolicy::Strict, status_update_seconds: 10, path: "spec.readinessGates".to_owned() }
    }
}

impl Limits {
    /// The same limits with another rule for lengths.
    #[must_use]
    pub fn with_lengths(self, lengths: LengthPolicy) -> Self {
        Self { lengths, ..self }
    }

    /// The same limits for a list in another place.
    #[must_use]
    pub fn at(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }
}

/// Errors and warnings, in the order of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Why the list is refused.
    pub errors: Vec<FieldError>,
    /// What is worth a look.
    pub warnings: Vec<Warning>,
}

impl Report {
    /// Whether nothing is refused.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

/// Checks a list of gates.
///
/// - `conditionType`: required, unique, one slash, a DNS-1123 subdomain before it and a label's name after it; so
///   `Ready` and the other conditions of kubelet are no gates.
/// - `timeoutSeconds`: required, positive.
/// - `failureAction`: `Taint` (also when left out) or `BypassWithWarning`.
/// - `readinessTaint`: required for `Taint`, valid, and none that the node lifecycle controller manages; ignored otherwise.
///   Two gates may share a taint only if it is the same with its value.
///
/// # Complexity
/// `n log n` in the number of gates, and as many again for each other value of a taint that gates share.
///
/// ```
/// use readiness::gate::NodeReadinessGate;
/// use readiness::validate::{ErrorType, Limits, validate};
/// let gates = [NodeReadinessGate::new("datadog.com/AgentReady", 0).bypassing()];
/// let report = validate(&gates, &Limits::default());
/// assert_eq!(report.errors[0].r#type, ErrorType::Invalid);
/// assert_eq!(report.errors[0].field, "spec.readinessGates[0].timeoutSeconds");
/// ```
#[must_use]
pub fn validate(gates: &[NodeReadinessGate], limits: &Limits) -> Report {
    let mut report = Report::default();
    for of_gate in gate::reports(gates, |_| false, limits) {
        report.errors.extend(of_gate.report.errors);
        report.errors.extend(of_gate.conflict);
        report.warnings.extend(of_gate.report.warnings);
    }
    report
}

/// Checks the requirements of a pod: types as those of gates, each once, and no status but `True`.
///
/// ```
/// use readiness::pod::NodeReadinessRequirement;
/// use readiness::validate::{Limits, validate_requirements};
/// let requirement = |status: &str| NodeReadinessRequirement {
///     condition_type: "nvidia.com/GPUDriversReady".into(), status: status.into(),
/// };
/// assert!(validate_requirements(&[requirement("True")], &Limits::default()).is_valid());
/// assert_eq!(validate_requirements(&[requirement("False")], &Limits::default()).errors.len(), 1);
/// ```
#[must_use]
pub fn validate_requirements(requirements: &[NodeReadinessRequirement], limits: &Limits) -> Report {
    let mut seen = std::collections::BTreeSet::new();
    let mut report = Report::default();
    let errors = &mut report.errors;
    for (index, requirement) in requirements.iter().enumerate() {
        let path = format!("spec.nodeReadinessRequirements[{index}]");
        let field = format!("{path}.conditionType");
        let name = &requirement.condition_type;
        errors.extend(gate::type_errors(name, &field, limits.lengths));
        if !name.is_empty() && !seen.insert(name) {
            errors.push(FieldError::text(ErrorType::Duplicate, field, name, ""));
        }
        let field = format!("{path}.status");
        match requirement.status.as_str() {
            crate::condition::TRUE => {}
            "" => errors.push(FieldError::required(field, "")),
            other => errors.push(FieldError::text(ErrorType::NotSupported, field, other, "supported values: \"True\"")),
        }
    }
    report
}
