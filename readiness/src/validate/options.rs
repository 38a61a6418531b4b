//! Options of the validation of gates and requirements.

/// Limit of the length of a condition type. The KEP's 238 bytes are the 253 bytes of a label key's domain without the prefix
/// `readiness-gate.`, but the KEP applies the number to the whole type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LengthPolicy {
    /// The whole type has at most 238 bytes, as the KEP says.
    #[default]
    Strict,
    /// The domain has at most 238 bytes and the name at most 63, as a label key allows.
    PrefixOnly,
}

/// Options of [`validate_gates`](super::validate_gates), [`validate_gate_update`](super::validate_gate_update) and
/// [`validate_requirements`](super::validate_requirements).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidationOptions {
    /// Limit for the length of condition types, as the KEP says or as label keys allow.
    pub lengths: LengthPolicy,
    /// kubelet's `nodeStatusUpdateFrequency` in seconds. Timeouts below twice that time get a warning.
    pub status_update_seconds: i32,
    /// Path of the list in error messages: `spec.readinessGates` of a Node, `nodeReadinessGates` of a
    /// `KubeletConfiguration`.
    pub path: String,
}

impl Default for ValidationOptions {
    fn default() -> Self {
        Self { lengths: LengthPolicy::Strict, status_update_seconds: 10, path: "spec.readinessGates".to_owned() }
    }
}

impl ValidationOptions {
    /// Sets the limit of the length of condition types.
    #[must_use]
    pub fn with_lengths(self, lengths: LengthPolicy) -> Self {
        Self { lengths, ..self }
    }

    /// Sets the path of the list in error messages.
    #[must_use]
    pub fn with_path(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }
}
