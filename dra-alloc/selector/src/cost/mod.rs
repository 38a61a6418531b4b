//! Prices of expressions, in Kubernetes' units: what an evaluation can cost, and what it does.
//!
//! Tests: `tests/it/bounds.rs`, `src/tests`.

pub(super) mod actual;
pub(super) mod estimate;
mod own;
mod place;
pub(super) mod range;
pub(super) mod too_complex;
