//! Context of the validation of one object: its inputs and the errors found so far.

use dra_attrs::{BadValue, DraGate, FieldError, FieldErrors, GateSet, Profile};
use serde::Serialize;

/// Feature gates and profile decisions for the validation of one object, with the errors found so far.
#[derive(Debug)]
pub(super) struct ValidationContext {
    gates: GateSet<DraGate>,
    pub(super) profile: Profile,
    errors: FieldErrors,
    /// True while the checked part of the object equals that of the stored object; see `ratchet`.
    pub(super) unchanged: bool,
}

impl ValidationContext {
    pub(super) const fn new(gates: GateSet<DraGate>, profile: Profile) -> Self {
        Self { gates, profile, errors: FieldErrors::new(), unchanged: false }
    }

    pub(super) const fn gates(&self) -> GateSet<DraGate> {
        self.gates
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

/// Returns a value to be printed as JSON in an error.
pub(super) fn json(value: &impl Serialize) -> BadValue {
    serde_json::to_string(value).map_or(BadValue::Omitted, BadValue::literal)
}
