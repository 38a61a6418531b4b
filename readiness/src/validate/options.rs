//! Options of the validation of gates and requirements.

/// Options of [`validate_gates`](super::validate_gates), [`validate_gate_update`](super::validate_gate_update) and
/// [`validate_requirements`](super::validate_requirements).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidationOptions {
    /// True if 238 bytes are the limit of a condition type's domain, as a label key allows: its domain has 253 bytes, less the
    /// prefix `readiness-gate.`. Otherwise they are the limit of the whole type, as the KEP says.
    pub(crate) limits_domain_alone: bool,
    /// True if the node itself (`system:node:NAME`) makes an update of its gates, which it may not weaken. Otherwise an
    /// administrator makes it: anyone who may write nodes.
    pub(crate) is_by_node: bool,
    /// kubelet's `nodeStatusUpdateFrequency` in seconds. Timeouts below twice that time get a warning.
    pub status_update_seconds: i32,
    /// Path of the list in error messages: `spec.readinessGates` of a Node, `nodeReadinessGates` of a
    /// `KubeletConfiguration`.
    pub(crate) path: String,
}

impl Default for ValidationOptions {
    fn default() -> Self {
        Self {
            limits_domain_alone: false,
            is_by_node: false,
            status_update_seconds: 10,
            path: "spec.readinessGates".to_owned(),
        }
    }
}

impl ValidationOptions {
    /// Limits the length of the domain of condition types alone.
    #[must_use]
    pub fn with_limit_of_domain(self) -> Self {
        Self { limits_domain_alone: true, ..self }
    }

    /// Validates an update as one that the node itself makes.
    #[must_use]
    pub fn by_node(self) -> Self {
        Self { is_by_node: true, ..self }
    }

    /// Sets the path of the list in error messages.
    #[must_use]
    pub fn with_path(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }
}
