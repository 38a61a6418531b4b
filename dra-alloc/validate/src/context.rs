//! Context of the validation of one object: its inputs and the errors found so far.

use dra_attrs::internal::release::Rules;
use dra_attrs::{BadValue, ErrorType, FieldError, FieldErrors, Gate, GateSet, Profile};
use serde::Serialize;

/// Feature gates and profile decisions for the validation of one object, with the errors found so far.
#[derive(Debug)]
pub(super) struct ValidationContext {
    gates: GateSet,
    pub(super) profile: Profile,
    /// Rules of the profile.
    pub(super) rules: &'static Rules,
    errors: FieldErrors,
    /// True while the checked part of the object equals that of the stored object; see `ratchet`.
    pub(super) unchanged: bool,
}

impl ValidationContext {
    pub(super) const fn new(gates: GateSet, profile: Profile) -> Self {
        Self { gates, profile, rules: profile.rules(), errors: FieldErrors::new(), unchanged: false }
    }

    pub(super) const fn gates(&self) -> GateSet {
        self.gates
    }

    pub(super) fn has(&self, feature: Gate) -> bool {
        self.gates.has(feature)
    }

    pub(super) fn push(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    pub(super) fn extend(&mut self, errors: FieldErrors) {
        self.errors.extend(errors);
    }

    /// Returns the errors. Where the server stops, nothing else is answered.
    pub(super) fn into_errors(self) -> FieldErrors {
        let is_stop = |error: &&FieldError| error.r#type == ErrorType::ServerStops;
        match self.errors.iter().find(is_stop) {
            Some(stop) => std::iter::once(stop.clone()).collect(),
            None => self.errors,
        }
    }
}

/// Returns a value to be printed as JSON in an error.
pub(super) fn json(value: &impl Serialize) -> BadValue {
    serde_json::to_string(value).map_or(BadValue::Omitted, BadValue::literal)
}
