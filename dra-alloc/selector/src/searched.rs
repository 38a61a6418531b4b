//! Evaluation as a part of a search.

use k8s_openapi::api::resource::v1::DeviceAttribute;

use crate::error::EvaluationError;
use crate::input::SelectorInput;
use crate::meter::Bound;

/// Evaluation as a part of a search, which pays for it in parts of a unit of its work.
pub trait SearchedSelector {
    /// Evaluates the direct form, for a device whose attributes and capacities all have valid values ([`is_sound`](crate::internal::is_sound)). Returns
    /// the price too; `None` if the program has to answer.
    fn answer(&self, input: SelectorInput<'_>) -> Option<(bool, u64)>;

    /// Runs the program for a device whose attributes and capacities all have valid values. Returns the price too.
    fn run_within(&self, input: SelectorInput<'_>, bound: Bound<'_>) -> (Result<bool, EvaluationError>, u64);

    /// Evaluates like [`Selector::derive`](crate::Selector::derive). Returns the price too.
    fn derive_within(
        &self,
        input: SelectorInput<'_>,
        bound: Bound<'_>,
    ) -> (Result<DeviceAttribute, EvaluationError>, u64);

    /// Returns true if the expression has a direct form, which costs less than to remember its answers.
    fn is_direct(&self) -> bool;

    /// Returns the memory of the compiled expression, in bytes, roughly: its patterns count with the estimated size of their
    /// compiled forms.
    fn memory(&self) -> usize;
}
