//! Context of the validation of one object: its inputs and the errors found so far.

use dra_attrs::{BadValue, FieldError, FieldErrors, GateSet};
use serde::Serialize;

use crate::gates::DraGate;
use crate::profile::Decisions;

/// Feature gates and profile decisions that the checks of one object read, and the errors that they have found.
#[derive(Debug)]
pub(super) struct ValidationContext {
    gates: GateSet<DraGate>,
    pub(super) decisions: Decisions,
    errors: FieldErrors,
    /// True while the checked part equals the stored one; see `ratchet`.
    pub(super) unchanged: bool,
}

impl ValidationContext {
    pub(super) const fn new(gates: GateSet<DraGate>, decisions: Decisions) -> Self {
        Self { gates, decisions, errors: FieldErrors::new(), unchanged: false }
    }

    pub(super) fn has(&self, feature: DraGate) -> bool {
        self.gates.has(feature)
    }

    pub(super) fn push(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    pub(super) fn extend(&mut self, errors: FieldErrors) {
        self.errors.extend(errors);
    }

    pub(super) fn into_errors(self) -> FieldErrors {
        self.errors
    }
}

/// Returns the value of an error that is printed as JSON.
pub(super) fn json(value: &impl Serialize) -> BadValue {
    serde_json::to_string(value).map_or(BadValue::Omitted, BadValue::literal)
}
