//! Where the checks put what they find, and what they need to know.

use dra_attrs::field::{BadValue, FieldError, FieldErrors};
use serde::Serialize;

use crate::features::{Feature, Features};
use crate::profile::Decisions;

/// What the checks of one object know and have found.
#[derive(Debug)]
pub(super) struct Findings {
    features: Features,
    pub(super) decisions: Decisions,
    errors: FieldErrors,
    /// The part that is being checked stands like this in storage already.
    settled: bool,
}

impl Findings {
    pub(super) const fn new(features: Features, decisions: Decisions) -> Self {
        Self { features, decisions, errors: FieldErrors::new(), settled: false }
    }

    pub(super) const fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    pub(super) fn push(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    pub(super) fn extend(&mut self, errors: FieldErrors) {
        self.errors.extend(errors);
    }

    /// Runs a check that Kubernetes declares on the type of the field and does not have in code: it is left out where the
    /// part is stored already. A rule that is in code holds for every write, whatever the type declares too.
    pub(super) fn declared(&mut self, check: impl FnOnce(&mut Self)) {
        if !self.settled {
            check(self);
        }
    }

    /// Runs the checks of a part that may be as it is stored.
    pub(super) fn settled_if(&mut self, unchanged: bool, checks: impl FnOnce(&mut Self)) {
        let before = self.settled;
        self.settled |= unchanged;
        checks(self);
        self.settled = before;
    }

    pub(super) fn into_errors(self) -> FieldErrors {
        self.errors
    }
}

/// A value that a message shows as JSON.
pub(super) fn json(value: &impl Serialize) -> BadValue {
    serde_json::to_string(value).map_or(BadValue::Omitted, BadValue::literal)
}
