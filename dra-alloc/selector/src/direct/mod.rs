//! Common forms of selectors, evaluated without a program.
//!
//! A direct form answers only ordinary cases. It has no answer if an attribute is missing, has another type than the
//! literal it is compared with, or is large; then the program decides, which also words the errors. A mistake here
//! can therefore only be a wrong answer, never another error. The generated tests of this module look for such
//! mistakes.
//!
//! # Cost
//! An expression is short, and every test in it reads one value that is not large ([`read`] has the limits), so
//! that the program could not reach the limit of costs where there is a direct answer.
//!
//! Tests: `tests/it/matching.rs`, `tests/it/generated.rs`.

mod read;
mod recognize;

use std::fmt;

use super::check::Checked;
use super::input::SelectorInput;
use super::syntax::tree::{Kind, NodeId};
use recognize::{Test, recognize};

/// Expression in a direct form.
pub(super) struct Direct(Test);

impl Direct {
    /// Returns the direct form of an expression; `None` if it has none.
    pub(super) fn recognize(checked: &Checked<'_>) -> Option<Self> {
        recognize(checked).map(Self)
    }

    /// Returns the result of the expression for a device whose attributes and capacities are valid; `None` if only the
    /// program can evaluate it.
    pub(super) fn evaluate(&self, input: SelectorInput<'_>) -> Option<bool> {
        (self.0)(input)
    }
}

/// Returns the price of the direct form in parts of a unit of a search's work (64 are 0.1 to 0.2 microseconds): one for each
/// part of the expression, of which a comparison has seven, and two for each byte of a pattern.
pub(super) fn parts(checked: &Checked<'_>) -> u64 {
    let pattern = |node: &NodeId| match checked.tree.kind(*node) {
        Kind::Call { function: "matches", arguments, .. } => checked.tree.text(*arguments.first()?).map(str::len),
        _ => None,
    };
    let patterns: usize = checked.order.iter().filter_map(pattern).sum();
    u64::try_from(checked.tree.len() + 2 * patterns).unwrap_or(u64::MAX)
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Direct")
    }
}
