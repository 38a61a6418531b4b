//! Evaluation as a part of a search of another package.

use k8s_openapi::api::resource::v1::DeviceAttribute;

use crate::error::EvaluationError;
use crate::input::SelectorInput;
use crate::meter::Bound;
use crate::selector::Selector;

/// A selector as a search evaluates it. Prices are in parts of a unit of the search's work.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "read by the packages of the family alone")]
pub struct Searched<'s>(pub &'s Selector);

impl Searched<'_> {
    /// Evaluates the direct form, for a device whose attributes and capacities all have valid values. Returns the price too;
    /// `None` if the program has to answer.
    #[inline]
    #[must_use]
    pub fn answer(self, input: SelectorInput<'_>) -> Option<(bool, u64)> {
        self.0.answer(input)
    }

    /// Returns the price of an answer of the direct form.
    #[inline]
    #[must_use]
    pub const fn direct_parts(self) -> u64 {
        self.0.direct_parts()
    }

    /// Runs the program for a device whose attributes and capacities all have valid values. Returns the price too.
    pub fn run_within(self, input: SelectorInput<'_>, bound: Bound<'_>) -> (Result<bool, EvaluationError>, u64) {
        self.0.run_within(input, bound)
    }

    /// Evaluates the expression for its value. Returns the price too.
    pub fn derive_within(
        self,
        input: SelectorInput<'_>,
        bound: Bound<'_>,
    ) -> (Result<DeviceAttribute, EvaluationError>, u64) {
        self.0.derive_within(input, bound)
    }

    /// Returns true if the expression has a direct form, which costs less than a search for its answers by values.
    #[inline]
    #[must_use]
    pub const fn is_direct(self) -> bool {
        self.0.is_direct()
    }
}
